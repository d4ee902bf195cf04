"""Tables under other names: canonical columns from the columns of any table, and from expressions over them.

A mapping is canonical column -> source column, or an SQL expression over source columns: `num_gpu: plan_gpu/100`. A
unit in brackets behind a column turns its cells into seconds:

==================================  ===========================================================================
``start[ms]``                       numbers in ``s``, ``ms``, ``us``, ``ns``, ``min``, ``h`` or ``d``
``start[iso]``                      texts such as ``2023-03-01 00:18:22+08:00``; without a zone they are UTC
``start[%m/%d/%Y %H:%M]``           texts of dates in this format of ``strptime``
``elapsed[hms]``                    texts such as ``1-02:03:04``, ``02:03:04`` or ``03:04``
``end[iso] - start[iso]``           units stand inside expressions
``"GPU hours" * 3600``              names of several words are quoted in expressions, and plain if they stand alone
==================================  ===========================================================================

Dates and times of a frame need no unit. A source column that has a canonical name already needs no entry; None leaves
it out. Source columns that no entry uses are kept as texts, named ``native_`` and their names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from fastsim.cluster.node_table import NATIVE
from fastsim.cluster.table_sources import Source
from fastsim.cluster.time_cells import (
    DIVISORS,
    EXPECTED,
    FACTORS,
    NUMBERS,
    UNITS,
    hint,
    is_unit,
    seconds_of_texts,
    since,
)
from fastsim.errors import InputError, reading, short, suggestion
from fastsim.foundation.csv_table import map_of
from fastsim.foundation.parquet import one_line

MISSING = ("", "NA", "N/A", "None", "NULL", "null", "NaN", "nan")
"""Texts that stand for an unknown value."""
CONSTANTS = ("TRUE", "FALSE", "NULL")
"""Words of expressions that are no columns."""
ROUNDED = ("cpu_milli", "memory_mib", "gpu_memory_mib", "gpu_milli")
"""Whole columns whose values are rounded; in others a fraction is an error."""
_UNIT = r"\[(%[^\]]+|[^\]\s]+)\]"
_MEASURED = re.compile(rf'("[^"]+"|[A-Za-z_]\w*){_UNIT}')
Columns = Mapping[str, str | None]
"""Canonical column -> source column or expression; None leaves the column out."""


def columns_of(texts: Sequence[str]) -> Columns:
    """The mapping of texts `a=b,c=d`; commas inside brackets and quotes belong to an expression."""
    mapping: dict[str, str | None] = {}
    for word in (word for text in texts for word in _words(text)):
        target, equals, source = (part.strip() for part in word.partition("="))
        if not equals or not target or target in mapping:
            raise InputError("map", repr(word), "column=source, each column once")
        mapping[target] = source or None
    return mapping


def _words(text: str) -> list[str]:
    words, depth, quote = [""], 0, ""
    for letter in text:
        if letter == "," and not depth and not quote:
            words.append("")
            continue
        if letter in "\"'":
            quote = "" if letter == quote else quote or letter
        depth += 0 if quote else (letter in "([") - (letter in ")]")
        words[-1] += letter
    return [word for word in words if word.strip()]


@dataclass(frozen=True)
class Mapped:
    """Canonical and native columns, and the source column or expression of each; ``source`` has the same rows."""

    table: pa.Table
    texts: dict[str, str]
    source: Source

    def where(self, row: int, column: str) -> str:
        """Place of a cell in messages, with the source column or expression of its column."""
        text = self.texts.get(column, column)
        label = column if text == column else f"{column} = {text}"
        return f"{self.source.place(row)}: {label}"


# ---------------------------------------------------------------------- expressions


class _Entry(NamedTuple):
    """Target column, its text in the mapping, its source columns, and the expression; None for a plain column."""

    target: str
    text: str
    uses: tuple[str, ...]
    expression: pl.Expr | None


class _Cells:
    """The source's columns as expressions see them: numbers where cells are numbers, and those with units."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.raw = source.frame.with_columns(
            pl.when(pl.col(pl.String).is_in(MISSING)).then(None).otherwise(pl.col(pl.String)).name.keep()
        )
        self._by_unit: dict[tuple[str, str | None], pl.Series] = {}

    def numbers(self, name: str, needed: bool = True) -> pl.Series:
        """A column as numbers; without ``needed``, one with other texts stays as it is."""
        raw = self.raw[name]
        if raw.dtype.is_temporal():
            return self.seconds(name, None)
        if raw.dtype != pl.String:
            return raw.cast(pl.Float64) if raw.dtype.is_numeric() else raw
        values = raw.str.strip_chars().cast(pl.Float64, strict=False)
        bad = values.is_null() & raw.is_not_null()
        if not bad.any():
            return values
        if needed:
            raise self.fault(name, bad, "a number")
        return raw

    def seconds(self, name: str, unit: str | None) -> pl.Series:
        """A column with a unit as seconds."""
        key = name, unit
        if key not in self._by_unit:
            self._by_unit[key] = self._seconds(name, unit)
        return self._by_unit[key]

    def _seconds(self, name: str, unit: str | None) -> pl.Series:
        raw = self.raw[name]
        if raw.dtype.is_temporal():
            return since(raw) / 1e6
        if unit and unit not in NUMBERS:
            if raw.dtype != pl.String:
                raise InputError(f"{self.source.name}: {name}[{unit}]", f"{raw.dtype}", "texts or dates")
            with reading(f"{self.source.name}: {name}[{unit}]", "a format of dates"):
                values = seconds_of_texts(raw, unit)
            bad = values.is_null() & raw.is_not_null()
            if bad.any():
                raise self.fault(name, bad, EXPECTED.get(unit, f"a date such as {unit}"), unit)
            return values
        numbers, known = self.numbers(name), unit or "s"
        return numbers / DIVISORS[known] if known in DIVISORS else numbers * FACTORS[known]

    def fault(self, name: str, bad: pl.Series, expected: str, unit: str | None = None) -> InputError:
        """The error for the first bad cell of a column."""
        row = int(bad.arg_max() or 0)
        cell = self.raw[name][row]
        do = hint(name, str(cell), unit)
        return InputError(f"{self.source.place(row)}: {name}", short(cell), expected, do)


def _entry(source: Source, target: str, text: str) -> _Entry:
    names = source.frame.columns
    if text in names:
        return _Entry(target, text, (text,), None)
    where = f"{source.name}: {target} = {text}"
    if text.isidentifier() and text.upper() not in CONSTANTS:  # words such as `user` are functions of SQL
        _refuse_unknown(where, text, names)
    plain = re.fullmatch(rf"(.+){_UNIT}", text)
    if plain and plain[1] in names:
        body = f'"{text}"'
    else:
        body = _MEASURED.sub(lambda match: f'"{match[1].strip(chr(34))}[{match[2]}]"', text)
    if re.search(r"\bselect\b", body, re.IGNORECASE):
        raise InputError(where, "a query", "an expression over columns")
    try:
        expression = pl.sql_expr(body)
        roots = tuple(dict.fromkeys(expression.meta.root_names()))
    except (pl.exceptions.PolarsError, UnicodeError) as error:
        raise InputError(where, one_line(error), f"a column or an expression over {', '.join(names)}") from None
    for root in roots:
        _refuse_unknown(where, root, names)
    return _Entry(target, text, roots, expression)


def _parts(root: str, names: Sequence[str]) -> tuple[str, str | None]:
    """Column and unit of a name in an expression."""
    match = None if root in names else re.fullmatch(rf"(.+){_UNIT}", root)
    return (match[1], match[2]) if match else (root, None)


def _refuse_unknown(where: str, root: str, names: Sequence[str]) -> None:
    column, unit = _parts(root, names)
    if column not in names:
        raise InputError(where, f"no column {column!r}", f"one of: {', '.join(names)}", suggestion(column, names))
    if unit is not None and not is_unit(unit):
        raise InputError(where, f"unit {unit!r}", f"one of: {', '.join(UNITS)}, or a format such as %m/%d/%Y %H:%M")


def _value(cells: _Cells, entry: _Entry) -> pl.Series:
    """The cells of an expression, numbers in 64 bits."""
    assert entry.expression is not None
    names, inputs = cells.source.frame.columns, {}
    for root in entry.uses:
        column, unit = _parts(root, names)
        inputs[root] = cells.seconds(column, unit) if unit else cells.numbers(column, False)
    frame = pl.DataFrame(inputs, height=cells.raw.height) if inputs else cells.raw
    try:
        values = frame.select(entry.expression.alias(entry.target))
    except pl.exceptions.PolarsError as error:
        _refuse_texts(cells, entry)
        where = f"{cells.source.name}: {entry.target} = {entry.text}"
        raise InputError(where, one_line(error), "an expression of one value a row") from None
    series = values.to_series()
    if len(series) == 1 != cells.raw.height:
        series = series.new_from_index(0, cells.raw.height)
    return series


def _refuse_texts(cells: _Cells, entry: _Entry) -> None:
    """InputError for the first cell that keeps a column of an expression from being numbers."""
    for root in entry.uses:
        if root in cells.raw.columns:
            cells.numbers(root)


# ---------------------------------------------------------------------- columns of their types


def mapped(
    source: Source, columns: Columns | None, kinds: Mapping[str, pa.DataType], keep: str | Sequence[str] = (),
    identity: bool = True,
) -> Mapped:  # fmt: skip
    """The canonical columns of a source, of these types, and the others as `native_` ones.

    ``keep``: conditions over source columns; rows for which one does not hold are left out. ``identity``: columns with
    canonical names stand for themselves unless the mapping has them.
    """
    texts = _texts(source, columns or {}, kinds, identity)
    cells = _Cells(source)
    for condition in (keep,) if isinstance(keep, str) else keep:
        cells = _filtered(cells.source, cells, condition)
    entries = [_entry(source, target, text) for target, text in texts.items()]
    arrays = {entry.target: _column(cells, entry, kinds[entry.target]) for entry in entries}
    used = {_parts(root, source.frame.columns)[0] for entry in entries for root in entry.uses}
    for name in (name for name in source.frame.columns if name not in used):
        native = name if name.startswith(NATIVE) else NATIVE + name
        if native not in arrays:
            with reading(f"{source.name}: {short(name)}", "texts"):
                arrays[native] = _text(cells.raw[name])
    return Mapped(pa.table(arrays), dict(texts), cells.source)


def _texts(source: Source, columns: Columns, kinds: Mapping[str, Any], identity: bool) -> dict[str, str]:
    for target in columns:
        if target not in kinds:
            expected, do = f"one of: {', '.join(kinds)}", suggestion(target, kinds)
            raise InputError(f"{source.name}: {target}", "no canonical column", expected, do)
    same = {name: name for name in source.frame.columns if identity and name in kinds and name not in columns}
    if identity:
        _refuse_likely(source, columns, kinds)
    return same | {target: str(text) for target, text in columns.items() if text}


def _refuse_likely(source: Source, columns: Columns, kinds: Mapping[str, Any]) -> None:
    """InputError for a column that no entry uses and whose name is nearly that of an absent canonical one."""
    texts, names = " ".join(filter(None, columns.values())), source.frame.columns
    for name in (name for name in names if name not in kinds and name not in texts and not name.startswith(NATIVE)):
        likely = difflib.get_close_matches(name, kinds, n=1, cutoff=0.85)
        if likely and likely[0] not in columns and likely[0] not in names:
            do = f"rename it or map it: {likely[0]}={name}, or {likely[0]}= to leave that out"
            raise InputError(f"{source.name}: {name}", "an unknown column", likely[0], do)


def _filtered(source: Source, cells: _Cells, keep: str) -> _Cells:
    """The rows for which a condition holds; messages name their places in the source."""
    holds = _value(cells, _entry(source, "where", keep)) if keep not in source.frame.columns else cells.raw[keep]
    if holds.dtype != pl.Boolean:
        raise InputError(f"{source.name}: where = {keep}", f"{holds.dtype}", "a condition, such as state = 'COMPLETED'")
    holds = holds.fill_null(False)
    rows = holds.arg_true().to_list()
    return _Cells(Source(source.frame.filter(holds), source.name, lambda row: source.place(rows[row])))


def _column(cells: _Cells, entry: _Entry, kind: pa.DataType) -> pa.Array:
    with reading(f"{cells.source.name}: {entry.target} = {short(entry.text)}", f"values of type {kind}"):
        return _values(cells, entry, kind)


def _values(cells: _Cells, entry: _Entry, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return _text(cells.raw[entry.text] if entry.expression is None else _value(cells, entry))
    if pa.types.is_boolean(kind):
        return _truth(cells, entry)
    if pa.types.is_nested(kind):
        return _nested(cells, entry, kind)
    return _number(cells, entry, kind)


def _text(series: pl.Series) -> pa.Array:
    if series.dtype.is_nested() or series.dtype == pl.Duration:
        series = pl.Series(series.name, [None if cell is None else str(cell) for cell in series.to_list()], pl.String)
    if series.dtype.is_float() and (series == series.floor()).fill_null(True).all() and (series.abs() < 2**53).all():
        series = series.cast(pl.Int64)  # 3, not 3.0
    return pa.array(series.cast(pl.String).to_arrow()).cast(pa.string())


def _truth(cells: _Cells, entry: _Entry) -> pa.Array:
    values = cells.raw[entry.text] if entry.expression is None else _value(cells, entry)
    if values.dtype != pl.Boolean:
        words = values.cast(pl.String).str.to_lowercase().str.replace(r"^([01])\.0$", "${1}")
        truth = words.replace_strict({"true": True, "1": True, "false": False, "0": False}, default=None)
        bad = truth.cast(pl.Boolean).is_null() & values.is_not_null()
        if bad.any():
            raise _fault(cells, entry, values, bad, "true or false")
        values = truth.cast(pl.Boolean)
    return values.to_arrow()


def _nested(cells: _Cells, entry: _Entry, kind: pa.DataType) -> pa.Array:
    """Lists as `A|B`, maps as `a=1;b=2`; columns of frames as they are."""
    values = cells.raw[entry.text] if entry.expression is None else _value(cells, entry)
    if values.dtype != pl.String or pa.types.is_struct(getattr(kind, "value_type", kind)):
        return values.to_arrow()
    parsed: list[Any] = []
    for row, text in enumerate(values.to_list()):
        try:
            if text is None or pa.types.is_map(kind):
                parsed.append(map_of(text, kind))
            else:
                whole = pa.types.is_integer(kind.value_type)
                parsed.append([int(one) if whole else one for one in text.split("|") if one] or None)
        except ValueError:
            where = f"{cells.source.place(row)}: {entry.target}"
            raise InputError(where, short(text), "A|B, or name=value with ; between them") from None
    return pa.array(parsed, kind)


def _number(cells: _Cells, entry: _Entry, kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind) and entry.expression is None:
        exact = _exact(cells.raw[entry.text])
        if exact is not None:
            return _narrow(cells, entry, exact, kind)
    raw = cells.raw[entry.text] if entry.expression is None else None
    if raw is not None and raw.dtype.is_temporal() and not entry.target.endswith("_s"):
        raise _fault(cells, entry, raw, raw.is_not_null(), f"a number, no {raw.dtype}")
    values = cells.numbers(entry.text) if entry.expression is None else _value(cells, entry)
    if values.dtype in (pl.String, pl.Boolean) or not (values.dtype.is_numeric() or values.dtype == pl.Null):
        _refuse_texts(cells, entry)
        raise _fault(cells, entry, values, values.is_not_null(), "a number")
    values = values.cast(pl.Float64)
    if any("[" in root for root in entry.uses):
        values = values.round(6)  # differences of dates are exact to the microsecond
    if not pa.types.is_integer(kind):
        return values.to_arrow()
    whole = (values + 0.5).floor() if entry.target in ROUNDED else values
    bad = (whole != whole.floor()) | ~whole.is_finite()
    if bad.fill_null(False).any():
        raise _fault(cells, entry, values, bad.fill_null(False), "a whole number")
    return _narrow(cells, entry, whole, kind)


def _exact(raw: pl.Series) -> pl.Series | None:
    """Whole numbers beyond the precision of floats; None if not all cells are whole."""
    if raw.dtype.is_integer():
        return raw
    if raw.dtype != pl.String:
        return None
    whole = raw.str.strip_chars().cast(pl.Int64, strict=False)
    return whole if whole.null_count() == raw.null_count() else None


def _narrow(cells: _Cells, entry: _Entry, values: pl.Series, kind: pa.DataType) -> pa.Array:
    widths = {pa.int16(): pl.Int16, pa.int32(): pl.Int32, pa.int64(): pl.Int64}
    narrow = values.cast(widths[kind], strict=False)
    bad = narrow.is_null() & values.is_not_null()
    if bad.any():
        raise _fault(cells, entry, values, bad, f"a number of type {kind}")
    return narrow.to_arrow()


def _fault(cells: _Cells, entry: _Entry, values: pl.Series, bad: pl.Series, expected: str) -> InputError:
    row = int(bad.arg_max() or 0)
    label = entry.target if entry.text == entry.target else f"{entry.target} = {entry.text}"
    do = ""
    if entry.text == entry.target:
        do = f"map the column, or leave it out: {entry.target}="
    cell = values[row]
    found = short(cell.to_list() if isinstance(cell, pl.Series) else cell)
    return InputError(f"{cells.source.place(row)}: {label}", found, expected, do)
