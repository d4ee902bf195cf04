"""Names pods have in their source, kept only while a pod of that name may still appear in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.engine.tables import POD

SPARSE = 4
"""A batch is packed again when less than one in so many of its names can still be asked for."""


class _Names:
    """The names of one batch that may still be asked for, by rising arrival number."""

    def __init__(self, seq: Any, names: pa.Array) -> None:
        self.seq, self.names = seq, names
        self.open = np.ones(len(seq), bool)

    def taken(self, seq: Any, closed: Any) -> pa.Array:
        """The names of these pods, the closed ones for the last time."""
        places = np.searchsorted(self.seq, seq)
        found = self.names.take(pa.array(places))
        self.open[places[closed]] = False
        left = int(self.open.sum())
        if left * SPARSE < len(self.seq):
            self.seq, self.names = self.seq[self.open], self.names.filter(pa.array(self.open))
            self.open = np.ones(left, bool)
        return found


class NativeIds:
    """``native_id`` of every pod that is in the system; memory follows those pods and not the trace."""

    def __init__(self, present: bool) -> None:
        self.present = present
        self._first: list[int] = []
        self._batches: list[_Names] = []
        self._arrived = 0

    def add(self, batch: pa.RecordBatch, only: Any = None) -> None:
        """The next arrivals; with ``only``, those of them whose arrival numbers are among these."""
        if self.present and batch.num_rows:
            seq, names = np.arange(self._arrived, self._arrived + batch.num_rows), batch.column("native_id")
            if only is not None:
                chosen = np.isin(seq, only)
                seq, names = seq[chosen], names.filter(pa.array(chosen))
            self._first.append(self._arrived)
            self._batches.append(_Names(seq, names))
            self._arrived += batch.num_rows
            self._forget()

    def of(self, out: Any) -> pl.Series | None:
        """The names for these outcome rows; pods that have left are forgotten. None without such a column."""
        if not self.present:
            return None
        if len(self._batches) == 1:  # as in every short run
            joined = self._batches[0].taken(out["seq"], out["closes"] & POD > 0)
            self._forget()
            return pl.Series("native_id", pl.from_arrow(joined), dtype=pl.String)
        which = np.searchsorted(self._first, out["seq"], side="right") - 1
        order = np.argsort(which, kind="stable")
        numbers, starts = np.unique(which[order], return_index=True)
        parts = [
            self._batches[number].taken(out["seq"][rows], out["closes"][rows] & POD > 0)
            for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
        ]
        self._forget()
        back = np.empty(len(out), np.int64)
        back[order] = np.arange(len(out))
        joined = pa.chunked_array(parts, pa.string()).combine_chunks()
        return pl.Series("native_id", pl.from_arrow(joined), dtype=pl.String).gather(pl.Series(back))

    def _forget(self) -> None:
        held = [k for k, batch in enumerate(self._batches) if len(batch.seq)]
        if len(held) < len(self._batches):
            self._first = [self._first[k] for k in held]
            self._batches = [self._batches[k] for k in held]
