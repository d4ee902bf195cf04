"""Whole runs of Gavel's linear programs by our solver: averages stay as near as the original's own other solvers.

Where a program has many optima, each solver takes another one, and from the first differing share on the runs part.
So single jobs are not compared; the bars are what the original moves when only its solver is exchanged.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.golden import gavel
from tests.golden.gavel_runs import SOLVED, Recorded, runs

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")

FIGURES = ("mean completion time", "makespan", "utilisation")
NO_BAR = np.inf
BARS = {
    "packed": (5.0, 5.0, 12.0),
    "max_sum": (1.0, 1.5, 1.5),
    "max_min": (2.0, 4.0, 4.0),
    "finish_time": (2.0, 4.0, 4.0),
    # Its objective is the makespan; any point that reaches it will do, and completion times are whatever they are.
    "min_total": (NO_BAR, 2.0, NO_BAR),
}
"""Per cent by which each figure of one run may differ, by what the policy's name contains; the first one counts."""
MEAN_BARS = {"max_min": (0.75, 1.0, 1.0), "max_sum": (0.75, 1.0, 1.0), "min_total": (5.0, 2.0, 5.0)}
"""Per cent by which the figures may differ in the mean over runs, for a solution inside the optimal face."""
LEAST_JOBS, MOST_CALLS = 100, 500
"""With fewer jobs one of them moves the mean; more calls take longer than a test should."""


def solved() -> list[Recorded]:
    """Runs of policies that solve a program, large enough for averages; the bars were measured on generated jobs."""
    return [
        run
        for run in runs()
        if run.policy.startswith(SOLVED)
        and run.row["trace"] is None
        and run.row["n_completed"] >= LEAST_JOBS
        and run.row["n_solves"] <= MOST_CALLS
    ]


@cache
def difference_pct(run_id: str) -> tuple[float, ...]:
    """Our mean completion time, makespan and utilisation against the recorded ones, in per cent."""
    run = next(run for run in runs() if run.id == run_id)
    found = run.played(run.plan())
    first, last = found.options.window or (0, len(found.jobs))
    jobs = found.jobs[first:last]
    ours = (
        float(np.nanmean(jobs["finish_s"] - jobs["submit_s"])), found.makespan_s,
        float((found.busy_s / found.makespan_s).mean()),
    )  # fmt: skip
    original = (run.row["average_jct"], run.row["makespan"], run.row["utilization"])
    return tuple(100 * (one / other - 1) if other else 0.0 for one, other in zip(ours, original, strict=True))


@pytest.mark.parametrize("run", solved(), ids=lambda run: run.id)
def test_one_run(run: Recorded) -> None:
    bars = next(bars for part, bars in BARS.items() if part in run.policy)
    if run.policy.startswith("min_total"):
        bars = BARS["min_total"]
    for figure, difference, bar in zip(FIGURES, difference_pct(run.id), bars, strict=True):
        assert abs(difference) <= bar, f"{figure}: {difference:+.2f} %"


@pytest.mark.parametrize("family", MEAN_BARS)
def test_the_mean_over_runs(family: str) -> None:
    differences = [difference_pct(run.id) for run in solved() if run.policy.startswith(family)]
    assert len(differences) >= 5
    for figure, mean, bar in zip(FIGURES, np.abs(differences).mean(axis=0), MEAN_BARS[family], strict=True):
        assert mean <= bar, f"{figure}: {mean:.2f} %"
