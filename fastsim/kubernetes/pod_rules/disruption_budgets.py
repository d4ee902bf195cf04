"""PodDisruptionBudgets: how many pods of a selection may be evicted at a time.

Percentages are of the pods that the selector selects, rounded up, as in Kubernetes. A budget without minAvailable and
maxUnavailable allows no eviction. To preemption, which does as kube-scheduler, a selector that is empty selects no pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.pod_rules.pod_affinity import selects

KIND = "PodDisruptionBudget"
"""Kind of the objects."""
BOUNDS = ("minAvailable", "maxUnavailable")
"""Fields of which a budget has one at most."""
_PERCENT = re.compile(r"(\d{1,3})%")


class Budget(NamedTuple):
    """The pods that a budget selects, by namespace and name, and how many of them may be away at a time."""

    name: str
    pods: frozenset[str]
    allowed: int


class PreemptionBudgets:
    """Budgets as kube-scheduler's preemption reads them: how many of their pods on nodes are to stay there.

    That is what leaves as many as ``disruptionsAllowed`` in the status, or without it, as many as are ready beyond the
    number of the spec.
    """

    def __init__(self, objects: Iterable[Manifest] = (), pods: Iterable[PodManifest] = ()) -> None:
        self._items: dict[str, list[Manifest]] = {}
        for item in objects:
            if item.kind == KIND and any(item.part("spec", "selector").values()):
                self._items.setdefault(_namespace(item), []).append(item)
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], list[Manifest]] = {}
        chosen: dict[str, list[PodManifest]] = {}
        for pod in pods if self._items else ():
            for item in self._selecting(pod) if pod.status.get("phase") not in OVER else ():
                chosen.setdefault(_full_name(item), []).append(pod)
        self._least = {name: 0 for items in self._items.values() for name in map(_full_name, items)}
        for item in (item for items in self._items.values() for item in items):
            name = _full_name(item)
            self._least[name] = _least(item, chosen.get(name, []))

    def of(self, pod: PodManifest) -> list[tuple[str, int]]:
        """The budgets of a pod: name, and how many of their pods on nodes are to stay there."""
        if not self._items:
            return []
        return sorted((name, self._least[name]) for name in map(_full_name, self._selecting(pod)))

    def _selecting(self, pod: PodManifest) -> list[Manifest]:
        """The budgets that select the pod."""
        if pod.namespace not in self._items:
            return []
        key = pod.namespace, tuple(sorted((str(name), str(value)) for name, value in pod.labels.items()))
        if key not in self._known:
            self._known[key] = [
                item for item in self._items[pod.namespace]
                if selects(item.part("spec", "selector"), pod.labels, item.where)
            ]  # fmt: skip
        return self._known[key]


def _least(item: Manifest, chosen: Sequence[PodManifest]) -> int:
    """How many pods of a budget on nodes are to stay there, of those that it selects."""
    placed = [pod for pod in chosen if pod.node]
    ready = sum(not pod.terminating and _is_ready(pod.status, pod.where) for pod in placed)
    stated = item.part("status").get("disruptionsAllowed")
    if stated is None:
        allowed = max(ready - _needed(item, len(chosen)), 0)
    else:
        allowed = _amount(stated, 0, f"{item.where}: status: disruptionsAllowed")
    return max(len(placed) - allowed, 0)


def pod_name(pod: Manifest) -> str:
    """Namespace and name of a pod."""
    return f"{_namespace(pod)}/{pod.name}"


def budgets(objects: Iterable[Manifest], pods: Sequence[Manifest]) -> list[Budget]:
    """The budgets among some objects, about these pods."""
    present = [pod for pod in pods if pod.part("status").get("phase") not in OVER]
    return [_budget(item, present) for item in objects if item.kind == KIND]


def _full_name(item: Manifest) -> str:
    return f"{_namespace(item)}/{item.name}"


def _budget(item: Manifest, pods: Sequence[Manifest]) -> Budget:
    namespace, selector = _namespace(item), item.part("spec").get("selector")
    stated = mapping(item.part("spec"), "selector", f"{item.where}: spec")
    own = [pod for pod in pods if selector is not None and _namespace(pod) == namespace]
    chosen = [pod for pod in own if selects(stated, mapping(pod.part("metadata"), "labels", pod.where), item.where)]
    healthy = sum(map(_is_healthy, chosen))
    allowed = max(healthy - _needed(item, len(chosen)), 0)
    return Budget(_full_name(item), frozenset(map(pod_name, chosen)), allowed)


def _needed(item: Manifest, count: int) -> int:
    """Pods that must stay healthy of so many."""
    stated: Mapping[str, Any] = {name: item.part("spec").get(name) for name in BOUNDS}
    given = [name for name in BOUNDS if stated[name] is not None]
    if len(given) == len(BOUNDS):
        raise InputError(item.where, " and ".join(BOUNDS), "one of them")
    if not given:
        return count
    amount = _amount(stated[given[0]], count, f"{item.where}: spec: {given[0]}")
    return amount if given[0] == BOUNDS[0] else max(count - amount, 0)


def _amount(value: Any, count: int, where: str) -> int:
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent is not None and int(percent[1]) <= 100:
        return -(-int(percent[1]) * count // 100)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise InputError(where, repr(value), "a whole number of 0 or more, or a percentage such as '50%'")
    return value


def _is_healthy(pod: Manifest) -> bool:
    """Whether a pod runs, is not being deleted, and is ready."""
    return not pod.part("metadata").get("deletionTimestamp") and _is_ready(pod.part("status"), pod.where)


def _is_ready(status: Mapping[str, Any], where: str) -> bool:
    """Whether a pod runs and is ready; without a condition that says so, it is."""
    ready = [one for one in sequence(status, "conditions", where) if one.get("type") == "Ready"]
    return status.get("phase") == "Running" and all(str(one.get("status")) == "True" for one in ready)


def _namespace(item: Manifest) -> str:
    return str(item.part("metadata").get("namespace") or "default")
