"""Arrival order of the pods of a running cluster: running pods first, on their nodes, then waiting pods.

All of them arrive at second 0. Of running pods those whose devices are known come first. The others are sorted by
start, so that a policy chooses their devices in the order of the cluster. Waiting pods are sorted as kube-scheduler
does: highest priority first, then the oldest, then by name. So neither the order of objects nor that of files matters.
Finished pods are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import counted_about
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.pod_rules.priorities import Priorities
from fastsim.kubernetes.pods import PodTimes, unix_s

NOW = PodTimes(created=0.0)
"""Times of a pod that is there when the run begins."""
LACKING = {"cpu_milli": "CPU", "memory_mib": "memory", "gpu_milli": "GPU", "pods": "slots for pods"}
"""Words for resources that a node can lack; a further resource keeps its own name."""

Row = dict[str, Any]
Amounts = dict[str, int]


def is_over(pod: PodManifest) -> bool:
    """Whether a pod has ended."""
    return pod.status.get("phase") in OVER


def in_line(pods: Iterable[PodManifest], priorities: Priorities) -> Iterator[PodManifest]:
    """Pods on nodes, then pods that wait in their order; pods that are over, gated or deleted have no place."""
    waiting = []
    for pod in pods:
        if pod.node and not is_over(pod):
            yield pod
        elif not (is_over(pod) or pod.terminating or pod.spec.get("schedulingGates")):
            created = unix_s(pod.created, f"{pod.where}: creation time")
            waiting.append((-(priorities.of(pod, Counter()) or 0), created or 0.0, f"{pod.namespace}/{pod.name}", pod))
    for *_, pod in sorted(waiting, key=lambda entry: entry[:3]):
        yield pod


def current_rows(rows: Iterable[Row], nodes: Sequence[Mapping[str, Any]], notices: Counter[str]) -> list[Row]:
    """Rows of running pods, then of waiting ones; running pods beyond the capacity of their nodes are left out.

    Without ``nodes`` every running pod is kept.
    """
    present = [row for row in rows if row["orig_status"] not in OVER]
    running = sorted((row for row in present if row["bound_node"] is not None), key=running_key)
    waiting = sorted((row for row in present if row["bound_node"] is None), key=queue_key)
    held = fitting(running, nodes, notices) if nodes else running
    for row in (rows := [*held, *waiting]):
        row["times"] = NOW
    return rows


def fitting(running: Sequence[Row], nodes: Sequence[Mapping[str, Any]], notices: Counter[str]) -> list[Row]:
    """The running pods that fit on their nodes, taken oldest first; the others are counted in `notices`."""
    left = {node["name"]: offered(node) for node in nodes}
    omitted: set[str] = set()
    for row in sorted(running, key=age):
        node, request = row["bound_node"], requested(row)
        counted_about(notices, row["native_id"])
        if node not in left:
            omitted.add(row["native_id"])
            notices["pods: left out, because they run on nodes that are not there"] += 1
            continue
        short = [name for name, amount in request.items() if amount > left[node].get(name, 0)]
        if short:
            omitted.add(row["native_id"])
            words = " and ".join(LACKING.get(name, name) for name in short)
            notices[f"pods: left out, because the nodes where they run have too little {words} for all of them"] += 1
            continue
        for name, amount in request.items():
            left[node][name] -= amount
    counted_about(notices, "")
    return [row for row in running if row["native_id"] not in omitted]


def offered(node: Mapping[str, Any]) -> Amounts:
    """Capacity of a node by resource."""
    amounts = {"cpu_milli": node["cpu_milli"], "memory_mib": node["memory_mib"]}
    slots = node["max_pods"]
    if node["mig"] is None:
        amounts["gpu_milli"] = 1000 * node["num_gpu"]
    return amounts | dict(node["extra_resources"] or ()) | {"pods": 1 << 40 if slots is None else slots}


def requested(row: Row) -> Amounts:
    """Request of a pod by resource, without instances of partitioned GPUs, which the engine checks."""
    amounts = {"cpu_milli": row["cpu_milli"], "memory_mib": row["memory_mib"], "pods": 1}
    if row["num_gpu"]:
        amounts["gpu_milli"] = row["num_gpu"] * row["gpu_milli"]
    further = {name: amount for name, amount in row["extra_resources"] or () if not name.startswith("mig-")}
    return {name: amount for name, amount in (amounts | further).items() if amount}


def running_key(row: Row) -> tuple[bool, float, str]:
    """Sort key of running pods: known devices first, then age."""
    return row["bound_gpus"] is None, *age(row)


def age(row: Row) -> tuple[float, str]:
    """Sort key of running pods: start, or creation if that is unknown."""
    times = row["times"]
    began = times.started if times.started is not None else times.created
    return (0.0 if began is None else began), row["native_id"]


def queue_key(row: Row) -> tuple[int, float, str]:
    """Sort key of waiting pods."""
    created = row["times"].created
    return -(row["priority"] or 0), (0.0 if created is None else created), row["native_id"]
