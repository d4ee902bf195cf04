"""Sums of numbers have one order: polars adds groups on several threads, in any order, unless groups keep theirs."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.style.tree import nodes, sources

ORDERED = {"maintain_order": True, "use_threads": False}
"""Arguments of polars and pyarrow that keep the order."""


def unordered(path: Path) -> list[str]:
    """Lines of a module that group rows in any order."""
    return [
        f"{path.name}:{node.lineno}"
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "group_by"
        and not any(
            isinstance(given.value, ast.Constant) and ORDERED.get(given.arg or "") is given.value.value
            for given in node.keywords
        )
    ]


def test_groups_keep_their_order() -> None:
    assert [line for path in sources("fastsim", suffix=".py") for line in unordered(path)] == []


def test_groups_in_any_order_are_found(tmp_path: Path) -> None:
    module = tmp_path / "groups.py"
    module.write_text(
        'a.group_by("x", maintain_order=True)\nb.group_by("x")\nc.group_by("x", maintain_order=False)\n'
        'd.group_by("x", use_threads=False)\n'
    )
    assert [line.rpartition(":")[2] for line in unordered(module)] == ["2", "3"]
