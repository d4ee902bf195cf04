"""Gangs of Kubernetes: pods that name a pod group, in the terms of Volcano, coscheduling, Kueue and KAI.

The least number of pods that start together is that of the PodGroup, or of the pods themselves; without either it is
all that are there. Pods of the group that run already, or ran, count as started. The rest of the least number are the
first waiting pods by arrival: they form the gang, and further pods are placed one by one. A group that cannot be
complete starts no pod in Kubernetes, so its waiting pods are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping

ANNOTATIONS = ("scheduling.k8s.io/group-name", "pod-group-name")
"""Annotations that name the group of a pod."""
LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "kueue.x-k8s.io/pod-group-name")
"""Labels that name the group of a pod."""
TOTALS = ("kueue.x-k8s.io/pod-group-total-count", "pod-group.scheduling.sigs.k8s.io/min-available")
"""Annotations and labels of pods with the size of their group."""
FAILED = "Failed"
"""Phase of pods that do not count for a gang."""


class Gang(NamedTuple):
    """The group that a pod names, and the size that the pod gives it, if any."""

    namespace: str
    name: str
    total: int | None = None


def gang_of(pod: PodManifest) -> Gang | None:
    """The group that the pod names, or that its workload forms; None if it belongs to none."""
    named = [pod.annotations.get(key) for key in ANNOTATIONS] + [pod.labels.get(key) for key in LABELS]
    name = next((str(text) for text in named if text), "" if pod.together is None else pod.owner)
    if not name:
        return None
    texts = {**pod.labels, **pod.annotations}
    total = next((_size(texts[key], f"{pod.where}: {key}") for key in TOTALS if key in texts), pod.together)
    return Gang(pod.namespace, name, total)


def least_members(groups: Iterable[Manifest]) -> dict[tuple[str, str], int]:
    """Least number of pods that start together, by namespace and name of the PodGroup."""
    sizes = {}
    for item in groups:
        spec, namespace = item.part("spec"), mapping(item.body, "metadata", item.where).get("namespace")
        least = spec.get("minMember")
        where = f"{item.where}: spec: minMember"
        sizes[str(namespace or "default"), item.name] = 1 if least is None else _size(least, where)
    return sizes


def with_gangs(
    rows: list[dict[str, Any]], least: Mapping[tuple[str, str], int], notices: Counter[str]
) -> list[dict[str, Any]]:
    """The rows of pods: gangs are jobs with a `gang_size`, pods of gangs that cannot be complete are left out."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["gang"] is not None and row["orig_status"] != FAILED:
            groups.setdefault(row["gang"][:2], []).append(row)
    absent: set[int] = set()
    for (namespace, name), members in groups.items():
        waiting = sorted((row for row in members if not row["bound_node"]), key=_arrival)
        size = _gang_size(members, least.get((namespace, name)), notices) - (len(members) - len(waiting))
        if size > len(waiting):
            notices["pods: left out, because their gang is not complete"] += len(waiting)
            absent.update(map(id, waiting))
        elif size > 1:
            _form_gang(waiting, size, f"PodGroup/{namespace}/{name}", notices)
    return [row for row in rows if id(row) not in absent] if absent else rows


def _form_gang(waiting: list[dict[str, Any]], size: int, job: str, notices: Counter[str]) -> None:
    """Make the first pods a gang, and the others single pods of the same job, which has the name of their one owner."""
    owners = {row["owner"] for row in waiting}
    name = owners.pop() if len(owners) == 1 else ""
    for number, row in enumerate(waiting):
        row["owner"], row["gang_owner"], row["gang_size"] = job, name or job, size if number < size else None
    if len(waiting) > size:
        notices["pods: beyond the least number of their gang, placed one by one, also while it waits"] += (
            len(waiting) - size
        )


def _gang_size(members: list[dict[str, Any]], least: int | None, notices: Counter[str]) -> int:
    """Number of pods of a group that start together; all of them if it is unknown."""
    total = max((row["gang"].total for row in members if row["gang"].total is not None), default=None)
    if least is None and total is None:
        notices["pods: of a gang of unknown size, which is all that are there"] += len(members)
        return len(members)
    size = total if least is None else least
    return len(members) if size is None else size


def _arrival(row: Mapping[str, Any]) -> tuple[float, str]:
    """Sort key of waiting pods: arrival, unknown ones first, then name."""
    created: float | None = row["times"].created
    return float("-inf") if created is None else created, row["native_id"]


def _size(value: object, where: str) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InputError(where, repr(value), "a whole number of pods")
    return int(text)
