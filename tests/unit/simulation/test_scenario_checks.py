"""Checks of fields, and the engine that a policy needs."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ScenarioError
from fastsim.scenario.scenario import Scenario


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
