"""Workloads of Kubernetes are expanded to their pods, once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import PodManifest, pods, without_pods
from fastsim.kubernetes.nodes import Taint
from fastsim.kubernetes.pod_rules.node_affinity import Places
from tests.objects import manifest, pod


def workload(kind: str, name: str = "w", annotations: Any = None, owner: Any = None, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}
    metadata = {"name": name, "namespace": "ns", "annotations": annotations or {}, "ownerReferences": owner}
    return {"kind": kind, "metadata": metadata, "spec": {"template": template, **spec}}


def expanded(*objects: dict[str, Any], places: Places = Places()) -> tuple[list[PodManifest], Counter[str]]:  # noqa: B008
    notices: Counter[str] = Counter()
    return list(pods([manifest(item) for item in objects], places, notices)), notices


def names(*objects: dict[str, Any], places: Places = Places()) -> list[str]:  # noqa: B008
    return [pod.name for pod in expanded(*objects, places=places)[0]]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (workload("Deployment", replicas=3), 3),
        (workload("ReplicaSet"), 1),
        (workload("StatefulSet", replicas=0), 0),
        (workload("Job"), 1),
        (workload("Job", parallelism=4), 4),
        (workload("Job", parallelism=2, completions=5), 5),
        (workload("Job", suspend=True), 0),
    ],
)
def test_how_many_pods(body: dict[str, Any], count: int) -> None:
    assert names(body) == [f"w-{number}" for number in range(count)]


def test_a_cron_job_runs_once() -> None:
    inner = {"spec": {"parallelism": 2, "template": {"spec": {"containers": [], "priority": 3}}}}
    body = {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": inner}}
    pods_made, notices = expanded(body)
    assert [(item.name, item.namespace, item.spec["priority"]) for item in pods_made] == [("c-0", "default", 3),
                                                                                     ("c-1", "default", 3)]  # fmt: skip
    assert sum(notices.values()) == 1
    body["spec"]["suspend"] = True  # type: ignore[index]
    assert names(body) == []


def test_a_daemon_set_has_a_pod_on_every_node_it_may_use() -> None:
    nodes = ({"name": "a"}, {"name": "b", "taint:k=v:NoSchedule": ""},
             {"name": "c", "taint:node.kubernetes.io/unschedulable=:NoSchedule": ""})  # fmt: skip
    taints = (Taint("k", "v", "NoSchedule"), Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    pods_made, _ = expanded(workload("DaemonSet"), places=Places(nodes, taints))
    assert [(item.name, item.node) for item in pods_made] == [("w-a", "a"), ("w-c", "c")]
    assert sum(expanded(workload("DaemonSet"))[1].values()) == 1


def test_annotations_on_the_workload_reach_its_pods() -> None:
    annotations = {"alibabacloud.com/gpu-mem": "1Gi", "kubectl.kubernetes.io/x": "y"}
    pods_made, _ = expanded(workload("ReplicaSet", annotations=annotations))
    assert pods_made[0].annotations == {"alibabacloud.com/gpu-mem": "1Gi"}
    assert (pods_made[0].labels, pods_made[0].owner) == ({"app": "x"}, "ReplicaSet/ns/w")


def test_nothing_is_counted_twice() -> None:
    deployment = workload("Deployment", "d", replicas=2)
    replica_set = workload(
        "ReplicaSet", "r", owner=[{"kind": "Deployment", "name": "d", "controller": True}], replicas=2
    )
    assert names(deployment, replica_set) == ["r-0", "r-1"]
    own = {"namespace": "ns", "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}
    pods_made = pod("r-abc", meta=own)
    assert names(deployment, replica_set, pods_made) == ["r-1", "r-abc"]  # one of two is still to be created
    assert names(deployment, workload("ReplicaSet", "r", replicas=1), pods_made) == ["d-0", "d-1", "r-abc"]
    assert expanded(pods_made)[0][0].owner == "ReplicaSet/ns/r"


def test_a_job_of_volcano_has_the_pods_of_its_tasks() -> None:
    containers = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    tasks = [{"name": "ps", "template": {"spec": containers}},
             {"replicas": 2, "template": {"spec": {"priorityClassName": "high", **containers}}}]  # fmt: skip
    spec = {"tasks": tasks, "queue": "q", "priorityClassName": "low"}
    job: dict[str, Any] = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"},
                           "spec": spec}  # fmt: skip
    pods_made, notices = expanded(job)
    assert [(item.name, item.spec["priorityClassName"], item.together) for item in pods_made] == [
        ("v-ps-0", "low", 3), ("v-default1-0", "high", 3), ("v-default1-1", "high", 3),
    ]  # fmt: skip
    assert pods_made[0].annotations == {"volcano.sh/queue-name": "q"} and not notices
    assert expanded({**job, "spec": {**spec, "minAvailable": 2}})[0][0].together == 2
    assert expanded({**job, "apiVersion": "example.com/v1"}) == ([], {"objects of kind Job of example.com": 1})


@pytest.mark.parametrize("replicas", [-1, "3", True, 1 << 40])
def test_bad_numbers_are_named(replicas: object) -> None:
    with pytest.raises(InputError, match="Deployment w: spec: replicas"):
        names(workload("Deployment", replicas=replicas))


def test_what_stands_there_instead_of_pods() -> None:
    cron = {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"suspend": True, "jobTemplate": {}}}
    asleep = {"kind": "CronJob", "metadata": {"name": "e"}, "spec": {"jobTemplate": {"spec": {"suspend": True}}}}
    bodies = [
        *(workload("Job", f"j{i}", suspend=True) for i in range(3)), cron, asleep, workload("Deployment", replicas=0),
        workload("Job", parallelism=0), workload("DaemonSet"), pod("p", schedulingGates=[{"name": "g"}]),
        {"kind": "PyTorchJob", "metadata": {"name": "t"}},
    ]  # fmt: skip
    assert names(*bodies[:-2]) == []
    assert without_pods([manifest(body) for body in bodies]) == (
        "1 CronJob of suspended Jobs, 1 DaemonSet without nodes for it, 1 Deployment scaled to 0, 1 Job scaled to 0, "
        "1 gated pod, 1 object of kind PyTorchJob, 1 suspended CronJob, 3 suspended Jobs "
        "and no pods that ask for anything"
    )
    foreign = {**workload("Job"), "apiVersion": "batch.example.com/v1"}
    assert without_pods([manifest(foreign)]).startswith("1 object of kind Job of batch.example.com and no pods")
    assert without_pods([manifest(body) for body in bodies[:3]]) == "3 suspended Jobs and no pods that ask for anything"


TEMPLATE: dict[str, Any] = {"metadata": {}, "spec": {"containers": []}}


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("Job", "batch/v1", {"template": TEMPLATE, "suspend": True}),
        ("PyTorchJob", "kubeflow.org/v1", {
            "pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": TEMPLATE}}, "runPolicy": {"suspend": True}}),
        ("RayCluster", "ray.io/v1", {"headGroupSpec": {"template": TEMPLATE}, "suspend": True}),
    ],
)  # fmt: skip
def test_suspended_workloads_wait_in_queues_of_kueue(kind: str, version: str, spec: dict[str, Any]) -> None:
    for labels, queues in (({}, []), ({"kueue.x-k8s.io/queue-name": "research"}, ["research"])):
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "labels": labels}, "spec": spec}
        assert [pod.labels["kueue.x-k8s.io/queue-name"] for pod in expanded(body)[0]] == queues
