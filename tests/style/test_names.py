"""The naming law of CONTRIBUTING.md, docstrings, and what may stand where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.style.cython_text import signatures
from tests.style.tree import ROOT, functions, ignored, nodes, parsed, short, sources, tracked

TOP_LEVEL = {"fastsim", "fastsim_ext", "traces", "bench", "tests", ".ci", ".github"}
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "stuff"}
VARIANT = re.compile(r"_(v\d+|new|old|fix|copy|final|tmp)$")
ACT = re.compile(r"_*(get|set|compute|calculate|calc|do)_")
OVERRIDDEN = {"get_attr", "set_attr", "__get__"}
"""Methods that a base class of Stable-Baselines3, or Python, asks for."""
MACHINE_PATH = re.compile(r"/(home|root|Users|work|tmp|opt|mnt)/\w|\b[A-Z]:\\\\?Users")
PACKAGES = ("fastsim", "fastsim_ext")
MATHS = {
    "adaptive/fitness": "fitness",
    "adaptive/genetic_operators": "genetic",
    "adaptive/goodput": "goodput",
    "adaptive/step_time_fit": "fit",
    "scores/device": "device",
    "scores/dot": "dot",
    "scores/frag": "frag",
    "scores/frag_grouped": "grouped",
    "scores/pack": "pack",
    "scores/points": "points",
    "scores/power": "power",
    "select/class_frequency": "frequency",
    "select/max_tree": "tree",
    "select/max_tree_updates": "updates",
    "solvers/lbfgsb": "lbfgsb",
    "solvers/lbfgsb_curvature": "curvature",
    "solvers/lbfgsb_subspace": "subspace",
}
"""Kernels by their place below fastsim_ext, and the prefix of their functions."""
RIDDLES = ("told", "hungry", "somebody", "nobody", "deeds", "lent")
"""Words that stand for a term of the domain: names and docstrings have the term."""
RIDDLE = re.compile(rf"(?<![^\W_])(?:{'|'.join(RIDDLES)})(?![^\W_])", re.IGNORECASE)


def public(node: ast.Module | ast.ClassDef, where: str) -> Iterator[tuple[str, ast.AST]]:
    """Public classes, functions and methods with their dotted names."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
            yield f"{where}.{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from public(child, f"{where}.{child.name}")


def test_no_other_top_level_folder() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not ignored(path.name)}
    assert folders - TOP_LEVEL == set()


def test_file_names_say_something() -> None:
    stems = {short(path): path.stem.lower() for path in tracked()}
    assert [name for name, stem in stems.items() if stem in EMPTY_NAMES or VARIANT.search(stem)] == []


def test_functions_are_named_after_quantities() -> None:
    findings = [
        f"{short(path)}:{node.lineno} {node.name}"
        for path in sources(*PACKAGES, "bench", "tests", suffix=".py")
        for node in functions(path)
        if (ACT.match(node.name) and node.name not in OVERRIDDEN) or VARIANT.search(node.name)
    ]
    findings += [
        f"{short(path)}:{found.line} {found.name}"
        for path in sources("fastsim_ext", suffix=".pyx")
        for found in signatures(path)
        if ACT.match(found.name) or VARIANT.search(found.name)
    ]
    assert findings == []


def kernel(path: Path) -> str:
    """The place of a compiled module below its package."""
    return path.relative_to(ROOT / "fastsim_ext").with_suffix("").as_posix()


def strangers(path: Path, prefix: str) -> list[str]:
    """Functions that a file of the maths floor declares under another prefix than its own."""
    return [found.name for found in signatures(path) if not found.name.startswith(f"{prefix}_")]


def test_a_kernels_prefix_is_that_of_its_file() -> None:
    paths = {kernel(path): path for path in sources("fastsim_ext", suffix=".pxd") if kernel(path) in MATHS}
    assert {name for name, path in paths.items() if list(signatures(path))} == MATHS.keys()
    findings = {name: strangers(path, MATHS[name]) for name, path in paths.items()}
    assert {name: found for name, found in findings.items() if found} == {}


def test_a_kernel_of_another_name_is_found(tmp_path: Path) -> None:
    path = tmp_path / "frag.pxd"
    path.write_text("cdef double frag_amount(int n) noexcept nogil\ncdef double fragment(int n) noexcept nogil\n")
    assert strangers(path, "frag") == ["fragment"]


def test_public_python_names_have_docstrings() -> None:
    findings = []
    for path in sources(*PACKAGES, "bench", suffix=".py"):
        module = parsed(path)
        if ast.get_docstring(module) is None:
            findings.append(f"{short(path)}: module")
        for name, node in public(module, short(path)):
            if ast.get_docstring(node) is None:  # type: ignore[arg-type]
                findings.append(name)
    assert findings == []


def test_public_compiled_names_have_docstrings() -> None:
    findings = []
    for path in sources("fastsim_ext", suffix=".pyx"):
        if not path.read_text(encoding="utf-8").startswith('"""'):
            findings.append(f"{short(path)}: module")
        for found in signatures(path):
            if found.kind != "cdef" and not found.name.startswith("_") and not found.docstring:
                findings.append(f"{short(path)}:{found.line} {found.name}")
    assert findings == []


def test_no_path_of_one_machine() -> None:
    findings = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        findings += [f"{short(path)}: {found.group(0)}" for found in MACHINE_PATH.finditer(text)]
    assert findings == []


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and texts of a file's names and docstrings; comments and messages are left out."""
    if path.suffix != ".py":
        source = path.read_text(encoding="utf-8")
        for number, line in enumerate(source.splitlines(), 1):
            yield number, re.sub(r'(?<!")"[^"]*"(?!")', "", line.split("#", 1)[0])
        return
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from enumerate(node.value.value.splitlines(), node.lineno)
        names = (getattr(node, name, None) for name in ("id", "arg", "attr", "name"))
        yield from ((getattr(node, "lineno", 1), name) for name in names if isinstance(name, str))


def riddles(path: Path) -> list[str]:
    """Places of a file, ``file:line word``, with one of the words of ``RIDDLES``."""
    places = {(number, found) for number, text in words(path) for found in RIDDLE.findall(text)}
    return [f"{short(path)}:{number} {found}" for number, found in sorted(places)]


def test_no_riddles_in_names_and_docstrings() -> None:
    paths = [path for suffix in (".py", ".pyx", ".pxd", ".pyi") for path in sources(*PACKAGES, suffix=suffix)]
    findings = [place for path in paths for place in riddles(path)]
    assert findings == [], "\n".join(findings)


def test_a_riddle_is_found_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.style.test_names.short", lambda path: path.name)
    (tmp_path / "a.py").write_text('"""One.\n\nSomebody."""\n\nwas_told = raised("told")  # told\n')
    (tmp_path / "b.pyx").write_text('cdef int told(int n):\n    raise ValueError("told")  # told\n')
    assert riddles(tmp_path / "a.py") == ["a.py:3 Somebody", "a.py:5 told"]
    assert riddles(tmp_path / "b.pyx") == ["b.pyx:1 told"]
