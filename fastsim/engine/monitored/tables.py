"""Result tables of a run under a monitored scheduler: those of every run, with further columns about sharing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.monitored.containers import Stay
from fastsim.engine.monitored.run import MonitoredRun, PodArrival, PodHistory
from fastsim.engine.monitored.shared_devices import (
    ClusterCourse,
    SharedDevices,
    changes,
    costs,
    course,
    gpu_seconds,
    parts,
)
from fastsim.engine.rounds.arrival_ids import ArrivalIds
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

if TYPE_CHECKING:
    from fastsim.workload import Workload

Array = Any


@dataclass(frozen=True)
class MeasuredRun:
    """A run with its timeline, GPU time and cost.

    ``gpus`` node and number of each device · ``ended`` end of each finished pod, seconds · ``gpu_s`` and ``cost``
    of each pod that ran, ``cost`` None without prices · ``typical_count`` total count of the typical pods.
    """

    run: MonitoredRun
    gpus: list[tuple[int, int]]
    course: ClusterCourse
    ended: dict[int, float]
    gpu_s: dict[int, float]
    cost: dict[int, float] | None
    typical_count: int


def measured(
    run: MonitoredRun, cluster: Cluster, typical: TypicalPods, gpus: list[tuple[int, int]], tariff: Tariff | None
) -> MeasuredRun:
    """The measurements of a run; without a ``tariff`` there is no cost."""
    stays, histories = run.stays(), list(run.histories.values())
    ended = {stay.container.pod: stay.end_s for stay in run.containers.stays if not stay.killed}
    last_s = max((*ended.values(), *(one.request.submit_s for one in histories)), default=0.0)
    if any(one.request.pod not in ended and not too_large(one) for one in histories):
        last_s = max(last_s, run.now_s)
    held = parts(stays, last_s)
    return MeasuredRun(
        run=run,
        gpus=gpus,
        course=course(SharedDevices(cluster, typical, gpus), changes(histories, stays, last_s), last_s),
        ended=ended,
        gpu_s=gpu_seconds(held),
        cost=None if tariff is None else costs(held, gpus, tariff),
        typical_count=max(typical.kept, 1),
    )


def too_large(one: PodHistory) -> bool:
    """Whether a pod declares more memory than any device has."""
    return one.binding is not None and one.binding.gpu < 0


def makers(measurements: MeasuredRun, cluster: Cluster, workload: Workload, listed: bool, timed: bool) -> FrameMakers:
    """Functions that make the tables, by name; ``listed``: stays are recorded, ``timed``: the timeline is."""
    ids = ArrivalIds(workload)
    names = pl.Series(pl.from_arrow(cluster.nodes["name"]), dtype=pl.String)
    rows = outcomes(measurements) if listed else np.zeros(0, OUTCOME)
    return {
        "timeline": lambda: timeline_frame(
            measurements.course.rows if timed else measurements.course.rows[:0], measurements.typical_count
        ),
        "placements": lambda: placements(measurements.run, rows, ids, names),
        "jobs": lambda: jobs(measurements.run, rows, ids),
        "stages": lambda: pl.DataFrame(schema={"stage": pl.String}),
    }


def outcomes(measurements: MeasuredRun) -> Array:
    """A row for every stay of a container, the last of each pod closes it; pods that never ran have one, too."""
    run = measurements.run
    histories = list(run.histories.values())  # by arrival
    number, paused = {one.request.pod: row for row, one in enumerate(histories)}, paused_s(run)
    stays: list[list[Any]] = [[] for _ in histories]
    for stay in run.stays():
        stays[number[stay.container.pod]].append(stay)
    rows = []
    for row, one in enumerate(histories):
        request, first_s = one.request, stays[row][0].start_s if stays[row] else math.nan
        instants = (request.submit_s, first_s)
        cost = math.nan if measurements.cost is None else measurements.cost.get(request.pod, 0.0)
        alone = (
            ideal_s(request),
            paused.get(request.pod, math.nan),
            measurements.gpu_s.get(request.pod, 0.0),
            0.0,
            cost,
        )
        for place, stay in enumerate(stays[row]):
            node, index = measurements.gpus[stay.container.gpu]
            running = math.isinf(stay.end_s)
            reason = "out_of_memory" if stay.killed else "running" if running else "finished"
            end_s = math.nan if running else stay.end_s
            closes = INTERVAL if stay.killed or place + 1 < len(stays[row]) else INTERVAL | POD
            rows.append((row, request.pod, node, stay.attempt, REASONS.index(reason), closes, 1 << index, *instants,
                         stay.start_s, end_s, 0, stay.lost_s, *alone))  # fmt: skip
        if not stays[row] or stays[row][-1].killed:
            state = "no_gpu_memory" if too_large(one) else "pending"
            closes = POD if stays[row] else INTERVAL | POD
            lost_s = stays[row][-1].lost_s if stays[row] else 0.0
            rows.append((row, request.pod, -1, len(stays[row]), REASONS.index(state), closes, 0, *instants, math.nan,
                         math.nan, 0, lost_s, *alone))  # fmt: skip
    return np.array(rows, OUTCOME)


def placements(run: MonitoredRun, rows: Array, ids: ArrivalIds, names: pl.Series) -> pl.DataFrame:
    """One row for each stay of a container; ``profile`` is its use of the GPU, cut to the memory that it had."""
    profiles = {(stay.container.pod, stay.attempt): stay.profile for stay in run.stays()}
    frame = placements_frame(rows, ids.names_of(pl.Series(np.ascontiguousarray(rows["seq"]))), names)
    keys = frame.select("pod_id", "attempt").rows()
    return frame.with_columns(
        profile=pl.Series([profiles.get(key) for key in keys], dtype=pl.String),
        gpu_memory_mib=pl.Series([run.histories[pod].request.request_mib for pod, _ in keys], dtype=pl.Int64),
    )


def jobs(run: MonitoredRun, rows: Array, ids: ArrivalIds) -> pl.DataFrame:
    """One row for every pod, with the second and stage of its binding, and its declared memory."""
    frame = jobs_frame(rows, ids.names_of(pl.Series(np.ascontiguousarray(rows["seq"]))))
    histories = [run.histories[pod] for pod in frame["pod_id"].to_list()]
    stages = [one.binding.stage or None if one.binding else None for one in histories]
    bound_s = pl.Series([one.binding.at_s if one.binding else None for one in histories], dtype=pl.Float64).fill_nan(
        None
    )
    return frame.with_columns(
        bound_s=bound_s,
        queue_s=bound_s - frame["submit_s"],
        workload=pl.Series([one.request.application for one in histories], dtype=pl.String),
        gpu_memory_mib=pl.Series([one.request.request_mib for one in histories], dtype=pl.Int64),
        admitted=pl.Series(stages, dtype=pl.String),
    )


def ideal_s(request: PodArrival) -> float:
    """Seconds that a pod would take alone; NaN if it has no end."""
    return request.work_s if math.isfinite(request.work_s) else math.nan


def paused_s(run: MonitoredRun) -> dict[int, float]:
    """Seconds between the stays of each pod that ran, and since the last one if its container was killed."""
    paused: dict[int, float] = {}
    last: dict[int, Stay] = {}
    for stay in run.stays():
        pod = stay.container.pod
        paused[pod] = paused.get(pod, 0.0) + (stay.start_s - last[pod].end_s if pod in last else 0.0)
        last[pod] = stay
    return {pod: paused[pod] + (run.now_s - stay.end_s if stay.killed else 0.0) for pod, stay in last.items()}


def totals(measurements: MeasuredRun) -> JobTotals:
    """Totals of the pods."""
    run, hours = measurements.run, measurements.course.areas["gpu_milli_alloc"] / 1000
    done, paused = (
        [one.request for one in run.histories.values() if one.request.pod in measurements.ended],
        paused_s(run),
    )
    jct_s = [measurements.ended[request.pod] - request.submit_s for request in done]
    ran = len({stay.container.pod for stay in run.stays()})
    return JobTotals.of_jobs(
        restarts=[len(run.stays()) - ran], paused_s=[paused[request.pod] for request in done],
        slowdown=slowdowns(jct_s, [ideal_s(request) for request in done]), gpu_s=hours,
        cost=None if measurements.cost is None else reduce(add, measurements.cost.values(), 0.0),
        tenant_gpu_s=by_tenant(measurements),
    )  # fmt: skip


def by_tenant(measurements: MeasuredRun) -> Array | None:
    """GPU seconds of each tenant that had a pod; None if no pod has a tenant."""
    sums: dict[str, float] = {}
    for one in measurements.run.histories.values():
        if one.request.tenant is not None:
            sums[one.request.tenant] = sums.get(one.request.tenant, 0.0) + measurements.gpu_s.get(one.request.pod, 0.0)
    return np.array(list(sums.values())) if sums else None


def summary(measurements: MeasuredRun) -> pl.DataFrame:
    """The summary."""
    histories, rows, waits = list(measurements.run.histories.values()), measurements.course.rows, Waits()
    first_s = {stay.container.pod: stay.start_s for stay in reversed(measurements.run.stays())}
    waits.wait.add(
        np.array([start_s - measurements.run.histories[pod].request.submit_s for pod, start_s in first_s.items()])
    )
    queued = [one.binding.at_s - one.request.submit_s for one in histories if one.binding and not too_large(one)]
    jct_s = [
        measurements.ended[one.request.pod] - one.request.submit_s
        for one in histories
        if one.request.pod in measurements.ended
    ]
    waits.jct.add(np.array(jct_s, np.float64))
    frame = summary_frame(
        final=rows[-1],
        at_capacity=measurements.course.at_capacity,
        areas=measurements.course.areas,
        seconds=float(rows["t"][-1] - rows["t"][0]),
        typical_counts=(measurements.typical_count, measurements.typical_count),
        waits=waits,
        totals=totals(measurements),
    )
    waits.close()
    queue_s = float(np.mean(queued)) if queued else None
    return frame.with_columns(
        lost_work_s=pl.lit(reduce(add, (one.lost_s for one in histories), 0.0)),
        queue_mean_s=pl.lit(queue_s, pl.Float64),
    )
