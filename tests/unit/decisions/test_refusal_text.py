"""Refusals in words: taints, expressions and resources by name, and all nodes in kube-scheduler's sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.decisions.explain_text import explanation_text
from fastsim.decisions.refusal_text import lack_text, lacking, mismatch, sentence, summed
from fastsim.hardware.node_constraints import Conditions, Constraint
from fastsim.scenario.scenario import Scenario
from tests.objects import node, pod, written

ZONE, TAINT = Constraint("zone", "In", ("a", "b")), Constraint("taint:dedicated=infra:NoSchedule", "DoesNotExist")
CORDON = Constraint("taint:node.kubernetes.io/unschedulable=:NoSchedule", "DoesNotExist")

T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
DEVICE = Constraint("resource:amd.com/gpu", "Exists")
PORTS = Constraint("name", "NotIn", ("hostPort:TCP/80,UDP/10.0.0.1:53", "n1"))


def row(name: str = "n1", extra: Any = None, **labels: str) -> dict[str, Any]:
    return {"name": name, "labels": list(labels.items()), "extra_resources": extra}


@pytest.mark.parametrize(
    ("asked", "labels", "text", "told"),
    [
        (Conditions(constraints=(ZONE,)), {}, "no label zone, needs zone In [a, b]", "affinity/selector"),
        (Conditions(constraints=(ZONE,)), {"zone": "c"}, "zone is 'c', needs zone In [a, b]", "affinity/selector"),
        (Conditions(constraints=(ZONE, TAINT)), {TAINT.key: ""},
         "its taint dedicated=infra:NoSchedule is not tolerated",
         "node(s) had untolerated taint(s)"),
        (Conditions(constraints=(CORDON,)), {CORDON.key: ""},
         "its taint node.kubernetes.io/unschedulable=:NoSchedule is not tolerated", "node(s) were unschedulable"),
        (Conditions(constraints=(DEVICE,)), {}, "it does not offer amd.com/gpu", "Insufficient amd.com/gpu"),
        (Conditions(constraints=(PORTS,)), {}, "a pod there has a host port of TCP/80, UDP/10.0.0.1:53",
         "node(s) didn't have free ports for the requested pod ports"),
        (Conditions(pinned_node="n2"), {}, "the pod belongs on n2", "node(s) didn't match the requested node name"),
    ],
)  # fmt: skip
def test_labels_taints_and_names(asked: Conditions, labels: dict[str, str], text: str, told: str) -> None:
    assert mismatch(asked, row(**labels)) == text
    assert told in summed("no_match", asked, row(**labels), 0, 0)


def test_further_resources_have_names_and_units() -> None:
    conditions = Conditions(extra_resources=(("ephemeral-storage", 500), ("example.com/nic", 2)))
    there = row(extra=[("ephemeral-storage", 800), ("example.com/nic", 4)])
    assert lack_text(conditions, there, 300, 500) == "300 MiB of ephemeral-storage free, needs 500"
    assert lack_text(conditions, there, 1, 2) == "1 example.com/nic free, needs 2"
    assert lacking(conditions, row(), 0, 0) == "ephemeral-storage" and summed("no_extra", conditions, there, 1, 2) == (
        "Insufficient example.com/nic"
    )
    assert summed("no_cpu", conditions, there, 0, 0) == "Insufficient cpu"
    instances = Conditions(extra_resources=(("mig-1g.5gb", 1),))
    assert summed("no_extra", instances, row(), 0, 1) == "Insufficient nvidia.com/mig-1g.5gb"
    assert sentence({"b": 2, "a": 2, "c": 10}, 7) == "0/7 nodes are available: 10 c, 2 a, 2 b."


def test_a_pod_that_nothing_lets_in(tmp_path: Path) -> None:
    taint = {"taints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]}
    path = written(
        tmp_path / "a.json", node("n1", {"zone": "a"}, taint), node("n2", {"zone": "b"}), node("n3", {"zone": "a"}),
        pod("large", {"cpu": 9}, nodeSelector={"zone": "a"}), pod("away", {"cpu": 1}, nodeSelector={"zone": "c"}),
        pod("odd", {"cpu": 1, "example.com/nic": 2}, tolerations=[{"operator": "Exists"}]),
    )  # fmt: skip
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), ["large", "away", "odd"])
    away, large, odd = (explanation_text(type(found)(found.inputs, [one])) for one in found.decisions)
    assert large.splitlines()[0].endswith("where zone In [a]") and "-> nowhere: no empty node could host it" in large
    assert ("0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) had untolerated taint(s).") in large  # fmt: skip
    assert "-> nowhere: no node's labels, taints and name let it in" in away and "needs zone In [c]" in away
    assert "0/3 nodes are available: 3 Insufficient example.com/nic." in odd
    assert "-> nowhere: no empty node has enough of a further resource" in odd
    assert "0 example.com/nic free, needs 2" in odd and "2 example.com/nic" in odd.splitlines()[0]


@pytest.mark.parametrize("offered", [{}, {"nvidia.com/gpu": "1"}])
def test_devices_have_the_names_that_pods_ask_for(tmp_path: Path, offered: dict[str, str]) -> None:
    names = ["amd.com/gpu", "aliyun.com/gpu-mem"] if offered else ["amd.com/gpu", "nvidia.com/gpu"]
    pods = [pod(f"p{number}", {name: "2"}) for number, name in enumerate(names)]
    path = written(tmp_path / "a.json", node("n", T4 if offered else {}, amounts=offered), *pods)
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), ["p0", "p1"])
    assert [found.summary(one) for one in found.decisions] == [
        f"0/1 nodes are available: 1 Insufficient {name}." for name in names
    ]  # fmt: skip


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    def takes(name: str, port: int, address: str = "", **spec: Any) -> dict[str, Any]:
        made = pod(name, {"cpu": 1}, **spec)
        made["spec"]["containers"][0]["ports"] = [{"hostPort": port, "hostIP": address}]
        return made

    there = [takes("r", 80, nodeName="n"), *(takes(f"s{end}", 81, f"10.0.0.{end}", nodeName="n") for end in (1, 2))]
    path = written(tmp_path / "a.json", node("n"), *there, takes("a", 80), takes("b", 81))
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), ["a", "b"])
    text = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    assert [found.summary(one) for one in found.decisions] == [text, text]
    assert found.frame()["why"].to_list() == [f"a pod there has a host port of TCP/{port}" for port in (80, 81)]


def test_the_pod_of_a_gang_for_which_the_others_leave_no_room(tmp_path: Path) -> None:
    gang = {"scheduling.k8s.io/group-name": "g"}
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}}
    objects = [node("n"), group, pod("a", {"cpu": 3}, gang), pod("b", {"cpu": 6}, gang)]
    path = written(tmp_path / "a.json", *objects)
    cluster, workload = fs.Cluster.from_kubernetes(path), fs.Workload.from_kubernetes(path)
    found = explained(Scenario(cluster, workload, "best_fit"), ["a", "b"])
    assert found.frame()["outcome"].to_list() == ["gang", "beside_gang"]
    texts = [explanation_text(type(found)(found.inputs, [one])) for one in found.decisions]
    assert "-> nowhere: other pods of its gang take the room" in texts[1]
    assert "1 node(s) had room, but not beside the other pods of the gang." in texts[1]
