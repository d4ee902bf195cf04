"""A run as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing: a process for each node, a track for each GPU.

Pods that share a GPU lie on tracks of their own beside it, because slices of one track must not overlap. Allocation,
power and the waiting line are counters. One second of simulated time is one second of the trace.
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
"""Most slices of a trace: viewers are slow beyond. Of more, one pod of two is kept, or one of three, ..."""
SAMPLES = 2000
"""Most values of a counter."""
LANES = 100
"""Tracks of a node are numbered: its GPU times this, plus one for each pod beside the first."""
COUNTERS = {
    "allocated GPUs": pl.col("gpu_milli_alloc") / 1000,
    "power (W)": pl.col("power_w"),
    "waiting": pl.col("pods_pending"),
}  # fmt: skip
CLUSTER = 0
"""The process of the counters; the node at position n is process n + 1."""

Event = dict[str, Any]


def written_trace(result: Result, path: str | os.PathLike[str], window: Window | None = None) -> tuple[Path, int, int]:
    """The file, its slices, and how many there would be if none was left out."""
    frame = stays(result)
    if window is not None:
        frame = frame.filter(pl.col("end_s") > window.begin_s, pl.col("start_s") < window.end_s)
        frame = frame.with_columns(pl.col("start_s").clip(window.begin_s), pl.col("end_s").clip(None, window.end_s))
    if frame.is_empty():
        told = "expected a run with record='placements' or 'all', and pods on GPUs in the window"
        raise ResultError(f"trace {path}: found no stay on a GPU, {told}")
    every = -(-len(frame) // SLICES)
    kept = frame.filter(pl.col("pod_id") % every == 0) if every > 1 else frame
    kept = kept.sort("start_s", "node_id", "gpu", "pod_id")
    events = [*_names(kept), *_slices(kept), *_counters(result, window)]
    about = {"policy": str(result.provenance.get("policy", "?")), "seed": seed_text(result),
             "slices": len(kept), "slices_of_all_pods": len(frame), "pods_kept": f"1 of {every}"}  # fmt: skip
    record = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    return written_file(path, text.encode()), len(kept), len(frame)


def _names(kept: pl.DataFrame) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": CLUSTER, "args": {"name": "cluster"}}
    for node_id, node in kept.select("node_id", "node").unique("node_id").sort("node_id").iter_rows():
        process = {"ph": "M", "pid": node_id + 1}
        yield process | {"name": "process_name", "args": {"name": str(node if node is not None else node_id)}}
        yield process | {"name": "process_sort_index", "args": {"sort_index": node_id + 1}}


def _slices(kept: pl.DataFrame) -> Iterator[Event]:
    """Complete events; each on the first track of its GPU that is free."""
    free: dict[tuple[int, int], list[int]] = {}
    busy: dict[tuple[int, int], list[tuple[float, int]]] = {}
    named: set[tuple[int, int]] = set()
    columns = ("pod_id", "node_id", "gpu", "start_s", "end_s")
    for pod, node, gpu, start_s, end_s in kept.select(columns).iter_rows():
        idle, held = free.setdefault((node, gpu), []), busy.setdefault((node, gpu), [])
        while held and held[0][0] <= start_s:
            heapq.heappush(idle, heapq.heappop(held)[1])
        lane = heapq.heappop(idle) if idle else len(held)
        heapq.heappush(held, (end_s, lane))
        track = gpu * LANES + min(lane, LANES - 1)
        if (node, track) not in named:
            named.add((node, track))
            told = f"GPU {gpu}" if lane == 0 else f"GPU {gpu}, beside"
            yield {"ph": "M", "name": "thread_name", "pid": node + 1, "tid": track, "args": {"name": told}}
        begin_us = round(start_s * 1e6)
        yield {"ph": "X", "name": f"pod {pod}", "pid": node + 1, "tid": track, "ts": begin_us,
               "dur": round(end_s * 1e6) - begin_us}  # fmt: skip


def _counters(result: Result, window: Window | None) -> Iterator[Event]:
    values = [value.cast(pl.Float64).alias(name) for name, value in COUNTERS.items()]
    frame = result.scan("timeline").select(pl.col("t_s"), *values).collect()
    if window is not None:
        frame = frame.filter(pl.col("t_s").is_between(window.begin_s, window.end_s))
    frame = frame.gather_every(max(1, -(-len(frame) // SAMPLES)))
    for t_s, *row in frame.iter_rows():
        for name, value in zip(COUNTERS, row, strict=True):
            yield {"ph": "C", "name": name, "pid": CLUSTER, "ts": round(t_s * 1e6), "args": {"value": round(value, 3)}}
