"""Tables on disk: Parquet that is complete or absent and the same bytes for the same rows."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastsim.errors import InputError, ResultError
from fastsim.foundation import interrupts
from fastsim.foundation.columns.physical_types import PLAIN, converted, refuse_same_names, short_type
from fastsim.foundation.durable_file import flush, flush_names, refuse_other_bytes, sweep_partials
from fastsim.foundation.limits.work_budget import Work, refuse_excess
from fastsim.foundation.written_folder import exchange, refuse_replacing

if TYPE_CHECKING:
    import pyarrow.parquet as pq  # loads clients of object stores, so it is imported where a file is opened

ROW_GROUP = 122_880
"""Rows of a Parquet row group; a multiple of 2,048, about 1.4 MB compressed for pods."""
ZSTD_LEVEL = 3
"""Compression level of a Parquet file that is written once and read often."""
QUICK_LEVEL = -1
"""Compression level of tables that a run writes: as small for times and ids, in two thirds of the time."""
COMPLETE, PLAIN_TYPE = "a complete Parquet file", "write the column as a plain type"
"""What is expected of a file that cannot be read, and the remedy for a column without its values."""
CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable by which users choose Arrow's allocator."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file beside `path` that takes its name on success and vanishes on any failure."""
    target = Path(path)
    refuse_other_bytes(target)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    sweep_partials(target)
    try:
        yield partial
        flush(partial)
        os.replace(partial, target)
        flush_names(target.absolute().parent)
    except OSError as error:
        raise ResultError(f"{target}: cannot be written: {_reason(target, error)}") from error
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder that takes the name `path` on success and vanishes on any failure.

    A folder that has the name already is exchanged for it only then, and only if fastsim wrote it.
    """
    target = Path(path)
    refuse_other_bytes(target)
    partial, former = (target.with_name(f".{target.name}.{os.getpid()}.{kind}") for kind in ("partial", "former"))
    refuse_replacing(target)
    try:
        partial.mkdir(parents=True)
        yield partial
        refuse_replacing(target)  # again: the user may have put something there meanwhile
        flush(partial)
        exchange(partial, target, former)
        flush_names(target.absolute().parent)
    except OSError as error:
        raise ResultError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _reason(target: Path, error: OSError) -> str:
    """Why there is no file: the folder that is missing, which Arrow tells in terms of the temporary file."""
    if not target.absolute().parent.is_dir():
        return f"there is no folder {target.parent}"
    return error.strerror or str(error)


def rechunked(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows` (the last may be shorter; empty batches vanish)."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        interrupts.check()
        while batch.num_rows:
            piece = batch.slice(0, rows - count)
            batch = batch.slice(piece.num_rows)
            held.append(piece)
            count += piece.num_rows
            if count == rows:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def write_parquet(
    path: str | os.PathLike[str],
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    metadata: Mapping[str, str] | None = None,
    sorted_by: Sequence[str] = (),
) -> int:
    """Writes the rows and returns their number; the bytes depend only on the rows, never on how they were batched."""
    with replacing(path) as partial, TableWriter(partial, schema, metadata, sorted_by) as writer:
        for batch in batches:
            interrupts.check()
            writer.add(batch)
        return writer.close()


class TableWriter:
    """A Parquet file that grows by whole row groups of `ROW_GROUP` rows while batches of any size come in.

    At most one row group is held in memory; the bytes depend only on the rows, never on how they were batched.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        metadata: Mapping[str, str] | None = None,
        sorted_by: Sequence[str] = (),
        level: int = ZSTD_LEVEL,
        coded: Mapping[str, pa.DataType] | None = None,
        extremes: Sequence[str] | None = None,
    ) -> None:
        """Columns of text may be ``coded``: written with these dictionary types, and read with the types of ``schema``.

        Row groups keep their least and largest value of all columns, or of the ``extremes``.
        """
        import pyarrow.parquet as pq

        self.rows = 0
        self._stamp = {**(metadata or {}), "fastsim.sorted_by": ",".join(sorted_by)}
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        layout = _layout(schema, sorted_by, level)
        if extremes is not None:
            layout["write_statistics"] = [name for name in extremes if name in schema.names]
        if coded:
            self._stamp["ARROW:schema"] = base64.b64encode(schema.serialize()).decode()
            schema = pa.schema([f.with_type(coded.get(f.name, f.type)) for f in schema])
        self.schema = schema
        self._file = pq.ParquetWriter(path, schema, store_schema=not coded, **layout)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows with the columns of the schema; full row groups go to the file."""
        while batch.num_rows:
            piece = batch.slice(0, ROW_GROUP - self._count)
            batch = batch.slice(piece.num_rows)
            self._held.append(piece)
            self._count += piece.num_rows
            if self._count == ROW_GROUP:
                self._write()

    def group(self, batch: pa.RecordBatch) -> None:
        """Take rows as one row group; their dictionaries must be as `add` would leave them."""
        if self._count or batch.num_rows > ROW_GROUP:
            raise ValueError(f"{batch.num_rows} rows after {self._count} are no row group")
        self._file.write_batch(batch, row_group_size=ROW_GROUP)
        self.rows += batch.num_rows

    def close(self) -> int:
        """Write what is left and the footer; the number of rows."""
        if self._count:
            self._write()
        stamped = self._stamp | {"fastsim.row_count": str(self.rows)}
        self._file.add_key_value_metadata(dict(sorted(stamped.items())))
        self._file.close()
        return self.rows

    def _write(self) -> None:
        whole = _joined(self._held)
        self._held, self._count = [], 0
        self._file.write_batch(_tidy(whole, self.schema), row_group_size=ROW_GROUP)
        self.rows += whole.num_rows

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if kind is not None:
            self.drop()

    def drop(self) -> None:
        """Close a file that will stay incomplete."""
        with suppress(OSError, pa.ArrowException):  # a full disk has no room for the footer either
            self._file.close()


def _layout(schema: pa.Schema, sorted_by: Sequence[str], level: int) -> dict[str, Any]:
    """Writer options: deltas for ids, split streams for times, dictionaries for everything else."""
    import pyarrow.parquet as pq

    deltas = [f.name for f in schema if pa.types.is_int64(f.type) and f.name.endswith("_id")]
    splits = [f.name for f in schema if pa.types.is_float64(f.type)]
    encodings = dict.fromkeys(deltas, "DELTA_BINARY_PACKED") | dict.fromkeys(splits, "BYTE_STREAM_SPLIT")
    dictionaries = [f.name for f in schema if f.name not in encodings and not pa.types.is_nested(f.type)]
    dictionaries += [f"{f.name}.list.element" for f in schema if f.type == pa.list_(pa.string())]
    return {
        "compression": "zstd",
        "compression_level": level,
        "use_dictionary": dictionaries,
        "column_encoding": encodings or None,
        "version": "2.6",
        "sorting_columns": [pq.SortingColumn(schema.get_field_index(name)) for name in sorted_by] or None,
    }


def _tidy(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Dictionaries in order of first appearance, so that a slice and a copy of it are written alike.

    Ordered ones stay as they are: their values and the order of those are part of the type of the column.
    """
    columns = [batch.column(f.name) for f in schema]
    columns = [c if _ordered(c.type) and c.type == f.type else converted(c, f.type)
               for c, f in zip(columns, schema, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ordered(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) and bool(kind.ordered)


def open_parquet(path: str | os.PathLike[str]) -> pq.ParquetFile:
    """The opened file; InputError if it is missing, cut short or no Parquet at all, or names columns with odd bytes."""
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, memory_map=False, pre_buffer=False)
        for field in file.schema_arrow:
            _read_names(field)
        refuse_same_names(file.schema_arrow, str(path))
        return file
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a Parquet file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: names of columns", one_line(error), "UTF-8") from None
    except (OSError, pa.ArrowException) as error:
        expected = f"for each name {PLAIN}" if _has_footer(path) else COMPLETE
        raise InputError(str(path), one_line(error), expected) from error


def _has_footer(path: str | os.PathLike[str]) -> bool:
    """Whether another reader finds the columns, so that the file is complete."""
    import polars as pl

    with suppress(OSError, pl.exceptions.PolarsError):
        return bool(pl.read_parquet_schema(Path(path)))
    return False


def _read_names(field: pa.Field) -> None:
    """UnicodeDecodeError if a name or a note of a column, or of its parts, is not UTF-8: polars panics over those."""
    str(field.name)
    for text in chain.from_iterable((field.metadata or {}).items()):
        text.decode()
    for number in range(field.type.num_fields):
        _read_names(field.type.field(number))


def parquet_batches(path: str | os.PathLike[str], columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Record batches of the named columns in constant memory; a damaged page is an InputError."""
    with open_parquet(path) as file:
        _refuse_lost_values(path, file, columns)
        try:
            for batch in file.iter_batches(batch_size=rows, columns=list(columns), use_threads=False):
                interrupts.check()
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise InputError(str(path), one_line(error), COMPLETE) from error


def _refuse_lost_values(path: str | os.PathLike[str], file: pq.ParquetFile, columns: Sequence[str]) -> None:
    """InputError for a column with fewer values than rows, which would end the table before its last row.

    pyarrow writes such files of dictionaries of dictionaries.
    """
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        for place in range(group.num_columns):
            if (chunk := group.column(place)).num_values < group.num_rows:
                for name in columns:
                    if f"{chunk.path_in_schema}.".startswith(f"{name}."):
                        kind = short_type(file.schema_arrow.field(name).type)
                        found = f"{chunk.num_values:,} values of type {kind} in {group.num_rows:,} rows"
                        raise InputError(f"{path}: {name}", found, "a value or null in each row", PLAIN_TYPE)


def parquet_table(path: str | os.PathLike[str], work: Work) -> pa.Table:
    """A whole Parquet file, whose rows are within the budget of this work; they are counted before they are read."""
    with open_parquet(path) as file:
        refuse_excess(str(path), file.metadata.num_rows, work)
        _refuse_lost_values(path, file, file.schema_arrow.names)
        try:
            return file.read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise InputError(str(path), one_line(error), COMPLETE) from error


def one_line(error: BaseException) -> str:
    """The text of a foreign error on one line."""
    return " ".join(str(error).split())[:200]


def arrow_table(data: Any, where: str) -> pa.Table:
    """A table from an Arrow stream or array; anything else is an InputError."""
    table = data if isinstance(data, pa.Table) else _streamed(data, where)
    refuse_same_names(table.schema, where)
    return table


def _streamed(data: Any, where: str) -> pa.Table:
    _refuse_objects(data, where)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data).read_all()
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except (pa.ArrowException, TypeError, ValueError) as error:
        place, found = where + _unreadable_column(data), " ".join(str(error).split())
        raise InputError(place, found, "a readable Arrow stream of rows") from error
    expected = "an object with __arrow_c_stream__ or __arrow_c_array__"
    raise InputError(where, type(data).__name__, expected, "for example a polars DataFrame or a pyarrow Table")


def _refuse_objects(data: Any, where: str) -> None:
    """InputError for a column of Python objects, of which polars hands out the addresses."""
    schema = getattr(data, "schema", None)
    for name, kind in schema.items() if isinstance(schema, Mapping) else ():
        if "Object" in str(kind):
            raise InputError(
                f"{where}: {name}", f"type {kind}", "a column of one plain type", "convert it or leave it out"
            )


def _unreadable_column(data: Any) -> str:
    """The name of the first column of a frame that alone cannot be read either, for messages."""
    for name in getattr(data, "columns", ()):
        try:
            pa.RecordBatchReader.from_stream(data[[name]]).read_all()
        except (pa.ArrowException, TypeError, ValueError):
            return f": {name}"
    return ""


class _Streaming:
    """Number of runs that stream now, and Arrow's allocator before the first of them."""

    lock = threading.Lock()
    runs = 0
    before: Any = None


@contextmanager
def streaming() -> Iterator[None]:
    """Inside, batches come from C's allocator unless the user chose another; no result depends on it.

    It reuses the pages of one batch for the next. Arrow's default gives them back, and the kernel clears them again.
    """
    with _Streaming.lock:
        _Streaming.runs += 1
        if _Streaming.runs == 1:
            _Streaming.before = pa.default_memory_pool()
            if sys.platform == "linux" and CHOICE not in os.environ and _Streaming.before.backend_name == "mimalloc":
                pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _Streaming.lock:
            _Streaming.runs -= 1
            if not _Streaming.runs:
                pa.set_memory_pool(_Streaming.before)
