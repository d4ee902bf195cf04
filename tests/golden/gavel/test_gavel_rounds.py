"""Runs of the Gavel simulator, round by round: replayed allocations, and policies that need no solver, to the bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.engine.rounds.outcome import RoundOutcome
from tests.golden.gavel import gavel
from tests.golden.gavel.gavel_runs import SOLVED, Recorded, Replay, recorded, runs

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")


def unsolved() -> list[Recorded]:
    return [run for run in runs() if not run.policy.startswith(SOLVED)]


def assert_equal(run: Recorded, found: RoundOutcome) -> None:
    """Times, rounds, work and leases of every job are the recorded ones, to the last bit."""
    expected, jobs = run.jobs(), found.jobs[: run.jobs().height]
    given_up = (
        expected["failed"].fill_null(False).to_numpy()
    )  # the original calls the moment it gave a job up its completion
    assert np.array_equal(jobs["finish_s"], np.where(given_up, np.nan, floats(expected["completion"])), equal_nan=True)
    assert np.array_equal(jobs["first_s"], floats(expected["first_scheduled"]), equal_nan=True)
    assert jobs["rounds"].tolist() == expected["rounds"].to_list()
    assert jobs["run"].tolist() == expected["steps_run"].to_list()
    assert jobs["cost"] == pytest.approx(expected["cost"].to_numpy(), rel=1e-12)  # recorded as sums of workers
    row = run.row
    assert (found.rounds, found.calls, found.makespan_s) == (row["n_rounds"], row["n_solves"], row["makespan"])
    assert (found.extensions, found.opportunities) == (row["lease_ext"], row["lease_ext_opp"])
    assert found.max_active == row["max_active_jobs"]
    assert ((jobs["ended"] == 1) & np.isnan(jobs["finish_s"])).tolist() == given_up.tolist()
    if row["utilization"] is not None:
        assert (found.busy_s / found.makespan_s).mean() == pytest.approx(row["utilization"], rel=1e-12)


def floats(column: pl.Series) -> Any:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


@pytest.mark.parametrize("run", recorded("replay"), ids=lambda run: run.id)
def test_recorded_shares_become_the_recorded_rounds(run: Recorded) -> None:
    plan = dataclasses.replace(run.plan(), allocator=Replay(run))
    assert_equal(run, run.played(plan))


@pytest.mark.parametrize("run", unsolved(), ids=lambda run: run.id)
def test_policies_without_a_solver_end_every_job_at_the_recorded_time(run: Recorded) -> None:
    assert_equal(run, run.outcome)


@pytest.mark.parametrize("run", [run for run in recorded("rounds") if run in unsolved()], ids=lambda run: run.id)
def test_every_task_of_every_round_is_the_recorded_one(run: Recorded) -> None:
    expected = pl.read_parquet(gavel.GAVEL / "rounds" / f"{run.id}.parquet")
    tasks = run.played(run.plan(), record_tasks=True).tasks
    models = np.array(run.setting.gpu_models)[tasks["model"]]
    assert tasks["round"].tolist() == expected["round"].to_list()
    assert tasks["t"].tolist() == expected["time"].to_list()
    key = ["round", "job0", "job1", "worker_type", "n_gpus", "priority", "deficit"]
    found = pl.DataFrame({
        "round": tasks["round"], "job0": tasks["id"], "job1": tasks["mate_id"], "worker_type": models,
        "n_gpus": tasks["num_gpu"], "priority": tasks["priority"], "deficit": tasks["deficit"],
    }).with_columns(pl.col("priority", "deficit").cast(pl.Float32))  # fmt: skip
    casts = [pl.col("worker_type").cast(pl.String), *(pl.col(n).cast(pl.Int64) for n in key[:3])]
    assert found.sort(key[:3]).rows() == expected.with_columns(casts).select(key).sort(key[:3]).rows()
