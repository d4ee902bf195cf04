"""Checks of fields, and the engine that a policy needs."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ScenarioError
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.scenario_checks import is_monitored_policy, is_round_policy


def test_policies_know_their_engine() -> None:
    assert is_round_policy(registry.parse("isolated"))
    assert not is_round_policy(registry.parse("fgd"))
    assert [is_monitored_policy(registry.parse(name)) for name in ("fgd", "isolated", "gpushare")] == [
        False,
        False,
        True,
    ]


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
