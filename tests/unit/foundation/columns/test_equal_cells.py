"""Numbers of cells: the same exactly for equal cells, whatever their type."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given

from fastsim.foundation.columns.equal_cells import cell_codes, distinct_rows

ITEM = pa.struct([("key", pa.string()), ("values", pa.list_(pa.string())), ("skew", pa.int32())])
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.sampled_from(["", "a", "b"])), (pa.int64(), st.integers(0, 2)), (pa.bool_(), st.booleans()),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b"])),
    (pa.list_(pa.string()), st.lists(st.sampled_from([None, "", "a"]), max_size=2)),
    (pa.map_(pa.string(), pa.int64()), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), max_size=2)),
    (pa.list_(ITEM), st.lists(st.none() | st.fixed_dictionaries(
        {"key": st.sampled_from("ab"), "values": st.none() | st.lists(st.sampled_from("ab"), max_size=2),
         "skew": st.none() | st.just(1)}), max_size=2)),
]  # fmt: skip


@given(st.data())
def test_equal_cells_have_one_number(data: st.DataObject) -> None:
    kind, cells = data.draw(st.sampled_from(TYPES))
    values = data.draw(st.lists(st.none() | cells, max_size=8))
    first = data.draw(st.integers(0, len(values)))
    column = pa.array(values, kind).slice(first)
    codes, texts = cell_codes(column), [str(cell) for cell in column.to_pylist()]
    assert len(codes) == len(texts) and [code == -1 for code in codes] == [text == "None" for text in texts]
    assert len({*zip(codes.tolist(), texts, strict=True)}) == len({*texts}) == len({*codes.tolist()})


def test_distinct_rows_are_the_first_of_their_kind_in_order() -> None:
    columns = [pa.array(["b", "a", "b", None, "a"]), np.array([1, 1, 1, 1, 2], np.int32)]
    rows, places = distinct_rows(columns)
    assert rows.tolist() == [0, 1, 3, 4] and places.tolist() == [0, 1, 0, 2, 3]
    assert cell_codes(pa.nulls(2)).tolist() == [-1, -1]
