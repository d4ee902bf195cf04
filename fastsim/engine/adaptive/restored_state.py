"""Checks of the values of a state of adaptive jobs before the compiled loop works on them.

Each function raises ValueError naming the first wrong value. Fits are a tree whose rows lead to earlier rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastsim.engine.adaptive.driver import AdaptiveDriver
from fastsim.engine.checkpoints.value_checks import (
    COUNT,
    LATEST,
    SPAN,
    TIME,
    check_numbers,
    check_range,
    check_records,
    check_rows,
    records_of,
)
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.rounds.restored_state import JOB_TIMES, check_header, check_moments
from fastsim.engine.tables import EVENTS, ROW
from fastsim_ext.adaptive.snapshot import record_types

WHOLE = (
    "atomic",
    "accum",
    "epoch",
    "restarts",
    "rounds",
    "present",
    "crowd",
    "samples",
    "noisy",
    "stays",
    "preemptions",
)
SPANS = ("sqr", "var", "progress", "clock_s", "restart_left_s", "service_s", "wasted_s", "used_s", "held_s", "gpu_s",
         "paused_s", "delayed_s")  # fmt: skip
TRAINED, MEASUREMENTS = (record_types()[name] for name in ("Trained", "Measurements"))
"""A job that has arrived; a row of the tree of measurements."""
NUMBERS = {"now_s": TIME, "measured": (0, 1), "quiet": (0, 1 << 30), **dict.fromkeys(
    ("rounds", "max_active", "job_rounds", "first_moment", "moments", "gpus", "measurements"), COUNT
)}  # fmt: skip
"""Ranges of the loop's numbers."""
MOST_SAMPLES = 1 << 40
"""More than any batch size."""
STAYS = (0, np.iinfo(GANG["restarts"]).max)
"""The range of stays that the record of a job can hold."""


def check_state(rounds: AdaptiveDriver, meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """The numbers and records of a state fit the jobs, nodes and GPUs of these rounds."""
    numbers, groups = meta["loop"], rounds.setting.groups
    gpus__n = [gpus for group in groups for gpus in group.gpus__n]
    check_numbers(numbers, NUMBERS, "loop")
    check_numbers(meta, {"calls": COUNT}, "header")
    check_header(meta, len(meta["jobs"]))
    check_range(records_of(arrays, "busy_s", np.dtype(np.float64), sum(gpus__n)), 0.0, LATEST, "busy_s")
    _check_jobs(rounds, numbers, arrays)
    _check_measurements(records_of(arrays, "measurements", MEASUREMENTS, numbers["measurements"]))
    _check_held(meta, gpus__n, rounds)
    moments = records_of(arrays, "tasks", MOMENT, numbers["moments"])
    gpus = records_of(arrays, "gpus", np.dtype(np.int32), numbers["gpus"])
    check_range(gpus, 0, sum(gpus__n) - 1, "gpus")
    check_range(numbers["first_moment"], 0, len(moments), "loop.first_moment")
    of_model = np.array([group.gpus for group in groups])
    check_moments(moments, range(len(rounds.jobs)), range(0), of_model, len(gpus))
    check_rows(records_of(arrays, "rows", ROW), len(EVENTS), len(rounds.jobs), "rows")


def _check_jobs(rounds: AdaptiveDriver, numbers: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Progress of each job, in the order of active and ended jobs."""
    active = np.array(numbers["active"], np.int64)
    ids = np.concatenate([active, np.array(numbers["ended_jobs"], np.int64)])
    check_range(ids, 0, len(rounds.jobs) - 1, "active and ended jobs")
    jobs = records_of(arrays, "jobs", TRAINED, len(ids))
    check_records(jobs, {
        **dict.fromkeys(WHOLE, COUNT), **dict.fromkeys(SPANS, SPAN), "restarts": (-1, COUNT[1]), "noisy": (0, 1),
        "stays": STAYS, "preemptions": STAYS,
        "atomic": (0, MOST_SAMPLES), "accum": (0, MOST_SAMPLES), **JOB_TIMES,
    }, "jobs")  # fmt: skip
    curves = [rounds.setting.applications[rounds.jobs[job].application].curve for job in ids]
    least = np.array([curve.epochs for curve in curves], np.int64)
    least[: len(active)] -= 1
    check_range(jobs["epoch"], 0, least, "jobs.epoch")
    steps = [
        curve.progress(min(int(epoch) + 1, curve.epochs)) for curve, epoch in zip(curves, jobs["epoch"], strict=True)
    ]
    check_range(jobs["progress"], 0.0, np.array(steps, float), "jobs.progress")
    restart_s = [rounds.setting.applications[rounds.jobs[job].application].restart_s for job in ids]
    check_range(jobs["restart_left_s"], 0.0, np.array(restart_s, float), "jobs.restart_left_s")
    if not np.isnan(jobs["finish_s"][: len(active)]).all():
        raise ValueError("jobs.finish_s: of a job that is active")


def _check_measurements(rows: Any) -> None:
    """Each row leads to an earlier one, the first to itself."""
    check_range(rows["parent"], 0, np.maximum(np.arange(len(rows)) - 1, 0), "measurements.parent")
    check_records(rows[1:], {
        "most_replicas": COUNT, "nodes": COUNT, "replicas": (1, COUNT[1]), "atomic": (0, MOST_SAMPLES),
        "turn_s": SPAN, "step_s": SPAN,
    }, "measurements")  # fmt: skip
    check_records(rows["perf"], dict.fromkeys(rows["perf"].dtype.names, SPAN), "measurements.perf")


def _check_held(meta: Mapping[str, Any], gpus__n: list[int], rounds: AdaptiveDriver) -> None:
    """GPUs are those of the nodes that the places of jobs name."""
    numbers, groups = meta["loop"], rounds.setting.groups
    active = set(numbers["active"])
    places = {}
    for job, group, nodes in meta["places"]:
        check_range(group, 0, len(groups) - 1, "places: group")
        check_range(np.array(nodes, np.int64), 0, len(groups[group].gpus__n) - 1, "places: nodes")
        places[job] = [rounds.first__g[group] + node for node in nodes]
    for job, nodes, gpus in numbers["held"]:
        check_range(np.array(nodes, np.int64), 0, len(gpus__n) - 1, "held: nodes")
        check_range(np.array(gpus, np.int64), 0, sum(gpus__n) - 1, "held: GPUs")
        if places.get(job) != nodes or job not in active or len(gpus) != len(nodes):
            raise ValueError(f"GPUs held by job {job}, which has other nodes")
    if len(places) != len(numbers["held"]) or len(meta["places"]) != len(places):
        raise ValueError(f"{len(meta['places'])} places, {len(numbers['held'])} jobs hold GPUs")
