"""A column of any physical type of Arrow as a column of the canonical type: equal values, or a refusal.

Dictionaries, run ends, views, large types, JSON and `bool8` are other ways to store the same values. Lists are built
from their offsets, because Arrow's cast of list views makes lists that point outside. Fields of structs go by their
names, absent ones are null. Types that carry another meaning are refused: truth values and times as numbers, unions,
intervals, bytes of a fixed size (polars hands out addresses of its Python objects so) and other extensions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError, short

t = pa.types
PLAIN = "a column of numbers, texts, truth values, times, or lists of them"
"""What every library reads, in messages."""
MOST_LETTERS = 120
"""Most letters of a type in messages."""
FEW_WORDS = 16
"""Largest dictionary for which a search for each word is cheaper than numbering all cells."""
_FAULTS = (pa.ArrowException, ValueError, OverflowError, IndexError)
"""What Arrow raises for values that a type cannot hold; a type that it cannot convert is an ArrowException."""


class Unconvertible(ValueError):
    """A column has no equal values of the canonical type; ``row`` is that of the first such cell.

    ``do`` says of which type the column is, if the type is at fault rather than the cell.
    """

    def __init__(self, found: str, expected: str, row: int = 0, do: str = "") -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found, self.expected, self.row, self.do = found, expected, row, do


Places = npt.NDArray[np.int64] | None
"""Numbers of cells in a column; None are all."""


class _Lists(NamedTuple):
    """Lists as the canonical type stores them: list `i` has the cells from ``offsets[i]`` to ``offsets[i + 1]``.

    The cells are ``values[places]``, or ``values`` themselves without ``places``.
    """

    missing: pa.Array
    offsets: pa.Array
    values: pa.Array
    places: Places


def canonical(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The same values as one array of this type; Unconvertible for the first cell without an equal value.

    A dictionary has the words that the column uses only, in order of first appearance. Nested columns, and what had to
    be converted, are validated in full.
    """
    if column.type == kind and not t.is_nested(kind) and not t.is_dictionary(kind):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    try:
        column.validate(full=True)
    except _FAULTS as error:  # not even a cell may be looked at
        found = " ".join(str(error).split())
        raise Unconvertible(found, f"a sound column of type {short_type(column.type)}") from error
    try:
        return _validated(column, kind)
    except _FAULTS as error:
        raise _first_fault(column, kind) from error


def _validated(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = converted(column, kind)
    same_bytes = t.is_large_string(column.type) and t.is_string(kind)  # with offsets of half the size
    whole.validate(full=not same_bytes)
    return whole


def column_of(table: pa.Table, name: str, kind: pa.DataType, where: Callable[[int], str]) -> pa.Array:
    """A column of a table as this type; an InputError names the column, at ``where(row)``, that cannot be."""
    try:
        return canonical(table.column(name), kind)
    except Unconvertible as fault:
        raise InputError(f"{where(fault.row)}: {name}", fault.found, fault.expected, fault.do) from None


def plain(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The same values in a type that polars reads; Unconvertible if there is none."""
    if is_text(column.type) or _is_binary(column.type):
        return column
    kind = plain_type(column.type)
    return column if kind == column.type else canonical(column, kind)


def cell_text(column: pa.Array | pa.ChunkedArray, row: int) -> str:
    """A cell as messages show it; a time that Python has no value for, such as one of nanoseconds, by its type.

    Times of nanoseconds are shown as those of microseconds: pyarrow shows them as objects of pandas where it is there.
    """
    cell = column.slice(row, 1)
    try:
        if not t.is_primitive(column.type):  # Arrow ends the process for cells of dictionaries of lists
            cell = canonical(cell, plain_type(column.type))
        if t.is_timestamp(cell.type) and cell.type.unit == "ns":
            cell = cell.cast(pa.timestamp("us", cell.type.tz))
        elif t.is_duration(cell.type) and cell.type.unit == "ns":
            cell = cell.cast(pa.duration("us"))
        return short(cell[0].as_py())
    except _FAULTS:
        return f"a value of type {short_type(column.type)}"


# ---------------------------------------------------------------------- faults


def _first_fault(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> Unconvertible:
    """The first row that cannot be converted, which ends the shortest prefix that cannot; of a wrong type, any."""
    low, high = 0, len(column)
    do = ""
    if _fails(column.slice(0, 0), kind):
        do = f"the column is of type {short_type(column.type)}"
        valid = np.flatnonzero(column.is_valid())
        high = int(valid[0]) + 1 if len(valid) else min(1, len(column))
        low = high - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(column.slice(0, middle), kind) else (middle, high)
    found = cell_text(column, high - 1) if high else "no rows"
    return Unconvertible(found, f"a value of type {short_type(kind)}", max(high - 1, 0), do)


def _fails(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        _validated(column, kind)
    except _FAULTS:
        return True
    return False


def _other_type(column: pa.Array, kind: pa.DataType) -> Unconvertible:
    return Unconvertible(f"type {column.type}", f"type {kind}")


def refuse_same_names(schema: pa.Schema, where: str) -> None:
    """InputError for the first name that two columns of a table have."""
    names: set[str] = set()
    for name in schema.names:
        if name in names:
            raise InputError(f"{where}: {name}", "two columns of this name", "columns of plain types, each name once")
        names.add(name)


def short_type(kind: pa.DataType) -> str:
    """A type as messages show it."""
    text = str(kind)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."


# ---------------------------------------------------------------------- ways to store the same values


def converted(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """As `canonical`, for columns that are known to be sound: nothing is validated, and no row is named."""
    if not isinstance(column, pa.ChunkedArray):
        return _converted(column, kind, None)
    if column.num_chunks == 1:
        return _converted(column.chunk(0), kind, None)
    cells = kind.value_type if t.is_dictionary(kind) else kind
    chunks = [_converted(chunk, cells, None) for chunk in column.chunks]
    return _converted(pa.concat_arrays(chunks) if chunks else pa.array([], cells), kind, None)


def _converted(column: pa.Array, kind: pa.DataType, places: Places) -> pa.Array:
    """The cells at these places, or all; Arrow picks cells of plain types, and ends the process for some others."""
    if t.is_dictionary(kind):
        return _coded(column, kind, places)
    for is_stored, decoded in _STORED:
        if is_stored(column.type):
            return decoded(column, kind, places)
    for is_kind, make in _NESTED:
        if is_kind(kind):
            return column if column.type == kind and places is None else make(column, kind, places)
    if t.is_nested(column.type):
        if column.type == kind and places is None:
            return column
        raise _other_type(column, kind)
    if is_text(column.type) and column.type != pa.string():
        column = column.cast(pa.large_string())  # Arrow picks no views
    elif t.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    cells = column if places is None else column.take(pa.array(places))
    return cells if cells.type == kind else _made(kind)(cells, kind)


def _of_dictionary(column: pa.DictionaryArray, kind: pa.DataType, places: Places) -> pa.Array:
    """Words in the canonical type, in place of their numbers; words that no cell uses may be of any value."""
    codes = column.indices if places is None else column.indices.take(pa.array(places))
    used = codes.dictionary_encode()
    words = _converted(column.dictionary, kind, used.dictionary.to_numpy(zero_copy_only=False).astype(np.int64))
    return words.take(used.indices)


def _of_run_ends(column: pa.RunEndEncodedArray, kind: pa.DataType, places: Places) -> pa.Array:
    rows = np.arange(len(column)) if places is None else places
    runs = np.searchsorted(column.run_ends.to_numpy(), rows + column.offset, "right")
    return _converted(column.values, kind, runs)


def _of_extension(column: pa.ExtensionArray, kind: pa.DataType, places: Places) -> pa.Array:
    if column.type == pa.bool8():
        return _converted(pc.not_equal(column.storage, pa.scalar(0, pa.int8())), kind, places)
    if column.type.extension_name == "arrow.json":
        return _converted(column.storage, kind, places)
    raise _other_type(column, kind)


def _of_nulls(column: pa.Array, kind: pa.DataType, places: Places) -> pa.Array:
    return pa.nulls(len(column) if places is None else len(places), kind)


_STORED: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType, Places], pa.Array]], ...] = (
    (lambda kind: isinstance(kind, pa.BaseExtensionType), _of_extension),
    (t.is_null, _of_nulls),
    (t.is_dictionary, _of_dictionary),
    (t.is_run_end_encoded, _of_run_ends),
)
"""Ways to store values of any type, and how to read them."""

# ---------------------------------------------------------------------- plain values


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is of texts, however they are stored."""
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind))


def _texts(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts, bytes in UTF-8, and numbers, truth values and times as Arrow writes them, seconds as milliseconds."""
    if t.is_fixed_size_binary(column.type):
        raise _other_type(column, kind)
    for is_seconds, finer in ((t.is_timestamp, pa.timestamp), (t.is_time32, pa.time32)):
        if is_seconds(column.type) and column.type.unit == "s":  # Parquet has no seconds
            column = column.cast(finer("ms", column.type.tz) if t.is_timestamp(column.type) else finer("ms"))
    return (column.cast(pa.float32()) if t.is_float16(column.type) else column).cast(kind)


def _numbers(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers, and texts of them; no fraction becomes whole, and no value another one."""
    if t.is_boolean(column.type):
        raise _other_type(column, kind)
    if is_text(column.type) or _is_binary(column.type):
        column = column.cast(pa.large_string())
    elif t.is_decimal(column.type) and column.type.bit_width < 128:
        column = column.cast(pa.decimal128(38, column.type.scale))
    elif not (t.is_decimal(column.type) or t.is_integer(column.type) or t.is_floating(column.type)):
        raise _other_type(column, kind)
    return column.cast(kind)


def _truths(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Truth values, the numbers 0 and 1, and texts of them."""
    if t.is_boolean(column.type):
        return column
    if is_text(column.type) or _is_binary(column.type):
        return column.cast(pa.string()).cast(kind)
    numbers = _numbers(column, pa.float64())
    if pc.any(pc.invert(pc.is_in(numbers, value_set=pa.array([0.0, 1.0, None], pa.float64())))).as_py():
        raise Unconvertible("another number", "1 or 0")
    return pc.equal(numbers, pa.scalar(1.0, pa.float64()))


def _times(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times of any unit and zone, those without a zone in UTC; dates, texts of times, and whole numbers of the unit."""
    good = (t.is_timestamp, t.is_date, t.is_integer, is_text)
    if not any(is_good(column.type) for is_good in good):
        raise _other_type(column, kind)
    if t.is_integer(column.type):
        column = column.cast(pa.int64())
    return (column.cast(pa.string()) if is_text(column.type) else column).cast(kind)


def _others(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Columns of a plain type; Arrow's safe cast is right between those of one family."""
    return column.cast(kind)


# ---------------------------------------------------------------------- nested values


def _laid_out(column: pa.Array, kind: pa.DataType, chosen: Places) -> _Lists:
    """The lists at these places, or all, of any layout; what the lists that are null point to is left out."""
    known = column.type
    if t.is_fixed_size_list(known):
        size = known.list_size
        starts = (np.arange(len(column), dtype=np.int64) + column.offset) * size
        sizes = np.full(len(column), size, np.int64)
    elif t.is_list_view(known) or t.is_large_list_view(known):
        starts, sizes = (
            part.to_numpy(zero_copy_only=False).astype(np.int64) for part in (column.offsets, column.sizes)
        )
    elif t.is_list(known) or t.is_large_list(known) or t.is_map(known):
        bounds = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        starts, sizes = bounds[:-1], np.diff(bounds)
    else:
        raise _other_type(column, kind)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if chosen is not None:
        starts, sizes, missing = starts[chosen], sizes[chosen], missing[chosen]
    sizes = np.where(missing, 0, sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    if offsets[-1] >= 2**31:
        raise Unconvertible(f"{offsets[-1]:,} values in the lists of one piece", "less than 2**31")
    places = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], sizes)
    bounds_of_lists = pa.array(offsets.astype(np.int32))
    if bool((np.diff(places) == 1).all()):
        values = column.values.slice(int(places[0]) if len(places) else 0, len(places))
        return _Lists(pa.array(missing), bounds_of_lists, values, None)
    return _Lists(pa.array(missing), bounds_of_lists, column.values, places)


def _lists(column: pa.Array, kind: pa.DataType, places: Places) -> pa.Array:
    lists = _laid_out(column, kind, places)
    cells = _converted(lists.values, kind.value_type, lists.places)
    return pa.ListArray.from_arrays(lists.offsets, cells, type=kind, mask=lists.missing)


def _maps(column: pa.Array, kind: pa.DataType, places: Places) -> pa.Array:
    """Maps, and lists of structs of a `key` and a `value`, as libraries without a type for maps have them."""
    lists = _laid_out(column, kind, places)
    entries = kind.key_field.with_name("key"), kind.item_field.with_name("value")
    values = lists.values
    if t.is_map(column.type):  # whatever the names of its entries are
        values = pa.StructArray.from_arrays(values.flatten(), ["key", "value"])
    pairs = _converted(values, pa.struct(entries), lists.places)
    keys, items = pairs.flatten()
    if keys.null_count:
        raise Unconvertible("a null key", "a key of every value")
    return pa.MapArray.from_arrays(lists.offsets, keys, items, type=kind, mask=lists.missing)


def _structs(column: pa.Array, kind: pa.DataType, places: Places) -> pa.Array:
    """Structs by the names of their fields, in any order; an absent field is null everywhere."""
    if not t.is_struct(column.type):
        raise _other_type(column, kind)
    fields = {field.name: field.type for field in kind}
    names = [field.name for field in column.type]
    if len(set(names)) < len(names) or not set(names) <= set(fields) or not names:
        raise _other_type(column, kind)
    missing = column.is_null() if places is None else column.is_null().take(pa.array(places))
    parts = {name: column.field(number) for number, name in enumerate(names)}
    cells = [
        _converted(parts[name], kind_of, places) if name in parts else pa.nulls(len(missing), kind_of)
        for name, kind_of in fields.items()
    ]
    return pa.StructArray.from_arrays(cells, fields=list(kind), mask=missing)


_NESTED: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType, Places], pa.Array]], ...] = (
    (t.is_map, _maps),
    (t.is_list, _lists),
    (t.is_struct, _structs),
)
"""Canonical types of lists, maps and structs, and how a column of any other type becomes one of them."""
_MADE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...] = (
    (is_text, _texts),
    (t.is_boolean, _truths),
    (lambda kind: t.is_integer(kind) or t.is_floating(kind), _numbers),
    (t.is_timestamp, _times),
)
"""Other canonical types."""


@functools.cache
def _made(kind: pa.DataType) -> Callable[[pa.Array, pa.DataType], pa.Array]:
    return next((make for is_kind, make in _MADE if is_kind(kind)), _others)


# ---------------------------------------------------------------------- dictionaries


def _coded(column: pa.Array, kind: pa.DataType, places: Places) -> pa.Array:
    """A dictionary of the words that the column uses, in order of first appearance."""
    if places is not None or not t.is_dictionary(column.type) or not is_text(column.type.value_type):
        return _converted(column, pa.string(), places).dictionary_encode().cast(kind)
    words = _converted(column.dictionary, pa.string(), None)
    if words.null_count or pc.count_distinct(words).as_py() < len(words):
        return words.take(column.indices).dictionary_encode().cast(kind)
    if not column.null_count and _by_appearance(column.indices, len(words)):
        return pa.DictionaryArray.from_arrays(column.indices, words).cast(kind)
    used = column.indices.dictionary_encode()  # the codes are encoded again, which needs no comparison of texts
    return pa.DictionaryArray.from_arrays(used.indices, words.take(used.dictionary)).cast(kind)


def _by_appearance(codes: pa.Array, words: int) -> bool:
    """Whether the codes use all words, first the first, then the second and so on; False if words are many."""
    if words > FEW_WORDS or not len(codes):
        return False
    numbers = codes.to_numpy()
    places = [int((numbers == code).argmax()) for code in range(words)]
    return places == sorted(places) and numbers[places].tolist() == list(range(words))


# ---------------------------------------------------------------------- types that every library reads


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The plainest type for the same values; Unconvertible if values of this type have no meaning here."""
    if isinstance(kind, pa.BaseExtensionType) and kind != pa.bool8() and kind.extension_name != "arrow.json":
        raise Unconvertible(f"type {short_type(kind)}", PLAIN)
    if t.is_union(kind) or t.is_fixed_size_binary(kind) or t.is_interval(kind):
        raise Unconvertible(f"type {short_type(kind)}", PLAIN)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.bool_() if kind == pa.bool8() else kind.storage_type
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if t.is_map(kind):
        return _plain_map(kind)
    if t.is_struct(kind):
        return pa.struct(map(_plain_field, kind))
    if t.is_nested(kind):
        return pa.list_(plain_type(kind.value_type))
    if is_text(kind) or _is_binary(kind):  # cells of views cannot be picked
        return pa.large_string() if is_text(kind) else pa.large_binary()
    return pa.decimal128(38, kind.scale) if t.is_decimal(kind) else pa.float32() if t.is_float16(kind) else kind


def _plain_map(kind: pa.MapType) -> pa.DataType:
    """The plainest map; keys of a type that has no values, such as a dictionary of nulls, are Unconvertible."""
    key = plain_type(kind.key_type)
    if t.is_null(key):
        raise Unconvertible(f"type {short_type(kind)}", PLAIN)
    return pa.map_(key, plain_type(kind.item_type))


def _plain_field(field: pa.Field) -> pa.Field:
    """The field of a struct with the plainest type; without values it may be null, whatever the field says."""
    kind = plain_type(field.type)
    return field.with_nullable(field.nullable or t.is_null(kind)).with_type(kind)
