"""PodDisruptionBudgets: how many pods of a selection may be evicted at a time.

Percentages are of the pods that the selector selects, rounded up, as in Kubernetes. A budget without minAvailable and
maxUnavailable allows no eviction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fastsim.errors import InputError
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


def pod_name(pod: Manifest) -> str:
    """Namespace and name of a pod."""
    return f"{_namespace(pod)}/{pod.name}"


def budgets(objects: Iterable[Manifest], pods: Sequence[Manifest]) -> list[Budget]:
    """The budgets among some objects, about these pods."""
    present = [pod for pod in pods if pod.part("status").get("phase") not in OVER]
    return [_budget(item, present) for item in objects if item.kind == KIND]


def _budget(item: Manifest, pods: Sequence[Manifest]) -> Budget:
    namespace, selector = _namespace(item), item.part("spec").get("selector")
    stated = mapping(item.part("spec"), "selector", f"{item.where}: spec")
    own = [pod for pod in pods if selector is not None and _namespace(pod) == namespace]
    chosen = [pod for pod in own if selects(stated, mapping(pod.part("metadata"), "labels", pod.where), item.where)]
    healthy = sum(map(_is_healthy, chosen))
    allowed = max(healthy - _needed(item, len(chosen)), 0)
    return Budget(f"{namespace}/{item.name}", frozenset(map(pod_name, chosen)), allowed)


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
    """Whether a pod runs, is not being deleted, and is ready; without a condition that says so, it is."""
    status = pod.part("status")
    if status.get("phase") != "Running" or pod.part("metadata").get("deletionTimestamp"):
        return False
    ready = [one for one in sequence(status, "conditions", pod.where) if one.get("type") == "Ready"]
    return all(str(one.get("status")) == "True" for one in ready)


def _namespace(item: Manifest) -> str:
    return str(item.part("metadata").get("namespace") or "default")
