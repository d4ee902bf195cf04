"""Logs as the original's notebooks read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import QUIRKS, Job, RoundOptions
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.shares.gavel_log import (
    event_lines,
    log_path,
    result_line,
    summary_lines,
    utilization,
    write_gavel_log,
)
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView, SharePlan
from fastsim.engine.shares.run import run_rounds
from fastsim.errors import ResultError
from tests.views import setting


class Together:
    """Two jobs share everything; one alone has all."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """One row."""
        if len(view) != 2:
            return Allocation.of_singles(view.job_id, np.ones((len(view), len(view.price__g))))
        first, second = np.append(view.job_id, view.job_id[0]), np.array([ALONE, ALONE, view.job_id[1]])
        return Allocation(first, second, np.array([[0.0], [0.0], [1.0]]))

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Any) -> None:
        """Nothing."""


def played(jobs: list[Job], record_tasks: bool = True, gpus: int = 2, size: int = 2, **options: Any) -> RoundOutcome:
    where = setting((gpus,), [[1.0]], 0.5, sizes=(size,))
    plan = SharePlan(Together(), pairs=True)
    return run_rounds(
        where, plan, [JobBatch.of(jobs)], RoundOptions(realloc_s=0.0, **options), record_tasks=record_tasks
    )


PAIR = [Job(0, 0, 2, 90, 1.0), Job(0, 0, 2, 200.0, 5.0, 10_000.0)]


def test_a_pair_is_told_event_by_event() -> None:
    assert list(event_lines(played(PAIR))) == [
        "scheduler:INFO [0.0] [Job dispatched]\tJob ID: 0",
        "scheduler:INFO [0.0] [Job dispatched]\tJob ID: 1",
        "scheduler:INFO [0.0] [Micro-task scheduled]\tJob ID: (0, 1)\tWorker type: a\tWorker ID(s): 0,1"
        "\tPriority: 3.00\tDeficit: 180.00",
        "scheduler:INFO [360.0] [Micro-task succeeded]\tJob ID: (0, 1)\tWorker type: a\tWorker ID(s): [0, 1]",
        "scheduler:INFO [360.0] [Job succeeded]\tJob ID: 0",
        "scheduler:INFO [360.0] [Micro-task scheduled]\tJob ID: 1\tWorker type: a\tWorker ID(s): 0,1"
        "\tPriority: 1.00\tDeficit: 0.00",
        "scheduler:INFO [380.0] [Micro-task succeeded]\tJob ID: 1\tWorker type: a\tWorker ID(s): [0, 1]",
        "scheduler:INFO [380.0] [Job succeeded]\tJob ID: 1",
    ]


def test_the_end_says_what_notebooks_look_for() -> None:
    run = played(PAIR)
    assert list(summary_lines(run, pairs=True)) == [
        "Total duration: 380.000 seconds (0.11 hours)",
        "Job completion times:",
        "Job 0: 360.000",
        "Job 1: 380.000",
        "Average job completion time: 370.000 seconds (0.10 hours)",
        "Average job completion time (low priority): 360.000 seconds (0.10 hours)",
        "Average job completion time (high priority): 380.000 seconds (0.11 hours)",
        "Number of SLO violations: 0",
        "Lease extensions: 0 of 1 (0.00%)",
        "Cluster utilization: 1.000",
    ]
    assert result_line(run) == "Results: average JCT=370.000000, utilization=1.000000"
    assert result_line(run, static=True).endswith(", makespan=380.000000, total_cost=0.000000")


def test_gpus_that_are_kept_are_named_in_every_round() -> None:
    lines = [line for line in event_lines(played([Job(0, 0, 2, 1000)])) if "scheduled" in line]
    assert len(lines) == 3
    assert all("\tWorker ID(s): 0,1\t" in line for line in lines)


def test_a_job_that_is_given_up_has_no_time() -> None:
    # The last step of a gang of two leaves one GPU without work, round after round.
    run = played([Job(0, 0, 2, 361.0), Job(700, 0, 2, 5000.0)], compat=frozenset(QUIRKS), window=(0, 1))
    lines = list(event_lines(run))
    assert [line for line in lines if "scheduled" not in line] == [
        "scheduler:INFO [0.0] [Job dispatched]\tJob ID: 0",
        "scheduler:INFO [360.0] [Micro-task succeeded]\tJob ID: 0\tWorker type: a\tWorker ID(s): [0, 1]",
        "scheduler:INFO [365.0] [Job failed]\tJob ID: 0",
    ]
    assert sum("scheduled" in line for line in lines) == 6
    assert "Job 0: None" in list(summary_lines(run))


def test_what_runs_at_the_end_has_not_succeeded() -> None:
    run = played([Job(0, 0, 2, 100), Job(0, 0, 2, 5000)], window=(0, 1))
    entries = list(event_lines(run))
    assert "scheduled" in entries[-1]
    assert sum("scheduled" in line for line in entries) == sum("Micro-task succeeded" in line for line in entries) + 1


def test_work_in_a_gap_makes_use_impossible_unless_jobs_share() -> None:
    run = played([Job(0, 0, 2, 100), Job(1000, 0, 2, 100)], compat=frozenset({"idle_gap_accounting"}))
    assert utilization(run, pairs=False) == pytest.approx(1.0, rel=1e-15)
    run.busy_s[:] = run.makespan_s * 1.5
    assert utilization(run, pairs=False) is None
    assert utilization(run, pairs=True) == pytest.approx(1.5, rel=1e-15)
    assert list(summary_lines(run))[-1] == "Cluster utilization: None"


def test_the_file_is_what_the_lines_say(tmp_path: Path) -> None:
    run, path = played(PAIR), tmp_path / "a" / "b.log"
    write_gavel_log(path, run, pairs=True)
    text = path.read_text()
    assert text.splitlines() == [*event_lines(run), *summary_lines(run, True)]
    assert re.findall(r"Job (\d+): (\d+\.\d+)", text) == [("0", "360.000"), ("1", "380.000")]
    assert [file.name for file in path.parent.iterdir()] == ["b.log"]


def test_a_run_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="found a run without its tasks, expected one that recorded them"):
        write_gavel_log(tmp_path / "x.log", played(PAIR, record_tasks=False))
    (tmp_path / "file").touch()
    with pytest.raises(ResultError, match="file: cannot be made"):
        write_gavel_log(tmp_path / "file" / "x.log", played(PAIR))


def test_logs_lie_where_sweeps_put_them() -> None:
    gpus = {"k80": 3, "v100": 36}
    assert log_path("logs", gpus, "fifo_perf", 1, interarrival_s=900.0).as_posix() == (
        "logs/raw_logs/v100=36.p100=0.k80=3/fifo_perf/seed=1/lambda=900.000000.log"
    )
    assert log_path("logs", gpus, "gandiva", 0, num_total_jobs=100, profiling=(0.5, 26)).as_posix() == (
        "logs/raw_logs/v100=36.p100=0.k80=3/gandiva/profiling_percentage=0.500000/num_reference_models=26/seed=0/"
        "num_total_jobs=100.log"
    )
    for wrong in ({}, {"interarrival_s": 1.0, "num_total_jobs": 5}):
        with pytest.raises(ValueError, match="one of"):
            log_path("logs", gpus, "fifo", 0, **wrong)  # type: ignore[arg-type]
