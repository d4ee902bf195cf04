"""Equal values in the canonical type, whatever way they are stored; what has another meaning is refused."""

from __future__ import annotations

import decimal
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from fastsim.foundation.columns.physical_types import PLAIN, Unconvertible, canonical, plain, plain_type

TEXTS = pa.list_(pa.string())
AMOUNTS = pa.map_(pa.string(), pa.int64())
RULE = pa.struct([("key", pa.string()), ("op", pa.string())])
WORDS = [None, ["T4", "P100"], ["P100"], [], None, ["T4"]]


@pytest.mark.parametrize("stored", [pa.list_view, pa.large_list_view, pa.large_list, pa.list_])
@pytest.mark.parametrize("cells", [pa.string(), pa.string_view(), pa.large_string(), pa.binary()])
def test_lists_of_every_layout_are_built_from_their_offsets(stored: Any, cells: pa.DataType) -> None:
    column = pa.array(WORDS, stored(cells))
    for part in (slice(None), slice(2, None), slice(1, 4), slice(0, 0)):
        made = canonical(column[part], TEXTS)
        assert made.type == TEXTS and made.to_pylist() == WORDS[part]


def test_views_out_of_order_and_lists_that_are_null_with_content() -> None:
    offsets, sizes = pa.array([3, 0, 1, 0], pa.int32()), pa.array([2, 1, 3, 2], pa.int32())
    views = pa.ListViewArray.from_arrays(offsets, sizes, pa.array(["a", "b", "c", "d", "e"]))
    assert canonical(views, TEXTS).to_pylist() == [["d", "e"], ["a"], ["b", "c", "d"], ["a", "b"]]
    hidden = pa.FixedSizeListArray.from_arrays(pa.array(["a", "b", "c", "d"]), 2, mask=pa.array([True, False]))
    assert canonical(hidden, TEXTS).to_pylist() == [None, ["c", "d"]]
    wrong = pa.ListViewArray.from_arrays(pa.array([0, 9], pa.int32()), pa.array([1, 1], pa.int32()), pa.array(["a"]))
    with pytest.raises(Unconvertible):
        canonical(wrong, TEXTS)


def test_words_and_runs_of_any_type_stand_for_their_cells() -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0, 1], pa.uint8()), pa.array(["x", "y"], pa.string_view())
    )
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int16()), pa.array([[1], None], pa.list_(pa.int8())))
    assert canonical(words, pa.string()).to_pylist() == ["y", None, "x", "y"]
    enum = canonical(words.slice(2), pa.dictionary(pa.int8(), pa.string()))
    assert enum.to_pylist() == ["x", "y"] and enum.dictionary.to_pylist() == ["x", "y"]
    assert canonical(runs.slice(1), pa.list_(pa.int16())).to_pylist() == [[1], None, None, None]
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["7", "no number"]))
    assert canonical(unused, pa.int64()).to_pylist() == [7, 7]
    chunks = pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])
    assert canonical(chunks, pa.dictionary(pa.int8(), pa.string())).to_pylist() == ["a", "b", "a"]


def test_maps_are_lists_of_keys_and_values_and_structs_go_by_names() -> None:
    entries = pa.list_(pa.struct([("value", pa.int32()), ("key", pa.string_view())]))
    assert canonical(pa.array([[{"value": 1, "key": "a"}], None, []], entries), AMOUNTS).to_pylist() == [
        [("a", 1)],
        None,
        [],
    ]
    named = pa.array([None, [("a", 1)], [("b", 2), ("c", None)]], pa.map_(pa.large_string(), pa.decimal128(5)))
    assert canonical(named.slice(1), AMOUNTS).to_pylist() == [[("a", 1)], [("b", 2), ("c", None)]]
    assert canonical(pa.array([{"op": "In"}, None]), RULE).to_pylist() == [{"key": None, "op": "In"}, None]
    for column, kind in (
        (pa.array([[{"name": "a", "value": 1}]]), AMOUNTS),
        (
            pa.array([[{"key": None, "value": 1}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.int8())]))),
            AMOUNTS,
        ),
        (pa.array([{"key": "a", "operator": "In"}]), RULE),
    ):
        with pytest.raises(Unconvertible):
            canonical(column, kind)


@pytest.mark.parametrize(
    ("cells", "stored", "kind", "expected"),
    [
        ([2, None], pa.float16(), pa.int16(), [2, None]),
        ([decimal.Decimal(2), None], pa.decimal32(5, 1), pa.int64(), [2, None]),
        ([decimal.Decimal("2.5")], pa.decimal256(50, 1), pa.float64(), [2.5]),
        ([b"12"], pa.binary_view(), pa.int32(), [12]),
        ([1.5], pa.float16(), pa.string(), ["1.5"]),
        ([None, None], pa.null(), pa.list_(pa.int16()), [None, None]),
        ([1, 0, None], pa.int8(), pa.bool_(), [True, False, None]),
        (["True", "0"], pa.string_view(), pa.bool_(), [True, False]),
        ([1], pa.timestamp("s"), pa.string(), ["1970-01-01 00:00:01.000"]),
        ([1], pa.timestamp("s", "Asia/Tokyo"), pa.timestamp("ms", "UTC"), [1000]),
    ],
)
def test_equal_values_of_other_types(
    cells: list[Any], stored: pa.DataType, kind: pa.DataType, expected: list[Any]
) -> None:
    made = canonical(pa.array(cells, stored), kind)
    seen = made.cast(pa.int64()) if pa.types.is_timestamp(kind) else made
    assert made.type == kind and seen.to_pylist() == expected


@pytest.mark.parametrize(
    ("cells", "stored", "kind", "row"),
    [
        ([1.0, 2.5, 1.5], pa.float64(), pa.int64(), 1),
        ([1, 0, 2], pa.int64(), pa.bool_(), 2),
        ([None, True], pa.bool_(), pa.int64(), 1),
        ([True], pa.bool_(), pa.float64(), 0),
        ([5], pa.timestamp("s"), pa.int64(), 0),
        ([5], pa.duration("s"), pa.int64(), 0),
        ([5], pa.date32(), pa.float64(), 0),
        ([b"12345678"], pa.binary(8), pa.string(), 0),
        (["a", "\N{SNOWMAN}"], pa.string(), pa.int64(), 0),
        ([b"a", b"\xff"], pa.binary(), pa.string(), 1),
        ([1, 2**40], pa.int64(), pa.int16(), 1),
        ([["a"], ["1"]], pa.list_view(pa.string()), pa.list_(pa.int16()), 0),
    ],
)
def test_other_values_are_refused_by_their_row(
    cells: list[Any], stored: pa.DataType, kind: pa.DataType, row: int
) -> None:
    with pytest.raises(Unconvertible) as caught:
        canonical(pa.array(cells, stored), kind)
    assert caught.value.row == row


def _odd_columns() -> list[pa.Array]:
    number, text = pa.array([1]), pa.array(["a"])
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16)))
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [number, text])
    return [uuid, union, pa.array([(1, 2, 3)], pa.month_day_nano_interval()), pa.array([b"ab"], pa.binary(2))]


def test_types_without_a_meaning_here_are_refused() -> None:
    for column in _odd_columns():
        for kind in (pa.string(), pa.int64(), TEXTS):
            with pytest.raises(Unconvertible, match="found"):
                canonical(column, kind)
        with pytest.raises(Unconvertible, match=f"expected {PLAIN}"):
            plain(pa.chunked_array([column]))


NOTHING = (pa.null(), pa.dictionary(pa.int8(), pa.null()), pa.run_end_encoded(pa.int16(), pa.null()))
"""Types of no value but null."""


@pytest.mark.parametrize("kind", NOTHING, ids=str)
def test_types_of_no_value_are_null_everywhere_but_in_keys(kind: pa.DataType) -> None:
    nulls = pa.null()
    assert plain_type(kind) == nulls and plain_type(pa.list_(kind, 2)) == pa.list_(nulls)
    assert plain_type(pa.map_(pa.int8(), kind)) == pa.map_(pa.int8(), nulls)
    fields = [pa.field("x", kind, nullable=kind == nulls), pa.field("y", pa.int8(), nullable=False)]
    assert plain_type(pa.struct(fields)) == pa.struct([pa.field("x", nulls), fields[1]])
    if kind != nulls:  # of which pyarrow makes no map
        with pytest.raises(Unconvertible, match="type map"):
            plain_type(pa.map_(kind, pa.int8()))


def test_what_is_of_a_plain_type_is_handed_on_as_it_is() -> None:
    numbers, texts = pa.array([1, 2]), pa.array(["a"])
    assert canonical(numbers, pa.int64()) is numbers and canonical(texts, pa.string()) is texts
    stored = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))
    truths = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([3, 0, None], pa.int8()))
    assert canonical(stored, pa.string()).to_pylist() == ["{}"]
    assert (
        canonical(truths, pa.bool_()).to_pylist()
        == plain(pa.chunked_array([truths])).to_pylist()
        == [True, False, None]
    )


WITH_PANDAS = """
import sys
from unittest.mock import MagicMock

class Timestamp:
    def __init__(self, *_, **__):
        pass

    def tz_convert(self, _):
        return self

pandas = MagicMock(spec=None)
pandas.__version__, pandas.__spec__, pandas.Timestamp, pandas.Timedelta = "3.0.0", None, Timestamp, Timestamp
pandas.DataFrame = pandas.Series = pandas.Index = pandas.Categorical = type("Other", (), {})
pandas.api.extensions.ExtensionArray = pandas.api.extensions.ExtensionDtype = pandas.Series
pandas.api.types.DatetimeTZDtype = pandas.Series
sys.modules["pandas"] = pandas
"""
CELLS = """
import pyarrow as pa
from fastsim.foundation.columns.physical_types import cell_text
kinds = pa.timestamp("ns", "UTC"), pa.timestamp("ns"), pa.duration("ns"), pa.time64("ns")
shown = [type(pa.scalar(5000, kind).as_py()).__name__ for kind in kinds[1:2]]
print(shown, [cell_text(pa.array([value], kind), 0) for kind in kinds[:3] for value in (500, 5000)])
"""


def test_a_cell_is_shown_alike_with_and_without_pandas() -> None:
    told = [
        subprocess.run([sys.executable, "-c", before + CELLS], capture_output=True, text=True, check=True).stdout
        for before in ("", WITH_PANDAS)
    ]
    shown, cells = zip(*(line.split("] ", 1) for line in told), strict=True)
    assert shown[1] == "['Timestamp'"  # so the second process has it
    assert cells[0] == cells[1] and "a value of type duration[ns]" in cells[0]
