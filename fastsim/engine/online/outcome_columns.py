"""Tables ``placements`` and ``jobs`` as whole row groups in columns, filled from the rows of the compiled loop.

The rows, types and values are those of :mod:`fastsim.engine.tables`; the room for a row group is used again for the
next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.engine.tables import INTERVAL, NAMES, POD, REASONS, STATE_OF, STATES
from fastsim.foundation import parquet
from fastsim.hardware.node_constraints import MAX_GPUS
from fastsim_ext.state.outcome_columns import add_jobs, add_placements

NODE = pa.dictionary(pa.int32(), pa.large_string())
"""Type of the names of nodes for the writer of the file."""

Columns = dict[str, pa.Array]


class OutcomeColumns:
    """Room for one row group of a table; ``closing_bit`` is that of its outcome rows in ``closes``."""

    closing_bit: int
    known: tuple[str, ...]
    """Columns of numbers that may be null."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema, self.size = schema, parquet.ROW_GROUP
        self.at = 0
        self.named = [name for name in NAMES if name in schema.names]
        self._natives: list[pl.DataFrame] = []
        self.room: dict[str, Any] = {name: np.empty(self.size, kind) for name, kind in self.kinds().items()}
        self.clear()

    def kinds(self) -> dict[str, Any]:
        """Types of the numbers of a row."""
        raise NotImplementedError

    def clear(self) -> None:
        """Room for the next row group."""
        self.at, self._natives = 0, []
        for name in self.known:
            self.room[f"{name}_known"] = np.zeros(-(-self.size // 8), np.uint8)

    def fill(self, rows: Any, first: int) -> int:
        """Add outcome rows, as bytes, from ``first`` on; the first row without room."""
        raise NotImplementedError

    def columns(self) -> Columns:
        """The columns that are not plain numbers."""
        raise NotImplementedError

    def groups(self, out: Any, natives: pl.DataFrame | None) -> Iterator[pa.RecordBatch]:
        """Add outcome rows and the names of their pods; every full row group, valid until the next one."""
        rows, first = np.ascontiguousarray(out).view(np.uint8), 0
        while first < len(out):
            upto = self.fill(rows, first)
            if natives is not None:
                ends = pl.Series(out["closes"][first:upto] & self.closing_bit > 0)
                self._natives.append(natives.slice(first, upto - first).filter(ends))
            first = upto
            if self.at == self.size:
                yield self.rest()

    def rest(self) -> pa.RecordBatch:
        """The rows since the last full row group."""
        columns = self.columns()
        for name in self.named:
            parts = [piece for names in self._natives if name in names.columns for piece in pieces_of(names[name])]
            columns[name] = pa.concat_arrays(parts) if parts else pa.nulls(self.at, pa.large_string())
        for name in self.schema.names:
            if name not in columns:
                columns[name] = self.numbers(name, name if name in self.known else None)
        batch = pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
        self.clear()
        return batch

    def numbers(self, name: str, known: str | None = None) -> pa.Array:
        """A column of numbers; ``known`` names the bits of its valid rows."""
        values = self.room[name][: self.at]
        bits = None if known is None else pa.py_buffer(self.room[f"{known}_known"])
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), self.at, [bits, pa.py_buffer(values)])

    def words(self, name: str, words: tuple[str, ...]) -> pa.Array:
        """A column of words by their position among ``words``."""
        kind = self.schema.field(name).type
        listed = pa.array(words, kind.value_type)
        return pa.DictionaryArray.from_arrays(self.numbers(name), listed, ordered=kind.ordered).cast(kind)


class PlacementColumns(OutcomeColumns):
    """Rows of ``placements``; ``names`` of the nodes by position."""

    closing_bit = INTERVAL
    known = ("start_s", "end_s", "node")

    def __init__(self, schema: pa.Schema, names: pl.Series) -> None:
        self.names = pa.chunked_array([names.to_arrow()], pa.large_string()).combine_chunks()
        super().__init__(schema)
        self.room["number"] = np.full(len(names), -1, np.int32)
        self.room["appeared"] = np.empty(len(names), np.int32)
        self.room["offsets"] = np.zeros(self.size + 1, np.int64)
        self.room["devices"] = np.empty(2 * self.size + MAX_GPUS, np.int16)

    def kinds(self) -> dict[str, Any]:
        """Types of the numbers of a row."""
        return {"pod_id": np.int64, "attempt": np.int16, "node_id": np.int64, "code": np.int32,
                "start_s": np.float64, "end_s": np.float64, "reason": np.uint8}  # fmt: skip

    def clear(self) -> None:
        """Room for the next row group, whose nodes are numbered anew."""
        super().clear()
        if "number" in self.room:
            self.room["number"].fill(-1)
        self.room["codes"] = 0

    def fill(self, rows: Any, first: int) -> int:
        """Add outcome rows, as bytes, from ``first`` on; the first row without room."""
        upto, self.at = add_placements(rows, first, self.room, self.at)
        if upto == first and self.at < self.size:
            self.room["devices"] = np.concatenate([self.room["devices"], np.empty_like(self.room["devices"])])
        return upto

    def columns(self) -> Columns:
        """Nodes, their names, devices and reasons."""
        used = self.room["appeared"][: self.room["codes"]]
        offsets = self.room["offsets"][: self.at + 1]
        devices = pa.array(self.room["devices"][: offsets[-1]])
        kind = self.schema.field("gpu_ids").type
        lists = pa.Array.from_buffers(kind, self.at, [None, pa.py_buffer(offsets)], children=[devices])
        return {
            "node_id": self.numbers("node_id", "node"),
            "node": pa.DictionaryArray.from_arrays(self.numbers("code", "node"), self.names.take(pa.array(used))),
            "gpu_ids": lists, "reason": self.words("reason", REASONS),
        }  # fmt: skip


class JobColumns(OutcomeColumns):
    """Rows of ``jobs``."""

    closing_bit = POD
    known = ("start_s", "end_s", "wait_s", "jct_s", "paused_s", "ideal_s", "slowdown", "cost")

    def kinds(self) -> dict[str, Any]:
        """Types of the numbers of a row."""
        reals = ("submit_s", "lost_work_s", "gpu_hours", *self.known)
        return {"pod_id": np.int64, **dict.fromkeys(reals, np.float64), "state": np.uint8, "reason": np.uint8,
                "attempts": np.int16, "preemptions": np.int16, "restarts": np.int32}  # fmt: skip

    def fill(self, rows: Any, first: int) -> int:
        """Add outcome rows, as bytes, from ``first`` on; the first row without room."""
        upto, self.at = add_jobs(rows, first, STATE_OF.astype(np.uint8), self.room, self.at)
        return upto

    def columns(self) -> Columns:
        """States and reasons."""
        return {"state": self.words("state", STATES), "reason": self.words("reason", REASONS)}


def pieces_of(names: pl.Series) -> list[pa.Array]:
    """Names of pods in the type of the file, in pieces."""
    column = names.to_arrow(compat_level=pl.CompatLevel.oldest())
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
