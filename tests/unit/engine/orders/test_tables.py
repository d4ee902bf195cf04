"""Figures of ordered rounds, beside what they mean by hand."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.engine.orders.run import OrderedOutcome
from fastsim.engine.orders.tables import gpu_demand_pct, turn_figures
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.rounds import driven, prepared_rounds

SCENARIO = Scenario(
    "synergy:1", "synth:synergy?jobs=12&rate_per_hour=20", "fifo + fair", round_s=300.0, rates="synergy"
)


def played(scenario: Scenario) -> OrderedOutcome:
    run = driven(scenario, prepared_rounds(scenario, registry.parse(scenario.policy)), None)
    assert isinstance(run, OrderedOutcome)
    return run


def test_a_fair_share_of_servers_goes_with_every_gpu() -> None:
    run = played(SCENARIO)
    figures = turn_figures(run)
    gpus = 100 * run.turns["gpus"].mean() / 8
    assert figures["round_cpu_alloc_pct"] == pytest.approx(gpus) == figures["round_memory_alloc_pct"]
    assert figures["round_cpu_used_pct"] < min(figures["round_cpu_alloc_pct"], figures["round_cpu_demand_pct"])


def test_demand_is_that_of_jobs_at_work_and_waiting() -> None:
    run = played(SCENARIO)
    jobs = run.jobs
    asked = (jobs["num_gpu"] * (jobs["finish_s"] - jobs["submit_s"])).sum()
    assert gpu_demand_pct(run) == pytest.approx(100 * asked / (8 * (run.makespan_s - jobs["submit_s"][0])))


def test_tuned_jobs_run_faster_than_with_fair_shares() -> None:
    tuned = played(SCENARIO.with_(policy="fifo + tune"))
    assert turn_figures(tuned)["fair_share_pct"] < 100
    assert tuned.makespan_s < played(SCENARIO).makespan_s


def test_the_timeline_says_what_is_of_use() -> None:
    run = fs.simulate(**{**SCENARIO.to_dict(), "record": "timeline"})
    assert {"cpu_milli_used", "memory_mib_demand", "jobs_at_fair_share"} <= set(run.timeline.columns)
