"""Documented rules of nodes and requests, each on a dump worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.documented.dumps import FORMS, Dump, unexpected
from tests.objects import node, pod

GPU = "nvidia.com/gpu"
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}


def tainted(name: str, effect: str = "NoSchedule", key: str = "k", value: str = "v") -> dict[str, Any]:
    return node(name, spec={"taints": [{"key": key, "value": value, "effect": effect}]})


def tolerating(name: str, **toleration: str) -> dict[str, Any]:
    return pod(name, {"cpu": 1}, tolerations=[toleration])


def container(**requests: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


def with_status(item: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {**item, "status": {**item["status"], **status}}


BUSY = pod("busy", {"cpu": 6}, status={"phase": "Running"}, nodeName="n1")
DUMPS = [
    Dump("pods are admitted by allocatable amounts, not by capacity",
         [with_status(node("n1", T4), capacity={"cpu": "8", "memory": "16Gi", "pods": "110", GPU: "8"}),
          pod("a", {GPU: "1"})], {"a": ""}),
    Dump("a node that reports no allocatable amounts offers nothing",
         [{**node("n1"), "status": {}}, pod("a", {"cpu": 1})], {"a": ""}),
    Dump("a cordoned node is not schedulable for new pods",
         [node("n1", spec={"unschedulable": True}), node("n2"), pod("a", {"cpu": 1})], {"a": "n2"}),
    Dump("pods that run on a cordoned node stay there",
         [node("n1", spec={"unschedulable": True}), BUSY], {"busy": "n1"}),
    Dump("a taint NoSchedule repels pods without a matching toleration",
         [tainted("n1"), node("n2"), pod("a", {"cpu": 1})], {"a": "n2"}),
    Dump("a taint NoExecute repels new pods, too",
         [tainted("n1", "NoExecute"), pod("a", {"cpu": 1})], {"a": ""}),
    Dump("a taint PreferNoSchedule repels no pod for certain",
         [tainted("n1", "PreferNoSchedule"), pod("a", {"cpu": 1})], {"a": "n1"}),
    Dump("a toleration Equal matches key, value and effect",
         [tainted("n1"), tolerating("a", key="k", operator="Equal", value="v", effect="NoSchedule"),
          tolerating("b", key="k", operator="Equal", value="w", effect="NoSchedule")], {"a": "n1", "b": ""}),
    Dump("the operator of a toleration is Equal by default",
         [tainted("n1"), tolerating("a", key="k", value="v"), tolerating("b", key="k")], {"a": "n1", "b": ""}),
    Dump("a toleration Exists matches every value of its key",
         [tainted("n1"), tolerating("a", key="k", operator="Exists"), tolerating("b", key="x", operator="Exists")],
         {"a": "n1", "b": ""}),
    Dump("an empty key with Exists tolerates everything",
         [tainted("n1"), tolerating("a", operator="Exists")], {"a": "n1"}),
    Dump("an empty effect matches all effects of the key",
         [tainted("n1", "NoExecute"), tolerating("a", key="k", operator="Exists")], {"a": "n1"}),
    Dump("all taints of a node must be tolerated",
         [node("n1", spec={"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "l", "effect": "NoSchedule"}]}),
          tolerating("a", key="k", operator="Exists")], {"a": ""}),
    Dump("a node takes no more pods than its allocatable pods",
         [node("n1", amounts={"pods": "2"}), pod("a"), pod("b"), pod("c")], {"a": "n1", "b": "n1", "c": ""}),
    Dump("requests of all containers of a pod are summed",
         [node("n1"), {**pod("a"), "spec": {"containers": [container(cpu=5), container(cpu=4)]}}], {"a": ""}),
    Dump("a pod asks for the larger of its containers' sum and its largest init container",
         [node("n1"), pod("a", {"cpu": 1}, initContainers=[container(cpu=8)]), pod("b", {"cpu": 1})],
         {"a": "n1", "b": ""}),
    Dump("init containers run one after the other: they are not summed",
         [node("n1"), pod("a", {"cpu": 1}, initContainers=[container(cpu=5), container(cpu=5)])], {"a": "n1"}),
    Dump("an init container that restarts always runs beside the others: it is added",
         [node("n1"), pod("a", {"cpu": 5}, initContainers=[{**container(cpu=4), "restartPolicy": "Always"}])],
         {"a": ""}),
    Dump("overhead is added to the requests of the pod",
         [node("n1"), pod("a", {"cpu": 7}, overhead={"cpu": "2"}), pod("b", {"cpu": 7}, overhead={"cpu": "1"})],
         {"a": "", "b": "n1"}),
    Dump("requests of the whole pod stand in place of those of its containers",
         [node("n1"), pod("a", {"cpu": 1}, resources={"requests": {"cpu": "9"}})], {"a": ""}),
    Dump("a limit without a request is the request",
         [node("n1"), {**pod("a"), "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "9"}}}]}}],
         {"a": ""}),
    Dump("ephemeral storage is a resource as CPU and memory are",
         [node("n1", amounts={"ephemeral-storage": "10Gi"}), pod("a", {"ephemeral-storage": "8Gi"}),
          pod("b", {"ephemeral-storage": "8Gi"})], {"a": "n1", "b": ""}),
    Dump("quantities: 100m is a tenth, 1Gi is 2^30, 1G is 10^9, 1e8 is 10^8",
         [node("n1", amounts={"memory": "1Gi"}), pod("a", {"cpu": "100m", "memory": "1G"}),
          pod("b", {"memory": "1e8"})],
         {"a": "n1", "b": ""}),
    Dump("an extended resource that no node offers keeps the pod waiting",
         [node("n1"), pod("a", {"example.com/dongle": "1"})], {"a": ""}),
    Dump("extended resources are counted in whole numbers",
         [node("n1", amounts={"example.com/dongle": "3"}), pod("a", {"example.com/dongle": "2"}),
          pod("b", {"example.com/dongle": "2"})], {"a": "n1", "b": ""}),
    Dump("huge pages are a resource of each size",
         [node("n1", amounts={"hugepages-2Mi": "4Mi"}), pod("a", {"hugepages-2Mi": "4Mi", "cpu": 1}),
          pod("b", {"hugepages-2Mi": "2Mi", "cpu": 1})], {"a": "n1", "b": ""}),
    Dump("pods that have succeeded or failed hold nothing",
         [node("n1"), pod("s", {"cpu": 8}, status={"phase": "Succeeded"}, nodeName="n1"),
          pod("f", {"cpu": 8}, status={"phase": "Failed"}, nodeName="n1"), pod("a", {"cpu": 8})], {"a": "n1"}),
    Dump("a bound pod that is being deleted holds its resources until it is gone",
         [node("n1"), pod("old", {"cpu": 8}, status={"phase": "Running"}, nodeName="n1",
                          meta={"deletionTimestamp": "2026-01-01T00:10:00Z"}), pod("a", {"cpu": 1})],
         {"old": "n1", "a": ""}),
    Dump("a waiting pod that is being deleted is no candidate",
         [node("n1"), pod("del", {"cpu": 8}, meta={"deletionTimestamp": "2026-01-01T00:10:00Z"}),
          pod("new", {"cpu": 8})], {"new": "n1"}),
    Dump("in-place resize: the largest of desired, allocated and actual requests counts",
         [node("n1"), pod("r", {"cpu": 1}, nodeName="n1", status={"phase": "Running", "containerStatuses": [
             {"name": "main", "allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "6"}}}]}),
          pod("a", {"cpu": 3}), pod("b", {"cpu": 2})], {"r": "n1", "a": "", "b": "n1"}),
    Dump("a pod with scheduling gates is not considered",
         [node("n1"), pod("g", {"cpu": 1}, schedulingGates=[{"name": "x"}]), pod("a", {"cpu": 1})],
         {"g": "", "a": "n1"}),
    Dump("the name of a node in the spec binds a pod without the scheduler",
         [node("n1"), node("n2", spec={"unschedulable": True}), pod("a", {"cpu": 1}, nodeName="n2")], {"a": "n2"}),
    Dump("pods of other schedulers that run hold their resources",
         [node("n1"), pod("o", {"cpu": 8}, nodeName="n1", schedulerName="other", status={"phase": "Running"}),
          pod("a", {"cpu": 1})], {"o": "n1", "a": ""}),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_pods_are_where_the_rule_says(dump: Dump, form: str, tmp_path: Path) -> None:
    assert unexpected(dump, form, tmp_path) == {}
