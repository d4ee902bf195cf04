"""A struct whose bytes are stored in checkpoints has no byte that belongs to none of its fields.

Such bytes hold what was in memory before, so two equal runs would write different checkpoints.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.style.tree import ROOT

FOLDER = ROOT / "fastsim_ext"
STORED = re.compile(r"raw_bytes\(.*sizeof\((\w+)\)\)")
STRUCT = re.compile(r"^(?:cdef|ctypedef) (?:packed )?struct (\w+):.*\n((?:(?:    .*)?\n)+)", re.MULTILINE)
FIELD = re.compile(r"^    (\w+) (\w+(?:\[\w+\])?(?:, \w+(?:\[\w+\])?)*) *(?:#.*)?$", re.MULTILINE)
SIZES = {"double": 8, "int64_t": 8, "uint64_t": 8, "int32_t": 4, "uint32_t": 4, "int": 4, "bint": 4, "bool": 1,
         "float": 4, "uint8_t": 1, "int8_t": 1, "int16_t": 2}  # fmt: skip
"""Bytes of the types of fields; each is aligned to its own size."""


def structs() -> dict[str, list[tuple[str, str]]]:
    """Fields of each struct: type and name."""
    found = {}
    for path in sorted(FOLDER.rglob("*.px[di]")) + sorted(FOLDER.rglob("*.pyx")):
        for name, block in STRUCT.findall(path.read_text(encoding="utf-8")):
            fields = FIELD.findall(block)
            found[name] = [(kind, field.strip()) for kind, names in fields for field in names.split(",")]
    return found


STRUCTS = structs()


def stored() -> list[str]:
    """Structs whose bytes a snapshot takes, and structs within them."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("snapshot.pyx")]
    names = {name for text in texts for name in STORED.findall(text) if name in STRUCTS}
    inner = {kind for name in names for kind, _ in STRUCTS[name] if kind in STRUCTS}
    return sorted(names | inner)


def alignment(kind: str) -> int:
    """Bytes to a multiple of which a field of this type is moved."""
    return max(alignment(inner) for inner, _ in STRUCTS[kind]) if kind in STRUCTS else SIZES[kind]


def gaps(name: str) -> list[str]:
    """Fields of a struct before which there are bytes without a field; ``end`` for bytes after the last one.

    A field of several values counts as one: its size is a multiple of its alignment.
    """
    places = [*((field, alignment(kind), size(kind)) for kind, field in STRUCTS[name]), ("end", alignment(name), 0)]
    found, at = [], 0
    for (_, _, length), (field, step, _) in pairwise([("", 1, 0), *places]):
        at += length
        if at % step:
            found.append(field)
            at += step - at % step
    return found


def size(kind: str) -> int:
    """Bytes of one value of this type, those without a field left out."""
    return sum(size(inner) for inner, _ in STRUCTS[kind]) if kind in STRUCTS else SIZES[kind]


def test_structs_of_snapshots_are_found() -> None:
    assert {"Job", "Change", "OrderedJob"} <= set(stored())


@pytest.mark.parametrize("name", stored())
def test_a_stored_struct_has_no_bytes_between_its_fields(name: str) -> None:
    assert STRUCTS[name]
    assert gaps(name) == []
