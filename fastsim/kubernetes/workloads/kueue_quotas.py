"""Quotas of Kueue: the nominal quotas of its ClusterQueues, as the option of a run that comes nearest.

A LocalQueue is a tenant. Its ClusterQueue has a nominal quota for each flavor and resource. ClusterQueues of a cohort
may borrow what others of it do not use. ``--quotas`` limits a tenant's sum over all nodes, without loans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from fastsim.kubernetes.devices.device_resources import GPU
from fastsim.kubernetes.nodes import CPU, MEMORY
from fastsim.kubernetes.objects import Manifest, sequence
from fastsim.kubernetes.quantity import capacity_mib, milli
from fastsim.kubernetes.workloads.nearest_quotas import nearest_quotas

QUEUES = "objects of kind ClusterQueue"
"""Name of the queues in the notices."""
LIMITS = {CPU: ("cpu_milli", milli), MEMORY: ("memory_mib", capacity_mib), GPU: ("gpu_milli", milli)}
"""Limits of a tenant by resource, and the unit as a function of the quantity."""
SHARED, UNUSED = "quotas that several LocalQueues share", "quotas of queues without a LocalQueue"
"""What no option honours of a ClusterQueue that is not the only one of a single tenant."""
COHORT = ("cohort", "cohortName")
"""Fields of a cohort in the versions of the API."""


def kueue_notice(queues: Sequence[Manifest], local: Sequence[Manifest]) -> str:
    """The notice about ClusterQueues: the option ``--quotas`` that comes nearest, and what it lacks."""
    tenants = _tenants(local)
    limits: dict[str, dict[str, int]] = {}
    lacking: set[str] = set()
    for queue in queues:
        quotas = list(_quotas(queue))
        lacking.update(_unlike(queue, quotas))
        named = tenants.get(queue.name, [])
        if len(named) != 1 or sum(named[0] in names for names in tenants.values()) > 1:
            lacking.add(SHARED if named else UNUSED)
            continue
        limits[named[0]] = _sums(quotas, queue.where)
    return nearest_quotas(QUEUES, limits, "their nominal quotas of CPU, memory and GPUs", lacking)


def _tenants(local: Sequence[Manifest]) -> dict[str, list[str]]:
    """Names of the LocalQueues of each ClusterQueue; LocalQueues of one name are one tenant."""
    found: dict[str, list[str]] = {}
    for item in local:
        names = found.setdefault(str(item.part("spec").get("clusterQueue") or ""), [])
        if item.name not in names:
            names.append(item.name)
    return found


def _quotas(queue: Manifest) -> Iterator[tuple[str, str, Any]]:
    """Flavor, resource and nominal quota of a ClusterQueue, each as it is written."""
    for group in sequence(queue.part("spec"), "resourceGroups", queue.where):
        for flavor in sequence(group, "flavors", queue.where):
            for resource in sequence(flavor, "resources", queue.where):
                yield str(flavor.get("name")), str(resource.get("name")), resource.get("nominalQuota", 0)


def _sums(quotas: Sequence[tuple[str, str, Any]], where: str) -> dict[str, int]:
    """Limits of a tenant: nominal quotas over all flavors."""
    sums: Counter[str] = Counter()
    for flavor, resource, amount in quotas:
        if resource in LIMITS:
            limit, number = LIMITS[resource]
            sums[limit] += number(amount, f"{where}: nominalQuota of {flavor}: {resource}")
    return dict(sums)


def _unlike(queue: Manifest, quotas: Sequence[tuple[str, str, Any]]) -> Iterator[str]:
    """What of a ClusterQueue no option honours."""
    if any(queue.part("spec").get(field) for field in COHORT):
        yield "loans within a cohort"
    if any(number > 1 for number in Counter(resource for _, resource, _ in quotas).values()):
        yield "quotas of single flavors"
    for _, resource, _ in quotas:
        if resource not in LIMITS:
            yield f"quotas of {resource}"
