"""Workloads whose pods start together: training jobs of Kubeflow, JobSet, LeaderWorkerSet, RayJob and RayCluster.

Each is a list of roles, such as a launcher and its workers. A role has equal pods; all roles of one gang start
together, unless the workload sets a smaller number. Workloads that Kueue suspends, and pods that it gates, wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.kubernetes.objects import Manifest, mapping, sequence

MOST = 1_000_000
"""Most pods of one role, and most gangs of one workload."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of workloads that wait until Kueue admits them."""
GATES = "schedulingGates"
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
"""Gates of pods that wait until Kueue admits them, and until it has chosen their topology."""
VOLCANO = "batch.volcano.sh"
"""API group of Volcano, whose Job has tasks with pods that start together."""
KUBEFLOW, JOBSET, LEADERS, RAY = "kubeflow.org", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io"
REPLICA_SPECS = {
    "PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs", "PaddleJob": "paddleReplicaSpecs",
}  # fmt: skip
"""Kinds of Kubeflow and where their roles stand."""
GANG_KINDS = (
    *((KUBEFLOW, kind) for kind in REPLICA_SPECS), (JOBSET, "JobSet"), (LEADERS, "LeaderWorkerSet"),
    (RAY, "RayJob"), (RAY, "RayCluster"),
)  # fmt: skip
"""API group and kind of what is read here; a TrainJob is not, as its pods stand in a runtime elsewhere."""


class Role(NamedTuple):
    """Equal pods, made from `template`; `gang` distinguishes the gangs of one workload."""

    name: str
    pods: int
    template: Mapping[str, Any]
    gang: str = ""


class Gangs(NamedTuple):
    """The roles of a workload; `least` pods of a gang start together, all of them if it is None."""

    roles: list[Role]
    least: int | None = None

    def together(self, role: Role) -> int:
        """How many pods of the role's gang start together."""
        size = sum(one.pods for one in self.roles if one.gang == role.gang)
        return size if self.least is None else min(self.least, size)


def is_gang_kind(item: Manifest) -> bool:
    """Whether the object is of a group and kind that is read here."""
    return (str(item.body.get("apiVersion") or "").rpartition("/")[0], item.kind) in GANG_KINDS


def queue_of(item: Manifest) -> str:
    """The queue of Kueue that a workload is in; "" without one."""
    return str(item.part("metadata", "labels").get(KUEUE_QUEUE) or "")


def has_no_pods(item: Manifest, spec: Mapping[str, Any]) -> bool:
    """Whether a workload is suspended by its owner: Kueue suspends workloads of its queues until it admits them."""
    return bool(spec.get("suspend")) and not queue_of(item)


def is_held(spec: Mapping[str, Any], labels: Mapping[str, Any], where: str) -> bool:
    """Whether scheduling gates hold a pod back: any but those of Kueue on a pod in one of its queues, which waits."""
    gates = {str(gate.get("name")) for gate in sequence(spec, GATES, where)} if spec.get(GATES) else set()
    return bool(gates) and not (labels.get(KUEUE_QUEUE) and gates.issubset(KUEUE_GATES))


def gangs_of(item: Manifest) -> Gangs:
    """The roles of such an object; none if it is suspended and in no queue."""
    spec, where = item.part("spec"), item.where
    if item.kind in REPLICA_SPECS:
        policy = mapping(spec, "runPolicy", where)
        least = mapping(policy, "schedulingPolicy", where).get("minAvailable")
        if has_no_pods(item, policy):
            return Gangs([])
        return Gangs(list(_replicas(item)), None if least is None else whole(least, f"{where}: spec: minAvailable"))
    if has_no_pods(item, spec):
        return Gangs([])
    if item.kind == "JobSet":
        return Gangs(list(_replicated_jobs(item)))
    if item.kind == "LeaderWorkerSet":
        return Gangs(list(_leaders_and_workers(item)))
    above = ("spec", "rayClusterSpec") if item.kind == "RayJob" else ("spec",)
    return Gangs(list(_head_and_workers(item, above)))


def whole(value: Any, where: str, default: int = 1) -> int:
    """A number of pods; InputError if it is none."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise InputError(where, repr(value), f"a whole number, 0 to {MOST:,}")
    return value


def _replicas(item: Manifest) -> Iterator[Role]:
    """Kubeflow's roles, such as Master and Worker, by their names."""
    specs = item.part("spec", REPLICA_SPECS[item.kind])
    for name in specs:
        role = mapping(specs, name, item.where)
        yield Role(name.lower(), whole(role.get("replicas"), f"{item.where}: {name}: replicas"),
                   mapping(role, "template", item.where))  # fmt: skip


def _replicated_jobs(item: Manifest) -> Iterator[Role]:
    """Jobs of a JobSet: each has as many pods as run at a time."""
    for job in sequence(item.part("spec"), "replicatedJobs", item.where):
        body = mapping(mapping(job, "template", item.where), "spec", item.where)
        where = f"{item.where}: {job.get('name')}"
        parallel = whole(body.get("parallelism"), f"{where}: parallelism")
        pods = min(parallel, whole(body.get("completions"), f"{where}: completions", parallel))
        for number in range(whole(job.get("replicas"), f"{where}: replicas")):
            yield Role(f"{job.get('name') or 'job'}-{number}", pods, mapping(body, "template", item.where))


def _leaders_and_workers(item: Manifest) -> Iterator[Role]:
    """One gang for each replica: a leader, by the workers' template unless it has its own, and its workers."""
    spec = item.part("spec", "leaderWorkerTemplate")
    size = whole(spec.get("size"), f"{item.where}: size")
    worker = mapping(spec, "workerTemplate", item.where)
    leader = mapping(spec, "leaderTemplate", item.where) or worker
    for number in range(whole(item.part("spec").get("replicas"), f"{item.where}: replicas")):
        yield Role(f"{number}", min(size, 1), leader, str(number))
        yield Role(f"{number}-worker", max(size - 1, 0), worker, str(number))


def _head_and_workers(item: Manifest, above: tuple[str, ...]) -> Iterator[Role]:
    """Ray's head and its groups of workers, each of its initial size."""
    spec = item.part(*above)
    yield Role("head", 1, item.part(*above, "headGroupSpec", "template"))
    for group in sequence(spec, "workerGroupSpecs", item.where):
        where, name = f"{item.where}: {group.get('groupName')}", str(group.get("groupName") or "worker")
        count = max(whole(group.get(key), f"{where}: {key}", 0) for key in ("replicas", "minReplicas"))
        hosts = whole(group.get("numOfHosts"), f"{where}: numOfHosts")
        yield Role(name, count * hosts, mapping(group, "template", item.where))
