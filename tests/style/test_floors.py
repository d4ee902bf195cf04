"""Imports only go down the floors that CONTRIBUTING.md lists."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tests.style.tree import ROOT, parsed, short, sources

IMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+c?import\s+(.*)|c?import\s+(\S+))")


@cache
def floors() -> dict[str, int]:
    """Module pattern -> height, read from the table in CONTRIBUTING.md (top row = highest)."""
    rows = re.findall(r"^\| ([^|]+) \| ((?:`fastsim_ext`: )?`[^|]+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    rows = [
        row for row in rows if row[0].split()[0] in {"face", "experiments", "policies", "engine", "inputs", "compiled"}
    ]
    heights: dict[str, int] = {}
    for height, (_, cell) in enumerate(reversed(rows)):
        package, names = ("fastsim_ext", cell.split(":", 1)[1]) if "fastsim_ext" in cell else ("fastsim", cell)
        heights |= {f"{package}.{name}": height for name in re.findall(r"`([\w.*]+)`", names)}
    return heights


def height(module: str) -> int | None:
    """The floor of a module; None when the table does not know it."""
    return next((h for pattern, h in floors().items() if fnmatch(module, pattern)), None)


def module_of(path: Path) -> str:
    """Dotted name of a source file."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> frozenset[str]:
    """Every module of both packages."""
    return frozenset(
        module_of(p) for suffix in (".py", ".pyx", ".pxd") for p in sources("fastsim", "fastsim_ext", suffix=suffix)
    )


def exact(package: str, name: str) -> str:
    """The module meant by ``from package import name``."""
    return f"{package}.{name}" if f"{package}.{name}" in modules() else package


def imports_of(path: Path) -> set[str]:
    """Modules of this project that a file imports anywhere: at the top, lazily or for types only."""
    found = set()
    if path.suffix == ".py":
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {exact(node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    else:
        for line in path.read_text().splitlines():
            if match := IMPORT.match(line):
                names = re.findall(r"\w+", match[2] or "")
                found |= {exact(match[1], name) for name in names} | {match[1]} if match[1] else {match[3]}
    return {name for name in found if name.split(".")[0] in {"fastsim", "fastsim_ext"}}


def test_the_table_was_read() -> None:
    assert len(set(floors().values())) == 8


def test_every_module_has_a_floor() -> None:
    packages = {"fastsim", "fastsim_ext"}
    assert sorted(name for name in modules() - packages if height(name) is None) == []


def test_imports_only_go_down() -> None:
    findings = []
    for suffix in (".py", ".pyx", ".pxd"):
        for path in sources("fastsim", "fastsim_ext", suffix=suffix):
            own = height(module_of(path))
            for name in imports_of(path):
                other = height(name)
                if own is not None and other is not None and other > own:
                    findings.append(f"{short(path)} imports {name}, which is {other - own} floor(s) above it")
    assert findings == []


def test_the_compiled_floors_stand_alone() -> None:
    findings = [
        f"{short(path)} imports {name}"
        for suffix in (".py", ".pyx", ".pxd")
        for path in sources("fastsim_ext", suffix=suffix)
        for name in imports_of(path)
        if name.split(".")[0] == "fastsim"
    ]
    assert findings == []
