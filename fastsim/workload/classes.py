"""Pod classes: each distinct request gets a small dense number, so that work done for one pod serves the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.workload import schema as s

_SEPARATOR = "\x1f"

Key = tuple[int, int, int, int, tuple[str, ...]]
Codes = np.ndarray[Any, np.dtype[np.int64]]


class PodClasses:
    """Requests seen so far, as columns; the position of a request is its class id.

    Two pods are of one class if CPU, memory, GPU count, GPU share and the model list (verbatim) are equal.
    """

    def __init__(self) -> None:
        self.cpu_milli: list[int] = []
        self.memory_mib: list[int] = []
        self.num_gpu: list[int] = []
        self.gpu_milli: list[int] = []
        self.gpu_models: list[tuple[str, ...]] = []
        self._ids: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def intern(self, batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Class ids (int32) of the rows; new classes are numbered in order of first appearance."""
        local, first = _local_codes(batch)
        keys = _keys(batch, first)
        return np.fromiter(map(self._id, keys), np.int32, len(first))[local]

    def _id(self, key: Key) -> int:
        known = len(self._ids)
        found = self._ids.setdefault(key, known)
        if found == known:
            self.cpu_milli.append(key[0])
            self.memory_mib.append(key[1])
            self.num_gpu.append(key[2])
            self.gpu_milli.append(key[3])
            self.gpu_models.append(key[4])
        return found


_NUMBERS = (s.CPU_MILLI, s.MEMORY_MIB, s.NUM_GPU, s.GPU_MILLI)


def _keys(batch: pa.RecordBatch, rows: Codes) -> Iterator[Key]:
    """The requests of some rows."""
    taken = pa.array(rows)
    numbers = [batch.column(name).take(taken).to_pylist() for name in _NUMBERS]
    models: Iterable[list[str] | None] = [None] * len(rows)
    if s.GPU_MODELS in batch.schema.names:
        models = batch.column(s.GPU_MODELS).take(taken).to_pylist()
    return zip(*numbers, (tuple(names or ()) for names in models), strict=True)


def _local_codes(batch: pa.RecordBatch) -> tuple[Codes, Codes]:
    """Code of each row inside the batch, by first appearance, and the first row of each code."""
    codes = np.zeros(batch.num_rows, np.int64)
    columns = [batch.column(name) for name in _NUMBERS]
    if s.GPU_MODELS in batch.schema.names:
        columns.append(pc.binary_join(batch.column(s.GPU_MODELS), _SEPARATOR))
    for column in columns:
        added = _factorised(column)
        # Both factors are below the number of rows, so the product stays far inside 64 bits.
        codes = _factorised(pa.array(codes * (int(added.max(initial=0)) + 1) + added))
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(batch.num_rows - 1, -1, -1)
    return codes, first


def _factorised(column: pa.Array) -> Codes:
    encoded = column.dictionary_encode(null_encoding="encode")
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
