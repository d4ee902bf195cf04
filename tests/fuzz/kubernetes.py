"""Kubernetes objects with changed parts, as YAML and JSON; quantities; layouts of partitioned GPUs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.hardware import mig
from fastsim.kubernetes import quantity
from fastsim.kubernetes.snapshot import Snapshot
from tests.fuzz import mutation, trial
from tests.fuzz.trial import Trial
from tests.objects import cluster_of, node, pod, workload_of

_T4 = {"nvidia.com/gpu.product": "Tesla-T4", "kubernetes.io/hostname": "n1", "zone": "a"}
_TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
_SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
]
_AFFINITY = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}},
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}]},
}  # fmt: skip
_TEMPLATE = {"metadata": {"labels": {"app": "d"}}, "spec": pod("t", {"cpu": "1", "nvidia.com/gpu": 1})["spec"]}
_META = {"creationTimestamp": "2026-01-01T00:00:05Z"}
OBJECTS: list[dict[str, Any]] = [
    node("n1", _T4, {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, {"nvidia.com/gpu": "4"}),
    node(
        "n2",
        {"nvidia.com/gpu.product": "A100-SXM4-80GB", "zone": "b"},
        {},
        {"nvidia.com/mig-1g.10gb": "7", "ephemeral-storage": "5Gi"},
    ),
    node("n3", {"zone": "c"}, {"unschedulable": True}, {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "30"}),
    pod(
        "p1",
        {"cpu": "250m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        {"alibabacloud.com/gpu-index": "0"},
        status={"phase": "Running", "startTime": "2026-01-01T00:00:06Z"},
        meta=_META,
        nodeName="n1",
        priority=5,
    ),
    pod(
        "p2",
        {"cpu": 1, "memory": 1e9, "nvidia.com/gpu": 2},
        meta=_META,
        nodeSelector={"zone": "a"},
        affinity=_AFFINITY,
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        priorityClassName="high",
    ),
    pod(
        "p3",
        {"alibabacloud.com/gpu-milli": 500},
        {"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "1"},
    ),
    pod("p4", {"nvidia.com/mig-1g.10gb": 1}, topologySpreadConstraints=_SPREAD, meta={"labels": {"app": "x"}}),
    pod(
        "p5",
        {"cpu": "1"},
        meta={"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}},
        schedulingGates=[],
        initContainers=[{"name": "i", "resources": {"requests": {"cpu": "2"}}, "restartPolicy": "Always"}],
        overhead={"cpu": "10m"},
        status={
            "phase": "Succeeded",
            "conditions": [],
            "containerStatuses": [
                {"state": {"terminated": {"startedAt": "2026-01-01T00:00:06Z", "finishedAt": "2026-01-01T01:00:06Z"}}}
            ],
        },
    ),
    {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"},
    {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 3, "template": _TEMPLATE}},
    {"kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 2, "completions": 4, "template": _TEMPLATE}},
    {"kind": "DaemonSet", "metadata": {"name": "ds"}, "spec": {"template": _TEMPLATE}},
    {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}},
    {
        "kind": "LimitRange",
        "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    },
    {
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "8", "pods": "50"}},
    },
    {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "s"}},
    {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}}},
    {"kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "kubernetes.io/no-provisioner",
     "volumeBindingMode": "WaitForFirstConsumer",
     "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]},
    pod("p6", {"cpu": 1}, volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "c"}}],
        workloadRef={"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}, preemptionPolicy="Never"),
    {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {
        "podGroups": [{"name": "g", "policy": {"gang": {"minCount": 1}}}]}},
    {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "h"}, "spec": {
        "schedulingPolicy": {"gang": {"minCount": 2}}}},
    pod("p7", {"cpu": 1}, labels={"app": "x"}, schedulingGroup={"podGroupName": "h"}, affinity={"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}]}}),
    {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {
        "minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 1}},
]  # fmt: skip
_AMOUNTS = ("1", "500m", "1.5Gi", "0.1", "2e3", "+4", "-1", "12345678901234567890", "1E", "1e-9", "64Mi", ".5", "5.")
_LAYOUTS = ("1g.10gb", "7*1g.10gb", "3g.40gb+4g.40gb", "2*1g.10gb+1g.20gb;", "1g.10gb+me", "3*2g.20gb;7g.80gb")


def _objects(draw: random.Random) -> Any:
    chosen = draw.sample(OBJECTS, draw.randint(1, 6))
    changed = mutation.tree(chosen, draw)
    return changed if draw.random() < 0.1 else {"apiVersion": "v1", "kind": "List", "items": changed}


def _json(draw: random.Random) -> bytes:
    written = json.dumps(_objects(draw))
    return mutation.raw(mutation.text(written, draw) if draw.random() < 0.1 else written, draw)


def _yaml(draw: random.Random) -> bytes:
    import yaml

    if draw.random() < 0.4:
        written = "---\n".join(yaml.safe_dump(item) for item in draw.sample(OBJECTS, 3))
        return mutation.raw(mutation.text(written, draw), draw)
    return mutation.raw(yaml.safe_dump(_objects(draw), allow_unicode=draw.random() < 0.5), draw)


def prepare(case: Callable[[random.Random], bytes], suffix: str) -> Trial:
    """A trial that reads nodes and pods, and runs them."""
    path = trial.folder("kubernetes") / f"objects{suffix}"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        snapshot = Snapshot.read(path)
        workload = workload_of(snapshot, "trace" if len(data) % 2 else "now")
        trial.require_sound(workload.table())
        cluster = cluster_of(snapshot)
        trial.require_sound(cluster.nodes)
        if len(cluster) <= 1000 and (workload.rows or 0) <= 5000:
            trial.require_sound_run(cluster, workload)

    return trial.of(case, read)


def quantities() -> Trial:
    """Amounts of resources, as texts and numbers."""

    def amount(draw: random.Random) -> Any:
        return draw.choice(mutation.LEAVES) if draw.random() < 0.1 else mutation.text(_AMOUNTS, draw)

    def read(value: Any) -> None:
        for reader in (quantity.quantity, quantity.whole, quantity.milli, quantity.request_mib, quantity.capacity_mib):
            assert isinstance(reader(value, "here"), int | Fraction)

    return trial.of(amount, read)


def layouts() -> Trial:
    """Layouts of partitioned GPUs of a cluster's nodes."""

    def layout(draw: random.Random) -> tuple[str, int, str]:
        return (
            mutation.text(_LAYOUTS, draw),
            draw.choice((0, 1, 2, 8)),
            draw.choice(("A100-80GB", *mig.profiles(), "T4")),
        )

    def read(given: tuple[str, int, str]) -> None:
        text, gpus, model = given
        cluster = Cluster.uniform(nodes=2, gpu=model, gpus=gpus, mig=text)
        trial.require_sound(cluster.nodes)
        trial.require_sound(cluster.offered)

    return trial.of(layout, read)


TARGETS: dict[str, Callable[[], Trial]] = {
    "Kubernetes YAML": partial(prepare, _yaml, ".yaml"),
    "Kubernetes JSON": partial(prepare, _json, ".json"),
    "quantities": quantities,
    "MIG layouts": layouts,
}
"""Trials by name."""
