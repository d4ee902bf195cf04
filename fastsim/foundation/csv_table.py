"""Strict CSV: an extra field, a bad number or an unknown column is named by file, line and column."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from fastsim.errors import InputError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.packed_file import opened_bytes, opened_text
from fastsim.foundation.parquet import one_line

if TYPE_CHECKING:
    import polars as pl

interrupts.quieten_arrow()

OTHER_FORMATS = (
    (b"\xff\xfe", "text in UTF-16", "save it in UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "save it in UTF-8"),
    (b"PK\x03\x04", "a workbook of Excel, or another ZIP archive", "save the sheet as CSV, or read it as a frame"),
    (b"\xd0\xcf\x11\xe0", "a workbook of Excel", "save the sheet as CSV, or read it as a frame"),
    (b"PAR1", "a Parquet file", "its name must end in .parquet"),
    (b"ARROW1", "a file of Arrow", "read it as a frame: polars.read_ipc"),
    (b"\x1f\x8b", "a file packed by gzip", "its name must end in .gz"),
)
"""First bytes of files that are no CSV, what such files are, and what to do."""
JSON = re.compile(rb"\s*(\[\s*)?\{\s*\"[^\"]*\"\s*:")
"""First bytes of a JSON list of objects, or of lines with one object each."""
DELIMITERS = (";", "\t", "|", ",")
"""Usual separators of fields."""
TAB = "\t"
FAULT_ROWS = 4096
"""Rows checked together during the search for a file's first fault."""
FORMULA = r"^[=+\-@\t\r]"
"""Beginnings of texts that spreadsheets run as formulas."""


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame for a spreadsheet: texts that it would run as formulas have an apostrophe in front.

    For tables that are read in a spreadsheet; files that fastsim reads again keep their texts.
    """
    import polars as pl

    text = pl.col(pl.String)
    return frame.with_columns(pl.when(text.str.contains(FORMULA)).then(pl.lit("'") + text).otherwise(text).name.keep())


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with lists as texts, their items parted by spaces, and structures as texts."""
    import polars as pl

    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    return frame.with_columns(pl.col(name).map_elements(_joined, return_dtype=pl.String) for name in nested)


def _joined(value: object) -> str:
    import polars as pl

    return " ".join(map(str, value)) if isinstance(value, pl.Series | list) else str(value)


def csv_bytes(frame: pl.DataFrame) -> bytes:
    """The frame as CSV for other programs: flat, and nothing in it is a formula."""
    return without_formulas(flat(frame)).write_csv().encode()


def read_csv(path: str | os.PathLike[str], types: Mapping[str, pa.DataType], required: Iterable[str]) -> pa.Table:
    """The columns of `types` that a CSV file (plain or .gz) has; an empty field is null, a map is `a=1;b=2`.

    An unreadable file is an InputError naming file, line, column, what was found and what was expected.
    """
    header = _header(path, types, set(required))
    try:
        table = _texts_and_numbers(path, header, types)
        for index, name in enumerate(header):
            if pa.types.is_map(types[name]):
                maps = [map_of(text, types[name]) for text in table[name].to_pylist()]
                table = table.set_column(index, pa.field(name, types[name]), pa.array(maps, types[name]))
        return table
    except (OSError, ValueError, pa.ArrowException) as error:
        _raise_csv_fault(path, header, types)
        raise InputError(str(path), one_line(error), "a readable CSV file") from error


def csv_texts(
    path: str | os.PathLike[str], names: Sequence[str] | None = None, required: Iterable[str] = (),
    delimiter: str = ",",
) -> pa.Table:  # fmt: skip
    """All columns of a CSV file (plain or .gz) as texts; an empty field is null.

    ``names`` are the columns of a file without a header. Every row has as many fields as there are columns.
    """
    header = list(names or first_row(path, delimiter))
    _unique_columns(path, header, set(required))
    types = dict.fromkeys(header, pa.string())
    try:
        return _texts_and_numbers(path, header, types, names is None, delimiter)
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a CSV file") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        _raise_csv_fault(path, header, types, names is None, delimiter)
        raise InputError(str(path), one_line(error), "a readable CSV file") from error


def _texts_and_numbers(
    path: str | os.PathLike[str], header: list[str], types: Mapping[str, pa.DataType], headed: bool = True,
    delimiter: str = ",",
) -> pa.Table:  # fmt: skip
    convert = pa.csv.ConvertOptions(
        column_types={name: pa.string() if pa.types.is_map(types[name]) else types[name] for name in header},
        null_values=[""], strings_can_be_null=True,
    )  # fmt: skip
    read = pa.csv.ReadOptions(use_threads=False, column_names=None if headed else header)
    with opened_bytes(path) as source:
        return pa.csv.read_csv(source, read, pa.csv.ParseOptions(delimiter=delimiter), convert)


def csv_line(path: str | os.PathLike[str], row: int, headed: bool = True) -> int:
    """Line number in the file (from 1, header included) of data row `row` (from 0, blank lines not counted)."""
    with _opened(path) as text:
        rows = -1 if headed else 0
        for number, line in enumerate(text, start=1):
            rows += bool(line.strip())
            if rows == row + 1:
                return number
    return row + 2


def map_text(pairs: Iterable[tuple[str, object]] | None) -> str | None:
    """A map as one CSV field, `a=1;b=2`; null stays null. Signs that divide the field are `%3D` and `%3B` in a name."""
    return None if pairs is None else ";".join(f"{_escaped(key)}={_escaped(value)}" for key, value in pairs)


def map_of(text: str | None, kind: pa.DataType) -> list[tuple[str, object]] | None:
    """The map that one CSV field holds; ValueError if it is none."""
    if text is None:
        return None
    pairs = [item.partition("=") for item in text.split(";")]
    if not all(key and sign for key, sign, _ in pairs):
        raise ValueError(text)
    whole = pa.types.is_integer(kind.item_type)
    return [(_unescaped(key), int(value) if whole else _unescaped(value)) for key, _, value in pairs]


def _escaped(text: object) -> str:
    return str(text).replace("%", "%25").replace("=", "%3D").replace(";", "%3B")


def _unescaped(text: str) -> str:
    return text.replace("%3B", ";").replace("%3D", "=").replace("%25", "%")


def _opened(path: str | os.PathLike[str]) -> IO[str]:
    return opened_text(path, newline="")


def _header(path: str | os.PathLike[str], types: Mapping[str, pa.DataType], required: set[str]) -> list[str]:
    header = first_row(path)
    where, known = f"{path}:1", ", ".join(types)
    for name in header:
        if name not in types:
            raise InputError(f"{where}: {name}", "an unknown column", f"columns from: {known}")
    _unique_columns(path, header, required)
    return header


def first_row(path: str | os.PathLike[str], delimiter: str = ",") -> list[str]:
    """The header of a CSV file; a file of another format, or with another delimiter, is an InputError that says so."""
    try:
        _refuse_other_formats(path)
        with _opened(path) as text:
            row = next(csv.reader(text, delimiter=delimiter), [])
        _refuse_another_delimiter(path, row, delimiter)
        return row
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a CSV file") from error
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), one_line(error), "a CSV file, plain or gzipped") from error


def _refuse_other_formats(path: str | os.PathLike[str]) -> None:
    first = b""
    with suppress(OSError, EOFError), opened_bytes(path) as file:  # who reads the file next says what is wrong with it
        first = file.read(1000)
    for sign, found, do in OTHER_FORMATS:
        if first.startswith(sign):
            raise InputError(str(path), found, "a CSV file", do)
    if json := JSON.match(first):
        do = "read it as a frame: polars.read_json" if json[1] else "its name must end in .jsonl or .ndjson"
        raise InputError(str(path), "a JSON list" if json[1] else "lines of JSON", "a CSV file", do)


def _refuse_another_delimiter(path: str | os.PathLike[str], header: list[str], delimiter: str) -> None:
    """InputError for a header of one column that other separators part into several."""
    others = [sign for sign in DELIMITERS if sign != delimiter and len(header) == 1 and sign in header[0]]
    if others:
        do = f"delimiter={others[0]!r}, or csv:{path}?delimiter={others[0] if others[0] != TAB else '%09'}"
        raise InputError(f"{path}:1", f"one column {header[0]!r}", f"columns parted by {delimiter!r}", do)


def _unique_columns(path: str | os.PathLike[str], header: list[str], required: set[str]) -> None:
    if "\0" in "".join(header):  # a panic of polars
        raise InputError(f"{path}:1", "a name of a column with the character NUL", "a header of names in plain text")
    if not header or len(set(header)) != len(header) or not required <= set(header):
        expected = f"at least: {', '.join(sorted(required))}" if required else "a header of names, each once"
        raise InputError(f"{path}:1", f"columns {', '.join(header) or '(none)'}", expected)


def _raise_csv_fault(
    path: str | os.PathLike[str], header: list[str], types: Mapping[str, pa.DataType], headed: bool = True,
    delimiter: str = ",",
) -> None:  # fmt: skip
    """Reads the file again, slowly, and raises InputError for its first bad field."""
    try:
        with _opened(path) as text:
            reader = csv.reader(text, delimiter=delimiter)
            if headed:
                next(reader)
            rows = ((reader.line_num, fields) for fields in reader if fields)
            while part := list(islice(rows, FAULT_ROWS)):
                if not _sound([fields for _, fields in part], header, types):
                    _raise_row_fault(path, part, header, types)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), one_line(error), "a complete CSV file") from error


def _sound(rows: list[list[str]], header: list[str], types: Mapping[str, pa.DataType]) -> bool:
    """Whether rows have all fields, and numbers where numbers belong; False with maps, which are checked one by one."""
    if any(len(fields) != len(header) for fields in rows) or any(pa.types.is_map(types[name]) for name in header):
        return False
    try:
        for name, column in zip(header, zip(*rows, strict=True), strict=True):
            if not pa.types.is_string(types[name]):
                pa.array([field for field in column if field], pa.string()).cast(types[name])
    except pa.ArrowException:
        return False
    return True


def _raise_row_fault(
    path: str | os.PathLike[str], rows: list[tuple[int, list[str]]], header: list[str], types: Mapping[str, pa.DataType]
) -> None:
    for line, fields in rows:
        where = f"{path}:{line}"
        if len(fields) != len(header):
            raise InputError(where, f"{len(fields)} fields", f"{len(header)} fields: {','.join(header)}")
        for name, field in zip(header, fields, strict=True):
            _raise_field_fault(f"{where}: {name}", field, types[name])


def _raise_field_fault(where: str, field: str, kind: pa.DataType) -> None:
    if field == "" or pa.types.is_string(kind):
        return
    if pa.types.is_map(kind):
        try:
            map_of(field, kind)
        except ValueError:
            raise InputError(where, repr(field), "name=value, more of them after ;") from None
        return
    try:
        pa.array([field]).cast(kind)
    except pa.ArrowException as error:
        name = "an integer" if pa.types.is_integer(kind) else "a number"
        raise InputError(where, repr(field), f"{name} ({kind})") from error
