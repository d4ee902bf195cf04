"""The workload as the loop takes it: batches cut where they have to be, their columns as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.engine import OnlineRun


class Arrivals(NamedTuple):
    """Columns of one batch; durations are NaN for ever, times are seconds."""

    pod_id: Any
    cls: Any
    submit_s: Any
    duration_s: Any
    priority: Any


def arrivals(batch: pa.RecordBatch, cls: Any) -> Arrivals:
    """The columns of a batch whose pods have these class ids."""
    pod_id = batch.column("pod_id").to_numpy()
    return Arrivals(pod_id, cls, _floats(batch, "submit_s"), _floats(batch, "duration_s"), _priorities(batch))


NO_ARRIVALS = Arrivals(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0), np.zeros(0, np.int32))
"""A batch of nothing, for telling that there is nothing more."""


def pieces(batches: Iterator[pa.RecordBatch], every: int = 0, at: int = 0) -> Iterator[pa.RecordBatch]:
    """The batches, also cut after every ``every`` rows of the stream and after its first ``at`` rows (0 = not)."""
    row = 0
    for batch in batches:
        while batch.num_rows:
            cuts = [row + batch.num_rows]
            cuts += [row + every - row % every] if every else []
            cuts += [at] if row < at else []
            piece = batch.slice(0, min(cuts) - row)
            batch = batch.slice(piece.num_rows)
            row += piece.num_rows
            yield piece


def arrived_by(batches: Iterator[pa.RecordBatch], time_s: float) -> Iterator[pa.RecordBatch]:
    """The batches up to the last row that arrives at this time or earlier."""
    for batch in batches:
        rows = int(np.searchsorted(_floats(batch, "submit_s"), time_s, side="right"))
        if rows:
            yield batch.slice(0, rows)
        if rows < batch.num_rows:
            return


def stream(run: OnlineRun, batches: Iterator[pa.RecordBatch]) -> None:
    """Feed a run all that still arrives, and let it go on until nothing more happens."""
    fed = False
    for batch, last in with_last(batches):
        fed = True
        run.scribe.do(run.recorder.arrivals, batch)
        run.online.feed(*run.number(batch), last)
        run.advance()
    if not fed:  # nodes may still come and go
        run.online.feed(*NO_ARRIVALS, True)
        run.advance()


def with_last(batches: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Each batch with whether it is the last one."""
    held = next(batches, None)
    while held is not None:
        following = next(batches, None)
        yield held, following is None
        held = following


def _floats(batch: pa.RecordBatch, name: str) -> Any:
    """A float64 column; null or absent becomes NaN."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, np.nan)
    return np.ascontiguousarray(batch.column(name).to_numpy(zero_copy_only=False), np.float64)


def _priorities(batch: pa.RecordBatch) -> Any:
    if "priority" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int32)
    return np.ascontiguousarray(batch.column("priority").fill_null(0).to_numpy(zero_copy_only=False), np.int32)
