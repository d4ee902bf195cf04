"""Result tables of a run under a monitored scheduler: those of every run, and what sharing adds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from fastsim.cluster import Cluster
from fastsim.frames import INTERVAL, OUTCOME, POD, REASONS, ROW, Makers, jobs_frame, placements_frame, timeline_frame
from fastsim.gauge_table import gauge_of
from fastsim.monitored_run import Lived, MonitoredRun
from fastsim.summary import Waits, summary_frame
from fastsim.typical import TypicalPods

Array = Any
FIELDS = OUTCOME.names or ()


def makers(run: MonitoredRun, cluster: Cluster, gpus: list[tuple[int, int]], listed: bool) -> Makers:
    """How to make each table; ``gpus`` are node and number of each, ``listed``: there are stays to tell of."""
    names = pl.Series(pl.from_arrow(cluster.nodes["name"]), dtype=pl.String)
    rows = outcomes(run, gpus) if listed else np.zeros(0, OUTCOME)
    return {
        "timeline": lambda: timeline_frame(np.zeros(0, ROW), 1),
        "placements": lambda: placements(run, rows, names),
        "jobs": lambda: jobs(run, rows),
        "stages": lambda: pl.DataFrame(schema={"stage": pl.String}),
    }


def outcomes(run: MonitoredRun, gpus: list[tuple[int, int]]) -> Array:
    """A row for every stay of a container, the last of each pod closes it; pods that never ran have one, too."""
    lived = sorted(run.lived.values(), key=lambda one: (one.asked.submit_s, one.asked.pod))
    number = {one.asked.pod: row for row, one in enumerate(lived)}
    stays: list[list[Any]] = [[] for _ in lived]
    for stay in run.stays():
        stays[number[stay.container.pod]].append(stay)
    rows = []
    for row, one in enumerate(lived):
        asked, bound_s = one.asked, one.placed.at_s if one.placed else math.nan
        told = (asked.submit_s, bound_s)
        for place, stay in enumerate(stays[row]):
            node, index = gpus[stay.container.gpu]
            running = math.isinf(stay.end_s)
            reason = "out_of_memory" if stay.killed else "running" if running else "finished"
            end_s = math.nan if running else stay.end_s
            closes = INTERVAL if stay.killed or place + 1 < len(stays[row]) else INTERVAL | POD
            rows.append((row, asked.pod, node, stay.attempt, REASONS.index(reason), closes, 1 << index, *told,
                         stay.start_s, end_s, 0, stay.lost_s))  # fmt: skip
        if not stays[row] or stays[row][-1].killed:
            state = "too_large" if one.placed and one.placed.gpu < 0 else "running" if one.placed else "pending"
            closes = POD if stays[row] else INTERVAL | POD
            lost_s = stays[row][-1].lost_s if stays[row] else 0.0
            rows.append((row, asked.pod, -1, len(stays[row]), REASONS.index(state), closes, 0, *told, math.nan,
                         math.nan, 0, lost_s))  # fmt: skip
    return np.array(rows, OUTCOME)


def placements(run: MonitoredRun, rows: Array, names: pl.Series) -> pl.DataFrame:
    """One row for each stay of a container; ``profile`` is what it did to its GPU, cut to the memory it got."""
    told = {(stay.container.pod, stay.attempt): stay.profile for stay in run.stays()}
    frame = placements_frame(rows, None, names)
    keys = frame.select("pod_id", "attempt").rows()
    return frame.with_columns(
        profile=pl.Series([told.get(key) for key in keys], dtype=pl.String),
        gpu_memory_mib=pl.Series([run.lived[pod].asked.request_mib for pod, _ in keys], dtype=pl.Int64),
    )


def jobs(run: MonitoredRun, rows: Array) -> pl.DataFrame:
    """One row for every pod: when it was bound and why it was admitted, what it declared, how often it died."""
    frame = jobs_frame(rows, None)
    lived = [run.lived[pod] for pod in frame["pod_id"].to_list()]
    stages = [one.placed.stage or None if one.placed else None for one in lived]
    return frame.with_columns(
        workload=pl.Series([one.asked.application for one in lived], dtype=pl.String),
        gpu_memory_mib=pl.Series([one.asked.request_mib for one in lived], dtype=pl.Int64),
        admitted=pl.Series(stages, dtype=pl.String),
        restarts=pl.Series([restarts(one, run) for one in lived], dtype=pl.Int64),
    )


def restarts(one: Lived, run: MonitoredRun) -> int:
    """How often a pod's container has died for want of memory."""
    there = run.containers.pods.get(one.asked.pod)
    return one.restarts if there is None else there.restarts


def summary(run: MonitoredRun, cluster: Cluster, typical: TypicalPods) -> pl.DataFrame:
    """The one row of every run: counts and times, and how often pods were restarted; null for what only nodes tell."""
    models = tuple(sorted({model for model in cluster.nodes["gpu_model"].to_pylist() if model}))
    now, before, areas = gauge_of(cluster, typical, models, 0.0, False).state()
    final, at_capacity = np.frombuffer(now, ROW)[0], np.frombuffer(before, ROW)[0]
    lived = list(run.lived.values())
    ended = {stay.container.pod: stay.end_s for stay in run.containers.stays if not stay.killed}
    waits = Waits()
    for one in lived:
        if one.placed is not None and one.placed.gpu >= 0:
            waits.wait.add(np.array([one.placed.at_s - one.asked.submit_s]))
    jct_s = [ended[one.asked.pod] - one.asked.submit_s for one in lived if one.asked.pod in ended]
    waits.jct.add(np.array(jct_s, np.float64))
    first_s = min((one.asked.submit_s for one in lived), default=0.0)
    last_s = max(ended.values(), default=first_s)
    if len(ended) < len(lived):
        last_s = max(last_s, run.now_s)
    frame = summary_frame(final, at_capacity, areas, last_s - first_s, (max(typical.kept, 1),) * 2, waits)
    waits.close()
    placed = [one for one in lived if one.placed is not None and one.placed.gpu >= 0]
    large = sum(one.placed is not None and one.placed.gpu < 0 for one in lived)
    count = {
        "pods": len(lived), "pods_running": len(placed) - len(ended), "pods_finished": len(ended),
        "pods_pending": len(lived) - len(placed) - large, "pods_unplaced": large, "pods_lost": 0,
    }  # fmt: skip
    unknown = frame.columns[: frame.columns.index("wait_mean_s")]
    return frame.with_columns(
        *(pl.lit(count.get(name)).cast(frame.schema[name]).alias(name) for name in unknown),
        restarts=pl.lit(sum(restarts(one, run) for one in lived), pl.Int64),
        lost_work_s=pl.lit(float(sum(one.lost_s for one in lived))),
    )
