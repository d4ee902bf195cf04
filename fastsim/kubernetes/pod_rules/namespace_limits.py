"""Limits of Kubernetes' namespaces: defaults of containers (LimitRange) and sums (ResourceQuota).

Admission fills in the defaults of a pod when it is created, so a Pod among the objects has them already; pods that are
expanded from templates get them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastsim.foundation.option_texts import groups_text
from fastsim.kubernetes.devices.device_resources import GPU
from fastsim.kubernetes.nodes import CPU, MEMORY
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.quantity import capacity_mib, milli

QUOTAS = "objects of kind ResourceQuota"
"""Name of quotas in the notices."""
SUMS = {
    "cpu_milli": ("requests.cpu", CPU, milli),
    "memory_mib": ("requests.memory", MEMORY, capacity_mib),
    "gpu_milli": (f"requests.{GPU}", "", milli),
}
"""Limits of a tenant: their two names in a quota, and the unit as a function of the quantity."""

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


def quota_notice(quotas: Sequence[Manifest]) -> str:
    """The notice about objects of kind ResourceQuota: the option ``--quotas`` that comes nearest to them."""
    least: dict[str, dict[str, int]] = {}
    for item in quotas:
        spec = item.part("spec")
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue  # about some pods of the namespace only
        hard, where = mapping(spec, "hard", item.where), f"{item.where}: spec: hard"
        limits = least.setdefault(str(item.part("metadata").get("namespace") or "default"), {})
        for limit, (name, short, number) in SUMS.items():
            key = name if name in hard else short
            if key in hard:
                amount = number(hard[key], f"{where}: {key}")
                limits[limit] = min(amount, limits.get(limit, amount))
    text = groups_text({namespace: limits for namespace, limits in sorted(least.items()) if limits})
    return f"{QUOTAS}; --quotas '{text}' honours their limits on CPU, memory and GPUs" if text else QUOTAS


def _filled(container: Mapping[str, Any], ranges: Sequence[Range], where: str) -> Mapping[str, Any]:
    resources = mapping(container, "resources", where)
    limits, requests = dict(mapping(resources, "limits", where)), dict(mapping(resources, "requests", where))
    requests = {**limits, **requests}
    for more, least in ranges:
        limits, requests = {**more, **limits}, {**least, **requests}
    return {**container, "resources": {**resources, "limits": limits, "requests": requests}}
