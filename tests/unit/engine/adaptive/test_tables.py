"""Figures of adaptive jobs, beside what placements say."""

from __future__ import annotations

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.result import Result

JOBS = fs.Workload.synth("sia", jobs=12, seed=3)


def moved(by_s: float) -> fs.Workload:
    """The same jobs some seconds later; whole seconds, so that no tie is broken by what is rounded."""
    frame = pl.DataFrame(JOBS.table())
    return fs.Workload.from_arrow(frame.with_columns(pl.col("submit_s").floor() + by_s))


def played(policy: str, by_s: float = 0.0) -> Result:
    return fs.simulate("sia:2:1:1", moved(by_s), policy)


@pytest.mark.parametrize("policy", ["sia", "pollux(generations=10)", "optimus"])
def test_no_figure_depends_on_the_hour(policy: str) -> None:
    # Not from second 0: as in the published simulator, the round from there is empty, whoever has come.
    early, late = played(policy, 60.0).summary, played(policy, 360_060.0).summary
    for name, value in early.row(0, named=True).items():
        if name not in ("rounds", "contention_mean", "policy_calls"):  # rounds before the first arrival are played, too
            assert late[name].item() == (value if value is None else pytest.approx(value, rel=1e-9)), name


@pytest.mark.parametrize("policy", ["sia", "pollux(generations=10)", "optimus"])
def test_gpus_are_held_until_a_job_is_done(policy: str) -> None:
    run = played(policy)
    jobs, row = run.jobs, run.summary.row(0, named=True)
    stays = run.placements.group_by("pod_id", "start_s", "end_s").agg(pl.col("gpu_ids").list.len().sum().alias("gpus"))
    hours = (pl.col("end_s") - pl.col("start_s")) * pl.col("gpus") / 3600
    told = stays.group_by("pod_id").agg(hours.sum().alias("hours"), pl.len().alias("stays")).sort("pod_id")
    assert jobs["gpu_hours"].to_list() == pytest.approx(told["hours"].to_list(), rel=1e-12)
    assert (jobs["restarts"] + 1).to_list() == told["stays"].to_list()
    assert row["gpu_hours"] == pytest.approx(told["hours"].sum(), rel=1e-12)
    assert row["gpu_hours_mean"] < row["round_gpu_hours_mean"]
    assert row["energy_kwh"] == pytest.approx(row["mean_power_w"] * row["makespan_s"] / 3.6e6, rel=1e-12)
    worked_pct = row["mean_gpu_alloc_pct"] * row["goodput_pct"] / 100  # a restart holds GPUs and is no work
    assert row["goodput_pct"] < 100 and row["utilization_pct"] == pytest.approx(worked_pct, rel=1e-9)
