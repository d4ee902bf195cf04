"""Estimates asked for by a scenario."""

from __future__ import annotations

from typing import Any

import pytest

import fastsim as fs
from fastsim.engine.shares.plan import SharePlan, setting_of
from fastsim.errors import PolicyError, ScenarioError
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.policies.allocators.pair_rate_estimates import Estimates
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.pair_rate_beliefs import with_estimates
from tests.rounds import oracle, setting

JOBS = "synth:gavel?jobs=25&rate_per_hour=6&seed=1"
PACKED = "max_min_fairness(mode=packed)"
PLAN = SharePlan(None, pairs=True)  # type: ignore[arg-type]


def asked(**options: Any) -> Scenario:
    return Scenario("gavel:2:2:2", JOBS, PACKED, **options)


def test_a_plan_is_told_only_if_asked() -> None:
    where = setting_of(fs.Cluster.uniform(nodes=1, gpu="v100"), fs.Oracle.default())
    assert with_estimates(PLAN, where, asked()) is PLAN
    told = with_estimates(PLAN, where, asked(profiling=0.5, references=10)).beliefs
    assert isinstance(told, Estimates)
    assert told.names == JOB_NAMES
    assert len(told.reference) == 10
    assert str(told).startswith("0.5 of 10 references of 26 workloads")
    buggy = with_estimates(PLAN, where, asked(references=10, compat="estimator_column_bug")).beliefs
    assert str(buggy).startswith("1 of 10 references")
    assert str(buggy).endswith("column bug")


def test_other_workloads_stand_in_the_order_of_the_rates() -> None:
    where = setting(oracle([[1.0], [2.0], [3.0]], num_gpu=[1, 2, 1]), [2])
    told = with_estimates(PLAN, where, asked(profiling=0.0)).beliefs
    assert isinstance(told, Estimates)
    assert told.names == ("w0", "w2")


def test_what_is_believed_changes_the_run_and_a_seed_repeats_it() -> None:
    known = fs.simulate("gavel:2:2:2", JOBS, PACKED).jobs
    one, two = (fs.simulate("gavel:2:2:2", JOBS, PACKED, profiling=0.2, references=3).jobs for _ in range(2))
    assert one["state"].unique().to_list() == ["finished"]
    assert one.equals(two)
    assert not one.equals(known)


def test_profiles_of_everything_change_nothing() -> None:
    known, told = (fs.simulate("gavel:2:2:2", JOBS, "gandiva", references=n).jobs for n in (None, 26))
    assert told.equals(known)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "isolated", "profiling": 0.5}, "profiling: found 0.5, expected nothing: policy isolated lets no"),
        ({"policy": "isolated", "references": 5}, "references: found 5, expected nothing: policy isolated lets no"),
        ({"policy": "fgd", "references": 5}, "references: found 5, expected nothing: policy fgd is for pods"),
        ({"references": 27}, "references: found 27, expected at most 26"),
        ({"references": 0}, "references: found 0, expected a whole number of 1 or more"),
        ({"references": True}, "references: found True"),
        ({"profiling": 1.5}, "profiling: found 1.5, expected a part from 0 to 1"),
        ({"profiling": "half"}, "profiling: found 'half'"),
    ],
)
def test_mistakes_are_one_clear_error(options: dict[str, Any], words: str) -> None:
    given = {"cluster": "gavel:2:2:2", "workload": JOBS, "policy": PACKED} | options
    with pytest.raises(ScenarioError, match=words):
        fs.simulate(**given)


def test_gangs_have_no_profile() -> None:
    with pytest.raises(PolicyError, match="of a kind without a profile, expected known workloads on 1 GPU"):
        fs.simulate("gavel:8:8:8", "synth:gavel?jobs=30&multi_gpu=true", PACKED, profiling=0.5)
