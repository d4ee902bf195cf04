"""Numbers of the cells of a column, the same for equal cells: of lists, maps and structs, too.

Rows with lists repeat few of them, so whoever looks at cells in Python looks at the first cell of each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

t = pa.types
Codes = npt.NDArray[np.int32]


class Distinct(NamedTuple):
    """Rows that are the first of their kind, in their order, and the place of each row's first one among them."""

    rows: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


def distinct_rows(columns: Sequence[pa.Array | Codes]) -> Distinct:
    """The distinct rows of columns; a column may be given as numbers of its cells."""
    codes = [column if isinstance(column, np.ndarray) else cell_codes(column) for column in columns]
    _, first, inverse = np.unique(_joint(codes), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Distinct(first[order], rank[inverse])


def cell_codes(column: pa.Array) -> Codes:
    """A number for each cell, the same for equal cells; -1 for null."""
    kind = column.type
    if t.is_dictionary(kind):
        return cell_codes(column.dictionary_decode())
    if t.is_struct(kind):
        codes = _joint([cell_codes(part) for part in column.flatten()] or [np.zeros(len(column), np.int32)])
    elif t.is_list(kind) or t.is_map(kind):
        codes = _list_codes(column)
    else:
        return _encoded(column)
    codes[~column.is_valid().to_numpy(zero_copy_only=False)] = -1
    return codes


def _list_codes(column: pa.ListArray | pa.MapArray) -> Codes:
    """Lists with the same numbers of their cells are the same bytes."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    parts = (column.keys, column.items) if t.is_map(column.type) else (column.values,)
    cells = _joint([cell_codes(part.slice(first, count)) for part in parts])
    places = pa.py_buffer((offsets - first) * cells.itemsize)
    return _encoded(pa.Array.from_buffers(pa.large_binary(), len(column), [None, places, pa.py_buffer(cells)]))


def _joint(codes: Sequence[Codes]) -> Codes:
    """Numbers of the rows of several columns, from those of their cells."""
    if len(codes) == 1:
        return codes[0]
    rows = np.ascontiguousarray(np.stack(codes, axis=1))
    kind = pa.binary(rows.itemsize * len(codes))
    return _encoded(pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)]))


def _encoded(column: pa.Array) -> Codes:
    if t.is_null(column.type):
        return np.full(len(column), -1, np.int32)
    return np.array(column.dictionary_encode().indices.fill_null(-1).to_numpy(), np.int32)
