"""Members of workloads that are over, as the status of the workload counts them; their pods may be gone.

A Job counts its pods, a JobSet its Jobs, a job of Kubeflow or Volcano the pods of each role. Members of other workloads
are started again when they end, or the workload is over as a whole, so that there is nothing to count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.workloads.gang_workloads import REPLICA_SPECS, VOLCANO, whole
from fastsim.kubernetes.workloads.owners import REPLICATED, role_of

SUCCEEDED = OVER[0]
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
RESTARTED = (*REPLICATED, "DaemonSet", "LeaderWorkerSet", "RayCluster")
"""Kinds whose members are started again when they end."""
AS_A_WHOLE = ("RayJob", "CronJob")
"""Kinds whose status counts no members: that of a RayJob is about all of it, that of a CronJob names what runs."""


def ended(item: Manifest) -> Counter[str]:
    """Numbers of members that are over by their role, or under "" where the status does not say which role."""
    of_volcano = str(item.body.get("apiVersion") or "").startswith(f"{VOLCANO}/")
    count = _of_tasks if of_volcano else COUNTED.get(item.kind)
    return Counter() if count is None else +count(item)


def pods_gone(item: Manifest, expected: Sequence[str], lacked: Sequence[str], there: Sequence[Manifest]) -> set[str]:
    """Names of the pods of a workload with roles that are lacking because they are over.

    ``expected`` are the names of all its pods, ``there`` the pods that are among the objects. Of several members that
    may be the ones that are over, those with pods that have succeeded are the first, then those of the lowest numbers.
    """
    gone: set[str] = set()
    sizes, lacking = Counter(map(_member(item), expected)), defaultdict(list)
    for name in lacked:
        lacking[_member(item)(name)].append(name)
    done, active = _by_state(item, there)
    for role, count in ended(item).items():
        family = f"{item.name}-{role}" if role else ""
        known = sum(number // max(sizes[one], 1) for one, number in done.items() if _is_of(one, family))
        choices = [one for one in lacking if _is_of(one, family) and not active[one]]
        for one in sorted(choices, key=lambda one: not done[one])[: max(count - known, 0)]:
            gone.update(lacking[one])
    return gone


def _member(item: Manifest) -> Callable[[str], str]:
    """What a pod belongs to that is counted as one, by the pod's name: a Job of a JobSet, or the pod itself."""
    return (lambda name: name.rpartition("-")[0]) if item.kind == "JobSet" else (lambda name: name)


def _is_of(member: str, family: str) -> bool:
    """Whether a member is of a role, whose name comes before its own number; every member is of no role."""
    return not family or member.rpartition("-")[0] == family


def _by_state(item: Manifest, there: Sequence[Manifest]) -> tuple[Counter[str], Counter[str]]:
    """Numbers of pods that have succeeded and of those that are not over, by member."""
    done, active = Counter[str](), Counter[str]()
    for pod in there:
        phase, role = pod.part("status").get("phase"), role_of(pod)
        member = pod.name if role is None else f"{item.name}-{role}"
        if role is not None and item.kind != "JobSet":
            member += f"-{pod.name.rpartition('-')[2]}"
        done[member] += phase == SUCCEEDED
        active[member] += phase not in OVER
    return done, active


def _of_job(item: Manifest) -> Counter[str]:
    """Pods of a Job that have succeeded, counted or not yet, and indexes that have failed for good."""
    status, where = item.part("status"), f"{item.where}: status"
    uncounted = mapping(status, "uncountedTerminatedPods", where).get("succeeded")
    succeeded = whole(status.get("succeeded"), f"{where}: succeeded", 0)
    succeeded += len(uncounted) if isinstance(uncounted, list) else 0
    return Counter({"": succeeded + _indexes(status.get("failedIndexes"))})


def _indexes(text: object) -> int:
    """Number of indexes in a text such as ``1,3-5``."""
    return sum(max(int(last or first) - int(first) + 1, 0) for first, last in _RANGE.findall(str(text or "")))


def _of_job_set(item: Manifest) -> Counter[str]:
    """Jobs of a JobSet that have succeeded."""
    listed = sequence(item.part("status"), "replicatedJobsStatus", f"{item.where}: status")
    return Counter({str(one.get("name") or "job"): whole(one.get("succeeded"), f"{item.where}: succeeded", 0)
                    for one in listed})  # fmt: skip


def _of_replicas(item: Manifest) -> Counter[str]:
    """Pods of a job of Kubeflow that have succeeded."""
    roles = item.part("status", "replicaStatuses")
    return Counter({name.lower(): whole(mapping(roles, name, item.where).get("succeeded"), f"{item.where}: {name}", 0)
                    for name in roles})  # fmt: skip


def _of_tasks(item: Manifest) -> Counter[str]:
    """Pods of a Job of Volcano that have succeeded, of each task if its status says so."""
    tasks = item.part("status", "taskStatusCount")
    if not tasks:
        return Counter({"": whole(item.part("status").get("succeeded"), f"{item.where}: succeeded", 0)})
    phases = {name: mapping(mapping(tasks, name, item.where), "phase", item.where) for name in tasks}
    return Counter({name: whole(one.get(SUCCEEDED), f"{item.where}: {name}", 0) for name, one in phases.items()})


COUNTED = {"Job": _of_job, "JobSet": _of_job_set, **dict.fromkeys(REPLICA_SPECS, _of_replicas)}
"""Kinds whose status counts members that are over, and how it does; a Job of Volcano counts in its own way."""
