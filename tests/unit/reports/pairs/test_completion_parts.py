"""The parts of completion times add up in every engine, and are those of runs worked out by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import ResultError
from fastsim.reports.pairs.completion_parts import PARTS, completion_parts

GAVEL = ("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=6&seed=3")
RUNS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "pods": ("openb:20", "synth:openb?pods=60&seed=1", "fgd", {"queue": "fifo"}),
    "shares": (*GAVEL, "max_min_fairness", {"restart_s": 30}),
    "packed shares": (*GAVEL, "max_min_fairness(mode=packed)", {"restart_s": 30}),
    "orders": (*GAVEL, "las", {"restart_s": 30}),
    "adaptive": ("sia:2:1:1", "synth:sia?jobs=8&seed=1", "sia", {}),
    "monitored": ("uniform?nodes=2&gpus=1&gpu=T4", "synth:detectors?jobs=8", "monitored", {}),
}


@pytest.mark.parametrize("engine", RUNS)
def test_parts_add_up_to_the_completion_time_and_none_is_negative(engine: str) -> None:
    cluster, workload, policy, options = RUNS[engine]
    jobs = fs.simulate(cluster, workload, policy, **options).jobs
    parts = completion_parts(jobs)
    assert len(parts) == jobs["jct_s"].count() > 0
    total = parts.select(total=pl.sum_horizontal(PARTS))["total"].to_list()
    assert total == pytest.approx(parts["jct"].to_list(), rel=1e-12)
    for part in PARTS:
        assert min(parts[part]) >= -1e-9 * max(parts["jct"]), part


def test_a_preempted_pod_waits_restarts_and_does_lost_work_again() -> None:
    # Pod 0 works 0 to 30, is stopped for pod 1 (30 to 50), and keeps its work of every 20 s: 10 s of it are lost. It
    # starts again at 50 with 5 s of restart: 5 + 10 + 70 more seconds, until 135. Pod 2 waits for it from 40 to 135.
    pods = pl.DataFrame({
        "submit_s": [0.0, 30.0, 40.0], "num_gpu": [1, 1, 1], "duration_s": [100.0, 20.0, 10.0], "priority": [1, 2, 0],
    })  # fmt: skip
    result = fs.simulate(
        fs.Cluster.uniform(nodes=1, gpu="T4", gpus=1), fs.Workload.from_polars(pods), "best_fit", queue="priority",
        preempt="priority", checkpoint_every_s=20.0, restart_s=5.0,
    )  # fmt: skip
    parts = completion_parts(result.jobs.sort("pod_id")).select("jct", *PARTS)
    assert parts.rows() == [
        (135.0, 0.0, 20.0, 5.0, 10.0, 100.0), (20.0, 0.0, 0.0, 0.0, 0.0, 20.0), (105.0, 95.0, 0.0, 0.0, 0.0, 10.0),
    ]  # fmt: skip


def test_a_job_that_is_paused_restarts_with_a_delay() -> None:
    # Two jobs of 100 s of work on one GPU, rounds of 60 s, least attained service first, restarts of 10 s.
    jobs = pl.DataFrame({"submit_s": [0.0, 0.0], "num_gpu": [1, 1], "duration_s": [100.0, 100.0]})
    result = fs.simulate(
        fs.Cluster.uniform(nodes=1, gpu="V100M32", gpus=1), fs.Workload.from_polars(jobs), "las",
        round_s=60, restart_s=10,
    )  # fmt: skip
    parts = completion_parts(result.jobs.sort("pod_id")).select("jct", *PARTS)
    # Job 0 has round 1, job 1 rounds 2 and 3 (60 to 160), job 0 round 4: 180 + 10 + 40.
    assert parts.rows() == [(230.0, 0.0, 120.0, 10.0, 0.0, 100.0), (160.0, 60.0, 0.0, 0.0, 0.0, 100.0)]


def test_a_run_without_jobs_is_refused() -> None:
    result = fs.simulate("openb:2", "synth:openb?pods=5&seed=1", "fgd", record="timeline")
    with pytest.raises(ResultError, match="record='placements'"):
        completion_parts(result.jobs)
