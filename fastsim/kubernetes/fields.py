"""What becomes of each field and resource of Kubernetes that has to do with scheduling, as a table.

The table is `kubernetes/tables/kubernetes_fields.csv`. A field is written as the keys that lead to it, ``spec: taints:
key``; the last may be a value, ``effect: NoExecute``, the beginning of a name, ``nvidia.com/mig-``, or ``*`` for any
other one.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastsim.errors import ScenarioError

TABLES = Path(__file__).parent / "tables"

STANDINGS = {
    "honoured": "counts as in Kubernetes",
    "approximated": "counts, but for what is said",
    "named": "does not count; told once with how many there are, and refused with --strict",
    "refused": "ends with exit code 2",
    "harmless": "has no part in where a pod may go",
}
"""What may become of a field."""
STEP = ": "
"""What stands between the keys that lead to a field."""


class Field(NamedTuple):
    """One field: the kinds of objects that have it, the keys that lead to it, one of ``STANDINGS``, and how."""

    object: str
    field: str
    standing: str
    how: str


@cache
def fields() -> tuple[Field, ...]:
    """All fields, those of nodes first."""
    with (TABLES / "kubernetes_fields.csv").open(encoding="utf-8", newline="") as text:
        return tuple(Field(**row) for row in csv.DictReader(text))


def chosen(words: tuple[str, ...] = ()) -> list[Field]:
    """Fields with one of some words in their objects, keys or standing; all of them without words."""
    found = [one for one in fields() if not words or any(word in part for word in words for part in one[:3])]
    if not found:
        raise ScenarioError(f"kubernetes {' '.join(words)!r}", "no such field", "a part of a kind, a key or a resource")
    return found


def fields_text(found: list[Field]) -> str:
    """Fields to be read, a line for each."""
    lines = [f"{one.object}: {one.field}: {one.standing}" + (f"; {one.how}" if one.how else "") for one in found]
    used = {one.standing for one in found}
    return "\n".join([*lines, "", *(f"{name}: {text}" for name, text in STANDINGS.items() if name in used)])
