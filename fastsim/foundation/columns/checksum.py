"""Checksums of the content of tables, however their rows are batched and stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.foundation.columns.equal_cells import distinct_rows


def content_checksum(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
    """SHA-256 of the rows themselves: batching, dictionaries and all-null columns make no difference."""
    checksum = ContentChecksum(schema)
    for batch in batches:
        checksum.add(batch)
    return checksum.hexdigest()


class ContentChecksum:
    """`content_checksum` of rows that come batch by batch."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._hashers: dict[str, Any] = {}
        self._filled: set[str] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        for field in self.schema:
            column = batch.column(field.name)
            if column.null_count < len(column):
                self._filled.add(field.name)
            _feed(self._hashers, field.name, column)

    def hexdigest(self) -> str:
        """The checksum of all rows so far."""
        total = hashlib.sha256()
        for path in sorted(self._hashers):
            if path.split("/")[0] in self._filled:
                total.update(f"{path}={self._hashers[path].hexdigest()}\n".encode())
        return total.hexdigest()


def _feed(hashers: dict[str, Any], path: str, column: pa.Array) -> None:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _feed(hashers, path, column.cast(pa.string()))
    _add(hashers, f"{path}/valid", _validity(column))
    if kind == pa.list_(pa.string()):
        lengths = pc.list_value_length(column).fill_null(0).cast(pa.int64())
        _add(hashers, f"{path}/length", lengths.to_numpy(zero_copy_only=False))
        _feed(hashers, f"{path}/item", column.flatten())
    elif pa.types.is_string(kind):
        _feed_text(hashers, path, column.fill_null(""))
    elif pa.types.is_nested(kind):
        first, places = distinct_rows([column])
        texts = [json.dumps(value, sort_keys=True) for value in column.take(pa.array(first)).to_pylist()]
        _feed_text(hashers, path, pa.array(texts, pa.string()).take(pa.array(places)))
    else:
        _feed_numbers(hashers, path, column)


def _validity(column: pa.Array) -> np.ndarray:
    """A byte for every cell: 1 where there is a value."""
    if not column.null_count:
        return np.ones(len(column), np.uint8)
    valid: np.ndarray = column.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False)
    return valid


def _add(hashers: dict[str, Any], key: str, data: np.ndarray) -> None:
    hashers.setdefault(key, hashlib.sha256()).update(np.ascontiguousarray(data))


def _feed_text(hashers: dict[str, Any], path: str, column: pa.Array) -> None:
    """Length in bytes of every text, and all texts of a column without nulls, one after the other."""
    _, offsets, data = column.cast(pa.string()).buffers()
    bounds = np.zeros(1, np.int32)
    if len(column):
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    _add(hashers, f"{path}/length", np.diff(bounds).astype(np.int64))
    text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    _add(hashers, f"{path}/bytes", text[bounds[0] : bounds[-1]])


def _feed_numbers(hashers: dict[str, Any], path: str, column: pa.Array) -> None:
    floating = pa.types.is_floating(column.type)
    if not floating and not pa.types.is_signed_integer(column.type):
        column = column.cast(pa.int64())
    filled = column.fill_null(0) if column.null_count else column
    numbers = filled.to_numpy(zero_copy_only=False).astype(np.float64 if floating else np.int64, copy=False)
    # Adding zero turns -0.0 into 0.0: they compare equal, so they must hash alike.
    _add(hashers, f"{path}/value", numbers + 0.0 if floating else numbers)
