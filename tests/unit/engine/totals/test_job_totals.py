"""What jobs add up to, by hand: restarts, pauses, slowdown, GPU hours and how evenly tenants got them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.engine.totals.exact_percentiles import ExactPercentiles
from fastsim.engine.totals.job_totals import FIGURES, UNKNOWN, JobTotals, evenness, inequality, job_columns, slowdowns

NAN = float("nan")


def test_nothing_is_known_of_a_run_that_tells_nothing() -> None:
    assert UNKNOWN.figures() == dict.fromkeys(FIGURES)


@pytest.mark.parametrize(("wasted_gpu_s", "goodput_pct"), [(0.3, 0.0), (0.1 + 0.2, 0.0), (0.6, -100.0)])
def test_work_that_was_all_in_vain_is_no_negative_goodput(wasted_gpu_s: float, goodput_pct: float) -> None:
    totals = JobTotals.of_jobs(gpu_s=0.3, wasted_gpu_s=wasted_gpu_s)
    assert totals.figures()["goodput_pct"] == goodput_pct


def test_figures_are_of_the_numbers_that_were_given() -> None:
    totals = JobTotals.of_jobs(
        restarts=np.array([0, 2, 1]), paused_s=np.array([0.0, 30.0, NAN]), slowdown=np.array([1.0, 4.0, NAN]),
        gpu_s=7200.0, wasted_gpu_s=1800.0, cost=3.5, tenant_gpu_s=np.array([3600.0, 3600.0]),
    )  # fmt: skip
    assert totals.figures() == {
        "restarts": 3, "paused_mean_s": 15.0, "slowdown_mean": 2.5, "slowdown_p50": 2.5,
        "slowdown_p99": pytest.approx(3.97, rel=1e-15), "gpu_hours": 2.0, "goodput_pct": 75.0, "cost": 3.5,
        "tenant_jain": 1.0, "tenant_gini": 0.0,
    }  # fmt: skip
    assert tuple(totals.figures()) == FIGURES


def test_a_part_that_is_not_told_is_null() -> None:
    totals = JobTotals.of_jobs(gpu_s=0.0).figures()
    assert totals == dict.fromkeys(FIGURES) | {"gpu_hours": 0.0}  # of nothing held, no part is good
    assert JobTotals(gpu_s=0.0, wasted_gpu_s=0.0).figures()["goodput_pct"] is None
    assert JobTotals(gpu_s=3600.0).figures()["goodput_pct"] is None  # held, but what of it was wasted is not known
    empty = JobTotals.of_jobs(restarts=np.zeros(0, np.int64), paused_s=np.zeros(0), slowdown=np.full(2, NAN)).figures()
    assert empty == dict.fromkeys(FIGURES) | {"restarts": 0}


def test_slowdowns_may_come_as_spans() -> None:
    spans = ExactPercentiles()
    spans.add(np.array([1.0, 2.0, 6.0]))
    totals = JobTotals(slowdown=spans).figures()
    assert (totals["slowdown_mean"], totals["slowdown_p50"]) == (3.0, 2.0)


@pytest.mark.parametrize(
    ("hours", "jain", "gini"),
    [([5.0], 1.0, 0.0), ([1.0, 1.0, 1.0], 1.0, 0.0), ([0.0, 4.0], 0.5, 0.5), ([3.0, 1.0], 0.8, 0.25),
     ([0.0, 0.0], None, None), ([], None, None)],
)  # fmt: skip
def test_evenness_is_jains_index_and_inequality_is_ginis(hours: list[float], jain: Any, gini: Any) -> None:
    assert evenness(np.array(hours)) == jain
    assert inequality(np.array(hours)) == gini


def test_inequality_is_half_the_mean_difference_over_the_mean() -> None:
    hours = np.random.default_rng(1).exponential(size=9)
    differences = np.abs(hours[:, None] - hours[None, :]).mean()
    assert inequality(hours) == pytest.approx(differences / (2 * hours.mean()), rel=1e-12)  # another order of sums


def test_slowdown_needs_an_end_and_an_ideal_time() -> None:
    found = slowdowns(np.array([6.0, NAN, 6.0, 6.0, 2.0]), np.array([3.0, 3.0, 0.0, NAN, 0.5]))
    assert np.array_equal(found, [2.0, NAN, NAN, NAN, 4.0], equal_nan=True)


def test_columns_of_jobs_have_one_type_in_every_engine() -> None:
    made = pl.DataFrame(job_columns([0, 1], [NAN, 5.0], [0.0, 7200.0], [NAN, 4.0], [NAN, 8.0]))
    assert made.rows() == [(0, None, 0.0, None, None), (1, 5.0, 2.0, 4.0, 2.0)]
    assert made.schema == {
        "restarts": pl.Int32, "paused_s": pl.Float64, "gpu_hours": pl.Float64, "ideal_s": pl.Float64,
        "slowdown": pl.Float64,
    }  # fmt: skip
