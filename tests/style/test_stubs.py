"""The hand-written stubs say what the compiled modules have, name by name and argument by argument."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from types import ModuleType

from tests.style.tree import ROOT, parsed, short, sources


def shape(arguments: ast.arguments) -> list[str]:
    """Argument names in order, ``=`` marking those that have a default."""
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    first = len(plain) - len(arguments.defaults)
    names = [name + "=" * (i >= first) for i, name in enumerate(plain)]
    return names + [
        a.arg + "=" * (d is not None) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]


def real_shape(function: object) -> list[str] | None:
    """The same for a compiled function; None when it does not tell."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return [p.name + "=" * (p.default is not p.empty) for p in parameters]


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


def compare(where: str, body: list[ast.stmt], owner: ModuleType | type) -> list[str]:
    """What differs between a stub and what was compiled."""
    stub, real = declared(body), actual(owner)
    findings = [f"{where}: {name} is only in the stub" for name in sorted(stub.keys() - real)]
    findings += [f"{where}: {name} is missing in the stub" for name in sorted(real - stub.keys())]
    for name in sorted(stub.keys() & real):
        node, found = stub[name], getattr(owner, name)
        if isinstance(node, ast.ClassDef):
            findings += compare(f"{where}.{name}", node.body, found)
        elif isinstance(node, ast.FunctionDef) and callable(found):
            shown = real_shape(found)
            if shown is not None and shown != shape(node.args):
                findings.append(f"{where}.{name}: stub {shape(node.args)}, compiled {shown}")
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
        findings += compare(short(stub), parsed(stub).body, importlib.import_module(module_of(path)))
    assert findings == []
