"""Cells of Arrow tables come into messages through one function: pyarrow makes other objects of them beside pandas."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.style.tree import nodes, short, sources

HOME = "fastsim/foundation/columns/physical_types.py"
"""The module of :func:`cell_text`, and of what it calls."""
TEXTS = re.compile(r"\w*(Error|Fault|Warning|Finding)|Unconvertible|short|repr|str|kind_of|warn|format")
"""Functions whose arguments become texts."""
NUMBERS = {"int", "float", "bool", "len", "abs"}
"""Functions that take a plain number of a cell, whatever its class."""
CELLS = re.compile("as_py|to_pylist|to_pydict")
"""Methods that make objects of Python."""
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def is_cell(node: ast.AST) -> bool:
    """Whether an expression is a cell, or all cells of a column, as objects of Python."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    of_one = node.func.attr == "as_py" and not isinstance(node.func.value, ast.Call)
    return of_one or node.func.attr in ("to_pylist", "to_pydict")


def may_be_cell(node: ast.expr) -> bool:
    """Whether an expression is a cell, in one case at least."""
    cases = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)
    return any(is_cell(case) for case in cases)


def name_of(call: ast.Call) -> str:
    """The last part of a function's name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def within(node: ast.AST) -> Iterator[ast.AST]:
    """The expression and its parts, without those that become numbers or are only compared."""
    yield node
    if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and name_of(node) in NUMBERS):
        return
    for child in ast.iter_child_nodes(node):
        yield from within(child)


def shown(function: ast.AST) -> Iterator[int]:
    """Lines of a function in which a cell becomes a text otherwise."""
    cells = {
        target.id for node in ast.walk(function) if isinstance(node, ast.Assign) and may_be_cell(node.value)
        for target in node.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for node in ast.walk(function):
        for part in (part for text in texts_of(node) for part in within(text)):
            if is_cell(part) or (isinstance(part, ast.Name) and part.id in cells):
                yield getattr(part, "lineno", 0)


def texts_of(node: ast.AST) -> list[ast.expr]:
    """Expressions in this one that become texts."""
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.Call) and TEXTS.fullmatch(name_of(node)):
        return [*node.args, *(word.value for word in node.keywords)]
    return []


def test_cells_become_texts_in_one_function() -> None:
    modules = [path for path in sources("fastsim", suffix=".py") if CELLS.search(path.read_text(encoding="utf-8"))]
    found = {
        f"{short(path)}:{line}" for path in modules if short(path) != HOME
        for node in nodes(path) if isinstance(node, FUNCTION) for line in shown(node)
    }  # fmt: skip
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "raise InputError(where, column[row].as_py(), 'x')", "raise InputError(where, repr(column[row].as_py()), 'x')",
        "found = f'{column[row].as_py()} x'", "cell = column[row].as_py()\n    yield Fault(row, name, cell, 'x')",
        "cell = column[row].as_py() if known else 3\n    raise InputError(where, cell, 'x')",
        "found = scalar.as_py()\n    text = f'{found:,}'", "text = str(column.to_pylist())",
        "raise InputError(where, found=short(column[0].as_py()))",
    ],
)  # fmt: skip
def test_a_cell_in_a_text_is_seen(text: str) -> None:
    assert set(shown(ast.parse(f"def f():\n    {text}\n")))


@pytest.mark.parametrize(
    "text",
    [
        "row = pc.index(bad, True).as_py()\n    where(f'{row + 1}')", "raise InputError(where, cell_text(column, row))",
        "submit_s = float(column[0].as_py())\n    text = f'{submit_s:g}'", "if column[0].as_py() > 3: pass",
    ],
)  # fmt: skip
def test_other_values_may_be_shown(text: str) -> None:
    assert not set(shown(ast.parse(f"def f():\n    {text}\n")))
