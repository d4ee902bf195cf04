"""kube-scheduler's sentences: which of its texts a node counts for, and in which order its checks come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.scenario.scenario import Scenario
from tests.objects import node, pod, written

WEB = {"app": "web"}
AWAY: dict[str, Any] = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": WEB}, "topologyKey": "zone"}]}}}  # fmt: skip
SPREAD: dict[str, Any] = {"topologySpreadConstraints": [
    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": WEB}}
]}  # fmt: skip


def sentence(tmp_path: Path, name: str, *objects: Any) -> str:
    path = written(tmp_path / "now.json", *objects)
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), [name])
    return found.summary(found.decisions[0])


def test_a_node_counts_for_every_amount_that_it_lacks(tmp_path: Path) -> None:
    nic, nothing = {"example.com/nic": "1"}, {"amounts": {"cpu": "1", "memory": "1Gi", "pods": "1"}}
    path = written(
        tmp_path / "a.json", node("n1", {}, amounts=nic), node("n2", {}, **nothing),
        pod("r", {}, nodeName="n2"), pod("q", {"cpu": 100}),
        pod("p", {"cpu": 100, "example.com/nic": 2, "other.com/nic": 1}),
    )  # fmt: skip
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), ["p", "q"])
    assert sorted(found.summary(one) for one in found.decisions) == [
        "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu, 2 Insufficient example.com/nic, "
        "2 Insufficient other.com/nic.",
        "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu.",
    ]
    one = explained(Scenario("uniform?nodes=2&gpu=T4", "synth:openb?pods=1", "best_fit"), [0]).decisions[0]
    assert one.lacks__n is None and one.lacking(0) == ([], []), "some node can host it"


def test_amounts_come_before_rules_between_pods(tmp_path: Path) -> None:
    nodes = [node(f"n{i}", {"zone": zone}) for i, zone in enumerate("ab")]
    web, full = pod("w", {}, labels=WEB, nodeName="n0"), pod("f", {"cpu": 8}, nodeName="n1")
    one = sentence(tmp_path, "asks", *nodes, web, full, pod("asks", {"cpu": 1}, **AWAY))
    assert one == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod anti-affinity rules."
    keepers = [pod(f"k{i}", {}, nodeName=f"n{i}", **AWAY) for i in range(2)]
    text = "node(s) didn't satisfy existing pods anti-affinity rules"
    for cpu, expected in ((1, f"2 {text}"), (99, "2 Insufficient cpu")):
        said = sentence(tmp_path, "asks", *nodes, *keepers, pod("asks", {"cpu": cpu}, labels=WEB))
        assert said == f"0/2 nodes are available: {expected}."


def test_spread_comes_before_rules_between_pods(tmp_path: Path) -> None:
    nodes = [node("n0", {"zone": "a"}), node("n1", {"zone": "b"}), node("n2")]
    there = [pod(f"w{i}", {}, labels=WEB, nodeName="n0") for i in range(2)]
    keeper = pod("k", {}, nodeName="n0", **AWAY)
    full = pod("full", {"cpu": 8}, nodeName="n1")
    asks = pod("asks", {"cpu": 8}, labels=WEB, **SPREAD)
    text = sentence(tmp_path, "asks", *nodes, *there, keeper, full, asks)
    assert text == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) didn't match pod topology spread constraints (missing required label)."
    )
