"""Arrival order of the pods of a running cluster: running pods first, on their nodes, then waiting pods.

All of them arrive at second 0. Of running pods those whose devices are known come first. The others are sorted by
start, so that a policy chooses their devices in the order of the cluster. Waiting pods are sorted as kube-scheduler
does: highest priority first, then the oldest, then by name. So neither the order of objects nor that of files matters.
Finished pods are dropped.

For a waiting pod that is nominated for a node, kube-scheduler keeps room there from pods of its priority or less. If it
fits there, also beside waiting pods of higher priority, it is the first of its priority and may use this node alone.
If it fits nowhere, pods of its priority or less stay off its node unless they fit beside it. In line as all others, and
named, are those in gangs, with rules about other pods or parts of devices, and those whose node may be taken before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from fastsim.hardware.node_constraints import ONE_OF, Conditions, Constraint, conjunction_text, eligible, unstated
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import counted_about
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.pod_rules.priorities import Priorities
from fastsim.kubernetes.pods import NOMINATED, PodTimes, unix_s

NOW = PodTimes(created=0.0)
"""Times of a pod that is there when the run begins."""
LACKING = {"cpu_milli": "CPU", "memory_mib": "memory", "gpu_milli": "GPU", "pods": "slots for pods"}
"""Words for resources that a node can lack; a further resource keeps its own name."""
NO_ROOM = f"pods: {NOMINATED}, for which no room is kept here"
RELATED = ("gang_size", "after_gang", "group", "spread", "near")
"""Columns of pods that depend on other pods."""

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
        elif not (is_over(pod) or pod.terminating or pod.is_held):
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
    rows = [*held, *Nominations(waiting, Room(held, nodes)).in_line(notices)]
    for row in rows:
        row["times"] = NOW
    return rows


class Room:
    """What pods that run leave of the nodes."""

    def __init__(self, running: Iterable[Row], nodes: Sequence[Mapping[str, Any]]) -> None:
        self.nodes = {node["name"]: node for node in nodes}
        self._running = list(running)
        self._requests: dict[str, Amounts] = {}
        self._conditions: dict[str, Conditions] = {}

    @cached_property
    def left(self) -> dict[str, Amounts]:
        """Amounts by node."""
        left = {name: offered(node) for name, node in self.nodes.items()}
        for row in self._running:
            if row["bound_node"] in left:
                _take(left[row["bound_node"]], requested(row))
        return left

    @cached_property
    def divided(self) -> set[str]:
        """Nodes where pods have parts of devices."""
        return {row["bound_node"] for row in self._running if row["gpu_milli"] % 1000}

    def hosts(self, row: Row, name: str, others: Sequence[Row] = ()) -> bool:
        """Whether a pod may use a node, and fits there beside others that have not started."""
        left = dict(self.left[name]) if others else self.left[name]
        for other in others:
            _take(left, self._request_of(other))
        if any(amount > left.get(key, unstated(key)) for key, amount in self._request_of(row).items()):
            return False
        node = self.nodes[name]
        models = row["gpu_models"] or (node["gpu_model"],)
        fine = node["gpu_model"] in models and row["pinned_node"] in (None, name)
        return fine and eligible(self._conditions_of(row), {**dict(node["labels"]), "name": name})

    def is_exact(self, row: Row, name: str) -> bool:
        """Whether amounts and expressions alone decide if a pod fits on a node."""
        divided = row["gpu_milli"] % 1000 or name in self.divided
        parts = row["num_gpu"] and (row["gpu_memory_mib"] or divided)
        instances = any(key.startswith("mig-") for key, _ in row["extra_resources"] or ())
        return not (instances or parts or any(row[column] for column in RELATED))

    def _request_of(self, row: Row) -> Amounts:
        """The request of a waiting pod by resource. It is worked out once, because every node may ask for it."""
        if row["native_id"] not in self._requests:
            self._requests[row["native_id"]] = requested(row)
        return self._requests[row["native_id"]]

    def _conditions_of(self, row: Row) -> Conditions:
        """The expressions of a waiting pod about nodes. They are read once."""
        if row["native_id"] not in self._conditions:
            stated = row["constraints"] or ()
            expressions = (Constraint(one["key"], one["op"], tuple(one["values"])) for one in stated)
            self._conditions[row["native_id"]] = Conditions(constraints=tuple(expressions))
        return self._conditions[row["native_id"]]


class Nominations:
    """Waiting pods, most important first, and the nodes on which room is kept for some of them."""

    def __init__(self, waiting: Sequence[Row], room: Room) -> None:
        self._waiting, self._room = waiting, room
        self._kept: dict[str, list[Row]] = {}
        self._placed: dict[str, str] = {}

    def in_line(self, notices: Counter[str]) -> list[Row]:
        """The pods in line, with the room that is kept; nominated pods without it are counted in ``notices``."""
        for row in self._waiting:
            name = str(row["peer"].status.get(NOMINATED) or "")
            if name and not self._is_kept(row, name):
                counted_about(notices, row["native_id"])
                notices[NO_ROOM] += 1
        counted_about(notices, "")
        for row in self._waiting if self._kept else ():
            if row["native_id"] in self._placed:
                row["pinned_node"] = self._placed[row["native_id"]]
            elif away := [name for name in self._kept if self._is_kept_from(row, name)]:
                others = conjunction_text([Constraint("name", "NotIn", tuple(away))])
                rule = {"key": NOMINATED, "op": ONE_OF, "values": [others]}
                row["constraints"] = [*(row["constraints"] or ()), rule]
        return sorted(self._waiting, key=lambda row: (-_priority(row), row["native_id"] not in self._placed))

    def _is_kept(self, row: Row, name: str) -> bool:
        """Keep room for a nominated pod if it needs it; False if that cannot be said exactly."""
        room, kept = self._room, self._kept.get
        if not room.nodes or not room.is_exact(row, name):
            return False
        if name not in room.nodes:
            return True  # a node that is gone
        before = [one for one in self._waiting if _priority(one) > _priority(row)]
        rivals = [one for one in before if one["native_id"] not in self._placed and room.hosts(one, name)]
        if room.hosts(row, name, [*kept(name, ()), *rivals]):
            self._placed[row["native_id"]] = name
        elif any(room.hosts(row, node, kept(node, ())) for node in room.nodes):
            return not room.hosts(row, name, kept(name, ()))  # it may go elsewhere
        self._kept.setdefault(name, []).append(row)
        return True

    def _is_kept_from(self, row: Row, name: str) -> bool:
        """Whether a pod fits on a node, but not beside the pods of its priority or more that expect room there."""
        kept = [one for one in self._kept[name] if _priority(one) >= _priority(row)]
        if all(one["native_id"] in self._placed for one in kept):
            return False  # they come first
        return self._room.hosts(row, name) and not self._room.hosts(row, name, kept)


def _priority(row: Row) -> int:
    return row["priority"] or 0


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
        short = [name for name, amount in request.items() if amount > left[node].get(name, unstated(name))]
        if short:
            omitted.add(row["native_id"])
            words = " and ".join(LACKING.get(name, name) for name in short)
            notices[f"pods: left out, because the nodes where they run have too little {words} for all of them"] += 1
            continue
        _take(left[node], request)
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


def _take(left: Amounts, request: Amounts) -> None:
    for name, amount in request.items():
        left[name] = left.get(name, unstated(name)) - amount


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
