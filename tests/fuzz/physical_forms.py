"""Equal values in every physical type that pyarrow can build: what a column may look like when it comes in."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

t = pa.types
SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of Arrow's times in a second."""


class Form(NamedTuple):
    """A column of some physical type; without ``equal`` its values mean something else, so it has to be refused."""

    column: pa.Array
    equal: bool = True


Values = Sequence[Any]
Build = Callable[[Values, pa.DataType, random.Random], Form | None]
"""The form of values of a canonical type; None if they have none."""


def _stored(values: Values, kind: pa.DataType) -> pa.Array | None:
    """Values of a plain type, if it holds them."""
    try:
        made = pa.array([None if one is None else _cell(one, kind) for one in values], kind)
    except (pa.ArrowException, ValueError, OverflowError, TypeError, decimal.DecimalException):
        return None
    wanted = [None if one is None else _cell(one, kind) for one in values]
    return made if made.to_pylist() == wanted else None


def _cell(value: Any, kind: pa.DataType) -> Any:
    """A value as pyarrow takes it for a type; ValueError if it is not the same."""
    if t.is_decimal(kind):
        exact = decimal.Decimal(value)
        if exact != exact.quantize(decimal.Decimal("0.1")):
            raise ValueError(value)
        return exact.quantize(decimal.Decimal("0.1"))
    if t.is_integer(kind):
        if value != int(value):
            raise ValueError(value)
        return int(value)
    if t.is_floating(kind):
        number = float(np.float16(value)) if t.is_float16(kind) else float(value)
        if number != value:
            raise ValueError(value)
        return number
    text = str(value).lower() if isinstance(value, bool) else str(int(value)) if _whole(value) else str(value)
    return text.encode() if _is_binary(kind) else text


def _whole(value: Any) -> bool:
    return isinstance(value, int | float) and value == int(value)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind))


def is_scalar(kind: pa.DataType) -> bool:
    """Whether cells of a canonical type are no lists, maps or structs."""
    return not bool(t.is_nested(kind))


def _of(physical: pa.DataType) -> Build:
    """The form of a plain type."""

    def build(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
        if not is_scalar(kind) or t.is_timestamp(kind) or (t.is_string(kind) and not _holds_text(physical)):
            return None
        if t.is_boolean(physical) and not t.is_boolean(kind):
            return Form(pa.array([None if one is None else bool(one) for one in values]), equal=False)
        column = pa.array(values, kind) if physical == kind else _stored(values, physical)
        return None if column is None else Form(column)

    return build


def _holds_text(kind: pa.DataType) -> bool:
    return bool(_is_binary(kind) or t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _of_time(physical: pa.DataType) -> Build:
    """Times that are as many seconds; in columns that hold no seconds they have to be refused."""
    days = t.is_date(physical)
    factor = 1 if days else SECOND[physical.unit]

    def build(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
        if t.is_timestamp(kind) and t.is_timestamp(physical):
            units = [None if one is None else one * factor // 1000 for one in values]
            return Form(pa.array(units, pa.int64()).cast(physical))
        if not (t.is_integer(kind) or t.is_floating(kind)):
            return None
        numbers = [None if one is None else one * factor for one in values]
        if any(one is not None and (one != int(one) or not 0 <= one < 86_400 * factor) for one in numbers):
            return None
        width = pa.int32() if physical.bit_width == 32 else pa.int64()
        if days and t.is_date64(physical):
            numbers = [None if one is None else 86_400_000 * one for one in numbers]
        return Form(pa.array(numbers, width).cast(physical), equal=False)

    return build


def _of_list(outer: Callable[[pa.DataType], pa.DataType]) -> Build:
    """Lists of any layout, whose cells are of any type."""

    def build(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
        if not (t.is_list(kind) or t.is_map(kind)):
            return None
        inner = kind.value_type if t.is_list(kind) else pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        lists = [row if row is None or t.is_list(kind) else [dict(zip(("key", "value"), entry, strict=True))
                                                             for entry in row] for row in values]  # fmt: skip
        cells = any_form([cell for row in lists if row is not None for cell in row], inner, rng)
        return Form(_listed(lists, cells.column, outer(cells.column.type)), cells.equal)

    return build


def _listed(lists: Values, cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Lists of these cells; those of views stand in the opposite order."""
    sizes = np.array([0 if row is None else len(row) for row in lists], np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    missing = pa.array([row is None for row in lists], pa.bool_())
    wide = pa.int64() if t.is_large_list(kind) or t.is_large_list_view(kind) else pa.int32()
    if t.is_list_view(kind) or t.is_large_list_view(kind):
        make = pa.LargeListViewArray if t.is_large_list_view(kind) else pa.ListViewArray
        return make.from_arrays(pa.array(starts[:-1], wide), pa.array(sizes, wide), cells, mask=missing)
    make = pa.LargeListArray if t.is_large_list(kind) else pa.ListArray
    return make.from_arrays(pa.array(starts, wide), cells, mask=missing)


def _fixed_lists(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    lengths = {len(row) for row in values if row is not None} if t.is_list(kind) else set()
    if len(lengths) != 1 or not lengths - {0}:
        return None
    [size] = lengths
    filled = [row if row is not None else [None] * size for row in values]
    cells = any_form([cell for row in filled for cell in row], kind.value_type, rng)
    return Form(
        pa.FixedSizeListArray.from_arrays(cells.column, size, mask=pa.array([v is None for v in values])), cells.equal
    )


def _maps(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    if not t.is_map(kind):
        return None
    entries = [entry for row in values if row is not None for entry in row]
    keys, items = (any_form([entry[part] for entry in entries], one, rng)
                   for part, one in enumerate((kind.key_type, kind.item_type)))  # fmt: skip
    if t.is_null(keys.column.type):  # no row has an entry: keys are never null
        keys = Form(keys.column.cast(pa.string()))
    offsets = pa.array(np.concatenate(([0], np.cumsum([len(row or ()) for row in values]))), pa.int32())
    named = pa.map_(pa.field("name", keys.column.type, nullable=False), pa.field("amount", items.column.type))
    missing = pa.array([row is None for row in values], pa.bool_())
    column = pa.MapArray.from_arrays(offsets, keys.column, items.column, type=named, mask=missing)
    return Form(column, keys.equal and items.equal)


def _structs(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    """Structs with their fields in any order; now and then with a field of another name."""
    if not t.is_struct(kind):
        return None
    names = [field.name for field in kind]
    rng.shuffle(names)
    forms = {
        name: any_form([None if v is None else v[name] for v in values], kind.field(name).type, rng) for name in names
    }
    wrong = rng.random() < 0.1
    labels = [f"{name}_" if wrong and name == names[0] else name for name in names]
    fields = [pa.field(label, forms[name].column.type) for label, name in zip(labels, names, strict=True)]
    arrays = [forms[name].column for name in names]
    column = pa.StructArray.from_arrays(
        arrays, fields=fields, mask=pa.array([one is None for one in values], pa.bool_())
    )
    return Form(column, not wrong and all(form.equal for form in forms.values()))


def _dictionary(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    """Numbers of words, with words that nothing uses, twice or null."""
    words = any_form([*values, *values[:1], None], kind, rng)
    codes = [None if one is None and rng.random() < 0.5 else code for code, one in enumerate(values)]
    if values and rng.random() < 0.5 and codes[0] is not None:
        codes[0] = len(values)
    narrow = [pa.int8(), pa.uint8()] if len(words.column) < 128 else []
    index = rng.choice([*narrow, pa.int16(), pa.uint32(), pa.int64(), pa.uint64()])
    return Form(pa.DictionaryArray.from_arrays(pa.array(codes, index), words.column), words.equal)


def _run_ends(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    ends, kept = [], []
    for row, one in enumerate(values):
        if row + 1 == len(values) or values[row + 1] != one or rng.random() < 0.3:
            ends.append(row + 1)
            kept.append(one)
    runs = any_form(kept, kind, rng)
    index = rng.choice([pa.int16(), pa.int32(), pa.int64()])
    return Form(pa.RunEndEncodedArray.from_arrays(pa.array(ends, index), runs.column), runs.equal)


def _union(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    plain = any_form(values, kind, rng).column
    codes = pa.array([0] * len(values), pa.int8())
    if rng.random() < 0.5:
        return Form(pa.UnionArray.from_sparse(codes, [plain]), equal=False)
    offsets = pa.array(range(len(values)), pa.int32())
    return Form(pa.UnionArray.from_dense(codes, offsets, [plain]), equal=False)


def _extension(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    """JSON for texts, bool8 for truth values, others for anything."""
    if t.is_string(kind) and rng.random() < 0.5:
        return Form(pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string())))
    if t.is_boolean(kind) and rng.random() < 0.5:
        numbers = pa.array([None if one is None else 3 * one for one in values], pa.int8())
        return Form(pa.ExtensionArray.from_storage(pa.bool8(), numbers))
    storage = any_form(values, kind, rng).column
    opaque = pa.ExtensionArray.from_storage(pa.opaque(storage.type, "odd", "nobody"), storage)
    return Form(opaque, equal=False)


def _bytes(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    """Bytes of a fixed size, which may be addresses, and UUIDs."""
    cells = [None if one is None else (repr(one).encode() * 16)[:16] for one in values]
    column = pa.array(cells, pa.binary(16))
    return Form(column if rng.random() < 0.5 else pa.ExtensionArray.from_storage(pa.uuid(), column), equal=False)


def _intervals(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    cells = [None if one is None else (row, 2, 3) for row, one in enumerate(values)]
    return Form(pa.array(cells, pa.month_day_nano_interval()), equal=False)


def _nulls(values: Values, kind: pa.DataType, rng: random.Random) -> Form | None:
    return Form(pa.nulls(len(values))) if all(one is None for one in values) else None


_PLAIN = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.decimal32(9, 1), pa.decimal64(18, 1), pa.decimal128(38, 1),
    pa.decimal256(60, 1), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.binary_view(),
)  # fmt: skip
_TIMES = (
    *(pa.timestamp(unit, zone) for unit in SECOND for zone in (None, "UTC", "Asia/Tokyo")), pa.date32(), pa.date64(),
    pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *(pa.duration(unit) for unit in SECOND),
)  # fmt: skip
FORMS: dict[str, Build] = {
    **{str(kind): _of(kind) for kind in _PLAIN}, **{str(kind): _of_time(kind) for kind in _TIMES},
    "list": _of_list(pa.list_), "large_list": _of_list(pa.large_list), "list_view": _of_list(pa.list_view),
    "large_list_view": _of_list(pa.large_list_view), "fixed_size_list": _fixed_lists, "map": _maps, "struct": _structs,
    "dictionary": _dictionary, "run_end_encoded": _run_ends, "sparse_union": _union, "dense_union": _union,
    "extension": _extension, "fixed_size_binary": _bytes, "interval_month_day_nano": _intervals, "null": _nulls,
}  # fmt: skip
"""Every physical type, and how values get it."""
WRAPPED = ("dictionary", "run_end_encoded", "sparse_union", "dense_union", "extension", "fixed_size_binary",
           "interval_month_day_nano")  # fmt: skip
"""Forms that every value has."""


def any_form(values: Values, kind: pa.DataType, rng: random.Random) -> Form:
    """Values in a form drawn at random; wrapped ones are rare, so that values get through."""
    for _ in range(20):
        name = rng.choice(WRAPPED[:2] if rng.random() < 0.15 else [name for name in FORMS if name not in WRAPPED])
        form = FORMS[name](values, kind, rng)
        if form is not None and form.equal:
            return form
    return Form(pa.array(values, kind))
