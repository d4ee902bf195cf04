"""The policy of preferences: its five scores, their weights, and mixes with others."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.engine.online.plan import PREFERENCE_KERNELS, OnlinePlan, ScoreTerm
from fastsim.errors import PolicyError
from fastsim.policies import FGD, Preferred
from fastsim.policies.registry import describe, placing

CLUSTER, PODS = fs.Cluster.preset("openb:20"), fs.Workload.synth("openb", pods=200, seed=1)


def plan(text: str) -> OnlinePlan:
    return placing(text).plan(CLUSTER, PODS)


def test_its_scores_have_the_weights_of_kube_scheduler() -> None:
    weights = dict(zip(PREFERENCE_KERNELS, (2, 3, 2, 2, 1), strict=True))
    assert plan("preferred").terms == tuple(ScoreTerm(kernel, weight) for kernel, weight in weights.items())
    assert plan("preferred").preference_weights == (2, 3, 2, 2, 1) and plan("preferred").node_terms == ()
    assert plan("preferred(pod_spread=0, node_affinity=7)").preference_weights == (7, 3, 0, 2, 1)
    assert [parameter.name for parameter in describe("preferred").parameters] == ["gpu_pick", *PREFERENCE_KERNELS]


def test_a_mix_weighs_each_score_and_leaves_the_gpus_to_others() -> None:
    mixed = plan("0.8*fgd + 0.2*preferred")
    assert mixed.terms[0] == ScoreTerm("fgd", 4) and mixed.preference_weights == (2, 3, 2, 2, 1)
    assert mixed.gpu_pick == "fgd" and plan("0.1*fgd + 0.9*preferred").gpu_pick == "fgd"
    assert plan("preferred").gpu_pick == "best" and plan("preferred(gpu_pick=worst)").gpu_pick == "worst"
    assert str(FGD() + Preferred()) == "fgd + preferred"
    assert plan("2*preferred + preferred(taint_toleration=0)").preference_weights == (6, 6, 6, 6, 3)


def test_weights_have_bounds() -> None:
    for weight in (-1, 101):
        with pytest.raises(PolicyError, match=r"parameter pod_spread: found .*, expected 0 to 100"):
            Preferred(pod_spread=weight)
    heavy = "preferred(node_affinity=100, taint_toleration=100, pod_spread=100, pod_affinity=100, image_locality=100)"
    with pytest.raises(PolicyError, match="ratios too fine"):
        plan(f"0.99999999999999999*{heavy} + 0.00000000000000001*fgd")


@pytest.mark.parametrize("text", ["fgd", "0.9*fgd + 0.1*pwr", "random"])
def test_without_preferences_nothing_changes(text: str) -> None:
    alone, mixed = (fs.simulate(CLUSTER, PODS, policy, seed=3) for policy in (text, f"{text} + preferred"))
    assert alone.placements.equals(mixed.placements) and alone.summary.equals(mixed.summary)


def test_alone_it_takes_the_first_node() -> None:
    placements = fs.simulate(CLUSTER, fs.Workload.synth("openb", pods=3, seed=1), "preferred").placements
    assert placements["node_id"].is_sorted() and placements["node_id"][0] == 0
