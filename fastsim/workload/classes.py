"""Pod classes: each distinct request gets a small dense number, so that work done for one pod serves the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.workload import schema as s

_SEPARATOR = "\x1f"

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
        self._ids: dict[tuple[int, int, int, int, tuple[str, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def intern(self, batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Class ids (int32) of the rows; new classes are numbered in order of first appearance."""
        local, first = _local_codes(batch)
        lookup = np.fromiter((self._id(batch, int(row)) for row in first), np.int32, len(first))
        return lookup[local]

    def _id(self, batch: pa.RecordBatch, row: int) -> int:
        cpu, memory, count, milli = (batch.column(name)[row].as_py() for name in _NUMBERS)
        models = tuple(batch.column(s.GPU_MODELS)[row].as_py() or ()) if s.GPU_MODELS in batch.schema.names else ()
        key = (cpu, memory, count, milli, models)
        found = self._ids.setdefault(key, len(self._ids))
        if found == len(self.cpu_milli):
            self.cpu_milli.append(cpu)
            self.memory_mib.append(memory)
            self.num_gpu.append(count)
            self.gpu_milli.append(milli)
            self.gpu_models.append(models)
        return found


_NUMBERS = (s.CPU_MILLI, s.MEMORY_MIB, s.NUM_GPU, s.GPU_MILLI)


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
