"""Limits of Kubernetes' namespaces: defaults of containers (LimitRange) and sums (ResourceQuota, with Kueue's quotas).

Admission fills in the defaults of a pod when it is created, so a Pod among the objects has them already; pods that are
expanded from templates get them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastsim.kubernetes.devices.device_resources import GPU
from fastsim.kubernetes.nodes import CPU, MEMORY, PODS
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.quantity import capacity_mib, milli
from fastsim.kubernetes.workloads.kueue_quotas import kueue_notice
from fastsim.kubernetes.workloads.nearest_quotas import nearest_quotas

QUOTAS = "objects of kind ResourceQuota"
"""Name of quotas in the notices."""
SUMS = {
    "cpu_milli": ("requests.cpu", CPU, milli),
    "memory_mib": ("requests.memory", MEMORY, capacity_mib),
    "gpu_milli": (f"requests.{GPU}", "", milli),
}
"""Limits of a tenant: their two names in a quota, and the unit as a function of the quantity."""

COUNTS = (PODS, "count/pods")
"""Limits on the number of pods."""
BEGINNINGS = ("requests.", "limits.", "hugepages-", "ephemeral-storage")
"""Beginnings of limits on sums over pods."""
STORAGE = "requests.storage"
"""A limit on claims for volumes."""

Range = tuple[dict[str, Any], dict[str, Any]]
"""Default limits and requests of a container."""


def default_amounts(objects: Iterable[Manifest]) -> dict[str, list[Range]]:
    """Defaults of containers by namespace; absent parts of a rule follow from the others, as in Kubernetes."""
    ranges: dict[str, list[Range]] = {}
    for item in objects:
        if item.kind != "LimitRange":
            continue
        namespace = str(item.part("metadata").get("namespace") or "default")
        for rule in sequence(item.part("spec"), "limits", item.where):
            if rule.get("type") == "Container":
                parts = {name: mapping(rule, name, item.where) for name in ("min", "max", "default", "defaultRequest")}
                limits = {**parts["max"], **parts["default"]}
                ranges.setdefault(namespace, []).append((limits, {**parts["min"], **limits, **parts["defaultRequest"]}))
    return ranges


def with_defaults(spec: Mapping[str, Any], ranges: Sequence[Range], where: str) -> Mapping[str, Any]:
    """The spec of a pod with the defaults filled in for its containers."""
    if not ranges:
        return spec
    kinds = [name for name in ("initContainers", "containers") if spec.get(name)]
    return {**spec, **{name: [_filled(each, ranges, where) for each in sequence(spec, name, where)] for name in kinds}}


def quota_notices(of_kind: Callable[[str], Sequence[Manifest]]) -> dict[str, int]:
    """The notices about quotas of namespaces and of Kueue, each with its number of objects."""
    quotas, queues = of_kind("ResourceQuota"), of_kind("ClusterQueue")
    found = {quota_notice(quotas): len(quotas)} if quotas else {}
    return found | ({kueue_notice(queues, of_kind("LocalQueue")): len(queues)} if queues else {})


def quota_notice(quotas: Sequence[Manifest]) -> str:
    """The notice about objects of kind ResourceQuota: the option ``--quotas`` that comes nearest, and what it lacks."""
    least: dict[str, dict[str, int]] = {}
    lacking: set[str] = set()
    for item in quotas:
        spec = item.part("spec")
        hard, where = mapping(spec, "hard", item.where), f"{item.where}: spec: hard"
        if spec.get("scopes") or spec.get("scopeSelector"):
            lacking.add("pods of a scope")
            continue
        lacking.update(key for key in hard if _is_about_pods(key))
        limits = least.setdefault(str(item.part("metadata").get("namespace") or "default"), {})
        for limit, (name, short, number) in SUMS.items():
            key = name if name in hard else short
            if key in hard:
                amount = number(hard[key], f"{where}: {key}")
                limits[limit] = min(amount, limits.get(limit, amount))
    return nearest_quotas(QUOTAS, least, "their limits on CPU, memory and GPUs", _those_on(lacking))


def _those_on(limits: set[str]) -> list[str]:
    """The words for limits that no option honours."""
    return [f"those on {', '.join(sorted(limits))}"] if limits else []


def _is_about_pods(key: str) -> bool:
    """Whether a limit is about pods, and is none of those that an option honours."""
    if any(key in names[:2] for names in SUMS.values()) or key == STORAGE:
        return False
    return key in COUNTS or key.startswith(BEGINNINGS)


def _filled(container: Mapping[str, Any], ranges: Sequence[Range], where: str) -> Mapping[str, Any]:
    resources = mapping(container, "resources", where)
    limits, requests = dict(mapping(resources, "limits", where)), dict(mapping(resources, "requests", where))
    requests = {**limits, **requests}
    for more, least in ranges:
        limits, requests = {**more, **limits}, {**least, **requests}
    return {**container, "resources": {**resources, "limits": limits, "requests": requests}}
