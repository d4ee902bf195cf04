"""Tables on disk: Parquet that is complete or absent and the same bytes for the same rows, and checksums of content."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fastsim.errors import InputError, ResultError

ROW_GROUP = 122_880
"""Rows of a Parquet row group; a multiple of 2,048, about 1.4 MB compressed for pods."""
ZSTD_LEVEL = 3
"""Compression level of every Parquet file."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file beside `path` that takes its name on success and vanishes on any failure."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, target)
    except OSError as error:
        raise ResultError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder that takes the name `path` on success and vanishes on any failure.

    A folder that has the name already is moved aside until then, and comes back if the change of names fails.
    """
    target = Path(path)
    partial, former = (target.with_name(f".{target.name}.{os.getpid()}.{kind}") for kind in ("partial", "former"))
    try:
        partial.mkdir(parents=True)
        yield partial
        if target.exists():
            os.replace(f"{target}{os.sep}", former)  # the separator refuses anything that is no folder
        os.replace(partial, target)
    except OSError as error:
        raise ResultError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        if former.exists() and not target.exists():
            os.replace(former, target)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(former, ignore_errors=True)


def rechunked(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows` (the last may be shorter; empty batches vanish)."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
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
    rows = 0
    with replacing(path) as partial, pq.ParquetWriter(partial, schema, **_layout(schema, sorted_by)) as writer:
        for batch in rechunked(batches, ROW_GROUP):
            rows += batch.num_rows
            writer.write_batch(_tidy(batch, schema), row_group_size=ROW_GROUP)
        stamped = {**(metadata or {}), "fastsim.row_count": str(rows), "fastsim.sorted_by": ",".join(sorted_by)}
        writer.add_key_value_metadata(dict(sorted(stamped.items())))
    return rows


def _layout(schema: pa.Schema, sorted_by: Sequence[str]) -> dict[str, Any]:
    """Writer options: deltas for ids, split streams for times, dictionaries for everything else."""
    deltas = [f.name for f in schema if pa.types.is_int64(f.type) and f.name.endswith("_id")]
    splits = [f.name for f in schema if pa.types.is_float64(f.type)]
    encodings = dict.fromkeys(deltas, "DELTA_BINARY_PACKED") | dict.fromkeys(splits, "BYTE_STREAM_SPLIT")
    dictionaries = [f.name for f in schema if f.name not in encodings and not pa.types.is_nested(f.type)]
    dictionaries += [f"{f.name}.list.element" for f in schema if f.type == pa.list_(pa.string())]
    return {
        "compression": "zstd",
        "compression_level": ZSTD_LEVEL,
        "use_dictionary": dictionaries,
        "column_encoding": encodings or None,
        "version": "2.6",
        "sorting_columns": [pq.SortingColumn(schema.get_field_index(name)) for name in sorted_by] or None,
    }


def _tidy(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Dictionaries in order of first appearance, so that a slice and a copy of it are written alike."""
    columns = [fresh_dictionary(batch.column(f.name), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def fresh_dictionary(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column as `kind`; a dictionary column gets only the values it uses, in order of first appearance."""
    if pa.types.is_map(kind) and pa.types.is_list(column.type):  # how libraries without maps hand one over
        rows = [row and [(pair["key"], pair["value"]) for pair in row] for row in column.to_pylist()]
        return pa.array(rows, kind)
    if not pa.types.is_dictionary(kind):
        return column if column.type == kind else column.cast(kind)
    return column.cast(pa.string()).dictionary_encode().cast(kind)


def open_parquet(path: str | os.PathLike[str]) -> pq.ParquetFile:
    """The opened file; InputError if it is missing, cut short or no Parquet at all."""
    try:
        return pq.ParquetFile(path, memory_map=False, pre_buffer=False)
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a Parquet file") from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(str(path), one_line(error), "a complete Parquet file") from error


def parquet_batches(path: str | os.PathLike[str], columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Record batches of the named columns in constant memory; a damaged page is an InputError."""
    with open_parquet(path) as file:
        try:
            yield from file.iter_batches(batch_size=rows, columns=list(columns), use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise InputError(str(path), one_line(error), "a complete Parquet file") from error


def parquet_table(path: str | os.PathLike[str]) -> pa.Table:
    """A whole small Parquet file."""
    with open_parquet(path) as file:
        try:
            return file.read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise InputError(str(path), one_line(error), "a complete Parquet file") from error


def one_line(error: BaseException) -> str:
    """The text of a foreign error on one line."""
    return " ".join(str(error).split())[:200]


def content_checksum(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
    """SHA-256 of the rows themselves: batching, dictionaries and all-null columns make no difference."""
    hashers: dict[str, Any] = {}
    filled: set[str] = set()
    for batch in batches:
        for field in schema:
            column = batch.column(field.name)
            if column.null_count < len(column):
                filled.add(field.name)
            _feed(hashers, field.name, column)
    total = hashlib.sha256()
    for path in sorted(hashers):
        if path.split("/")[0] in filled:
            total.update(f"{path}={hashers[path].hexdigest()}\n".encode())
    return total.hexdigest()


def _feed(hashers: dict[str, Any], path: str, column: pa.Array) -> None:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _feed(hashers, path, column.cast(pa.string()))
    _add(hashers, f"{path}/valid", column.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False))
    if kind == pa.list_(pa.string()):
        lengths = pc.list_value_length(column).fill_null(0).cast(pa.int64())
        _add(hashers, f"{path}/length", lengths.to_numpy(zero_copy_only=False))
        _feed(hashers, f"{path}/item", column.flatten())
    elif pa.types.is_string(kind):
        _feed_text(hashers, path, column.fill_null(""))
    elif pa.types.is_nested(kind):
        _feed_text(hashers, path, pa.array([json.dumps(value, sort_keys=True) for value in column.to_pylist()]))
    else:
        _feed_numbers(hashers, path, column)


def _add(hashers: dict[str, Any], key: str, data: np.ndarray) -> None:
    hashers.setdefault(key, hashlib.sha256()).update(np.ascontiguousarray(data))


def _feed_text(hashers: dict[str, Any], path: str, column: pa.Array) -> None:
    _add(hashers, f"{path}/length", pc.binary_length(column).cast(pa.int64()).to_numpy(zero_copy_only=False))
    _add(hashers, f"{path}/bytes", np.frombuffer("".join(column.to_pylist()).encode(), np.uint8))


def _feed_numbers(hashers: dict[str, Any], path: str, column: pa.Array) -> None:
    floating = pa.types.is_floating(column.type)
    wide = column.cast(pa.float64() if floating else pa.int64())
    numbers = wide.fill_null(0).to_numpy(zero_copy_only=False)
    # Adding zero turns -0.0 into 0.0: they compare equal, so they must hash alike.
    _add(hashers, f"{path}/value", numbers + 0.0 if floating else numbers)
