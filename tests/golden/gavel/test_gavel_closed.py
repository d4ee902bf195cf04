"""Whole runs of policies that solve programs: completion times, makespan and use against the recorded averages.

The bars are those of the recordings' own report: what another solver, or noise of 1e-9, makes of the same policy.
"""

from __future__ import annotations

import dataclasses
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from bench.gavel_noise import NoisyAllocator
from fastsim.engine.rounds.job_metrics import round_figures
from tests.golden.gavel import gavel
from tests.golden.gavel.gavel_runs import SOLVED, Recorded, runs

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")

BARS = {
    "finish_time_fairness": (0.02, 0.04, 0.04),
    "max_min_fairness_water_filling": (0.02, 0.04, 0.04),
    "max_min_fairness": (0.0075, 0.01, 0.01),
    "max_sum_throughput": (0.0075, 0.01, 0.01),
    "min_total_duration": (0.05, 0.02, np.inf),
}
"""Relative bars of mean completion time, makespan and use, by the beginning of the policy's name, the longest first.

Where our steps are not the original's, that is for cones and for levels of water, the report's bars for any solver.
"""
ANY_SOLVER = (0.02, 0.04, 0.04)
"""The report's bars of ``max_min_fairness`` for any solver that is not the original's."""
DRAWS = 24
"""Runs with noise on their shares, which alone decides who comes first among jobs that are equal."""
EXACT = "min_total_duration"
"""The family without an objective: the method ends far from every border, and rounding decides nothing."""


def solved() -> list[Recorded]:
    """Runs of policies that solve programs; where rates were estimated a run needs more than its policy."""
    estimated = {path.name.removesuffix(".estimator.json") for path in gavel.GAVEL.glob("sim/*.estimator.json")}
    return [run for run in runs() if run.policy.startswith(SOLVED) and run.id not in estimated]


def deviations(run: Recorded, seed: int | None = None) -> Any:
    """Relative deviations of mean completion time, makespan and use."""
    found = run.outcome
    if seed is not None:
        plan = run.plan()
        found = run.played(dataclasses.replace(plan, allocator=NoisyAllocator(plan.allocator, seed)))
    figures, row = round_figures(found), run.row
    pairs = (
        (figures.jct_mean_s, row["average_jct"]), (found.makespan_s, row["makespan"]),
        (figures.utilization, row["utilization"]),
    )  # fmt: skip
    return np.array([ours / theirs - 1 if theirs else 0.0 for ours, theirs in pairs])


def bars(run: Recorded) -> Any:
    """The bars of its policy."""
    return np.array(BARS[max((name for name in BARS if run.policy.startswith(name)), key=len)])


@pytest.mark.parametrize("run", solved(), ids=lambda run: run.id)
def test_averages_are_within_the_bars(run: Recorded) -> None:
    found, bar = deviations(run), bars(run)
    if (abs(found) <= bar).all():
        return
    # Without heterogeneity most jobs are equal, and who comes first among them is the original's rounding. In small
    # runs that moves averages by more than the bars: then its own must be among those that ours can be moved to.
    assert run.policy == "max_min_fairness"
    assert (abs(found) <= ANY_SOLVER).all()
    moved = np.array([found, *(deviations(run, seed) for seed in range(DRAWS))])
    assert (moved.min(axis=0) <= bar).all() and (moved.max(axis=0) >= -bar).all()


@pytest.mark.parametrize("run", [run for run in solved() if run.policy.endswith("packed_SLOs")], ids=lambda run: run.id)
def test_with_pairs_and_deadlines_every_job_ends_at_the_recorded_time(run: Recorded) -> None:
    jobs = run.outcome.jobs
    # Completion times are sums over rounds, added up in another order.
    assert jobs["finish_s"] - jobs["submit_s"] == pytest.approx(run.jobs()["jct"].to_numpy(), rel=1e-9)


@pytest.mark.parametrize("run", [run for run in solved() if run.policy.endswith("perf_SLOs")], ids=lambda run: run.id)
def test_with_deadlines_alone_most_jobs_end_at_the_recorded_time(run: Recorded) -> None:
    jobs = run.outcome.jobs
    apart_s = abs(jobs["finish_s"] - jobs["submit_s"] - run.jobs()["jct"].to_numpy())
    assert (apart_s <= 1).mean() >= 0.88 and (apart_s <= 1e-6).mean() >= 0.56


@pytest.mark.long
def test_as_many_runs_agree_as_the_guide_says() -> None:
    far = [abs(deviations(run)) for run in solved()]
    within = sum((apart <= bars(run)).all() for apart, run in zip(far, solved(), strict=True))
    text = " ".join((files("fastsim") / "guides/exactness.md").read_text(encoding="utf-8").split())
    near = sum((apart <= 1e-4).all() for apart in far)
    assert f"in {within} of {len(far)} runs, in {near} to a hundredth of a per cent" in text


@pytest.mark.parametrize("run", [run for run in solved() if run.policy.startswith(EXACT)], ids=lambda run: run.id)
def test_where_nothing_is_left_to_rounding_every_job_ends_at_the_recorded_time(run: Recorded) -> None:
    # The shares agree to 1e-7; steps per round are whole, so that seldom moves one.
    assert abs(deviations(run)).max() < 1e-4
