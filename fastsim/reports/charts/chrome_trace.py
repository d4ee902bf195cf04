"""A run as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing: a process for each node, a track for each GPU.

Pods that share a GPU have tracks of their own beside it, because slices of one track must not overlap. Allocation,
power and the number of waiting pods are counters. One second of simulated time is one second of the trace.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.engine.result import Result
from fastsim.errors import ResultError
from fastsim.reports.charts.chart_files import written_file
from fastsim.reports.charts.gpu_occupancy import Window, stays
from fastsim.reports.charts.series import seed_text

SLICES = 200_000
"""Most slices of a trace, as viewers are slow beyond; of more, every second pod is kept, or every third, ..."""
SAMPLES = 2000
"""Most values of a counter."""
LANES = 100
"""Number of a track: its GPU times this, plus one for each pod beside the first."""
COUNTERS = {
    "allocated GPUs": pl.col("gpu_milli_alloc") / 1000,
    "power (W)": pl.col("power_w"),
    "waiting": pl.col("pods_pending"),
}  # fmt: skip
CLUSTER = 0
"""The process of the counters; the node at position n is process n + 1."""

Event = dict[str, Any]


def written_trace(result: Result, path: str | os.PathLike[str], window: Window | None = None) -> tuple[Path, int, int]:
    """Write the trace; its path, number of slices, and number of slices of all pods."""
    result.require("placements", f"trace {path}")
    frame = stays(result)
    if window is not None:
        frame = frame.filter(pl.col("end_s") > window.begin_s, pl.col("start_s") < window.end_s)
        frame = frame.with_columns(pl.col("start_s").clip(window.begin_s), pl.col("end_s").clip(None, window.end_s))
    if frame.is_empty():
        expected = "expected a run with record='placements' or 'all', and pods on GPUs in the window"
        raise ResultError(f"trace {path}: found no stay on a GPU, {expected}")
    every = -(-len(frame) // SLICES)
    shown = frame.filter(pl.col("pod_id") % every == 0) if every > 1 else frame
    shown = shown.sort("start_s", "node_id", "gpu", "pod_id")
    events = [*_names(shown), *_slices(shown), *_counters(result, window)]
    about = {"policy": str(result.provenance.get("policy", "?")), "seed": seed_text(result),
             "slices": len(shown), "slices_of_all_pods": len(frame), "pods_kept": f"1 of {every}"}  # fmt: skip
    record = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    return written_file(path, text.encode()), len(shown), len(frame)


def _names(shown: pl.DataFrame) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": CLUSTER, "args": {"name": "cluster"}}
    for node_id, node in shown.select("node_id", "node").unique("node_id").sort("node_id").iter_rows():
        process = {"ph": "M", "pid": node_id + 1}
        yield process | {"name": "process_name", "args": {"name": str(node if node is not None else node_id)}}
        yield process | {"name": "process_sort_index", "args": {"sort_index": node_id + 1}}


def _slices(shown: pl.DataFrame) -> Iterator[Event]:
    """Complete events, each on the first free track of its GPU."""
    free: dict[tuple[int, int], list[int]] = {}
    busy: dict[tuple[int, int], list[tuple[float, int]]] = {}
    named: set[tuple[int, int]] = set()
    columns = ("pod_id", "node_id", "gpu", "start_s", "end_s")
    for pod, node, gpu, start_s, end_s in shown.select(columns).iter_rows():
        idle, active = free.setdefault((node, gpu), []), busy.setdefault((node, gpu), [])
        while active and active[0][0] <= start_s:
            heapq.heappush(idle, heapq.heappop(active)[1])
        lane = heapq.heappop(idle) if idle else len(active)
        heapq.heappush(active, (end_s, lane))
        track = gpu * LANES + min(lane, LANES - 1)
        if (node, track) not in named:
            named.add((node, track))
            name = f"GPU {gpu}" if lane == 0 else f"GPU {gpu}, beside"
            yield {"ph": "M", "name": "thread_name", "pid": node + 1, "tid": track, "args": {"name": name}}
        begin_us = round(start_s * 1e6)
        yield {"ph": "X", "name": f"pod {pod}", "pid": node + 1, "tid": track, "ts": begin_us,
               "dur": round(end_s * 1e6) - begin_us}  # fmt: skip


def _counters(result: Result, window: Window | None) -> Iterator[Event]:
    values = [value.cast(pl.Float64).alias(name) for name, value in COUNTERS.items()]
    frame = result.recorded_rows("timeline").select(pl.col("t_s"), *values).collect()
    if window is not None:
        frame = frame.filter(pl.col("t_s").is_between(window.begin_s, window.end_s))
    frame = frame.gather_every(max(1, -(-len(frame) // SAMPLES)))
    for t_s, *row in frame.iter_rows():
        for name, value in zip(COUNTERS, row, strict=True):
            yield {"ph": "C", "name": name, "pid": CLUSTER, "ts": round(t_s * 1e6), "args": {"value": round(value, 3)}}
