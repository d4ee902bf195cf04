"""Options of the other engine are refused, not ignored."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ScenarioError
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.scenario_checks import (
    ONLINE_ONLY,
    ROUNDS_ONLY,
    is_monitored_policy,
    is_round_policy,
    refuse_foreign_fields,
)


def test_policies_know_their_engine() -> None:
    assert is_round_policy(registry.parse("isolated"))
    assert not is_round_policy(registry.parse("fgd"))
    assert [is_monitored_policy(registry.parse(name)) for name in ("fgd", "isolated", "gpushare")] == [
        False,
        False,
        True,
    ]


def test_the_fields_exist_and_defaults_are_welcome() -> None:
    scenario = Scenario(workload="w")
    for name in (*ONLINE_ONLY, *ROUNDS_ONLY):
        assert hasattr(scenario, name)
    for name in ("fgd", "isolated", "monitored"):
        refuse_foreign_fields(scenario, registry.parse(name))


def test_an_option_of_the_other_engine_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"queue: found 'fifo'"):
        refuse_foreign_fields(Scenario(workload="w", queue="fifo"), registry.parse("isolated"))
    with pytest.raises(ScenarioError, match=r"round_s: found 60"):
        refuse_foreign_fields(Scenario(workload="w", round_s=60.0), registry.parse("fgd"))
    for name in ("fgd", "isolated", "monitored"):
        refuse_foreign_fields(Scenario(workload="w", prices="fixed?T4=1"), registry.parse(name))
    with pytest.raises(
        ScenarioError, match=r"interference: found 0.5, expected nothing: the jobs of policy las are not"
    ):
        refuse_foreign_fields(Scenario(workload="w", policy="las", interference=0.5), registry.parse("las"))
    refuse_foreign_fields(Scenario(workload="w", policy="pollux", interference=0.5), registry.parse("pollux"))
    for changed in ({"round_s": 60.0}, {"queue": "fifo"}, {"sample_s": 1.0}):
        with pytest.raises(ScenarioError, match="is for pods that share monitored GPUs"):
            refuse_foreign_fields(Scenario(workload="w", **changed), registry.parse("monitored"))


def test_a_load_is_checked_with_the_cluster_beside_it() -> None:
    pods = "synth:openb?pods=40&seed=1&load=1"
    large = "uniform?nodes=2&gpu=T4&gpus=8&cpu_milli=200000&memory_mib=900000"
    assert len(fs.simulate(large, pods, "fgd", record="all").jobs) == 40
    assert [problem.path for problem in Scenario("openbb:4", pods).problems()] == ["cluster"]
    with pytest.raises(ScenarioError, match="no cluster with GPUs"):
        Scenario("uniform?nodes=2&gpus=0", pods).check()
    known: dict[tuple[str, str], FastsimError | None] = {}
    assert not Scenario(large, pods).problems(known)
    assert Scenario("uniform?nodes=2&gpus=0", pods).problems(known), "another cluster, another answer"
