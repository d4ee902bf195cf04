"""Finish-time fairness: fair parts, runs alone, what is between two sizes, what cannot run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveSetting, NodeGroup
from fastsim.errors import FastsimError
from fastsim.experiments.isolated_runs import (
    IsolatedRuns,
    _run,
    fairness,
    finish_time_ratios,
    saved_run_ratios,
    sizes_of,
)
from fastsim.policies.adaptive.pollux import Pollux
from fastsim.policies.adaptive.rotation import Rotation
from fastsim.policies.adaptive.sia import Sia
from tests.adaptive import adaptive_setting
from tests.cli.terminal import fastsim

JOB = AdaptiveJob(30.0, "cifar10", 2, 1024)


def isolated(setting: AdaptiveSetting, policy: Any) -> IsolatedRuns:
    """Runs of single jobs under this policy."""
    return IsolatedRuns(setting, policy, policy.begin(setting))


def test_a_job_alone_in_the_cluster_is_treated_fairly() -> None:
    scenario = fs.Scenario("sia:1:1:0", "synth:sia?jobs=4&seed=3&rate_per_hour=2", "sia")
    (result,) = fs.simulate_many([scenario], workers=1)
    seen: list[int] = []
    ratios = finish_time_ratios(scenario, result, seen.append)
    assert seen == [1, 2, 3, 4] and ratios["pod_id"].to_list() == [0, 1, 2, 3]
    assert (ratios["rho"] > 0).all() and (ratios["share_gpus"] <= 12).all()
    fairness_of_jobs = fairness(ratios)
    assert fairness_of_jobs["rho_max"] == ratios["rho"].max() and 0 <= fairness_of_jobs["unfair_part"] <= 1


@pytest.mark.long
@pytest.mark.parametrize("policy", ["sia", "rotation"])
def test_any_number_of_workers_finds_the_same(policy: str) -> None:
    scenario = fs.Scenario("sia:4:2:0", "synth:sia?jobs=5&seed=3&rate_per_hour=20", policy)
    (result,) = fs.simulate_many([scenario], workers=1)
    seen: list[int] = []
    alone = finish_time_ratios(scenario, result)
    assert finish_time_ratios(scenario, result, seen.append, workers=2).equals(alone)
    assert seen == [*range(1, len(alone) + 1)] and len(alone) > 0


def test_runs_are_made_once() -> None:
    runs = isolated(adaptive_setting(2, 1, 0), Sia())
    needed = [*runs.needed(JOB, 3.0), *runs.needed(JOB, 6.0)]
    assert [run[1:] for run in needed] == [(0, 3), (0, 3), (1, 3), (1, 3), (0, 4), (0, 8), (1, 6), (1, 6)]
    assert [*runs.play(needed)][-1] == len(runs.seconds_of) == 5
    known = dict(runs.seconds_of)
    assert list(runs.play(needed)) == [] and runs.seconds(JOB, 6.0) > 0 and runs.seconds_of == known
    assert [*runs.needed(JOB._replace(num_gpu=64, mode="rigid"), 3.0)] == []


@pytest.mark.parametrize("other", [{"num_gpu": 7}, {"batch_size": 128}, {"num_gpu": 64, "batch_size": 4096}])
def test_requests_of_adaptive_jobs_do_not_count_under_pollux(other: dict[str, Any]) -> None:
    setting, changed = adaptive_setting(2, 1, 0), JOB._replace(**other)
    runs = isolated(setting, Pollux(generations=5))
    assert [*runs.needed(JOB, 3.0)] == [*runs.needed(changed, 3.0)]
    for gpus, number in ((3, 0), (8, 0), (7, 1)):
        assert _run(setting, runs.policy, changed, number, gpus) == _run(setting, runs.policy, JOB, number, gpus)
    for job in (JOB._replace(mode="scale-gpus"), JOB._replace(mode="rigid")):
        assert [*runs.needed(job, 3.0)] != [*runs.needed(job._replace(**other), 3.0)]
    fixed = isolated(setting, Pollux(generations=5, tuned=False))
    assert [*fixed.needed(JOB, 3.0)] != [*fixed.needed(changed, 3.0)]


def test_between_two_sizes_times_lie_on_a_line() -> None:
    runs = isolated(adaptive_setting(2, 0, 0), Sia())
    two, four, six = (runs.seconds(JOB, gpus) for gpus in (2.0, 4.0, 6.0))
    assert runs.seconds(JOB, 3.5) == pytest.approx((runs.seconds(JOB, 3.0) + four) / 2)
    assert six == pytest.approx((four + runs.seconds(JOB, 8.0)) / 2)
    assert two > four
    assert runs.seconds(JOB, 0.5) == 2 * runs.seconds(JOB, 1.0)


def test_who_is_held_to_its_gpus_waits_for_its_part_of_the_time() -> None:
    runs = isolated(adaptive_setting(2, 0, 0, 360.0), Rotation())
    assert runs.seconds(JOB, 1.0) == 2 * runs.seconds(JOB, 2.0) == 2 * runs.seconds(JOB, 8.0)
    assert math.isnan(runs.seconds(JOB._replace(num_gpu=64), 2.0))


def test_models_count_by_their_gpus() -> None:
    both, aws, dgx = (isolated(adaptive_setting(*nodes), Sia()) for nodes in ((2, 1, 0), (2, 0, 0), (0, 1, 0)))
    assert both.seconds(JOB, 4.0) == pytest.approx((aws.seconds(JOB, 4.0) + dgx.seconds(JOB, 4.0)) / 2)


def test_sizes_are_parts_of_a_node_or_whole_ones() -> None:
    assert sizes_of(NodeGroup("aws", (4, 4, 4), (0, 1, 2))) == [1, 2, 3, 4, 8, 12]


@pytest.mark.parametrize("policy", ["gandiva", "max_min_fairness", "srtf"])
def test_other_jobs_are_compared_with_equal_parts(policy: str) -> None:
    scenario = fs.Scenario("gavel:1:1:1", "synth:gavel-trace?jobs=6&seed=3&rate_per_hour=4", policy)
    parts = fs.Scenario("gavel:1:1:1", scenario.workload, "isolated")
    result, base = fs.simulate_many([scenario, parts], workers=1)
    ratios = finish_time_ratios(scenario, result)
    expected = (result.jobs["jct_s"] / base.jobs["jct_s"]).to_list()
    assert ratios["rho"].to_list() == expected and ratios["share_gpus"].null_count() == 6
    fairness_of_jobs = fairness(ratios)
    assert fairness_of_jobs["rho_mean"] == pytest.approx(sum(expected) / 6) and fairness_of_jobs["rho_max"] == max(
        expected
    )
    assert set(finish_time_ratios(parts, base)["rho"]) == {1.0}


def test_pods_that_need_whole_gpus_are_compared_with_equal_parts() -> None:
    scenario = fs.Scenario("uniform?nodes=2&gpus=1&gpu=T4", "synth:openb?pods=4&seed=2", "fgd", queue="fifo")
    (result,) = fs.simulate_many([scenario], workers=1)
    with pytest.raises(FastsimError, match="gpu_milli"):
        finish_time_ratios(scenario, result)


def test_nothing_finished_is_no_ratio() -> None:
    scenario = fs.Scenario("sia:1:1:0", "synth:sia?jobs=1&seed=3", "sia")
    (result,) = fs.simulate_many([scenario], workers=1)
    empty = finish_time_ratios(scenario, result).clear()
    assert math.isnan(fairness(empty)["rho_max"]) and isinstance(empty, pl.DataFrame)


def test_saved_runs_have_the_ratios_of_their_scenarios(tmp_path: Path) -> None:
    words = ("gavel:1:1:1", "synth:gavel?jobs=5&rate_per_hour=60&seed=2", "las")
    result = fs.simulate(*words, out=tmp_path / "las")
    ratios = saved_run_ratios(tmp_path / "las")
    assert ratios.equals(finish_time_ratios(fs.Scenario(*words), result)) and len(ratios) == 5
    printed = fastsim("fairness", tmp_path / "las", "--csv", tmp_path / "rho.csv")
    assert printed.code == 0 and f"{fairness(ratios)['rho_p50']:.4g}" in printed.out
    assert pl.read_csv(tmp_path / "rho.csv")["rho"].to_list() == ratios["rho"].to_list()


def test_runs_without_finished_jobs_have_no_ratios(tmp_path: Path) -> None:
    fs.simulate("openb:2", "synth:openb?pods=3&durations=forever", "fgd", out=tmp_path / "fgd")
    refused = fastsim("fairness", tmp_path / "fgd")
    assert refused.code == 1 and "found no finished jobs" in refused.err
