"""Table of Kubernetes' fields and resources that concern scheduling: honoured, approximated, named, refused, harmless.

The table is `kubernetes/tables/kubernetes_fields.csv`. A field is written as the path of its keys, ``spec: taints:
key``; the last may be a value, ``effect: NoExecute``, the beginning of a name, ``nvidia.com/mig-``, or ``*`` for any
other one. `kubernetes_unread_fields.csv` has the fields that no code looks up by their names, several in a row with
commas between them.
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
    "approximated": "counts, except as the remark says",
    "named": "does not count; one warning with their number, and refused with --strict",
    "refused": "ends with exit code 2",
    "harmless": "has no part in where a pod may go",
}
"""Treatments of a field, in words."""
STEP = ": "
"""Separator of the keys in the path of a field."""


class Field(NamedTuple):
    """One field: kinds of objects that have it, path of its keys, one of ``STANDINGS``, and a remark on it."""

    object: str
    field: str
    standing: str
    how: str


@cache
def fields() -> tuple[Field, ...]:
    """Fields that the readers look up, those of nodes first."""
    return _table("kubernetes_fields.csv")


@cache
def unread_fields() -> tuple[Field, ...]:
    """Further fields of the kinds that have a part in scheduling."""
    return _table("kubernetes_unread_fields.csv")


def _table(name: str) -> tuple[Field, ...]:
    with (TABLES / name).open(encoding="utf-8", newline="") as text:
        return tuple(Field(**row) for row in csv.DictReader(text))


def chosen(words: tuple[str, ...] = ()) -> list[Field]:
    """Fields with one of the words in their objects, keys or standing; all fields without words."""
    every = (*fields(), *unread_fields())
    matching = [row for row in every if not words or any(word in part for word in words for part in row[:3])]
    if not matching:
        raise ScenarioError(f"kubernetes {' '.join(words)!r}", "no such field", "a part of a kind, a key or a resource")
    return matching


def fields_text(listed: list[Field]) -> str:
    """Text of fields, one a line, and of the standings among them."""
    lines = [f"{row.object}: {row.field}: {row.standing}" + (f"; {row.how}" if row.how else "") for row in listed]
    used = {row.standing for row in listed}
    return "\n".join([*lines, "", *(f"{name}: {text}" for name, text in STANDINGS.items() if name in used)])
