"""Runs recorded from Synergy's simulator, again: who began and ended when, and who held what in every round."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.run import gpu_demand_pct, ordered_figures
from fastsim.simulation.engines.rounds import PreparedRounds
from tests.golden.synergy.synergy_runs import Recorded, held_by_round, recorded

RUNS = recorded()
EXACT = [run for run in RUNS if "opt" not in run.policy]
SOLVED = [run for run in RUNS if "opt" in run.policy]
FOLLOWED = [run for run in EXACT if run.told["metrics"]["rounds"] < 400]
"""Runs whose every round is looked at."""


def of(runs: list[Recorded]) -> pytest.MarkDecorator:
    """One test for each run."""
    return pytest.mark.parametrize("run", runs, ids=[run.id for run in runs])


@pytest.mark.skipif(not RUNS, reason="no recorded runs: set FASTSIM_SHARED")
def test_there_are_runs_of_every_mechanism() -> None:
    assert {word for run in RUNS for word in run.policy.split(" + ")} >= {"fair", "greedy", "tune", "opt", "place"}


@of(EXACT)
def test_jobs_and_rounds_are_the_same(run: Recorded) -> None:
    mine, metrics = run.played(), run.told["metrics"]
    jobs = pl.DataFrame({name: mine.jobs[name] for name in ("id", "first_s", "finish_s", "rounds", "run")})
    jobs = jobs.with_columns(pl.col("first_s", "finish_s").fill_nan(None))
    theirs = run.jobs()
    both = theirs.join(jobs, on="id", suffix="_mine")
    assert both.height >= theirs["first_s"].is_not_null().sum()
    for name in ("first_s", "finish_s", "rounds", "run"):
        mine_too, theirs_too = both[f"{name}_mine"].cast(pl.Float64), both[name].cast(pl.Float64)
        wrong = both.filter(~mine_too.eq_missing(theirs_too))
        # The original stops within the last instant, so jobs outside the window may miss their end there.
        if name == "finish_s":
            wrong = wrong.filter(~(pl.col("finish_s").is_null() & (pl.col("finish_s_mine") == metrics["end_time_s"])))
        assert wrong.is_empty(), wrong
    rounds, turns = run.rounds(), mine.round_records
    assert turns["t"].tolist() == rounds["time_s"].to_list()
    assert turns["jobs"].tolist() == rounds["n_runnable"].to_list()
    assert turns["running"].tolist() == rounds["n_running"].to_list()
    assert turns["gpus"].tolist() == rounds["gpus_alloc"].to_list()
    assert (turns["cpu_alloc"] / 1000).tolist() == rounds["cpus_alloc"].to_list()
    assert (turns["memory_alloc"] / 1024).tolist() == rounds["mem_gb_alloc"].to_list()
    assert turns["at_fair"].tolist() == rounds["n_running_speedup_eq_1"].to_list()
    jct_h = [(row["finish_s"] - row["submit_s"]) / 3600 for row in _window(run, mine.jobs)]
    assert np.mean(jct_h) == pytest.approx(metrics["mean_jct_h"], rel=1e-12)  # sums in another order
    assert np.percentile(jct_h, 99) == pytest.approx(metrics["p99_h"], rel=1e-12)


@of(FOLLOWED)
def test_figures_over_rounds_are_the_same(run: Recorded) -> None:
    mine, metrics = run.played(), run.told["metrics"]
    figures = ordered_figures(mine)
    played = mine.rounds / metrics["rounds"]  # the original plays rounds without jobs, too
    for ours, theirs in (("alloc", "alloc_pct"), ("used", "util_pct"), ("demand", "demand_pct")):
        for resource, name in (("cpu", "cpu"), ("memory", "mem")):
            expected = metrics[theirs][name]["mean_all"]
            # CPUs of a gang on several servers are rounded down there.
            assert played * figures[f"round_{resource}_{ours}_pct"] == pytest.approx(expected, rel=2e-3)
    assert gpu_demand_pct(mine) == figures["gpu_demand_pct"]


@of(FOLLOWED)
def test_every_round_gives_out_the_same(run: Recorded) -> None:
    expected, seen = run.placed(), 0
    for time_s, rows in held_by_round(run.prepared()):
        if time_s not in expected:
            continue
        seen += 1
        theirs = [[job, sorted(gpus), *rest] for job, gpus, *rest in expected[time_s]]
        mine = [[*row[:5], row[5] if row[5] is not None else was[5]] for row, was in zip(rows, theirs, strict=True)]
        assert mine == theirs, f"round at {time_s:g} s"
    assert seen == sum(1 for rows in expected.values() if rows)


@of(SOLVED)
def test_the_best_sum_is_the_same_and_jobs_take_about_as_long(run: Recorded) -> None:
    made = run.prepared()
    mine, metrics = run.played(), run.told["metrics"]
    assert made.needs is not None
    first = run.rounds().row(0, named=True)
    assert mine.round_records["running"][0] == first["n_scheduled"] and mine.round_records["gpus"][0] == first["gpus"]
    began = mine.jobs[mine.jobs["first_s"] == first["time_s"]]
    assert _best_sum(made, began["kind"]) == pytest.approx(first["ilp_objective"], rel=1e-9)
    jct_h = np.mean([(row["finish_s"] - row["submit_s"]) / 3600 for row in _window(run, mine.jobs)])
    # Many choices have the best sum; another one lets other jobs go first.
    assert jct_h == pytest.approx(metrics["mean_jct_h"], rel=0.03)


def _best_sum(made: PreparedRounds, kinds: npt.NDArray[Any]) -> float:
    assert isinstance(made.plan, OrderPlan) and made.plan.chooser is not None and made.needs is not None
    assert made.needs.demands is not None
    count__k = np.bincount(kinds, minlength=len(made.needs.demands.kinds)).tolist()
    parts = made.plan.chooser.parts(made.needs.demands, count__k, len(made.needs.num_gpu__s))
    return sum(part.jobs * part.speedup for part in parts)


def _window(run: Recorded, jobs: npt.NDArray[Any]) -> list[Any]:
    first, last = run.told["spec"]["window"]
    return list(jobs[(jobs["id"] >= first) & (jobs["id"] < last)])
