"""Files are data: every module that loads code, or makes objects of bytes, is listed with what it may load."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

import pytest

from fastsim.policies import registry
from tests.style.imports import edges_of, imports, module_of
from tests.style.tree import ROOT, nodes, short, sources

OURS, INSTALLED, USERS = "modules of fastsim, by constants", "what the user has installed", "what a policy's text names"
WORKERS, SYSTEM, NOTHING = "what our own processes send", "libraries of the system, by constants", "nothing"
LISTED: dict[str, tuple[str, set[str]]] = {
    "fastsim/__init__.py": (OURS, {"importlib"}),
    "fastsim/__main__.py": (NOTHING, {"sys.path"}),  # takes the current folder out
    "fastsim/engine/checkpoints/state_file.py": (NOTHING, {"np.load"}),  # which refuses objects
    "fastsim/experiments/executors/distributed.py": (NOTHING, {"sys.path"}),  # hands it to workers
    "fastsim/experiments/executors/processes.py": (WORKERS, {"multiprocessing", "pickle"}),
    "fastsim/experiments/reproduce/papers.py": (OURS, {"importlib"}),
    "fastsim/foundation/interrupts.py": (NOTHING, {"sys.modules"}),  # asks whether pyarrow is loaded
    "fastsim/foundation/written_folder.py": (SYSTEM, {"ctypes"}),
    "fastsim/kubernetes/pod_rules/kept_parts.py": (NOTHING, {"marshal"}),  # only makes bytes
    "fastsim/kubernetes/yaml_text.py": (NOTHING, {"yaml.load_all"}),  # whose loader makes no objects
    "fastsim/policies/__init__.py": (OURS, {"importlib"}),
    "fastsim/policies/online/imported_scorer.py": (USERS, {"importlib", "sys.modules", "sys.path"}),
    "fastsim/policies/registry.py": (INSTALLED, {"importlib"}),
    "fastsim/policies/solvers/cbc.py": (SYSTEM, {"ctypes"}),
    "fastsim/reports/guides.py": (OURS, {"importlib"}),
    "fastsim/workload/generators/recipes.py": (OURS, {"importlib"}),
    "fastsim/workload/texts.py": (INSTALLED, {"importlib"}),
}
"""Modules that load something: what it is, and what they load it with."""
LOADERS = {
    "importlib", "imp", "pkgutil", "zipimport", "runpy", "code", "codeop", "site", "pickle", "marshal", "shelve",
    "cloudpickle", "dill", "joblib", "copyreg", "ctypes", "cffi", "subprocess", "pty", "multiprocessing",
}  # fmt: skip
"""Modules that load or start code, or make objects of any class from bytes."""
READERS = {"importlib.resources.files", "importlib.metadata.version", "importlib.metadata.PackageNotFoundError"}
"""Parts of them that only read texts of installed packages."""
FUNCTIONS = {"exec", "eval", "compile", "__import__", "breakpoint", "literal_eval"}
"""Functions that run a text, or read it as code."""
PARTS = re.compile(
    r"sys\.(path|meta_path|path_hooks|modules)|ast\.literal_eval|builtins\.\w+|types\.(Code|Function)Type"
    r"|os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*)|(np|numpy)\.load|yaml\.(load|unsafe_load|full_load)\w*"
    r"|.*\.(deserialize|read_pickle|from_pickle|loads_pickle)"
)
"""Parts of other modules and objects that do the same."""
CYTHON = re.compile(rf"^\s*(from|c?import)\s+({'|'.join(LOADERS)})\b|\b({'|'.join(FUNCTIONS)})\(|\bdlopen\b", re.M)


def loading(module: Iterable[ast.AST]) -> set[str]:
    """What a module loads code with, or makes objects of bytes with."""
    found: set[str] = set()
    for node in module:
        if isinstance(node, ast.Name) and node.id in FUNCTIONS:
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found |= {name for name in [dotted(node)] if PARTS.fullmatch(name)}
        else:
            found |= {name.partition(".")[0] for name in imported(node) - READERS} & LOADERS
    return found


def dotted(node: ast.expr) -> str:
    """The name of an attribute with the objects before it, of which all but names are left out."""
    before = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def imported(node: ast.AST) -> set[str]:
    """Full names that a statement imports; relative imports are fastsim's own."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {f"{node.module}.{alias.name}" for alias in node.names}
    return set()


def test_every_module_that_loads_code_is_listed() -> None:
    found = {short(path): loading(nodes(path)) for path in sources("fastsim", "fastsim_ext", suffix=".py")}
    assert {name: used for name, used in found.items() if used} == {name: used for name, (_, used) in LISTED.items()}
    compiled = [path for suffix in (".pyx", ".pxd") for path in sources("fastsim_ext", suffix=suffix)]
    assert compiled and [short(path) for path in compiled if CYTHON.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("import importlib.util as u", {"importlib"}), ("from importlib import import_module", {"importlib"}),
        ("from importlib.metadata import entry_points", {"importlib"}), ("import pickle as p", {"pickle"}),
        ("def f(x):\n    return eval(x)", {"eval"}), ("run = exec", {"exec"}), ("__import__('a')", {"__import__"}),
        ("from ast import literal_eval as read\nread('1')", set()), ("ast.literal_eval(x)", {"ast.literal_eval"}),
        ("sys.path.insert(0, x)", {"sys.path"}), ("os.execvp(x, y)", {"os.execvp"}),
        ("pl.LazyFrame.deserialize(x)", {"pl.LazyFrame.deserialize"}), ("builtins.eval(x)", {"builtins.eval"}),
        ("from importlib.resources import files", set()), ("pl.col(x).list.eval(y)", set()), ("re.compile(x)", set()),
    ],
)  # fmt: skip
def test_what_loads_code_is_seen(text: str, used: set[str]) -> None:
    assert loading(ast.walk(ast.parse(text))) == used


def users_loaders() -> set[str]:
    """Modules that import what a policy's text names."""
    return {module_of(ROOT / name) for name, (what, _) in LISTED.items() if what == USERS}


def reached(module: str, edges: Mapping[str, set[str]]) -> set[str]:
    """The module and all that it imports, in any depth; the registry, which imports every policy, ends a way."""
    seen, left = set[str](), {module}
    while left := left - seen - {registry.__name__}:
        seen |= left
        left = {other for one in left for other in edges.get(one, ())}
    return seen


def test_every_policy_that_can_import_code_says_so() -> None:
    edges = edges_of(imports())
    classes = [cls for cls in registry.classes() if cls.__module__.startswith("fastsim.")]
    able = {cls.policy_name for cls in classes if users_loaders() & reached(cls.__module__, edges)}
    saying = {cls.policy_name for cls in classes if hasattr(cls, "imports_code")}
    assert len(classes) >= len(registry.MODULES) and able == saying == {"python"}


def test_options_reach_users_code_through_policies_alone() -> None:
    above = {one.importer for one in imports() if one.imported in users_loaders()}
    assert above == {"fastsim.policies.online.python_scorer"}
