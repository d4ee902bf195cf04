"""Documented rules of affinity, spread, ports, volumes and priorities, each on a dump worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.documented.dumps import FORMS, Dump, unexpected
from tests.objects import node, pod

HARD, SOFT = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CPU: dict[str, object] = {"cpu": 1}
RUNS = {"phase": "Running"}


def in_zone(name: str, zone: str, **labels: str) -> dict[str, Any]:
    return node(name, {HOST: name, ZONE: zone, **labels})


ZONES = [in_zone("a1", "a"), in_zone("b1", "b")]


def wanting(name: str, *terms: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A pod with required node affinity: each term is a list of expressions."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return pod(name, CPU, affinity={"nodeAffinity": {HARD: selector}}, **more)


def expression(key: str, op: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": op, **({"values": list(values)} if values else {})}


def near(kind: str, labels: dict[str, str], topology: str = HOST, **more: Any) -> dict[str, Any]:
    """Affinity or anti-affinity to pods with these labels."""
    return {kind: {HARD: [{"topologyKey": topology, "labelSelector": {"matchLabels": labels}, **more}]}}


def spread(skew: int, key: str = ZONE, when: str = "DoNotSchedule", **more: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "w"}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **more}]


def spread_pods(count: int, rule: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod(f"w{n}", CPU, labels={"app": "w"}, topologySpreadConstraints=rule) for n in range(count)]


def port(name: str, number: int = 80, ip: str = "", protocol: str = "TCP", **more: Any) -> dict[str, Any]:
    told = {"hostPort": number, "containerPort": number, "protocol": protocol, **({"hostIP": ip} if ip else {})}
    item = pod(name, **more)
    return {**item, "spec": {**item["spec"], "containers": [{"name": "c", "ports": [told]}]}}


def ports(name: str, *numbers: int) -> dict[str, Any]:
    """A pod with several host ports."""
    item = port(name)
    item["spec"]["containers"][0]["ports"] = [{"hostPort": number, "containerPort": number} for number in numbers]
    return item


def own_network(name: str, number: int) -> dict[str, Any]:
    """A pod on the network of its node, of which it takes a port."""
    item = pod(name, hostNetwork=True)
    return {**item, "spec": {**item["spec"], "containers": [{"name": "c", "ports": [{"containerPort": number}]}]}}


def claiming(name: str, claim: str = "data", **more: Any) -> dict[str, Any]:
    return pod(name, CPU, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **more)


def claim(volume: str = "v", *modes: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": volume, "accessModes": list(modes)}, "status": {"phase": "Bound"}}  # fmt: skip


def volume(zone: str) -> dict[str, Any]:
    term = {"matchExpressions": [expression(ZONE, "In", zone)]}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}  # fmt: skip


def unbound(**spec: Any) -> dict[str, Any]:
    """A claim that no volume is bound to."""
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
            "spec": {"storageClassName": "fast", **spec}, "status": {"phase": "Pending"}}  # fmt: skip


def storage_class(mode: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
            "provisioner": "csi.example.com", "volumeBindingMode": mode, **more}  # fmt: skip


def budget(least: int) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "guarded"}}}}  # fmt: skip


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            **more}  # fmt: skip


WEB = {"app": "web"}
RUNNING_WEB = pod("web", CPU, labels=WEB, status=RUNS, nodeName="a1")
NOMINATED = {"phase": "Pending", "nominatedNodeName": "n2"}
DELETED = {"deletionTimestamp": "2026-01-01T00:01:00Z"}
FULL = pod("low", {"cpu": 8}, status=RUNS, nodeName="n1", priority=0)
DUMPS = [
    Dump("a nodeSelector must be a subset of the labels",
         [*ZONES, pod("p", CPU, nodeSelector={ZONE: "b"}), pod("q", CPU, nodeSelector={ZONE: "b", "x": "y"})],
         {"p": "b1", "q": ""}),
    Dump("one of several nodeSelectorTerms is enough",
         [*ZONES, wanting("p", [expression(ZONE, "In", "x")], [expression(ZONE, "In", "b")])], {"p": "b1"}),
    Dump("all expressions of one term must hold",
         [*ZONES, wanting("p", [expression(ZONE, "In", "a"), expression(HOST, "In", "b1")])], {"p": ""}),
    Dump("In is met by any of its values", [*ZONES, wanting("p", [expression(ZONE, "In", "x", "b")])], {"p": "b1"}),
    Dump("NotIn holds on nodes without the label",
         [in_zone("a1", "a", disk="hdd"), in_zone("b1", "b"), wanting("p", [expression("disk", "NotIn", "hdd")])],
         {"p": "b1"}),
    Dump("Exists and DoesNotExist ask for the label alone",
         [in_zone("a1", "a", gpu="x"), in_zone("b1", "b"), wanting("p", [expression("gpu", "Exists")]),
          wanting("q", [expression("gpu", "DoesNotExist")])], {"p": "a1", "q": "b1"}),
    Dump("Gt and Lt compare whole numbers",
         [in_zone("a1", "a", gen="9"), in_zone("b1", "b", gen="10"), wanting("p", [expression("gen", "Gt", "9")]),
          wanting("q", [expression("gen", "Lt", "10")])], {"p": "b1", "q": "a1"}),
    Dump("a null or empty term matches no node", [*ZONES, wanting("p", [])], {"p": ""}),
    Dump("nodeSelector and nodeAffinity must both hold",
         [*ZONES, wanting("p", [expression(ZONE, "In", "a")], nodeSelector={ZONE: "b"})], {"p": ""}),
    Dump("matchFields knows the name of the node",
         [*ZONES, pod("p", CPU, affinity={"nodeAffinity": {HARD: {"nodeSelectorTerms": [
             {"matchFields": [expression("metadata.name", "In", "b1")]}]}}})], {"p": "b1"}),
    Dump("preferred affinity never keeps a pod from running",
         [in_zone("a1", "a"), pod("p", CPU, affinity={"nodeAffinity": {SOFT: [
             {"weight": 1, "preference": {"matchExpressions": [expression(ZONE, "In", "b")]}}]}})], {"p": "a1"}),
    Dump("anti-affinity keeps away from the node of a running pod that matches",
         [*ZONES, RUNNING_WEB, pod("p", CPU, affinity=near("podAntiAffinity", WEB))], {"web": "a1", "p": "b1"}),
    Dump("anti-affinity is symmetric: a running pod with it keeps matching pods away",
         [*ZONES, pod("web", CPU, status=RUNS, nodeName="a1", affinity=near("podAntiAffinity", {"app": "p"})),
          pod("p", CPU, labels={"app": "p"})], {"web": "a1", "p": "b1"}),
    Dump("anti-affinity over zones keeps away from all nodes of the zone",
         [*ZONES, in_zone("a2", "a"), RUNNING_WEB, pod("p", CPU, affinity=near("podAntiAffinity", WEB, ZONE)),
          pod("q", {"cpu": 8}, affinity=near("podAntiAffinity", WEB, ZONE))], {"web": "a1", "p": "b1", "q": ""}),
    Dump("affinity goes to a domain with a matching pod",
         [*ZONES, in_zone("a2", "a"), RUNNING_WEB, pod("p", CPU, affinity=near("podAffinity", WEB)),
          pod("q", {"cpu": 8}, affinity=near("podAffinity", WEB, ZONE))], {"web": "a1", "p": "a1", "q": "a2"}),
    Dump("affinity without any matching pod keeps a pod waiting",
         [*ZONES, pod("p", CPU, affinity=near("podAffinity", WEB))], {"p": ""}),
    Dump("the first pod of a series with affinity to itself may start anywhere",
         [*ZONES, pod("p", CPU, labels=WEB, affinity=near("podAffinity", WEB))], {"p": {"a1", "b1"}}),
    Dump("a term without namespaces looks at the namespace of the pod alone",
         [*ZONES, {**RUNNING_WEB, "metadata": {**RUNNING_WEB["metadata"], "namespace": "other"}},
          pod("p", {"cpu": 8}, affinity=near("podAntiAffinity", WEB)), pod("q", {"cpu": 7})],
         {"other/web": "a1", "p": "b1", "q": "a1"}),
    Dump("a term names the namespaces that it looks at",
         [*ZONES, {**RUNNING_WEB, "metadata": {**RUNNING_WEB["metadata"], "namespace": "other"}},
          pod("p", CPU, affinity=near("podAntiAffinity", WEB, namespaces=["other"]))],
         {"other/web": "a1", "p": "b1"}),
    Dump("pods with anti-affinity to their own kind are on nodes of their own",
         [*ZONES, *(pod(f"p{n}", CPU, labels=WEB, affinity=near("podAntiAffinity", WEB)) for n in range(3))],
         {"p0": {"a1", "b1"}, "p1": {"a1", "b1"}, "p2": ""}),
    Dump("anti-affinity over zones holds among pods that wait",
         [*ZONES, in_zone("a2", "a"), *(pod(f"p{n}", CPU, labels=WEB, affinity=near("podAntiAffinity", WEB, ZONE))
                                        for n in range(3))],
         {"p0": {"a1", "a2", "b1"}, "p1": {"a1", "a2", "b1"}, "p2": ""}),
    Dump("anti-affinity to another kind that waits holds in both directions",
         [node("n1"), pod("p", CPU, labels={"app": "p"}),
          pod("q", CPU, affinity=near("podAntiAffinity", {"app": "p"}))],
         {"p": "n1", "q": ""}),
    Dump("a pod with affinity follows a pod that has just been placed",
         [*ZONES, pod("web", CPU, labels=WEB, nodeSelector={ZONE: "b"}),
          pod("p", CPU, affinity=near("podAffinity", WEB, ZONE))],
         {"web": "b1", "p": "b1"}),
    Dump("maxSkew is the most by which a domain may exceed the one with the fewest",
         [*ZONES, pod("x", {"cpu": 7}, status=RUNS, nodeName="b1"), *spread_pods(4, spread(1))],
         {"x": "b1", "w0": {"a1", "b1"}, "w1": {"a1", "b1"}, "w2": "a1", "w3": ""}),
    Dump("with fewer domains than minDomains the fewest is 0",
         [*ZONES, *spread_pods(3, spread(1, minDomains=3))], {"w0": {"a1", "b1"}, "w1": {"a1", "b1"}, "w2": ""}),
    Dump("nodes without the topology key are left out",
         [node("n1"), *spread_pods(1, spread(1))], {"w0": ""}),
    Dump("ScheduleAnyway never keeps a pod from running",
         [in_zone("a1", "a"), in_zone("b1", "b", x="y"), *spread_pods(2, spread(1, when="ScheduleAnyway"))],
         {"w0": {"a1", "b1"}, "w1": {"a1", "b1"}}),
    Dump("two pods with one host port are not on one node",
         [node("n1"), port("p"), port("q"), port("r", 81)], {"p": "n1", "q": "", "r": "n1"}),
    Dump("host ports of different addresses or protocols do not conflict",
         [node("n1"), port("p", ip="10.0.0.1"), port("q", ip="10.0.0.2"), port("r", protocol="UDP")],
         {"p": "n1", "q": "n1", "r": "n1"}),
    Dump("a waiting pod with a port on all addresses is not beside one with that port on one of them",
         [node("n1"), port("p", ip="10.0.0.1"), port("q", ip="10.0.0.2"), port("r")], {"p": "n1", "q": "n1", "r": ""}),
    Dump("a waiting pod with several ports is not beside a pod that takes any of them",
         [node("n1"), port("p"), ports("q", 80, 81), port("r", 81), port("s", 82)],
         {"p": "n1", "q": "", "r": "n1", "s": "n1"}),
    Dump("ports of the node's own network and host ports of another pod conflict",
         [node("n1"), ports("p", 80, 90), own_network("q", 90), own_network("r", 91)],
         {"p": "n1", "q": "", "r": "n1"}),
    Dump("a pod with a port and anti-affinity keeps off a node where another workload took the port",
         [*(node(f"n{number}", {HOST: f"n{number}"}) for number in (1, 2)), port("x"),
          *(port(f"w{number}", labels={"app": "w"}, affinity=near("podAntiAffinity", {"app": "w"}))
            for number in (1, 2))],
         {"x": {"n1", "n2"}, "w1": {"n1", "n2"}, "w2": ""}),
    Dump("a host port without an address is taken on all addresses",
         [node("n1"), port("p", ip="10.0.0.1", status=RUNS, nodeName="n1"), port("s")], {"p": "n1", "s": ""}),
    Dump("a pod runs where its bound volume can be reached",
         [*ZONES, volume("b"), claim(), claiming("p")], {"p": "b1"}),
    Dump("a claim that is not there keeps a pod waiting",
         [node("n1"), claim(), volume("b"), claiming("p", "missing")], {"p": ""}),
    Dump("an unbound claim of mode WaitForFirstConsumer lets a pod go where its class has topologies",
         [*ZONES, unbound(), storage_class("WaitForFirstConsumer", allowedTopologies=[
             {"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]), claiming("p")], {"p": "b1"}),
    Dump("an unbound claim of mode Immediate keeps a pod waiting until it is bound",
         [*ZONES, unbound(), storage_class("Immediate"), claiming("p")], {"p": ""}),
    Dump("a claim ReadWriteOncePod is for one pod",
         [node("n1"), {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {}},
          claim("v", "ReadWriteOncePod"), claiming("p", status=RUNS, nodeName="n1"), claiming("q")],
         {"p": "n1", "q": ""}),
    Dump("the node that a pod is nominated for is tried before the others",
         [node("n1"), node("n2"), pod("p", {"cpu": 8}, status=NOMINATED)], {"p": "n2"}),
    Dump("resources of a node are reserved for the pod that is nominated for it",
         [node("n1"), node("n2"), pod("old", {"cpu": 8}, priority=5),
          pod("p", {"cpu": 8}, status={**NOMINATED, "nominatedNodeName": "n1"}, priority=5)], {"old": "n2", "p": "n1"}),
    Dump("a nominated pod goes to another node that has room while its victims end",
         [node("n1"), node("n2"), pod("leaving", {"cpu": 4}, status=RUNS, nodeName="n2", meta=DELETED),
          pod("p", {"cpu": 8}, status=NOMINATED, priority=5)], {"leaving": "n2", "p": "n1"}),
    Dump("what is free beside victims that end is no room for pods of less priority",
         [node("n2"), pod("leaving", {"cpu": 4}, status=RUNS, nodeName="n2", meta=DELETED),
          pod("p", {"cpu": 8}, status=NOMINATED, priority=5), pod("q", {"cpu": 4})],
         {"leaving": "n2", "p": "", "q": ""}),
    Dump("a pod of higher priority may get the node that another is nominated for",
         [node("n2"), pod("p", {"cpu": 8}, status=NOMINATED, priority=5), pod("q", {"cpu": 8}, priority=6)],
         {"p": "", "q": "n2"}),
    Dump("pods of higher priority are ahead in the queue",
         [node("n1"), priority_class("high", 1000), pod("p", {"cpu": 8}),
          pod("q", {"cpu": 8}, priorityClassName="high", priority=1000)], {"p": "", "q": "n1"}),
    Dump("a class that is the global default gives its value to pods without a class",
         [node("n1"), priority_class("usual", 5, globalDefault=True), pod("p", {"cpu": 8}, priority=1),
          {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
           "spec": {"replicas": 1, "template": pod("d", {"cpu": 8})}}], {"p": "", "d-0": "n1"}),
    Dump("preemption makes room for a more important pod",
         [node("n1"), FULL, pod("p", {"cpu": 8}, priority=10)], {"low": "n1", "p": "n1"}, {"preempt": "priority"}),
    Dump("pods of a budget that allows no disruption are preempted last",
         [node("n1"), node("n2"), budget(1),
          pod("kept", {"cpu": 8}, labels={"app": "guarded"}, status=RUNS, nodeName="n1", priority=0),
          pod("free", {"cpu": 8}, status=RUNS, nodeName="n2", priority=0), pod("p", {"cpu": 8}, priority=10)],
         {"kept": "n1", "free": "n2", "p": "n2"}, {"preempt": "priority"}),
    Dump("a pod with preemptionPolicy Never does not make room",
         [node("n1"), FULL, pod("p", {"cpu": 8}, priority=10, preemptionPolicy="Never")], {"low": "n1", "p": ""},
         {"preempt": "priority"}),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_pods_are_where_the_rule_says(dump: Dump, form: str, tmp_path: Path) -> None:
    assert unexpected(dump, form, tmp_path) == {}
