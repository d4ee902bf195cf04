"""Checks of fields, and the engine that a policy needs."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastsim as fs
from fastsim.errors import FastsimError, InputError, ScenarioError
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "eight"}}}', "'eight'"),
        ("error: the server doesn't have a resource type", "resource type"),
    ],
)
def test_a_mistake_in_a_file_of_two_fields_is_told_once(text: str, told: str, tmp_path: Path) -> None:
    """The same file is often the cluster and the workload; two files, and other fields, have mistakes of their own."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(text)
    dump = f"kubernetes:{tmp_path / 'a.json'}"
    with pytest.raises(InputError) as caught:
        Scenario(dump, dump).check()
    assert str(caught.value).count(told) == 1
    for other in (Scenario(dump, f"kubernetes:{tmp_path / 'b.json'}"), Scenario(dump, dump, policy="best-fitt")):
        with pytest.raises(ScenarioError, match="2 mistakes"):
            other.check()
