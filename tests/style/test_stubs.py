"""The hand-written stubs say what the compiled modules have, name by name and argument by argument."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

from tests.style.cython_text import signatures
from tests.style.tree import ROOT, parsed, short, sources

CLASS = re.compile(r"(?:cdef )?class (\w+)")
COMMA = re.compile(r",(?![^\[]*\])")
"""Between arguments, not between dimensions of an array."""
NAMED = re.compile(r"\w+")


def shape(arguments: ast.arguments) -> list[str]:
    """Argument names in order, ``=`` marking those that have a default."""
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    first = len(plain) - len(arguments.defaults)
    names = [name + "=" * (i >= first) for i, name in enumerate(plain)]
    return names + [
        a.arg + "=" * (d is not None) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]


def shapes(path: Path) -> dict[str, list[str]]:
    """The same for the functions and methods of a module, as its source has them; compiled ones do not tell."""
    lines, found = path.read_text(encoding="utf-8").splitlines(), {}
    for one in signatures(path):
        text = re.search(r"\((.*)\)", one.text)
        owner = next((CLASS.match(line) for line in lines[one.line - 1 :: -1] if re.match(r"\S.*:$", line)), None)
        inside = lines[one.line - 1].startswith(" ") and owner is not None
        name = f"{owner.group(1)}.{one.name}" if inside and owner else one.name
        found[name] = [argument(piece) for piece in COMMA.split(text.group(1) if text else "") if NAMED.search(piece)]
    return found


def argument(piece: str) -> str:
    """Name of an argument, ``=`` marking one that has a default."""
    typed, default, _ = re.sub(r"\b(not|or) None\b", "", piece).partition("=")
    return str(NAMED.findall(typed)[-1]) + default


def declared(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Public names of a stub's module or class."""
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return {name: node for name, node in names.items() if not name.startswith("_")}


def actual(owner: ModuleType | type) -> set[str]:
    """Public names of a compiled module or class."""
    names = {name for name in vars(owner) if not name.startswith("_")}
    if isinstance(owner, ModuleType):
        names = {n for n in names if not isinstance(vars(owner)[n], ModuleType) and _at_home(owner, n)}
    return names


def _at_home(module: ModuleType, name: str) -> bool:
    return getattr(vars(module)[name], "__module__", module.__name__) == module.__name__


def compare(where: str, body: list[ast.stmt], owner: ModuleType | type, told: dict[str, list[str]]) -> list[str]:
    """What differs between a stub and what was compiled; ``told`` are the arguments of each function."""
    stub, real = declared(body), actual(owner)
    findings = [f"{where}: {name} is only in the stub" for name in sorted(stub.keys() - real)]
    findings += [f"{where}: {name} is missing in the stub" for name in sorted(real - stub.keys())]
    for name in sorted(stub.keys() & real):
        node, found = stub[name], getattr(owner, name)
        if isinstance(node, ast.ClassDef):
            findings += compare(f"{where}.{name}", node.body, found, told)
        elif isinstance(node, ast.FunctionDef) and callable(found):
            shown = told.get(f"{owner.__name__}.{name}" if isinstance(owner, type) else name)
            if shown != shape(node.args):
                findings.append(f"{where}.{name}: stub {shape(node.args)}, source {shown}")
    return findings


def module_of(path: Path) -> str:
    """The dotted name of a source file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_stubs_match_the_compiled_modules() -> None:
    findings = []
    for path in sources("fastsim_ext", suffix=".pyx"):
        stub = path.with_suffix(".pyi")
        if not stub.exists():
            findings.append(f"{short(path)} has no stub")
            continue
        findings += compare(short(stub), parsed(stub).body, importlib.import_module(module_of(path)), shapes(path))
    assert findings == []
