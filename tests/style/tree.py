"""The files of this tree, as the style tests read them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def ignored(name: str) -> bool:
    """Whether git would not look at a file or folder of this name."""
    patterns = (ROOT / ".gitignore").read_text().split()
    return name == ".git" or any(fnmatch(name, pattern.rstrip("/")) for pattern in patterns)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if ignored(path.name):
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that belongs to the tree."""
    return tuple(_walk(ROOT))


def sources(*folders: str, suffix: str) -> list[Path]:
    """Files of one kind under these top-level folders."""
    return [p for p in tracked() if p.suffix == suffix and p.relative_to(ROOT).parts[0] in folders]


def short(path: Path) -> str:
    """The path as a reader of a finding wants it."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file, which is kept until the tests end."""
    with _growing():
        return ast.parse(path.read_text(encoding="utf-8"))


@contextmanager
def _growing() -> Iterator[None]:
    """A block that makes many objects and drops none: the collector of garbage would take most of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of the syntax tree of a Python file."""
    with _growing():
        return tuple(ast.walk(parsed(path)))


@cache
def functions(path: Path) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Every function of a Python file, methods and inner ones included."""
    return tuple(node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
