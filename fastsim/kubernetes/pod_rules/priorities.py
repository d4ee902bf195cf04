"""Priorities of Kubernetes' pods: their own numbers, their classes, and the default class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest

BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has, and their values."""
NEVER = "Never"
"""Preemption policy of pods that never preempt, whatever their priority."""


class Priorities(NamedTuple):
    """Values of classes by name, the default class ("" = there is none), classes that never preempt."""

    values: dict[str, int]
    default: str = ""
    never: frozenset[str] = frozenset()

    def preempts(self, pod: PodManifest) -> bool:
        """Whether the pod may stop others: its own ``preemptionPolicy`` goes before that of its class."""
        policy = pod.spec.get("preemptionPolicy") or (NEVER if self._class(pod) in self.never else "")
        return bool(policy != NEVER)

    def _class(self, pod: PodManifest) -> str:
        return str(pod.spec.get("priorityClassName") or self.default)

    def of(self, pod: PodManifest, notices: Counter[str]) -> int | None:
        """The pod's priority; None if it is unknown, because its class is, which is counted in `notices`."""
        priority, name = pod.spec.get("priority"), self._class(pod)
        if priority is not None:
            return whole_number(priority, f"{pod.where}: spec: priority")
        if name and name not in self.values:
            notices["pods: a priority class that is not among the objects"] += 1
        return self.values.get(name)


def priorities_of(classes: Iterable[Manifest]) -> Priorities:
    """Priorities from objects of kind PriorityClass and built-in classes; of several defaults the lowest counts."""
    values, defaults, never = dict(BUILT_IN), [], set()
    for item in classes:
        values[item.name] = whole_number(item.body.get("value", 0), f"{item.where}: value")
        if item.body.get("globalDefault") is True:
            defaults.append(item.name)
        if item.body.get("preemptionPolicy") == NEVER:
            never.add(item.name)
    default = min(defaults, key=lambda name: values[name], default="")
    return Priorities(values, default, frozenset(never))


def whole_number(value: Any, where: str) -> int:
    """A priority: a whole number of 32 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 31:
        raise InputError(where, repr(value), "a whole number of 32 bits")
    return value
