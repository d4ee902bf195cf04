"""Pod classes: each distinct request gets a small dense number, so that work done for one pod serves the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.foundation.columns.equal_cells import distinct_rows
from fastsim.hardware.mig import gpu_milli
from fastsim.hardware.node_constraints import COLUMNS, NONE, Conditions, conditions_of
from fastsim.workload import schema as s
from fastsim_ext.state.request_index import RequestIndex

_SEPARATOR = pa.scalar("\x1f", pa.string())
ASKING = tuple(name for name in COLUMNS if name != s.GROUP)
"""Columns that make conditions; a group alone makes none."""

REQUEST = np.dtype(
    [("cpu_milli", "i8"), ("memory_mib", "i8"), ("num_gpu", "i4"), ("gpu_milli", "i4"), ("models", "i8")]
)
"""One distinct request as the compiled index stores it; ``models`` is a position in ``model_lists``."""

Ids = np.ndarray[Any, np.dtype[np.int32]]


class PodClasses:
    """Requests seen so far; the position of a request is its class id.

    Two pods are of one class if CPU, memory, GPU count, GPU share, the model list (verbatim) and all conditions
    are equal. A class costs some 45 bytes; ``model_lists`` and ``conditions``, side by side, have every distinct
    pair once.
    """

    def __init__(self) -> None:
        self.model_lists: list[tuple[str, ...]] = [()]
        self.conditions: list[Conditions] = [NONE]
        self._list_ids: dict[tuple[tuple[str, ...], Conditions], int] = {((), NONE): 0}
        self._index = RequestIndex()

    def __len__(self) -> int:
        return self._index.count

    def intern(self, batch: pa.RecordBatch) -> Ids:
        """Class ids (int32) of the rows; new classes are numbered in order of first appearance."""
        ids, models = np.empty(batch.num_rows, np.int32), self._models(batch)
        self._condition(batch, models)
        cpu, mem = batch.column(s.CPU_MILLI).to_numpy(), batch.column(s.MEMORY_MIB).to_numpy()
        num_gpu, milli = batch.column(s.NUM_GPU).to_numpy(), batch.column(s.GPU_MILLI).to_numpy()
        self._index.intern(cpu, mem, num_gpu, milli, models, ids)
        return ids

    def rows(self, first: int = 0) -> Any:
        """The requests from class ``first`` on, as one array of :data:`REQUEST`."""
        return np.frombuffer(self._index.rows(first), REQUEST)

    def row(self, k: int) -> Any:
        """The request of class ``k``."""
        return np.frombuffer(self._index.row(k), REQUEST)[0]

    def mig_milli(self, rows: Any) -> Any:
        """Milli-GPU (int64) of the instances of partitioned GPUs in some requests, as :meth:`rows`."""
        milli = np.array([gpu_milli(condition.extra_resources) for condition in self.conditions], np.int64)
        return milli[rows["models"]]

    def _models(self, batch: pa.RecordBatch) -> Ids:
        """Number of each row's list of models; 0 where any will do."""
        numbers: Ids = np.zeros(batch.num_rows, np.int32)
        if s.GPU_MODELS not in batch.schema.names:
            return numbers
        lists = batch.column(s.GPU_MODELS)
        named = lists.is_valid().to_numpy(zero_copy_only=False)
        if not named.any():
            return numbers
        rows = np.flatnonzero(named)
        chosen = lists if len(rows) == len(lists) else lists.take(pa.array(rows))
        codes = pc.binary_join(chosen, _SEPARATOR).dictionary_encode().indices.to_numpy()
        _, first = np.unique(codes, return_index=True)
        known = [self._list_id(tuple(names)) for names in chosen.take(pa.array(first)).to_pylist()]
        numbers[rows] = np.array(known, np.int32)[codes]
        return numbers

    def _condition(self, batch: pa.RecordBatch, numbers: Ids) -> None:
        """Correct the numbers of the rows that request more than models."""
        asking = [
            name for name in ASKING if batch.schema.names.count(name) and batch.column(name).null_count < len(batch)
        ]
        if not asking:
            return
        valid = [batch.column(name).is_valid().to_numpy(zero_copy_only=False) for name in asking]
        rows = np.flatnonzero(np.logical_or.reduce(valid))
        names = [*asking, *(name for name in (s.GROUP, s.NUM_GPU) if name in batch.schema.names)]
        cells = batch.select(names).take(pa.array(rows))
        first, places = distinct_rows([*cells.columns, numbers[rows]])
        listed = zip(numbers[rows[first]].tolist(), cells.take(pa.array(first)).to_pylist(), strict=True)
        known = [self._list_id(self.model_lists[number], conditions_of(row)) for number, row in listed]
        numbers[rows] = np.array(known, np.int32)[places]

    def _list_id(self, names: tuple[str, ...], conditions: Conditions = NONE) -> int:
        number = self._list_ids.setdefault((names, conditions), len(self.model_lists))
        if number == len(self.model_lists):
            self.model_lists.append(names)
            self.conditions.append(conditions)
        return number
