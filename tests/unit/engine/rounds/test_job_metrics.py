"""Figures of runs in rounds, by hand."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.job_metrics import (
    completion_times,
    counted,
    finish_time_fairness,
    lease_extension_share,
    means_by_weight,
    round_figures,
    slo_violations,
    utilization,
    utilization_by_model,
)  # fmt: skip
from fastsim.engine.rounds.options import RoundOptions
from fastsim.engine.rounds.outcome import GANG, MOMENT, RoundOutcome
from fastsim.engine.tables import ROW
from fastsim.errors import InputError
from tests.views import setting

NEVER = math.nan


def finished(window: tuple[int, int] | None = None, **figures: Any) -> RoundOutcome:
    """Four jobs on two models of 2 and 1 GPUs: two complete ones, one given up, one that still runs at 400 s."""
    jobs = np.zeros(4, GANG)
    jobs["id"] = range(4)
    jobs["submit_s"] = [0, 100, 100, 200]
    jobs["finish_s"] = [100, 400, NEVER, NEVER]
    jobs["deadline_s"] = [100, 350, math.inf, math.inf]
    jobs["weight"] = [1, 5, 1, 1]
    jobs["cost"] = [1.5, 2.5, 0, 4]
    jobs["ended"] = [1, 1, 1, 0]
    given = {"rounds": 5, "calls": 3, "makespan_s": 400.0, "max_active": 3, "job_rounds": 9, "extensions": 3,
             "opportunities": 4, "busy_s": np.array([400.0, 200.0, 100.0]), "gpus__g": (2, 1),
             "held": np.zeros(0, np.int32), "rows": np.zeros(0, ROW)} | figures  # fmt: skip
    where = setting((2, 1), [[1.0, 1.0]])
    return RoundOutcome(where, RoundOptions(window=window), jobs, np.zeros(0, MOMENT), **given)  # type: ignore[arg-type]


def test_everything_at_once() -> None:
    found = round_figures(finished(), isolated_s=[50, 300, 10, 10])
    assert (found.jobs, found.completed, found.given_up) == (4, 2, 1)
    assert (found.jct_mean_s, found.jct_p50_s, found.jct_max_s) == (200, 200, 300)
    assert (found.jct_p95_s, found.jct_p99_s) == pytest.approx((290, 298), rel=1e-15)  # 100 + 0.95 * 200
    assert found.utilization == pytest.approx((1 + 0.5 + 0.25) / 3, rel=1e-15)
    assert found.utilization_by_model == {"a": 0.75, "b": 0.25}
    assert (found.cost, found.makespan_s, found.rounds, found.calls, found.solver_s) == (8, 400, 5, 3, 0)
    assert (found.lease_extension_share, found.slo_violations) == (0.75, 1)
    assert (found.rho_mean, found.rho_max) == (1.5, 2)


def test_only_the_window_counts_but_everything_costs() -> None:
    run = finished(window=(1, 3))
    assert counted(run)["id"].tolist() == [1, 2]
    assert completion_times(counted(run)).tolist() == [300]
    found = round_figures(run)
    assert (found.jobs, found.jct_mean_s, found.given_up, found.cost) == (2, 300, 1, 8)
    assert math.isnan(found.rho_mean)


def test_weights_have_means_of_their_own() -> None:
    assert means_by_weight(finished().jobs) == {1.0: 100, 5.0: 300}


def test_without_a_complete_job_there_is_no_mean() -> None:
    found = round_figures(finished(window=(2, 4)))
    assert math.isnan(found.jct_mean_s)
    assert math.isnan(found.jct_p95_s)
    assert list(map(math.isnan, found.jct_mean_by_weight_s.values())) == [True]


@pytest.mark.parametrize(
    ("deadline_s", "truly", "as_gavel"),
    [
        ([100, 400, math.inf, math.inf], 0, 0),
        ([99, 399, math.inf, math.inf], 2, 1),  # 300 s of completion time are no more than the instant 399 s
        ([math.inf, math.inf, 1000, math.inf], 1, 0),  # given up
        ([math.inf, math.inf, math.inf, 399], 1, 0),  # still at work
        ([math.inf, math.inf, math.inf, 400], 0, 0),  # an end at the deadline keeps it, and the run got no further
        ([math.inf, math.inf, math.inf, 401], 0, 0),  # it may still make it
    ],
)
def test_deadlines(deadline_s: list[float], truly: int, as_gavel: int) -> None:
    run = finished()
    run.jobs["deadline_s"] = deadline_s
    assert slo_violations(run) == truly
    assert slo_violations(run, compare_absolute=True) == as_gavel


def test_a_run_without_time_or_leases() -> None:
    run = finished(makespan_s=0.0, busy_s=np.zeros(3), opportunities=0, extensions=0)
    assert utilization(run) == 0
    assert utilization_by_model(run) == {"a": 0, "b": 0}
    assert math.isnan(lease_extension_share(run))


def test_fairness_is_told_job_by_job() -> None:
    rho = finish_time_fairness(finished(window=(1, 4)), [1, 150, 1, 1])
    assert rho[0] == 2
    assert np.isnan(rho[1:]).all()


def test_fairness_wants_a_time_for_every_job() -> None:
    with pytest.raises(InputError, match="isolated_s: found 3 times, expected one for each of the 4 jobs"):
        finish_time_fairness(finished(), [1, 2, 3])


def test_half_a_second_is_time_enough_for_a_utilization() -> None:
    run = finished(makespan_s=0.5, busy_s=np.array([0.5, 0.25, 0.0]))
    assert utilization(run) == 0.5
    assert utilization_by_model(run) == {"a": 0.75, "b": 0}


def test_each_model_has_its_own_gpus_and_one_without_gpus_is_not_busy() -> None:
    run = finished(gpus__g=(1, 0, 2), busy_s=np.array([400.0, 200.0, 100.0]))
    run = dataclasses.replace(run, setting=setting((1, 0, 2), [[1.0, 1.0, 1.0]]))
    assert utilization_by_model(run) == {"a": 1.0, "b": 0.0, "c": 0.375}
