"""Paired differences of two runs: parts, groups, lists of jobs, several pairs, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

import fastsim as fs
from fastsim.errors import ResultError, ScenarioError
from fastsim.reports.pairs.completion_parts import PARTS
from fastsim.reports.pairs.paired_jobs import paired_jobs
from tests.pairs import by_hand

RUNS: dict[str, tuple[str, str, tuple[str, str], dict[str, Any]]] = {
    "pods": ("openb:20", "synth:openb?pods=600&seed=1&rate_per_hour=400", ("fgd", "random"), {"queue": "fifo"}),
    "shares": (
        "gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=6&seed=3", ("max_min_fairness", "fifo"), {"restart_s": 30},
    ),
    "orders": ("gavel:2:2:2", "synth:gavel?jobs=12&rate_per_hour=6&seed=3", ("las", "srtf"), {"restart_s": 30}),
    "adaptive": ("sia:2:1:1", "synth:sia?jobs=8&seed=1", ("sia", "optimus"), {}),
}  # fmt: skip


def runs(engine: str, seed: int = 0) -> list[fs.Result]:
    """The runs of both policies of an engine."""
    cluster, workload, policies, options = RUNS[engine]
    return [fs.simulate(cluster, workload, policy, seed=seed, **options) for policy in policies]


@pytest.mark.parametrize("engine", RUNS)
def test_parts_of_the_difference_of_each_job_add_up_to_it(engine: str) -> None:
    one, two = runs(engine)
    pairs = paired_jobs(one, two)
    assert (pairs.jobs["difference"] != 0).any()
    for row in pairs.jobs.iter_rows(named=True):
        assert row["difference"] == row["jct_a"] - row["jct_b"]
        assert math.fsum(row[part] for part in PARTS) == pytest.approx(row["difference"], abs=1e-11 * row["jct_a"])
    parts = dict(pairs.parts.select("part", "difference").iter_rows())
    assert math.fsum(parts[part] for part in PARTS) == pytest.approx(parts["jct"], abs=1e-9 * pairs.parts["a"][0])
    totals = pairs.by("hour")["total"].sum()
    assert totals == pytest.approx(parts["jct"], abs=1e-9 * pairs.parts["a"][0])


def test_a_run_differs_from_itself_in_nothing() -> None:
    run = runs("orders")[0]
    pairs = paired_jobs(run, run)
    assert not pairs.jobs.select("difference", *PARTS).sum().row(0)[0]
    assert pairs.parts["share_pct"].null_count() == len(pairs.parts)


def test_groups_and_lists_of_a_run_worked_out_by_hand() -> None:
    # First come first served: pod 1 waits from 1 to 3700, pod 2 from 3601 to 3800. By priority pod 2 goes first.
    pairs = by_hand()
    columns = ("pod_id", "jct_a", "jct_b", "difference", "waiting", "working")
    assert pairs.jobs.select(columns).rows() == [
        (0, 3700.0, 3700.0, 0.0, 0.0, 0.0), (1, 3799.0, 3809.0, -10.0, -10.0, 0.0),
        (2, 209.0, 109.0, 100.0, 100.0, 0.0),
    ]  # fmt: skip
    assert pairs.parts.filter(part="waiting")["difference"].item() == 30.0
    assert pairs.by("hour").select("hour", "jobs", "difference").rows() == [(0, 2, -5.0), (1, 1, 100.0)]
    assert pairs.by("hour")["total"].to_list() == pytest.approx([-10 / 3, 100 / 3])
    assert pairs.longest("b")["pod_id"].to_list() == [1, 0, 2]
    assert pairs.furthest(1)["pod_id"].to_list() == [2]
    assert pairs.unpaired == {"only in a": 0, "only in b": 0, "in neither": 0}


def test_pairs_of_runs_give_an_interval_over_runs() -> None:
    a, b = zip(*(runs("orders", seed) for seed in (0, 1)), strict=True)
    alone, both = paired_jobs(a[0], b[0]), paired_jobs(list(a), list(b))
    assert alone.parts["low"].null_count() == len(alone.parts)
    assert both.pairs == 2 and len(both.jobs) == 2 * len(alone.jobs)
    row = both.parts.row(0, named=True)
    assert row["low"] <= row["difference"] <= row["high"]


def test_jobs_that_are_done_in_one_run_only_are_counted() -> None:
    cluster, workload, policies, options = RUNS["orders"]
    whole = fs.simulate(cluster, workload, policies[0], **options)
    part = fs.simulate(cluster, workload, policies[1], until_s=40_000.0, **options)
    pairs = paired_jobs(whole, part)
    assert pairs.unpaired["only in a"] == len(whole.jobs) - len(pairs.jobs) > 0


def test_what_cannot_be_paired_is_refused() -> None:
    run, other = runs("orders")[0], runs("adaptive")[0]
    with pytest.raises(ResultError, match="two runs of one workload"):
        paired_jobs(run, other)
    with pytest.raises(ScenarioError, match="as many runs of one"):
        paired_jobs([run, run], [run])
    with pytest.raises(ScenarioError, match="one of size, tenant, hour"):
        paired_jobs(run, run).by("colour")
    with pytest.raises(ResultError, match="found no tenant"):
        paired_jobs(run, run).by("tenant")
    with pytest.raises(ScenarioError, match="a or b"):
        paired_jobs(run, run).longest("c")
    with pytest.raises(ResultError, match="no job that is done in both"):
        cluster, workload, policies, options = RUNS["orders"]
        paired_jobs(run, fs.simulate(cluster, workload, policies[0], until_s=1.0, **options))
