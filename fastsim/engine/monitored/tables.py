"""Result tables of a run under a monitored scheduler: those of every run, and what sharing adds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.monitored.containers import Stay
from fastsim.engine.monitored.run import MonitoredRun, PodArrival, PodHistory
from fastsim.engine.monitored.shared_devices import Course, Devices, changes, costs, course, gpu_seconds, parts
from fastsim.engine.summary import Waits, summary_frame
from fastsim.engine.tables import (
    INTERVAL,
    OUTCOME,
    POD,
    REASONS,
    FrameMakers,
    jobs_frame,
    placements_frame,
    timeline_frame,
)
from fastsim.engine.totals.job_totals import JobTotals, slowdowns
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.state.gpu_prices import Tariff

Array = Any


@dataclass(frozen=True)
class Measured:
    """A run with what its containers amount to.

    ``gpus`` node and number of each device · ``ended`` when pods that are done ended, seconds · ``gpu_s`` and ``cost``
    of each pod that ran, ``cost`` None without prices · ``kept`` weight of the typical pods.
    """

    run: MonitoredRun
    gpus: list[tuple[int, int]]
    course: Course
    ended: dict[int, float]
    gpu_s: dict[int, float]
    cost: dict[int, float] | None
    kept: int


def measured(
    run: MonitoredRun, cluster: Cluster, typical: TypicalPods, gpus: list[tuple[int, int]], tariff: Tariff | None
) -> Measured:
    """Look at the containers of a run once; without a ``tariff`` nobody pays."""
    stays, lived = run.stays(), list(run.lived.values())
    ended = {stay.container.pod: stay.end_s for stay in run.containers.stays if not stay.killed}
    last_s = max((*ended.values(), *(one.asked.submit_s for one in lived)), default=0.0)
    if any(one.asked.pod not in ended and not too_large(one) for one in lived):
        last_s = max(last_s, run.now_s)
    held = parts(stays, last_s)
    return Measured(
        run, gpus, course(Devices(cluster, typical, gpus), changes(lived, stays, last_s), last_s), ended,
        gpu_seconds(held), None if tariff is None else costs(held, gpus, tariff), max(typical.kept, 1),
    )  # fmt: skip


def too_large(one: PodHistory) -> bool:
    """Whether a pod asks for more memory than any device has."""
    return one.placed is not None and one.placed.gpu < 0


def makers(made: Measured, cluster: Cluster, listed: bool, timed: bool) -> FrameMakers:
    """How to make each table; ``listed``: there are stays to tell of, ``timed``: there is a timeline."""
    names = pl.Series(pl.from_arrow(cluster.nodes["name"]), dtype=pl.String)
    rows = outcomes(made) if listed else np.zeros(0, OUTCOME)
    return {
        "timeline": lambda: timeline_frame(made.course.rows if timed else made.course.rows[:0], made.kept),
        "placements": lambda: placements(made.run, rows, names),
        "jobs": lambda: jobs(made.run, rows),
        "stages": lambda: pl.DataFrame(schema={"stage": pl.String}),
    }


def outcomes(made: Measured) -> Array:
    """A row for every stay of a container, the last of each pod closes it; pods that never ran have one, too."""
    run = made.run
    lived = sorted(run.lived.values(), key=lambda one: (one.asked.submit_s, one.asked.pod))
    number, paused = {one.asked.pod: row for row, one in enumerate(lived)}, paused_s(run)
    stays: list[list[Any]] = [[] for _ in lived]
    for stay in run.stays():
        stays[number[stay.container.pod]].append(stay)
    rows = []
    for row, one in enumerate(lived):
        asked, first_s = one.asked, stays[row][0].start_s if stays[row] else math.nan
        instants = (asked.submit_s, first_s)
        cost = math.nan if made.cost is None else made.cost.get(asked.pod, 0.0)
        alone = (ideal_s(asked), paused.get(asked.pod, math.nan), made.gpu_s.get(asked.pod, 0.0), 0.0, cost)
        for place, stay in enumerate(stays[row]):
            node, index = made.gpus[stay.container.gpu]
            running = math.isinf(stay.end_s)
            reason = "out_of_memory" if stay.killed else "running" if running else "finished"
            end_s = math.nan if running else stay.end_s
            closes = INTERVAL if stay.killed or place + 1 < len(stays[row]) else INTERVAL | POD
            rows.append((row, asked.pod, node, stay.attempt, REASONS.index(reason), closes, 1 << index, *instants,
                         stay.start_s, end_s, 0, stay.lost_s, *alone))  # fmt: skip
        if not stays[row] or stays[row][-1].killed:
            state = "too_large" if too_large(one) else "pending"
            closes = POD if stays[row] else INTERVAL | POD
            lost_s = stays[row][-1].lost_s if stays[row] else 0.0
            rows.append((row, asked.pod, -1, len(stays[row]), REASONS.index(state), closes, 0, *instants, math.nan,
                         math.nan, 0, lost_s, *alone))  # fmt: skip
    return np.array(rows, OUTCOME)


def placements(run: MonitoredRun, rows: Array, names: pl.Series) -> pl.DataFrame:
    """One row for each stay of a container; ``profile`` is what it did to its GPU, cut to the memory it got."""
    profiles = {(stay.container.pod, stay.attempt): stay.profile for stay in run.stays()}
    frame = placements_frame(rows, None, names)
    keys = frame.select("pod_id", "attempt").rows()
    return frame.with_columns(
        profile=pl.Series([profiles.get(key) for key in keys], dtype=pl.String),
        gpu_memory_mib=pl.Series([run.lived[pod].asked.request_mib for pod, _ in keys], dtype=pl.Int64),
    )


def jobs(run: MonitoredRun, rows: Array) -> pl.DataFrame:
    """One row for every pod: when it was bound and why it was admitted, and what it declared."""
    frame = jobs_frame(rows, None)
    lived = [run.lived[pod] for pod in frame["pod_id"].to_list()]
    stages = [one.placed.stage or None if one.placed else None for one in lived]
    bound_s = pl.Series([one.placed.at_s if one.placed else None for one in lived], dtype=pl.Float64).fill_nan(None)
    return frame.with_columns(
        bound_s=bound_s,
        queue_s=bound_s - frame["submit_s"],
        workload=pl.Series([one.asked.application for one in lived], dtype=pl.String),
        gpu_memory_mib=pl.Series([one.asked.request_mib for one in lived], dtype=pl.Int64),
        admitted=pl.Series(stages, dtype=pl.String),
    )


def ideal_s(asked: PodArrival) -> float:
    """Seconds that a pod would take by itself; NaN if it has no end."""
    return asked.work_s if math.isfinite(asked.work_s) else math.nan


def paused_s(run: MonitoredRun) -> dict[int, float]:
    """Seconds between the stays of each pod that ran, and since the last one of those whose container is dead."""
    found: dict[int, float] = {}
    last: dict[int, Stay] = {}
    for stay in run.stays():
        pod = stay.container.pod
        found[pod] = found.get(pod, 0.0) + (stay.start_s - last[pod].end_s if pod in last else 0.0)
        last[pod] = stay
    return {pod: found[pod] + (run.now_s - stay.end_s if stay.killed else 0.0) for pod, stay in last.items()}


def totals(made: Measured) -> JobTotals:
    """What pods add up to."""
    run, hours = made.run, made.course.areas["gpu_milli_alloc"] / 1000
    done, paused = [one.asked for one in run.lived.values() if one.asked.pod in made.ended], paused_s(run)
    jct_s = [made.ended[asked.pod] - asked.submit_s for asked in done]
    ran = len({stay.container.pod for stay in run.stays()})
    return JobTotals.of_jobs(
        restarts=[len(run.stays()) - ran], paused_s=[paused[asked.pod] for asked in done],
        slowdown=slowdowns(jct_s, [ideal_s(asked) for asked in done]), gpu_s=hours,
        cost=None if made.cost is None else sum(made.cost.values()), tenant_gpu_s=by_tenant(made),
    )  # fmt: skip


def by_tenant(made: Measured) -> Array | None:
    """GPU seconds of each tenant that had a pod; None if no pod has a tenant."""
    found: dict[str, float] = {}
    for one in made.run.lived.values():
        if one.asked.tenant is not None:
            found[one.asked.tenant] = found.get(one.asked.tenant, 0.0) + made.gpu_s.get(one.asked.pod, 0.0)
    return np.array(list(found.values())) if found else None


def summary(made: Measured) -> pl.DataFrame:
    """The one row of every run."""
    lived, rows, waits = list(made.run.lived.values()), made.course.rows, Waits()
    first_s = {stay.container.pod: stay.start_s for stay in reversed(made.run.stays())}
    waits.wait.add(np.array([start_s - made.run.lived[pod].asked.submit_s for pod, start_s in first_s.items()]))
    queued = [one.placed.at_s - one.asked.submit_s for one in lived if one.placed and not too_large(one)]
    jct_s = [made.ended[one.asked.pod] - one.asked.submit_s for one in lived if one.asked.pod in made.ended]
    waits.jct.add(np.array(jct_s, np.float64))
    frame = summary_frame(
        rows[-1], made.course.at_capacity, made.course.areas, float(rows["t"][-1] - rows["t"][0]),
        (made.kept, made.kept), waits, totals(made),
    )  # fmt: skip
    waits.close()
    queue_s = float(np.mean(queued)) if queued else None
    return frame.with_columns(
        lost_work_s=pl.lit(float(sum(one.lost_s for one in lived))), queue_mean_s=pl.lit(queue_s, pl.Float64)
    )
