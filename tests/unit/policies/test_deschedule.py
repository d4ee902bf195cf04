"""Which pods a descheduler takes, on a view made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastsim.engine.online.closing_stages import RunningPod
from fastsim.engine.online.plan import PodRequest
from fastsim.errors import PolicyError, ScenarioError
from fastsim.policies.deschedule import DESCHEDULERS, CosSim, FragMultiPod, FragOnePod, deschedule_from


def pod(seq: int, node: int, cpu: int = 0, gpu: int = 0) -> RunningPod:
    return RunningPod(seq, seq, PodRequest(cpu, 0, int(gpu > 0), gpu, ()), node, ())


@dataclass
class View:
    """Free CPU and devices by node, running pods, and fragmentation by (node, pods gone)."""

    pods: list[RunningPod]
    cpu_free: Sequence[int] = ()
    gpu_free: Sequence[Sequence[int]] = ((),)
    names: Sequence[str] = ()
    frag: Any = None

    @property
    def nodes(self) -> Any:
        """Columns as the engine shows them."""
        return SimpleNamespace(cpu_free=np.array(self.cpu_free), gpu_free=np.array(self.gpu_free))

    def pods_by_node(self) -> dict[int, list[RunningPod]]:
        """Running pods of every node that has any."""
        found: dict[int, list[RunningPod]] = {}
        for one in self.pods:
            found.setdefault(one.node, []).append(one)
        return found

    def fragmentation(self, node: int, without: Sequence[RunningPod] = ()) -> float:
        """Milli-GPU, as the test says."""
        return float(self.frag[node, frozenset(one.seq for one in without)])


def seqs(policy: Any, view: View, limit: int = 99) -> list[int]:
    return [one.seq for one in policy.victims(view, limit)]


def frags(**table: float) -> dict[tuple[int, frozenset[int]], float]:
    """``n0_12=5.0``: node 0 without pods 1 and 2 has 5 milli-GPU of fragments."""
    parts = {key: key[1:].split("_") for key in table}
    return {(int(node), frozenset(int(c) for c in gone)): table[key] for key, (node, gone) in parts.items()}


def test_one_pod_of_each_node_most_fragmented_first() -> None:
    view = View([pod(1, 0), pod(2, 0), pod(3, 1), pod(4, 2)])
    view.frag = frags(n0_=100, n0_1=40, n0_2=10, n1_=300, n1_3=0, n2_=50, n2_4=50)
    assert seqs(FragOnePod(), view) == [3, 2]  # node 2 has nothing to gain
    assert seqs(FragOnePod(), view, limit=1) == [3]
    assert seqs(FragOnePod(), view, limit=0) == []


def test_relief_counts_in_whole_milli_and_the_first_of_equals_goes() -> None:
    view = View([pod(1, 0), pod(2, 0)])
    view.frag = frags(n0_=100.0, n0_1=98.9, n0_2=98.1)  # both save 1 whole milli-GPU
    assert seqs(FragOnePod(), view) == [1]
    view.frag = frags(n0_=100.0, n0_1=99.5, n0_2=100.5)  # less than one milli-GPU is nothing
    assert seqs(FragOnePod(), view) == []


def test_equally_fragmented_nodes_stand_in_position_order() -> None:
    view = View([pod(1, 1), pod(2, 0)])
    view.frag = frags(n0_=70, n0_2=0, n1_=70, n1_1=0)
    assert seqs(FragOnePod(), view) == seqs(FragMultiPod(), view) == [2, 1]


def test_a_relieved_node_stands_in_line_again_with_what_is_left() -> None:
    view = View([pod(1, 0), pod(2, 0), pod(3, 1)])
    view.frag = frags(n0_=300, n0_1=200, n0_2=250, n0_12=0, n1_=220, n1_3=100)
    # Node 0 falls from 300 to 200, so node 1 with 220 comes before its second pod.
    assert seqs(FragMultiPod(), view) == [1, 3, 2]
    assert seqs(FragMultiPod(), view, limit=2) == [1, 3]
    assert seqs(FragOnePod(), view) == [1, 3]


@pytest.mark.parametrize(
    ("cpu_free", "gpu_free", "taken"),
    [
        (1999, (501, 0), True),
        (2000, (501, 0), False),  # enough CPU
        (1999, (500, 500), False),  # no device with more than half left
    ],
)
def test_cos_sim_looks_at_nodes_short_of_cpu_that_have_a_device_to_give(
    cpu_free: int, gpu_free: tuple[int, int], taken: bool
) -> None:
    view = View([pod(1, 0, cpu=1000)], [cpu_free], [gpu_free], ["n"])
    assert seqs(CosSim(), view) == [1] * taken


def test_cos_sim_takes_the_pod_that_points_away_from_the_node() -> None:
    # Nothing of the CPU and 1,000 milli-GPU are free. With pod 1: (4000, 1000) against (4000, 0), cos 0.970;
    # with pod 2: (1000, 2000) against (1000, 1000), cos 0.949; with pod 3: (0, 1500) against (0, 500), cos 1.
    view = View([pod(1, 0, cpu=4000), pod(2, 0, cpu=1000, gpu=1000), pod(3, 0, gpu=500)], [0], [[1000, 0]], ["n"])
    assert seqs(CosSim(), view) == [2]
    view.pods[1:2] = []
    assert seqs(CosSim(), view) == [1]


def test_cos_sim_begins_with_the_most_free_gpu_then_the_name() -> None:
    view = View([pod(1, 0, 1), pod(2, 1, 1), pod(3, 2, 1)], [0] * 3, [[600], [600], [900]], ["b", "a", "c"])
    assert seqs(CosSim(), view) == [3, 2, 1]


def test_cos_sim_of_a_pod_that_asks_for_nothing_is_one() -> None:
    # A pod without a request has no direction; it is never less like the node than another.
    view = View([pod(1, 0), pod(2, 0, cpu=1000)], [0], [[1000]], ["n"])
    assert seqs(CosSim(), view) == [2]
    assert seqs(CosSim(), View([pod(1, 0)], [0], [[1000]], ["n"])) == [1]


def test_names_say_which_is_which() -> None:
    assert list(DESCHEDULERS.items()) == [
        ("cos_sim", CosSim),
        ("frag_one_pod", FragOnePod),
        ("frag_multi_pod", FragMultiPod),
    ]


def test_a_step_has_a_policy_a_ratio_and_perhaps_a_time() -> None:
    after, during = deschedule_from("frag_one_pod:0.05"), deschedule_from("cos_sim:0.1@3600")
    assert (after.ratio, after.at_s) == (0.05, None)
    assert (during.ratio, during.at_s) == (0.1, 3600)
    assert deschedule_from(after) is after


@pytest.mark.parametrize("text", ["frag_one_pod", "frag_one_pod:x", "frag_one_pod:2", "frag_one_pod:0.1@-1"])
def test_a_step_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="deschedule"):
        deschedule_from(text)


def test_an_unknown_policy_gets_a_suggestion() -> None:
    with pytest.raises(PolicyError, match="cos_sim"):
        deschedule_from("cos_sin:0.1")
