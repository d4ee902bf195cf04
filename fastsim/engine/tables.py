"""Result tables: types of the rows that compiled loops write, and the frames that users read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.engine.totals.job_totals import job_columns

EVENTS = ("node", "departure", "retry", "sample", "deschedule", "arrival", "end")
"""Kinds of timeline rows, by their number in the engine."""
REASONS = (
    "finished", "running", "node_lost", "evicted", "preempted", "pending", "too_large", "gang", "over_quota",
    "no_node", "no_match", "no_gpu_model", "no_gpu", "no_cpu", "no_memory", "no_extra", "no_pod_slot",
    "spread", "pod_limit", "out_of_memory", "gang_too_large", "no_gpu_memory", "pod_affinity",
)  # fmt: skip
"""Reasons why an interval of a pod ended or never began, by their number in the engine."""
STATES = ("finished", "running", "pending", "unplaced", "node_lost", "evicted", "preempted")
"""Final states of a pod."""
STATE_OF = np.array([STATES.index(reason if reason in STATES else "unplaced") for reason in REASONS], np.int64)
FRAG_COLUMNS = (
    "q1_lack_both", "q2_lack_gpu", "q3_satisfied", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access",
)  # fmt: skip
"""Free milli-GPU by what a typical pod finds there; all but ``q3_satisfied`` is fragmented."""
COUNTS = ("running", "pending", "finished", "unplaced", "lost", "arrived_cpu", "arrived_gpu", "unplaced_cpu",
          "unplaced_gpu")  # fmt: skip
TOTALS = ("nodes_used", "gpus_of_used_nodes", "gpus_used", "cpu_alloc", "mem_alloc", "gpu_alloc", "cpu_cap", "mem_cap",
          "gpu_cap", *FRAG_COLUMNS, "cpu_mw", "gpu_mw")  # fmt: skip
ROW = np.dtype([("t", "f8"), ("seq", "i8"), ("kind", "i8"), ("pod", "i8"), *((name, "i8") for name in COUNTS + TOTALS)])
"""One timeline row as the compiled loop writes it."""
OUTCOME = np.dtype([("seq", "i8"), ("pod_id", "i8"), ("node", "i8"), ("attempt", "i8"), ("reason", "i8"),
                    ("closes", "i8"), ("gpus", "u8"), ("submit", "f8"), ("first_start", "f8"), ("start", "f8"),
                    ("end", "f8"), ("preemptions", "i8"), ("lost", "f8"), ("ideal", "f8"), ("paused", "f8"),
                    ("gpu_s", "f8"), ("wasted", "f8"), ("cost", "f8")])  # fmt: skip
"""One outcome row as the compiled loop writes it; from ``preemptions`` on it sums up all intervals of the pod so far.

``ideal`` is the pod's duration, ``wasted`` are GPU seconds of lost work and of starting again.
"""
NAMES = ("native_id", "native_job_id")
"""Names of pods in placements and jobs: the first always, the others if the workload has them."""
TOLERANCE = 1e-6
"""Largest rounding error of a sum of floats that is 0."""
INTERVAL, POD = 1, 2
"""Bits of ``closes``: the row ends a stay on a node (or one that never began); it ends the pod."""

Array = Any
FrameMakers = Mapping[str, Callable[[], pl.DataFrame]]


def named_columns(columns: Sequence[str]) -> list[str]:
    """Those of ``NAMES`` among the columns of a workload."""
    return [name for name in NAMES if name in columns]


class LazyFrames(Mapping[str, pl.DataFrame]):
    """Tables by name; those of ``makers`` are made on first use."""

    def __init__(self, frames: Mapping[str, pl.DataFrame], makers: FrameMakers) -> None:
        self._names = (*frames, *makers)
        self._frames, self._makers, self._lock = dict(frames), dict(makers), threading.Lock()

    def __getitem__(self, name: str) -> pl.DataFrame:
        with self._lock:
            if name in self._makers:
                self._frames[name] = self._makers.pop(name)()  # the rows can be freed now
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyFrames, (dict(self), {})


def timeline_frame(rows: Array, typical_count: Array) -> pl.DataFrame:
    """The timeline; ``typical_count`` is the total count of the typical pods at each row, or at all rows."""
    shares = {name: rows[name] / typical_count for name in FRAG_COLUMNS}
    frag = sum(rows[name] for name in FRAG_COLUMNS if name != "q3_satisfied") / typical_count
    column = partial(_column, rows)
    frame = pl.DataFrame({
        "t_s": column("t"), "event_seq": column("seq"),
        "event": _enum(column("kind"), EVENTS),
        "pod_id": column("pod"),
        "pods_running": column("running"), "pods_pending": column("pending"), "pods_finished": column("finished"),
        "pods_unplaced": column("unplaced"), "pods_lost": column("lost"),
        "active_nodes": column("nodes_used"), "active_node_gpus": column("gpus_of_used_nodes"),
        "active_gpus": column("gpus_used"),
        "cpu_milli_alloc": column("cpu_alloc"), "memory_mib_alloc": column("mem_alloc"),
        "gpu_milli_alloc": column("gpu_alloc"),
        "cpu_milli_capacity": column("cpu_cap"), "gpu_milli_capacity": column("gpu_cap"),
        "arrived_cpu_milli": column("arrived_cpu"), "arrived_gpu_milli": column("arrived_gpu"),
        **shares, "frag_milli": frag,
        "power_cpu_w": rows["cpu_mw"] / 1000, "power_gpu_w": rows["gpu_mw"] / 1000,
        "power_w": (rows["cpu_mw"] + rows["gpu_mw"]) / 1000,
    })  # fmt: skip
    about_pod = pl.Series(np.isin(rows["kind"], [EVENTS.index("departure"), EVENTS.index("arrival")]))
    return frame.with_columns(pl.when(about_pod).then(pl.col("pod_id")).alias("pod_id"))


def placements_frame(out: Array, natives: pl.DataFrame | None, names: pl.Series) -> pl.DataFrame:
    """A row for every stay of a pod on a node, and for every pod without one; ``names`` are those of the nodes.

    ``natives`` are names of the pods (``native_id``) and of further things about them, by row.
    """
    out, natives = _closing(out, natives, INTERVAL)
    node = _column(out, "node")
    placed = pl.Series(node >= 0)
    frame = pl.DataFrame({
        "pod_id": _column(out, "pod_id"),
        "native_id": _natives(natives, len(out)),
        "attempt": out["attempt"].astype(np.int16),
        "node_id": node,
        "node": (names if len(names) else pl.Series([None], dtype=pl.String)).gather(np.maximum(node, 0)),
        "gpu_ids": pl.Series(device_lists(_column(out, "gpus"))),
        "start_s": _known(_column(out, "start")), "end_s": _known(_column(out, "end")),
        "reason": _enum(_column(out, "reason"), REASONS),
    })  # fmt: skip
    known = (pl.when(placed).then(pl.col(name)).alias(name) for name in ("node_id", "node"))
    return frame.with_columns(*known, *_further(natives))


def jobs_frame(out: Array, natives: pl.DataFrame | None) -> pl.DataFrame:
    """One row for every pod: first start, last end, wait, state and totals of its stays; ``natives`` as above."""
    out, natives = _closing(out, natives, POD)
    submit, start, end = (_column(out, name) for name in ("submit", "first_start", "end"))
    reason = _column(out, "reason")
    jct = np.where(reason == REASONS.index("finished"), end - submit, np.nan)
    attempts = out["attempt"] + ~np.isnan(out["start"])
    return pl.DataFrame({
        "pod_id": _column(out, "pod_id"),
        "native_id": _natives(natives, len(out)),
        "submit_s": submit, "start_s": _known(start), "end_s": _known(end),
        "wait_s": _known(start - submit), "jct_s": _known(jct),
        "state": _enum(STATE_OF[reason], STATES),
        "reason": _enum(reason, REASONS),
        "attempts": attempts.astype(np.int16), "preemptions": out["preemptions"].astype(np.int16),
        "lost_work_s": _column(out, "lost"),
        **job_columns(np.maximum(attempts - 1, 0), out["paused"], out["gpu_s"], out["ideal"], jct),
        "cost": _known(_column(out, "cost")),
    }).with_columns(_further(natives))  # fmt: skip


def device_lists(masks: Array) -> pa.Array:
    """Device numbers, ascending, of every 64-bit mask."""
    distinct = pa.array(masks).dictionary_encode()  # few, so sorting is not needed
    lists = [[g for g in range(64) if mask >> g & 1] for mask in distinct.dictionary.to_pylist()]
    return pa.array(lists, pa.list_(pa.int16())).take(distinct.indices)


def _closing(out: Array, natives: pl.DataFrame | None, what: int) -> tuple[Array, pl.DataFrame | None]:
    """The rows with this bit of ``closes``, and their names; most often all rows."""
    ends = out["closes"] & what > 0
    if ends.all():
        return out, natives
    return out[ends], natives if natives is None else natives.filter(pl.Series(ends))


def _column(rows: Array, name: str) -> Array:
    """One field of all rows in contiguous memory, the fastest input of frames."""
    return np.ascontiguousarray(rows[name])


def _known(values: Array) -> pl.Series:
    """Numbers, null for NaN."""
    return pl.Series(values, nan_to_null=True)


def _enum(codes: Array, words: tuple[str, ...]) -> pl.Series:
    """Words by their position, without comparing texts."""
    return pl.Series(words, dtype=pl.Enum(words)).gather(pl.Series(codes))


def _natives(natives: pl.DataFrame | None, rows: int) -> pl.Series:
    if natives is None or "native_id" not in natives.columns:
        return pl.Series([None], dtype=pl.String).new_from_index(0, rows)
    return natives["native_id"]


def _further(natives: pl.DataFrame | None) -> list[pl.Series]:
    """Names that not every table has."""
    return [] if natives is None else [column for column in natives if column.name != "native_id"]


SUMMARY = ("pods", "pods_running", "pods_pending", "pods_finished", "pods_unplaced", "pods_lost", "gpu_alloc_pct",
           "frag_milli", "makespan_s")  # fmt: skip
"""Columns of every summary."""


@cache
def base_columns(name: str) -> Mapping[str, pl.DataType]:
    """Columns and types that a table has after a run of any engine; there may be more."""
    if name == "timeline":
        return timeline_frame(np.zeros(0, ROW), 1).schema
    if name == "placements":
        return placements_frame(np.zeros(0, OUTCOME), None, pl.Series([], dtype=pl.String)).schema
    if name == "jobs":
        return jobs_frame(np.zeros(0, OUTCOME), None).schema
    return {"stage": pl.String()} if name == "stages" else dict.fromkeys(SUMMARY, pl.Float64())


KNOWN = {"timeline": ("t_s",), "placements": ("pod_id",), "jobs": ("pod_id", "submit_s")}
"""Columns that have a value in every row."""


def check_table(name: str, frame: pl.DataFrame) -> None:
    """ValueError unless the frame has the columns, types and ranges of a table that a run writes."""
    for column, kind in base_columns(name).items():
        found = frame.schema.get(column)
        if found is None:
            raise ValueError(f"no column {column}")
        if found.base_type() != kind.base_type() and not (name == "summary" and found.is_numeric()):
            raise ValueError(f"column {column} of {found}")
        if kind.is_nested() and found != kind:
            raise ValueError(f"column {column} of {found}")
    if name == "summary" and frame.height != 1:
        raise ValueError(f"{frame.height} rows")
    for series in frame:
        if series.name in KNOWN.get(name, ()) and series.null_count():
            raise ValueError(f"column {series.name} with {series.null_count()} cells without a value")
        if series.dtype.is_numeric():
            _check_numbers(series)
        elif name == "summary" and series.dtype != pl.Null:
            raise ValueError(f"column {series.name} of {series.dtype}")
    if "gpu_ids" in frame.columns and not frame["gpu_ids"].explode().drop_nulls().is_between(0, 63).all():
        raise ValueError("column gpu_ids with numbers out of 0 to 63")


def _check_numbers(series: pl.Series) -> None:
    """Numbers are finite; amounts and positions are not negative, times and names of pods may be."""
    if series.dtype.is_float() and not series.is_finite().all():
        raise ValueError(f"column {series.name} with a value that is not finite")
    free = series.name in ("pod_id", "mate_id", "t_s", "event_seq") or series.name.endswith(
        ("submit_s", "start_s", "end_s")
    )
    low = None if free else series.min()
    if isinstance(low, int | float) and low < -TOLERANCE:
        raise ValueError(f"column {series.name} with {low}")


def arrow(frame: pl.DataFrame) -> pa.Table:
    """A frame as the Arrow table that is written to files."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
