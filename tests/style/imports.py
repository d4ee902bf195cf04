"""Who imports whom in the two packages, as files say it: at load time, lazily or for types only.

Run as a module it prints the picture of packages that stands in CONTRIBUTING.md: ``python -m tests.style.imports``.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.style.tree import ROOT, nodes, parsed, short, sources

ORDER: tuple[tuple[str, ...], ...] = (
    ("cli",), ("experiments", "decisions"), ("reports",), ("simulation",), ("policies",), ("engine",), ("telemetry",),
    ("scenario",), ("workload",), ("performance",), ("cluster",), ("kubernetes",), ("hardware",), ("foundation",),
    ("errors",),
)  # fmt: skip
"""Packages and modules of ``fastsim`` from top to bottom; those of one row do not know each other."""
INNER: dict[str, tuple[tuple[str, ...], ...]] = {
    "fastsim.engine": (
        ("online", "monitored", "shares", "orders", "adaptive", "originals"), ("rounds",),
        ("sampling",), ("",), ("audit",), ("checkpoints", "driving"), ("totals",),
    ),
    "fastsim.policies": (
        ("online", "shares", "adaptive", "monitored"), ("orders",), ("deciders", "allocators"), ("programs",),
        ("solvers",), ("",),
    ),
    "fastsim.reports": (("kubernetes", "pairs"), ("",), ("charts",)),
    "fastsim_ext": (("online", "adaptive"), ("rounds",), ("select", "solvers"), ("state",), ("scores",), ("",)),
}  # fmt: skip
"""The same for the folders of a package; "" stands for its own modules."""
CIMPORT = re.compile(r"^(?:from\s+(\S+)\s+c?import\s+(.*)|c?import\s+(\S+))")


class Import(NamedTuple):
    """One import: who, whom, in which line, and whether loading the one loads the other."""

    importer: str
    imported: str
    path: Path
    line: int
    at_load: bool

    def __str__(self) -> str:
        """As a finding shows it."""
        return f"{short(self.path)}:{self.line} imports {self.imported}"


def module_of(path: Path) -> str:
    """Dotted name of a source file."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Every module of both packages, and one file of it."""
    found: dict[str, Path] = {}
    for suffix in (".pxd", ".pyi", ".pyx", ".py"):
        found |= {module_of(path): path for path in sources("fastsim", "fastsim_ext", suffix=suffix)}
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Every import of one module of the two packages by another."""
    found = []
    for suffix in (".py", ".pyi", ".pyx", ".pxd"):
        for path in sources("fastsim", "fastsim_ext", suffix=suffix):
            own = module_of(path)
            lines = python_imports(path) if suffix in (".py", ".pyi") else _cython(path)
            found += [
                Import(own, name, path, line, loaded)
                for name, line, loaded in lines
                if name in modules() and name != own
            ]
    return tuple(found)


def python_imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Name, line and whether it is loaded with the file, of each import of a Python file or stub."""
    loaded = set() if path.suffix == ".pyi" else set(_at_load(parsed(path).body))
    for node in nodes(path):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _names(node):
                yield name, node.lineno, node in loaded


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        yield from (exact(node.module, alias.name) for alias in node.names)


def _at_load(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a module is loaded: not those of functions, not those for types."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from _at_load(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _at_load(getattr(node, part, []))


@cache
def named_imports() -> tuple[Import, ...]:
    """Every import of a module that another one names by a text, such as ``import_module(f"fastsim.policies.{name}")``.

    Behind the beginning of such a text, all texts of the importer are tried, up to a colon, and names of traces.
    """
    found = []
    for path in sources("fastsim", suffix=".py"):
        own, tree = module_of(path), parsed(path)
        texts = {node.value.partition(":")[0] for node in ast.walk(tree) if isinstance(node, ast.Constant)
                 and isinstance(node.value, str)} | traces()  # fmt: skip
        for line, beginning in _beginnings(tree, own):
            reached = {f"{beginning}{text}" for text in texts} & modules().keys() - {own}
            found += [Import(own, name, path, line, False) for name in sorted(reached)]
    return tuple(found)


def _beginnings(tree: ast.Module, own: str) -> Iterator[tuple[int, str]]:
    """Line of each import by a text, and what the text begins with; nothing if it is a variable."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "import_module":
            text = ast.unparse(node.args[0]).replace("{__package__}", own.rpartition(".")[0])
            match = re.match(r"f?(['\"])(.*?)(\{|\1$)", text)
            yield node.lineno, match[2] if match else ""


@cache
def traces() -> frozenset[str]:
    """Published traces, whose names are those of their importers."""
    folder = ROOT / "fastsim" / "workload" / "published_traces"
    with (folder / "tables" / "published_traces.csv").open(newline="") as rows:
        return frozenset(row["name"] for row in csv.DictReader(rows))


def _cython(path: Path) -> Iterator[tuple[str, int, bool]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := CIMPORT.match(line.strip()):
            names = re.findall(r"\w+", match[2] or "")
            for name in sorted({exact(match[1], one) for one in names} if names else {match[1] or match[3]}):
                yield name, number, not line.startswith(" ")


def exact(package: str, name: str) -> str:
    """The module meant by ``from package import name``."""
    return f"{package}.{name}" if f"{package}.{name}" in modules() else package


def package_of(module: str) -> str:
    """The package of ``fastsim`` that a module stands in, or the module itself; "" for the face of ``fastsim``."""
    first, *rest = module.split(".")
    return first if first == "fastsim_ext" else rest[0] if rest and rest[0] != "__main__" else ""


def place(name: str, order: tuple[tuple[str, ...], ...]) -> int:
    """How far down a name stands."""
    return next(number for number, row in enumerate(order) if name in row)


def folder_of(module: str, package: str) -> str:
    """The folder of a package that a module stands in, or the module if it has a row; "" for others of its own."""
    rest = module.removeprefix(f"{package}.").split(".")
    inside = module != package and (len(rest) > 1 or modules()[module].stem == "__init__")
    return rest[0] if inside or any(rest[0] in row for row in INNER[package]) else ""


def upward(found: Iterable[Import]) -> list[Import]:
    """Imports between packages that do not go down."""
    rows = (("",), *ORDER, ("fastsim_ext",))
    findings = []
    for one in found:
        own, other = package_of(one.importer), package_of(one.imported)
        if own != other and place(other, rows) <= place(own, rows):
            findings.append(one)
    return findings


def sideways(found: Iterable[Import]) -> list[Import]:
    """Imports between folders of one package that do not go down; the face of a package may open its own modules."""
    findings = []
    for one in found:
        for package, rows in INNER.items():
            if all(name.startswith(f"{package}.") for name in (one.importer, one.imported)):
                own, other = folder_of(one.importer, package), folder_of(one.imported, package)
                if own != other and place(other, rows) <= place(own, rows):
                    findings.append(one)
    return findings


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of names that reach each other, as Tarjan finds them."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(edges.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group, stack[at:] = sorted(stack[at:]), []
            if len(group) > 1:
                found.append(group)

    for name in sorted(edges):
        if name not in index:
            visit(name)
    return found


def edges_of(found: Iterable[Import]) -> dict[str, set[str]]:
    """Module -> modules that it imports."""
    edges: dict[str, set[str]] = {}
    for one in found:
        edges.setdefault(one.importer, set()).add(one.imported)
    return edges


def picture() -> str:
    """One line for each package: those below it that it imports."""
    names = [name for row in (*ORDER, ("fastsim_ext",)) for name in row]
    below: dict[str, set[str]] = {name: set() for name in names}
    for one in imports():
        own, other = package_of(one.importer), package_of(one.imported)
        if own and other and own != other:
            below[own].add(other)
    width = max(map(len, names))
    listed = {own: " ".join(name for name in names if name in below[own]) for own in names if below[own]}
    return "\n".join(f"{own:{width}} -> {line}" for own, line in listed.items())


if __name__ == "__main__":
    print(picture())
