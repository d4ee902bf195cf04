"""Pods of a cluster as it stands: those that run hold their places first, those that wait are asked after them.

All of them arrive at second 0. Pods that run come in the order in which they started, so that devices of which nothing
tells are chosen as they were; pods that wait come in the order in which kube-scheduler takes them: the most important
first, then the oldest, then by name. So neither the order of objects nor that of files matters. Who is over is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.pods import PodTimes

NOW = PodTimes(created=0.0)
"""Times of a pod that is there when the run begins."""
LACKING = {"cpu_milli": "CPU", "memory_mib": "memory", "gpu_milli": "GPU", "pods": "slots for pods"}
"""What a node can have too little of, in words; a further resource goes by its own name."""

Row = dict[str, Any]
Amounts = dict[str, int]


def is_over(pod: PodManifest) -> bool:
    """Whether a pod holds nothing any more."""
    return pod.status.get("phase") in OVER


def standing(rows: Iterable[Row], nodes: Sequence[Mapping[str, Any]], notices: Counter[str]) -> list[Row]:
    """Pods that hold places on these rows of nodes, then pods that wait; who has no room where it runs is left out.

    Without ``nodes`` all are taken to have room.
    """
    there = [row for row in rows if row["orig_status"] not in OVER]
    running = sorted((row for row in there if row["bound_node"] is not None), key=age)
    waiting = sorted((row for row in there if row["bound_node"] is None), key=_turn)
    held = fitting(running, nodes, notices) if nodes else running
    return [{**row, "times": NOW} for row in (*held, *waiting)]


def fitting(running: Sequence[Row], nodes: Sequence[Mapping[str, Any]], notices: Counter[str]) -> list[Row]:
    """Those of the running pods that have room on their nodes, the oldest first; the others are counted."""
    left = {node["name"]: offered(node) for node in nodes}
    without: set[str] = set()
    for row in sorted(running, key=age):
        node, asked = row["bound_node"], requested(row)
        if node not in left:
            without.add(row["native_id"])
            notices["pods: left out, because they run on nodes that are not there"] += 1
            continue
        short = [name for name, amount in asked.items() if amount > left[node].get(name, 0)]
        if short:
            without.add(row["native_id"])
            words = " and ".join(LACKING.get(name, name) for name in short)
            notices[f"pods: left out, because the nodes where they run have too little {words} for all of them"] += 1
            continue
        for name, amount in asked.items():
            left[node][name] -= amount
    return [row for row in running if row["native_id"] not in without]


def offered(node: Mapping[str, Any]) -> Amounts:
    """What a node offers, by name."""
    amounts = {"cpu_milli": node["cpu_milli"], "memory_mib": node["memory_mib"]}
    slots = node["max_pods"]
    if node["mig"] is None:
        amounts["gpu_milli"] = 1000 * node["num_gpu"]
    return amounts | dict(node["extra_resources"] or ()) | {"pods": 1 << 40 if slots is None else slots}


def requested(row: Row) -> Amounts:
    """What a pod takes of its node, by name; instances of partitioned GPUs are the engine's matter."""
    amounts = {"cpu_milli": row["cpu_milli"], "memory_mib": row["memory_mib"], "pods": 1}
    if row["num_gpu"]:
        amounts["gpu_milli"] = row["num_gpu"] * row["gpu_milli"]
    further = {name: amount for name, amount in row["extra_resources"] or () if not name.startswith("mig-")}
    return {name: amount for name, amount in (amounts | further).items() if amount}


def age(row: Row) -> tuple[float, str]:
    """The order in which pods came."""
    times = row["times"]
    began = times.started if times.started is not None else times.created
    return (0.0 if began is None else began), row["native_id"]


def _turn(row: Row) -> tuple[int, float, str]:
    """The order in which pods that wait are taken."""
    created = row["times"].created
    return -(row["priority"] or 0), (0.0 if created is None else created), row["native_id"]
