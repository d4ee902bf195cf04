"""Pods that share parts have the rows that each has by itself, whatever the parts are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from fastsim.kubernetes import pods
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, Notices
from fastsim.kubernetes.pods import Facts, Template, Templates
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import node, pod
from tests.strategies import scenarios_per_run

pytestmark = pytest.mark.filterwarnings("ignore")
OF_APP = {"matchLabels": {"app": "a"}}
HERE = {"labelSelector": OF_APP, "topologyKey": "zone"}
NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [HERE]}}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [HERE | {"topologyKey": "kubernetes.io/hostname"}]
    }
}
WISH = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": HERE}]}}
IN_ZONE = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0"]}]}]}}}  # fmt: skip
EVEN = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": OF_APP,
        "matchLabelKeys": ["hash"]}  # fmt: skip
IN_METADATA = ("labels", "annotations", "namespace")
PARTS: dict[str, tuple[Any, ...]] = {
    "namespace": ("ns", "other"),
    "labels": (
        {}, {"app": "a"}, {"app": "a", "hash": "1"}, {"app": "a", "hash": "2"},
        {"app": "b", "kai.scheduler/queue": "q"}, {"kai.scheduler/queue": "p"}, {"runai-gpu-group": "u"},
        {"runai-gpu-group/1": "u", "runai-gpu-group/2": "v"}, {"scheduling.x-k8s.io/pod-group": "g"},
        {"scheduling.x-k8s.io/pod-group": "h"}, {"GPU_MEM_REQ": "2000"},
    ),
    "annotations": (
        {}, {"other": "1"}, {"other": "2"}, {"scheduling.k8s.io/group-name": "n"},
        {"scheduling.k8s.io/group-name": "m"}, {"volcano.sh/queue-name": "v"}, {"volcano.sh/queue-name": "w"},
        {"nvidia.com/use-gputype": "T4"}, {"nvidia.com/use-gputype": "A100"}, {"gpu-fraction": "0.5"},
        {"alibabacloud.com/gpu-index": "0"},
    ),
    "containers": tuple(
        [{"name": "c", "image": image, "ports": ports, "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": gpus}}}]
        for image, ports, gpus in (
            ("x", [], "0"), ("y", [], "0"), ("y", [], "1"), ("x", [{"hostPort": 80}], "1"),
            ("x", [{"containerPort": 8}], "0"),
        )
    ),
    "nodeName": (None, "n0", "n1"),
    "affinity": (None, {}, NEAR, APART, WISH, IN_ZONE),
    "tolerations": (None, [], [{"key": "k", "operator": "Exists"}]),
    "nodeSelector": (None, {"zone": "z0"}, {"zone": "z1"}),
    "priority": (None, 0, 7, 1_000_000),
    "priorityClassName": (None, "high", "low", "unknown"),
    "preemptionPolicy": (None, "Never"),
    "schedulingGroup": (None, {"podGroupName": "g"}, {"podGroupName": "h"}),
    "topologySpreadConstraints": (None, [EVEN], [EVEN | {"whenUnsatisfiable": "ScheduleAnyway"}]),
    "hostNetwork": (None, True),
    "overhead": (None, {"cpu": "100m"}),
    "volumes": (None, [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}], [{"name": "w", "emptyDir": {}}]),
    "unheardOf": (None, 1),
}  # fmt: skip
"""Parts of pods, each one object in all pods that have it."""
AROUND: tuple[dict[str, Any], ...] = (
    {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9, "preemptionPolicy": "Never"},
    {"kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1},
    {"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "ns"},
     "spec": {"maxUnavailable": 0, "selector": OF_APP}},
    {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "ns"}, "spec": {"volumeName": "pv"}},
)  # fmt: skip
BOARDS = {"hami.io/node-nvidia-register": "GPU-1,10,15360,100,NVIDIA-Tesla T4,0,true:"}


def pod_of(name: str, parts: dict[str, Any]) -> dict[str, Any]:
    """A pod of these parts; it runs if it has a node."""
    spec = {key: part for key, part in parts.items() if part is not None and key not in IN_METADATA}
    made = pod(name, meta={key: parts[key] for key in IN_METADATA}, **spec)
    return made | {"status": {"phase": "Running"} if parts["nodeName"] else {}}


class Unshared(Templates):
    """Templates that are made for every pod."""

    def of(self, pod: PodManifest, facts: Facts, notices: Counter[str]) -> Template:
        """The template of one pod."""
        parts = pods._spec_parts(pod, facts)
        notices.update(parts.notices)
        return pods._template_of(pod, parts, pods._rules(pod, parts, facts), facts, notices)


@st.composite
def dumps(draw: st.DrawFn) -> list[Manifest]:
    """A few nodes, and pods of a few parts."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    objects: list[dict[str, Any]] = [*rng.sample(AROUND, rng.randint(0, len(AROUND)))]
    for number in range(2):
        made = node(f"n{number}", {"zone": f"z{number}"}, {"taints": [{"key": "k", "effect": "NoSchedule"}]},
                    {"nvidia.com/gpu": "4"})  # fmt: skip
        made["metadata"]["annotations"] = BOARDS if rng.random() < 0.5 else {}
        made["status"]["images"] = [{"names": ["x"], "sizeBytes": 10**9}] if rng.random() < 0.5 else []
        objects.append(made)
    base = {name: rng.choice(values) if rng.random() < 0.3 else values[0] for name, values in PARTS.items()}
    varied = {name: PARTS[name] for name in rng.sample(sorted(PARTS), rng.randint(1, 2))}
    for number in range(rng.randint(4, 16)):
        chosen = base | {name: rng.choice(values) for name, values in varied.items()}
        objects.append(pod_of(f"p{number}", chosen))
    return [Manifest(f"dump: item {number}", item) for number, item in enumerate(objects)]


def read(objects: list[Manifest]) -> tuple[list[dict[str, Any]], Notices]:
    snapshot = Snapshot(objects)
    rows = snapshot.rows_of(snapshot.objects)
    return [{name: value for name, value in row.items() if name != "peer"} for row in rows], snapshot.notices


@settings(max_examples=scenarios_per_run(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(dumps())
def test_rows_of_shared_parts_are_those_of_each_pod(objects: list[Manifest]) -> None:
    shared = read(objects)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pods, "Templates", Unshared)
        alone = read(objects)
    assert shared == alone
    assert shared[1].examples == alone[1].examples
