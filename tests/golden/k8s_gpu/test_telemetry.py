"""Telemetry of a model of one device, compared with what a real one was recorded to report."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.engine.monitored.containers import Containers
from fastsim.engine.monitored.plan import ContainerLifecycle
from fastsim.telemetry.reading_model import V100, Resident, readings
from fastsim.telemetry.sample_and_hold import refresh_times, seen_s, window
from fastsim.telemetry.usage_profile import DETECTOR
from tests.golden.k8s_gpu import kubernetes

pytestmark = pytest.mark.skipif(
    not kubernetes.KUBERNETES.exists(), reason="reference data not found (set FASTSIM_SHARED)"
)
REFRESH_S = (6.0, 8.0)
"""The recorded exporter looked that often, one or the other about equally."""
METRICS = {"gpu_util_pct": "util_pct", "fb_used_mib": "memory_mib", "power_w": "power_w"}
FULL = DETECTOR.phases[-1]
"""What a detector uses when it has loaded."""
BAR = 0.15
"""Means of a run that are modelled and not replayed: the published bar, because equal runs differ by a fifth."""


def runs() -> list[tuple[int, str]]:
    """Experiment and mechanism of every recorded run."""
    if not kubernetes.KUBERNETES.exists():
        return []
    rows: list[Any] = kubernetes.frame("runs").select("experiment", "mechanism").sort("experiment", "mechanism").rows()
    return rows


@pytest.mark.parametrize(("experiment", "mechanism"), runs())
def test_means_of_a_run(experiment: int, mechanism: str) -> None:
    run = {"experiment": experiment, "mechanism": mechanism}
    recorded, jobs = kubernetes.frame("telemetry_1s").filter(**run), kubernetes.frame("jobs").filter(**run)
    spans = jobs.select("container_started_s_est", "container_finished_s_est").rows()
    modelled = readings([Resident(start, end, DETECTOR) for start, end in spans], V100)
    recorded_times = recorded["t_s"].to_numpy()
    seen = seen_s(recorded_times, refresh_times(0, recorded_times[-1], REFRESH_S))
    for column, name in METRICS.items():
        mean = float(np.nanmean(recorded[column].cast(pl.Float64).fill_null(np.nan).to_numpy()))
        # One detector uses 3 to 5 %, told in whole per cent, and runs differ in that.
        assert abs(modelled.at(name, seen, V100).mean() - mean) <= max(BAR * mean, NOTHING[name]), (column, mean)


NOTHING = {"util_pct": 2.0, "memory_mib": 0.0, "power_w": 0.0}
"""Differences that are none, in the unit of the reading."""


def slots() -> dict[tuple[int, str], int]:
    """How many detectors may share the device in each run whose scheduler gives each of them all its memory."""
    if not kubernetes.KUBERNETES.exists():
        return {}
    told = kubernetes.frame("runs").filter(pl.col("nominal_concurrency").is_not_null())
    return {(row[0], row[1]): row[2] for row in told.select("experiment", "mechanism", "nominal_concurrency").rows()}


@pytest.mark.parametrize("together", range(1, max(slots().values(), default=0) + 1))
def test_detectors_that_share_a_device(together: int) -> None:
    modelled = readings([Resident(0, 500, DETECTOR)] * together, V100)
    memory, util, power = (float(modelled.at(name, 200.0, V100)) for name in ("memory_mib", "util_pct", "power_w"))
    runs_of_so_many = [
        kubernetes.frame("telemetry_1s").filter(experiment=experiment, mechanism=mechanism)
        for (experiment, mechanism), most in slots().items() if most >= together
    ]  # fmt: skip
    recorded = pl.concat(runs_of_so_many).filter((pl.col("fb_used_mib") - memory).abs() <= FULL.memory_mib / 2)
    # The very number, to the MiB.
    assert recorded["fb_used_mib"].value_counts(sort=True)["fb_used_mib"][0] == memory
    alike = recorded.filter(pl.col("fb_used_mib") == memory)
    low, high = (alike["gpu_util_pct"].quantile(share) or 0 for share in (0.1, 0.9))
    assert low <= util <= high
    assert power == pytest.approx(alike["power_w"].median(), rel=0.05)  # medians of runs differ by 4 %


def steady_mib(recorded: pl.DataFrame) -> set[int]:
    """Used memory that was read for longer than two refreshes of the exporter take: nothing was loading meanwhile."""
    found = set()
    for _, run in recorded.sort("t_s").group_by("experiment"):
        for used, stretch in groupby(run["fb_used_mib"].drop_nulls().to_list()):
            if len(list(stretch)) > 2 * max(REFRESH_S):
                found.add(int(used))
    return found


def test_a_fifth_and_a_sixth_detector_do_with_less() -> None:
    containers = Containers([V100], ContainerLifecycle())
    for pod in range(7):
        containers.bind(pod, 0, DETECTOR, math.inf, 40.0 * pod)
    steady = steady_mib(kubernetes.frame("telemetry_1s").filter(mechanism="CUSTSCHED"))
    for together in (5, 6):
        containers.advance(40.0 * together)
        used, within = int(containers.gpus[0].used_mib()), FULL.less_mib[-1] / 2
        near = [memory for memory in steady if abs(memory - used) <= within]
        # Readings of one state differ by up to 2 MiB.
        assert not near or min(abs(memory - used) for memory in near) <= 2, (used, near)
    containers.advance(320.0)
    assert {stay.container.pod for stay in containers.stays if stay.killed} == {6}


def test_one_detector_loads_as_recorded() -> None:
    jobs = kubernetes.frame("single_job_profiles").filter(pl.col("t_rel_s") >= pl.col("predecessor_clear_s"))
    modelled = readings([Resident(0, 150, DETECTOR)], V100)
    levels = list(zip(modelled.memory_mib.tolist(), modelled.begin_s.tolist(), strict=True))
    for level in (min(memory for memory, _ in levels if memory), max(memory for memory, _ in levels)):
        reached = jobs.filter(pl.col("fb_used_mib") >= level).group_by("overprov_pct", "job").agg(pl.min("t_rel_s"))
        at_s = min(begin for memory, begin in levels if memory >= level)
        error = 3 * math.sqrt(0.25 * 0.75 / len(reached))  # three sigma of a quartile's share in a sample of jobs
        shares = max(0.25 - error, 0.0), min(0.75 + error, 1.0)
        low, high = (reached["t_rel_s"].quantile(share) or 0 for share in shares)
        # The exporter shows memory at its next refresh, so a job had it up to the longest gap earlier.
        assert low - max(REFRESH_S) <= at_s <= high, (level, at_s)


@pytest.mark.parametrize("experiment", kubernetes.experiments("sched_decisions"))
def test_windows_are_what_the_scheduler_saw(experiment: int) -> None:
    samples = kubernetes.frame("telemetry_1s").filter(experiment=experiment, mechanism="CUSTSCHED").sort("t_s")
    known = samples.filter(pl.col("fb_used_mib").is_not_null())
    times, values = known["t_s"].cast(pl.Float64).to_numpy(), known["fb_used_mib"].to_numpy()
    asked = (
        kubernetes.frame("sched_decisions").filter(experiment=experiment).filter(pl.col("used_sorted").is_not_null())
    )
    for now, used in asked.select("t_s", "used_sorted").iter_rows():
        end = int(now)
        assert sorted(window(times, values, end - len(used) + 1, end)) == used, now
    assert not asked.is_empty()
