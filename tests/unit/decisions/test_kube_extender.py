"""A policy behind a scheduler: the protocol's own shapes, and the choices that a run would make."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastsim.decisions.kube_extender import UNKNOWN, Extender, candidates
from fastsim.decisions.live_cluster import LiveSnapshot
from fastsim.errors import InputError
from fastsim.foundation.http.replies import Request
from fastsim.reports.guides import guide
from tests.objects import (
    allocation,
    claim,
    claiming,
    cluster_of,
    device_class,
    gpu,
    request,
    resource_slice,
    template,
    workload_of,
)


def node(name: str, gpus: int = 2, **labels: str) -> dict[str, Any]:
    """A node with devices."""
    told = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {"kind": "Node", "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "Tesla-T4", **labels}},
            "spec": {}, "status": {"allocatable": told}}  # fmt: skip


def pod(name: str, gpus: int = 1, on: str | None = None, milli: int = 0, **spec: Any) -> dict[str, Any]:
    """A pod that requests devices, or part of one; `on` a node it is bound to."""
    requests = {"cpu": "1", "memory": "1Gi", **({} if milli else {"nvidia.com/gpu": str(gpus)})}
    notes = {"alibabacloud.com/gpu-milli": str(milli), "alibabacloud.com/gpu-count": "1"} if milli else {}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "ns", "annotations": notes},
            "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], "nodeName": on, **spec},
            "status": {"phase": "Running" if on else "Pending"}}  # fmt: skip


def extender(tmp_path: Path, *objects: dict[str, Any], policy: str = "best_fit") -> Extender:
    """A policy on a cluster of these objects."""
    (tmp_path / "live.json").write_text(json.dumps({"kind": "List", "items": objects}))
    return Extender(LiveSnapshot(str(tmp_path / "live.json"), refresh_s=0), policy)


THREE = (
    node("n1"),
    node("n2", zone="b"),
    node("n3", gpus=0),
    pod("held", 1, "n1"),
    pod("over", 2, "n2") | {"status": {"phase": "Failed"}},
)


def test_names_in_names_out(tmp_path: Path) -> None:
    """With nodeCacheCapable, requests and answers have names only."""
    service = extender(tmp_path, *THREE)
    answer = service.filter({"Pod": pod("p", 2), "Nodes": None, "NodeNames": ["n1", "n2", "n3", "n9"]})
    assert answer == {
        "Nodes": None,
        "NodeNames": ["n2"],
        "FailedNodes": {
            "n1": "Insufficient nvidia.com/gpu", "n3": "Insufficient nvidia.com/gpu", "n9": UNKNOWN,
        },
        "FailedAndUnresolvableNodes": {"n3": "Insufficient nvidia.com/gpu", "n9": UNKNOWN},
        "Error": "",
    }  # fmt: skip


def test_objects_in_objects_out(tmp_path: Path) -> None:
    """Without it there are whole objects, which come back as they were."""
    service = extender(tmp_path, *THREE)
    items = [{"metadata": {"name": "n1", "creationTimestamp": None}, "spec": {}}, {"metadata": {"name": "n3"}}]
    answer = service.filter({"Pod": pod("p"), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})
    assert answer["Nodes"] == {"metadata": {}, "items": items[:1]} and answer["NodeNames"] is None


def test_case_of_fields_says_nothing(tmp_path: Path) -> None:
    service = extender(tmp_path, *THREE)
    assert service.filter({"pod": pod("p"), "nodenames": ["n1"]})["NodeNames"] == ["n1"]


def test_points(tmp_path: Path) -> None:
    service = extender(tmp_path, *THREE)
    answer = service.prioritize({"Pod": pod("p"), "NodeNames": ["n2", "n1", "n3", "n9"]})
    assert answer == [{"Host": "n2", "Score": 0}, {"Host": "n1", "Score": 10}, {"Host": "n3", "Score": 0},
                    {"Host": "n9", "Score": 0}]  # fmt: skip
    equal = service.prioritize({"Pod": pod("p"), "NodeNames": ["n2"]})
    assert equal == [{"Host": "n2", "Score": 10}]


def test_ties_are_the_policy_s(tmp_path: Path) -> None:
    service = extender(tmp_path, *(node(f"n{i}") for i in range(4)))
    answer = service.prioritize({"Pod": pod("p"), "NodeNames": ["n3", "n2", "n1"]})
    assert {item["Host"]: item["Score"] for item in answer} == {"n1": 10, "n2": 9, "n3": 9}


@pytest.mark.parametrize("policy", ["fgd", "best_fit", "pwr", "0.9*fgd + 0.1*pwr", "gpu_packing", "random"])
def test_the_best_node_is_the_one_that_a_run_takes(tmp_path: Path, policy: str) -> None:
    """Pod by pod through the extender, the cluster fills as in one run of the engine."""
    from fastsim.kubernetes.objects import Manifest
    from fastsim.kubernetes.snapshot import Snapshot
    from fastsim.simulation.simulate import simulate
    from fastsim.workload.typical_pods import TypicalPods

    nodes = [node(f"n{i}", gpus=2 + i % 3) for i in range(6)]
    pods = [pod(f"p{i}", 1 + i % 2, milli=(0, 300, 500, 0, 700)[i % 5]) for i in range(14)]
    for number, item in enumerate(pods):
        item["metadata"]["creationTimestamp"] = f"2024-01-01T00:00:{number:02}Z"
    whole = Snapshot([Manifest("m", item) for item in (*nodes, *pods)])
    workload = workload_of(whole)
    result = simulate(cluster_of(whole), workload, policy, typical=TypicalPods.of(workload))
    expected = [f"n{place}" for place in result.placements.sort("pod_id")["node_id"].to_list()]
    if policy == "random":
        return  # draws depend on how many went before; that the answer is valid is tested below
    bound: list[dict[str, Any]] = []
    found = []
    for item in pods:
        service = extender(tmp_path, *nodes, *bound, policy=policy)
        service.typical = workload
        names = service.filter({"Pod": item, "NodeNames": [one["metadata"]["name"] for one in nodes]})["NodeNames"]
        best = max(service.prioritize({"Pod": item, "NodeNames": names}), key=lambda one: one["Score"])
        assert best["Score"] == 10
        found.append(best["Host"])
        bound.append({**item, "spec": {**item["spec"], "nodeName": best["Host"]}, "status": {"phase": "Running"}})
    assert found == expected


def test_selectors_taints_and_affinity_are_kept(tmp_path: Path) -> None:
    tainted = node("n4")
    tainted["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    service = extender(tmp_path, *THREE, tainted)
    names = ["n1", "n2", "n4"]
    assert service.filter({"Pod": pod("p"), "NodeNames": names})["NodeNames"] == ["n1", "n2"]
    found = service.filter({"Pod": pod("p", nodeSelector={"zone": "b"}), "NodeNames": names})
    assert found["NodeNames"] == ["n2"] and set(found["FailedAndUnresolvableNodes"]) == {"n1", "n4"}
    told = [{"key": "team", "operator": "Exists"}]
    assert service.filter({"Pod": pod("p", tolerations=told), "NodeNames": names})["NodeNames"] == names


def test_a_pod_that_is_bound_meanwhile_does_not_count_twice(tmp_path: Path) -> None:
    service = extender(tmp_path, node("n1"), pod("p", 2, "n1"))
    assert service.filter({"Pod": pod("p", 2), "NodeNames": ["n1"]})["NodeNames"] == ["n1"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, "extender: found no nodes"),
        ({"NodeNames": ["n1"]}, "extender: Pod: found None, expected a pod"),
        ({"NodeNames": ["n1"], "Pod": pod("p", "1GB")}, "found '1GB'"),  # type: ignore[arg-type]
        ({"NodeNames": ["n1"], "Pod": pod("p", schedulingGates=[{"name": "g"}])}, "scheduling gates hold"),
        ({"Nodes": {"items": [1]}, "Pod": pod("p")}, "an item that is no node"),
        ({"NodeNames": [1], "Pod": pod("p")}, "a list of names"),
        ({"NodeNames": ["n1"], "Pod": {"spec": []}}, "a mapping of names to values"),
    ],
)
def test_errors_are_told_as_the_scheduler_expects(tmp_path: Path, arguments: dict[str, Any], found: str) -> None:
    service = extender(tmp_path, *THREE)
    answer = service.filter(arguments)
    assert found in answer["Error"] and answer["FailedNodes"] == {} and answer["NodeNames"] is None
    with pytest.raises(InputError):
        service.prioritize(arguments)


def test_paths(tmp_path: Path) -> None:
    service = extender(tmp_path, *THREE, pod("huge", 9, "n1"))
    found = service.routes()
    body = json.dumps({"Pod": pod("p"), "NodeNames": ["n1", "n2"]}).encode()
    assert json.loads(found["POST", "/filter"](Request({}, body=body)).body)["NodeNames"] == ["n1", "n2"]
    assert len(json.loads(found["POST", "/prioritize"](Request({}, body=body)).body)) == 2
    assert found["GET", "/healthz"](Request({})).body == b"ok: 3 nodes with 2 pods, 1 more than fit\n"
    for bad in (b"no JSON", b"[]", b"[" * 100_000):
        with pytest.raises(InputError, match="arguments of an extender as JSON"):
            found["POST", "/filter"](Request({}, body=bad))


def test_probes_and_metrics(tmp_path: Path) -> None:
    service = extender(tmp_path, *THREE)
    found = service.routes()
    assert [found["GET", path](Request({})).body for path in ("/livez", "/readyz")] == [b"ok\n"] * 2
    good: dict[str, Any] = {"Pod": pod("p"), "NodeNames": ["n1", "n2"]}
    bad = good | {"Pod": {"spec": []}}
    for arguments in (good, good, bad):
        found["POST", "/filter"](Request({}, body=json.dumps(arguments).encode()))
    text = found["GET", "/metrics"](Request({})).body.decode()
    assert 'fastsim_extender_requests_total{verb="filter",result="ok"} 2\n' in text
    assert 'fastsim_extender_requests_total{verb="filter",result="error"} 1\n' in text
    assert "fastsim_extender_nodes 3\n" in text and "fastsim_extender_bound_pods 1\n" in text
    age_s = float(text.partition("\nfastsim_extender_state_age_seconds ")[2].partition("\n")[0])
    assert 0 <= age_s < 60


def test_a_service_without_a_cluster_lives_and_is_not_ready(tmp_path: Path) -> None:
    service = Extender(LiveSnapshot(str(tmp_path / "none.json"), refresh_s=0), "best_fit")
    found = service.routes()
    assert found["GET", "/livez"](Request({})).status == 200 and service.live.age_s == math.inf
    ready = found["GET", "/readyz"](Request({}))
    assert ready.status == 503 and "none.json" in json.loads(ready.body)["error"]
    text = found["GET", "/metrics"](Request({})).body.decode()
    assert "fastsim_extender_state_age_seconds +Inf\n" in text and "fastsim_extender_nodes" not in text


def test_policies_for_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected one that places pods"):
        extender(tmp_path, *THREE, policy="max_min_fairness")
    assert candidates({"NodeNames": []}) == ([], [])


def test_a_taint_and_a_label_are_named(tmp_path: Path) -> None:
    tainted = node("n2")
    tainted["spec"] = {"taints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]}
    service = extender(tmp_path, node("n1"), tainted, node("n3", zone="b"))
    answer = service.filter({"Pod": pod("p", nodeSelector={"zone": "b"}), "NodeNames": ["n1", "n2", "n3"]})
    assert answer["NodeNames"] == ["n3"] and answer["FailedNodes"] == {
        "n1": "node(s) didn't match Pod's node affinity/selector", "n2": "node(s) had untolerated taint(s)",
    }  # fmt: skip


APART: dict[str, Any] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}]}}  # fmt: skip
TOGETHER = {"podAffinity": APART["podAntiAffinity"]}
SPREAD: list[dict[str, Any]] = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                                 "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
CPU, SLOTS, GPU = "Insufficient cpu", "Too many pods", "Insufficient nvidia.com/gpu"
CORDONED, TAINTED, UNLIKE, LONELY, MISSING = (
    "node(s) were unschedulable", "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector", "node(s) didn't match pod affinity rules",
    'persistentvolumeclaim "c" not found',
)  # fmt: skip
UNEVEN = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{UNEVEN} (missing required label)"
NOT_HELPED = {CORDONED, TAINTED, UNLIKE, LONELY, MISSING, UNLABELLED}
"""Texts about nodes that preemption does not help."""
VOLUME = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
OTHER_CLAIM = {"kind": "PersistentVolumeClaim", "metadata": {"name": "d", "namespace": "ns"}, "spec": {}}


def web(on: str, **spec: Any) -> dict[str, Any]:
    """A pod that runs and has a label."""
    made = pod("w", 0, on, **spec)
    made["metadata"]["labels"] = {"app": "web"}
    return made


def sized(cpu: str, gpus: int, label: str = "", **spec: Any) -> dict[str, Any]:
    """A pod that requests so many CPUs and devices, and may have a label."""
    made = pod("asked", gpus, **spec)
    made["metadata"]["labels"] = {"app": label}
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return made


def ported(name: str, on: str | None = None) -> dict[str, Any]:
    """A pod with a port of its node."""
    made = pod(name, 0, on)
    made["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    return made


def cordoned(name: str) -> dict[str, Any]:
    """A node that takes no pods."""
    made = node(name)
    made["spec"] = {
        "unschedulable": True,
        "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    }
    return made


def tainted(name: str, effect: str = "NoSchedule") -> dict[str, Any]:
    """A node for some pods alone."""
    made = node(name)
    made["spec"] = {"taints": [{"key": "team", "value": "a", "effect": effect}]}
    return made


def narrow(name: str) -> dict[str, Any]:
    """A node with room for one pod."""
    made = node(name)
    made["status"]["allocatable"] |= {"pods": "1"}
    return made


@pytest.mark.parametrize(
    ("there", "asked", "text"),
    [
        ([cordoned("n")], sized("1", 1), CORDONED),
        ([tainted("n")], sized("1", 1), TAINTED),
        ([tainted("n", "NoExecute")], sized("1", 1), TAINTED),
        ([node("n", zone="a")], sized("1", 1, nodeSelector={"zone": "b"}), UNLIKE),
        ([node("n"), ported("held", "n")], ported("p"), "node(s) didn't have free ports for the requested pod ports"),
        ([node("n"), pod("held", 2, "n")], sized("1", 1), GPU),
        ([node("n"), pod("held", 2, "n")], sized("8", 2), f"{GPU}, {CPU}"),
        ([narrow("n"), pod("held", 0, "n")], sized("1", 1), SLOTS),
        ([node("n", zone="a"), web("n")], sized("1", 1, affinity=APART),
         "node(s) didn't match pod anti-affinity rules"),
        ([node("n", zone="a"), web("n", affinity=APART)], sized("1", 1, "web"),
         "node(s) didn't satisfy existing pods anti-affinity rules"),
        ([node("n", zone="a"), node("m", zone="b"), web("m")], sized("1", 1, affinity=TOGETHER), LONELY),
        ([node("n", zone="a"), node("m", zone="b"), web("n")], sized("1", 1, "web", topologySpreadConstraints=SPREAD),
         UNEVEN),
        ([node("n"), node("m", zone="b")], sized("1", 1, topologySpreadConstraints=SPREAD), UNLABELLED),
        ([node("n"), OTHER_CLAIM], sized("1", 1, volumes=VOLUME), MISSING),
    ],
)  # fmt: skip
def test_a_node_that_is_left_out_has_kube_scheduler_s_words(
    tmp_path: Path, there: list[dict[str, Any]], asked: dict[str, Any], text: str
) -> None:
    answer = extender(tmp_path, *there).filter({"Pod": asked, "NodeNames": ["n"]})
    assert answer["FailedNodes"] == {"n": text} and answer["Error"] == ""
    assert answer["FailedAndUnresolvableNodes"] == ({"n": text} if text in NOT_HELPED else {})


@pytest.mark.parametrize(
    ("asked", "text", "lasting"),
    [
        (sized("8", 2), f"{GPU}, {CPU}", False),
        (sized("9", 1), f"{GPU}, {CPU}", True),
        (sized("1", 3), GPU, True),
    ],
)
def test_preemption_helps_where_the_whole_node_has_what_is_asked_for(
    tmp_path: Path, asked: dict[str, Any], text: str, lasting: bool
) -> None:
    """The same words have both codes in kube-scheduler: by what the node has without its pods."""
    answer = extender(tmp_path, node("n"), pod("held", 2, "n")).filter({"Pod": asked, "NodeNames": ["n"]})
    assert answer["FailedNodes"] == {"n": text} and bool(answer["FailedAndUnresolvableNodes"]) == lasting


def test_a_node_has_all_its_words_though_another_one_is_left(tmp_path: Path) -> None:
    service = extender(tmp_path, node("n"), node("m"), pod("held", 2, "n"))
    answer = service.filter({"Pod": sized("8", 1), "NodeNames": ["n", "m"]})
    assert answer["NodeNames"] == ["m"] and answer["FailedNodes"] == {"n": f"{GPU}, {CPU}"}


def test_claims_of_the_pod_asked_about(tmp_path: Path) -> None:
    """Claims ask for the devices that are free on each candidate; the pod may not be known yet."""
    held = claim("c", request(), status=allocation(("n1", "g0"), users=("r",)))
    running = claiming("r", claims=("c",), nodeName="n1", status={"phase": "Running"})
    nodes = [node(name, 0) for name in ("n1", "n2", "n3")]
    slices = [resource_slice("n1", gpu("g0")), resource_slice("n2", gpu("g0"), gpu("g1"))]
    listed = [template("one", request()), template("two", request(count=2)), device_class()]
    service = extender(tmp_path, *nodes, *slices, *listed, held, running)
    names = ["n1", "n2", "n3"]
    answer = service.filter({"Pod": claiming("p", "two"), "NodeNames": names})
    assert answer["NodeNames"] == ["n2"] and answer["FailedNodes"]["n1"] == "cannot allocate all claims"
    assert service.filter({"Pod": claiming("p", "one"), "NodeNames": names})["NodeNames"] == ["n2"]
    held = service.filter({"Pod": claiming("q", claims=("c",)), "NodeNames": names})
    assert held["NodeNames"] == ["n1"] and held["FailedNodes"]["n2"] == ("resourceclaim not available on the node")
    plain = service.filter({"Pod": claiming("q"), "NodeNames": names})
    assert plain["NodeNames"] == names


def test_a_node_that_reports_no_allocatable_amounts_hosts_nothing(tmp_path: Path) -> None:
    """ "Allocatable … is the amount of compute resources that are available for Pods": a new node may report none."""
    new = {"kind": "Node", "metadata": {"name": "new"}, "spec": {}, "status": {}}
    answer = extender(tmp_path, node("n1"), new).filter({"Pod": pod("p"), "NodeNames": ["n1", "new"]})
    assert (answer["NodeNames"], list(answer["FailedNodes"])) == (["n1"], ["new"])
    assert {"Insufficient cpu", "Too many pods"} <= set(answer["FailedNodes"]["new"].split(", "))


def test_a_reserved_device_counts_once_for_a_pod_asked_about(tmp_path: Path) -> None:
    """The pod that reserves a device for shares, and the shares, hold one device of two; a third share is too large."""
    group: dict[str, Any] = {"labels": {"runai-gpu-group": "g"}}
    held = pod("gpu-reservation-g", 1, "n1")
    held["metadata"] |= {**group, "namespace": "kai-resource-reservation"}
    shares = [pod(name, 0, "n1") for name in "ab"]
    for one in shares:
        one["metadata"] |= {**group, "annotations": {"gpu-fraction": "0.5"}}
    service = extender(tmp_path, node("n1"), held, *shares)
    for gpus, names in ((1, ["n1"]), (2, [])):
        assert service.filter({"Pod": pod("p", gpus), "NodeNames": ["n1"]})["NodeNames"] == names


EXTENDER_FIELDS = {
    "urlPrefix": str, "filterVerb": str, "preemptVerb": str, "prioritizeVerb": str, "weight": int, "bindVerb": str,
    "enableHTTPS": bool, "tlsConfig": dict, "httpTimeout": str, "nodeCacheCapable": bool, "managedResources": list,
    "ignorable": bool,
}  # fmt: skip
"""Fields of an extender in KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), and their types."""


def test_the_configuration_in_the_guide_is_one_of_kube_scheduler(tmp_path: Path) -> None:
    """Every field is one that the API has, its verbs are answered, and scheduling goes on where no answer comes."""
    block = guide("policies").split("```yaml\nextenders:")[1].split("```")[0]
    [entry] = yaml.safe_load(f"extenders:{block}")["extenders"]
    assert {name: type(value) for name, value in entry.items()}.items() <= EXTENDER_FIELDS.items()
    assert entry["ignorable"] is True and entry["nodeCacheCapable"] is True
    assert re.fullmatch(r"[0-9]+(ms|s|m)", entry["httpTimeout"])
    assert entry["managedResources"] == [{"name": "nvidia.com/gpu", "ignoredByScheduler": False}]
    answered = extender(tmp_path, *THREE).routes()
    assert {("POST", f"/{entry[verb]}") for verb in ("filterVerb", "prioritizeVerb")} <= set(answered)
