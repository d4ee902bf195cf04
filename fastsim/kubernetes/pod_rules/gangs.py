"""Gangs of Kubernetes: pods that name a pod group, of Kubernetes itself, Volcano, coscheduling, Kueue or KAI.

The least number of pods that start together is that of the PodGroup or Workload, or of the pods themselves; without
either it is all that are there. Pods of the group that run already, or ran, count as started. The rest of the least
number are the first waiting pods in the order of the queue: they form the gang, and further pods start only when it
has. A group that cannot be complete starts no pod in Kubernetes, so its waiting pods are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, counted_about, mapping, sequence

ANNOTATIONS = ("scheduling.k8s.io/group-name", "pod-group-name")
"""Annotations that name the group of a pod."""
LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "kueue.x-k8s.io/pod-group-name")
"""Labels that name the group of a pod."""
TOTALS = ("kueue.x-k8s.io/pod-group-total-count", "pod-group.scheduling.sigs.k8s.io/min-available")
"""Annotations and labels of pods with the size of their group."""
GROUP, WORKLOAD = "scheduling.k8s.io", "Workload"
"""API group and kind of Kubernetes' own objects about groups of pods; its PodGroups are of a kind that others have."""
FAILED = "Failed"
"""Phase of pods that do not count for a gang."""


class Gang(NamedTuple):
    """The group that a pod names, and the size that the pod gives it, if any.

    ``policy`` names the object with its least size if that is not the group; without one among objects of that kind the
    group starts no pod.
    """

    namespace: str
    name: str
    total: int | None = None
    policy: str = ""


def gang_of(pod: PodManifest) -> Gang | None:
    """The group that the pod names, or that its workload forms; None if it belongs to none."""
    own = _own_group(pod)
    if own is not None:
        return own
    if pod.together is None and pod.annotations.keys().isdisjoint(ANNOTATIONS) and pod.labels.keys().isdisjoint(LABELS):
        return None
    named = [pod.annotations.get(key) for key in ANNOTATIONS] + [pod.labels.get(key) for key in LABELS]
    name = next((str(text) for text in named if text), "" if pod.together is None else pod.owner)
    if not name:
        return None
    texts = {**pod.labels, **pod.annotations}
    total = next((_size(texts[key], f"{pod.where}: {key}") for key in TOTALS if key in texts), pod.together)
    return Gang(pod.namespace, name, total)


def _own_group(pod: PodManifest) -> Gang | None:
    """The group of Kubernetes' own API that the pod names."""
    if pod.spec.get("schedulingGroup") is None and pod.spec.get("workloadRef") is None:
        return None
    group = mapping(pod.spec, "schedulingGroup", f"{pod.where}: spec").get("podGroupName")
    if group:
        return Gang(pod.namespace, str(group), policy=str(group))
    reference = mapping(pod.spec, "workloadRef", f"{pod.where}: spec")
    if not reference.get("name"):
        return None
    policy = f"{reference['name']}/{reference.get('podGroup') or ''}"
    key = reference.get("podGroupReplicaKey")
    return Gang(pod.namespace, f"{policy}/{key}" if key else policy, policy=policy)


def states_gangs(item: Manifest) -> bool:
    """Whether an object says how many pods of groups start together."""
    group = str(item.body.get("apiVersion") or "").rpartition("/")[0]
    return item.kind == "PodGroup" or (item.kind == WORKLOAD and group == GROUP)


def least_members(objects: Iterable[Manifest]) -> dict[tuple[str, str], int | None]:
    """Least number of pods that start together, None for all, by namespace and name of the group or its policy."""
    sizes: dict[tuple[str, str], int | None] = {}
    for item in filter(states_gangs, objects):
        namespace = str(item.part("metadata").get("namespace") or "default")
        if item.kind == WORKLOAD:
            for group in sequence(item.part("spec"), "podGroups", f"{item.where}: spec"):
                policy = mapping(group, "policy", item.where)
                sizes[namespace, f"{item.name}/{group.get('name') or ''}"] = _by_policy(policy, item.where)
        elif str(item.body.get("apiVersion") or "").startswith(f"{GROUP}/"):
            sizes[namespace, item.name] = _by_policy(item.part("spec", "schedulingPolicy"), item.where)
        else:
            least = item.part("spec").get("minMember")
            sizes[namespace, item.name] = 1 if least is None else _size(least, f"{item.where}: spec: minMember")
    return sizes


def _by_policy(policy: Mapping[str, Any], where: str) -> int | None:
    """The least number by a policy of Kubernetes' own API, by which pods are a gang or start one by one."""
    if policy.get("gang") is None:
        return 1
    least = mapping(policy, "gang", where).get("minCount")
    return None if least is None else _size(least, f"{where}: minCount")


def with_gangs(
    rows: list[dict[str, Any]], least: Mapping[tuple[str, str], int | None], notices: Counter[str],
    order: Callable[[dict[str, Any]], Any] | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The rows of pods: gangs are jobs with a `gang_size`, pods of gangs that cannot be complete are left out.

    ``order`` is the sort key of waiting pods in the queue, arrival and name without one.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["gang"] is not None and row["orig_status"] != FAILED:
            groups.setdefault(row["gang"][:2], []).append(row)
    absent: set[int] = set()
    for (namespace, name), members in groups.items():
        counted_about(notices, f"{namespace}/{name}")
        waiting = sorted((row for row in members if not row["bound_node"]), key=order or _arrival)
        policy = members[0]["gang"].policy
        if policy and least and (namespace, policy) not in least:
            notices["pods: left out, because the Workload or PodGroup of their gang is not there"] += len(waiting)
            absent.update(map(id, waiting))
            continue
        stated = least.get((namespace, policy or name))
        size = _gang_size(members, stated, notices) - (len(members) - len(waiting))
        if size > len(waiting):
            notices["pods: left out, because their gang is not complete"] += len(waiting)
            absent.update(map(id, waiting))
        elif size > 1:
            _form_gang(waiting, size, f"PodGroup/{namespace}/{name}")
    counted_about(notices, "")
    return [row for row in rows if id(row) not in absent] if absent else rows


def _form_gang(waiting: list[dict[str, Any]], size: int, job: str) -> None:
    """Make the first pods a gang, and let the others start after it; all are a job with the name of their one owner."""
    owners = {row["owner"] for row in waiting}
    name = owners.pop() if len(owners) == 1 else ""
    for number, row in enumerate(waiting):
        row["owner"], row["gang_owner"] = job, name or job
        row["gang_size"], row["after_gang"] = (size, None) if number < size else (None, True)


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
