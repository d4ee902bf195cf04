"""Workloads that pods belong to: by owner references, by labels of controllers, by names that controllers make.

A dump may lack the objects between a pod and its workload: the ReplicaSet of a Deployment, the Job of a CronJob or a
JobSet, the StatefulSets of a LeaderWorkerSet, the RayCluster of a RayJob. Labels and names then lead from the pod to
the workload. A pod belongs to the nearest workload among the objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.workloads.gang_workloads import REPLICA_SPECS, is_gang_kind

REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
"""Kinds with a number of equal pods."""
WORKLOADS = (*REPLICATED, "DaemonSet", "Job", "CronJob")
"""Kinds that are expanded."""
KUBEFLOW_JOB = "training.kubeflow.org/job-name"
NAMED_BY = (
    ("Job", "batch.kubernetes.io/job-name"), ("Job", "job-name"), ("Job", "volcano.sh/job-name"),
    ("JobSet", "jobset.sigs.k8s.io/jobset-name"), ("LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name"),
    ("RayCluster", "ray.io/cluster"), *((kind, KUBEFLOW_JOB) for kind in REPLICA_SPECS),
)  # fmt: skip
"""Labels in which controllers write the name of the workload, and its kind."""
CREATOR_KIND, CREATOR = "ray.io/originated-from-crd", "ray.io/originated-from-cr-name"
"""Labels with kind and name of what a RayCluster and its pods come from."""
TEMPLATE_HASH = "pod-template-hash"
"""Label with the end of the name of a Deployment's ReplicaSet."""
FROM_POD_NAMES = (("StatefulSet", "statefulset.kubernetes.io/pod-name"), ("DaemonSet", "pod-template-generation"))
"""Kinds whose pods are called after them with one further part, and the label that such pods have."""
ROLES = (
    ("jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index"), ("training.kubeflow.org/replica-type",),
    ("training.kubeflow.org/job-role",), ("volcano.sh/task-spec",),
)  # fmt: skip
"""Labels that name the role of a pod together."""
GROUP, WORKER = "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"
"""Labels of the pods of a LeaderWorkerSet; worker 0 is the leader."""
RAY_TYPE, RAY_GROUP = "ray.io/node-type", "ray.io/group"
FINISHED = ("Complete", "Completed", "Failed", "Succeeded", "SuccessCriteriaMet", "FailureTarget")
"""Conditions after which a Job, a JobSet or a job of Kubeflow creates no pods."""
ENDED_STATES = ("Completed", "Failed", "Aborted", "Terminated")
"""Phases in which a Job of Volcano has ended."""
ENDED_RAY = ("Complete", "Failed", "SUCCEEDED", "FAILED", "STOPPED")
"""States of a RayJob that has ended."""
_CRON_TIME = re.compile(r"\d{4,}")
_RANDOM = re.compile(r"(-raycluster)?-[a-z0-9]{5}")

Identity = tuple[str, str, str]
"""Kind, namespace and name."""


class Belonging:
    """The pods and the workloads that each workload among some objects has."""

    def __init__(self, objects: Sequence[Manifest]) -> None:
        self._pods: dict[Identity, list[Manifest]] = {}
        self._parents: set[Identity] = set()
        of_pods = [item for item in objects if item.kind == "Pod" or is_workload(item)]
        if all(item.kind == "Pod" for item in of_pods):
            return
        self._index = {identity(item): item for item in objects}
        self._ray_jobs = [item for item in objects if item.kind == "RayJob"]
        for item in of_pods:
            nearest = self._nearest(item, {identity(item)})
            if nearest is None:
                continue
            if item.kind == "Pod":
                self._pods.setdefault(nearest, []).append(item)
            else:
                self._parents.add(nearest)

    def is_represented(self, workload: Manifest) -> bool:
        """Whether another workload among the objects stands for the pods of this one, as a ReplicaSet does."""
        return identity(workload) in self._parents

    def pods_of(self, workload: Manifest) -> list[Manifest]:
        """The pods that belong to a workload and to no nearer one; those that have ended are among them."""
        return self._pods.get(identity(workload), [])

    def _nearest(self, item: Manifest, seen: set[Identity]) -> Identity | None:
        """The nearest workload above an object; a pod may be above others, as the leader of its workers is."""
        for above in self._above(item):
            found = self._index.get(above)
            if found is None or above in seen:
                continue
            seen.add(above)
            return above if is_workload(found) else self._nearest(found, seen)
        return None

    def _above(self, item: Manifest) -> Iterator[Identity]:
        """Possible owners of an object, nearest first, whether they are among the objects or not."""
        labels = mapping(item.part("metadata"), "labels", item.where)
        namespace = _namespace(item)
        for kind, _, name in chain(owners(item), _labelled(item, labels)):
            yield kind, namespace, name
            yield from self._creators(kind, namespace, name, labels)
        if labels.get(CREATOR):
            yield str(labels.get(CREATOR_KIND)), namespace, str(labels[CREATOR])

    def _creators(self, kind: str, namespace: str, name: str, labels: Mapping[str, Any]) -> Iterator[Identity]:
        """What creates an object of this name."""
        head, _, tail = name.rpartition("-")
        if kind == "ReplicaSet" and tail == labels.get(TEMPLATE_HASH):
            yield "Deployment", namespace, head
        elif kind == "Job" and _CRON_TIME.fullmatch(tail):
            yield "CronJob", namespace, head
        elif kind == "RayCluster":
            for job in self._ray_jobs:
                stated = job.part("status").get("rayClusterName")
                if _namespace(job) == namespace and (
                    stated == name if stated else name.startswith(job.name) and _RANDOM.fullmatch(name[len(job.name) :])
                ):
                    yield identity(job)


def is_workload(item: Manifest) -> bool:
    """Whether an object is of a kind that has pods."""
    return item.kind in WORKLOADS or is_gang_kind(item)


def identity(item: Manifest) -> Identity:
    """Kind, namespace and name of an object."""
    return item.kind, _namespace(item), item.name


def owners(item: Manifest) -> list[Identity]:
    """The owners that an object refers to, its controller first."""
    metadata = item.part("metadata")
    references = sequence(metadata, "ownerReferences", item.where)
    if not references:
        return []
    first = references if len(references) == 1 else sorted(references, key=lambda owner: not owner.get("controller"))
    namespace = str(metadata.get("namespace") or "default")
    return [(str(owner.get("kind")), namespace, str(owner.get("name"))) for owner in first]


def is_finished(item: Manifest) -> bool:
    """Whether a workload has ended and creates no pods."""
    status = item.part("status")
    conditions = sequence(status, "conditions", item.where)
    if any(one.get("type") in FINISHED and str(one.get("status")) == "True" for one in conditions):
        return True
    if item.kind == "RayJob":
        return status.get("jobDeploymentStatus") in ENDED_RAY or status.get("jobStatus") in ENDED_RAY
    return item.kind == "Job" and mapping(status, "state", item.where).get("phase") in ENDED_STATES


def role_of(pod: Manifest) -> str | None:
    """The role of a pod of a workload with roles, as ``gang_workloads`` calls it; None if no label says it."""
    labels = mapping(pod.part("metadata"), "labels", pod.where)
    if GROUP in labels:
        return f"{labels[GROUP]}" + ("" if str(labels.get(WORKER)) == "0" else "-worker")
    if labels.get(RAY_TYPE) == "head":
        return "head"
    if labels.get(RAY_GROUP):
        return str(labels[RAY_GROUP])
    return next(("-".join(str(labels[key]) for key in keys) for keys in ROLES if all(key in labels for key in keys)),
                None)  # fmt: skip


def _labelled(item: Manifest, labels: Mapping[str, Any]) -> Iterator[Identity]:
    """What labels and the name of an object say that it belongs to."""
    namespace = _namespace(item)
    for kind, label in NAMED_BY:
        if labels.get(label) and (kind, str(labels[label])) != (item.kind, item.name):
            yield kind, namespace, str(labels[label])
    if item.kind != "Pod":
        return
    marker = f"-{labels[TEMPLATE_HASH]}" if labels.get(TEMPLATE_HASH) else ""
    if marker and marker in item.name:
        yield "ReplicaSet", namespace, item.name[: item.name.rindex(marker)] + marker
    for kind, label in FROM_POD_NAMES:
        if label in labels:
            yield kind, namespace, item.name.rpartition("-")[0]


def _namespace(item: Manifest) -> str:
    return str(item.part("metadata").get("namespace") or "default")
