"""Members that are over and whose pods are gone are not created again, whatever kind of workload counts them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import LACKED, pods, without_pods
from fastsim.kubernetes.pod_rules.node_affinity import Places
from fastsim.kubernetes.workloads.ended_members import AS_A_WHOLE, COUNTED, RESTARTED, ended
from fastsim.kubernetes.workloads.gang_workloads import GANG_KINDS, REPLICA_SPECS
from fastsim.kubernetes.workloads.owners import WORKLOADS
from tests.objects import manifest, pod

TEMPLATE: dict[str, Any] = {"metadata": {}, "spec": {"containers": []}}
KUEUE = {"kueue.x-k8s.io/queue-name": "q"}
PLACES = Places(({"name": "m"}, {"name": "n"}))


def made(kind: str, group: str, status: Any, labels: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "ns", "labels": labels or {}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "status": status, "spec": spec}


def job(status: dict[str, Any], labels: Any = None, **spec: Any) -> dict[str, Any]:
    return made("Job", "batch", status, labels, template=TEMPLATE, **spec)


def kubeflow(kind: str, status: dict[str, Any], **policy: Any) -> dict[str, Any]:
    roles = {"Master": {"template": TEMPLATE}, "Worker": {"replicas": 3, "template": TEMPLATE}}
    return made(kind, "kubeflow.org", {"replicaStatuses": status},
                runPolicy=policy, **{REPLICA_SPECS[kind]: roles})  # fmt: skip


def job_set(**succeeded: int) -> dict[str, Any]:
    status = {"replicatedJobsStatus": [{"name": name, "succeeded": count, "failed": 0, "active": 1}
                                       for name, count in succeeded.items()]}  # fmt: skip
    inner = {"spec": {"parallelism": 2, "completions": 2, "template": TEMPLATE}}
    listed = [{"name": name, "replicas": count, "template": inner} for name, count in (("a", 1), ("b", 3))]
    return made("JobSet", "jobset.x-k8s.io", status, replicatedJobs=listed)


def volcano(**status: Any) -> dict[str, Any]:
    tasks = [{"name": name, "replicas": 2, "template": TEMPLATE} for name in ("t", "u")]
    return made("Job", "batch.volcano.sh", status, tasks=tasks)


def there(name: str, *owner: str, phase: str = "Running", **labels: str) -> dict[str, Any]:
    references = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    metadata = {"namespace": "ns", "labels": labels, "ownerReferences": references}
    return pod(name, status={"phase": phase}, meta=metadata, nodeName="n")


def in_job(name: str, role: str, index: int, phase: str = "Running") -> dict[str, Any]:
    begin = "jobset.sigs.k8s.io"
    labels = {"jobset-name": "w", "replicatedjob-name": role, "job-index": str(index)}
    return there(name, phase=phase, **{f"{begin}/{key}": value for key, value in labels.items()})


def added(*objects: dict[str, Any]) -> list[str]:
    """Names of the pods that workloads add, without the workload's; those beside others are named."""
    notices: Counter[str] = Counter()
    listed = [one for one in pods([manifest(item) for item in objects], PLACES, notices) if not one.status]
    assert notices[LACKED] == (len(listed) if len(objects) > 1 else 0)
    assert not any("parallelism" in text for text in notices)
    return [one.name.removeprefix("w-") for one in listed]


CASES = [
    (job({"succeeded": 3}, completions=4, parallelism=2), ["0"]),
    (job({"succeeded": 1}, completions=4, parallelism=2), ["0", "1"]),
    (job({"succeeded": 3}, KUEUE, completions=4, parallelism=2, suspend=True), ["0"]),
    (job({"succeeded": 3}, completions=4, parallelism=2, suspend=True), []),
    (job({"succeeded": 4}, completions=4, parallelism=2), []),
    (job({"succeeded": 1}, parallelism=3), []),
    (job({"failed": 2}, parallelism=3), ["0", "1", "2"]),
    (job({"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["1", "2"]}}, completions=4, parallelism=4), ["0"]),
    (job({"succeeded": 1, "failedIndexes": "1,3-5"}, completions=6, parallelism=4), ["0"]),
    (job_set(a=1), ["b-0-0", "b-0-1", "b-1-0", "b-1-1", "b-2-0", "b-2-1"]),
    (job_set(a=1, b=2), ["b-2-0", "b-2-1"]),
    (volcano(taskStatusCount={"t": {"phase": {"Succeeded": 1, "Running": 1}}}), ["t-1", "u-0", "u-1"]),
    (volcano(succeeded=3), ["u-1"]),
    (volcano(taskStatusCount={"u": {"phase": {"Failed": 1}}}), ["t-0", "t-1", "u-0", "u-1"]),
    *((kubeflow(kind, {"Worker": {"succeeded": 1, "active": 2}}), ["master-0", "worker-1", "worker-2"])
      for kind in REPLICA_SPECS),
    (kubeflow("PyTorchJob", {"Master": {"succeeded": 1}, "Worker": {"succeeded": 3}}), []),
    *((made(kind, "apps", {"replicas": 2, "succeeded": 1}, replicas=2, template=TEMPLATE), ["0", "1"])
      for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")),
    (made("DaemonSet", "apps", {"numberReady": 1}, template=TEMPLATE), ["m", "n"]),
    (made("CronJob", "batch", {"active": [], "lastSuccessfulTime": "2026-01-01T00:00:00Z"},
          jobTemplate={"spec": {"template": TEMPLATE}}), ["0"]),
    (made("LeaderWorkerSet", "leaderworkerset.x-k8s.io", {"replicas": 1, "readyReplicas": 1},
          leaderWorkerTemplate={"size": 2, "workerTemplate": TEMPLATE}), ["0-0", "0-worker-0"]),
    (made("RayCluster", "ray.io", {"state": "ready"}, headGroupSpec={"template": TEMPLATE}), ["head-0"]),
    (made("RayJob", "ray.io", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"},
          rayClusterSpec={"headGroupSpec": {"template": TEMPLATE}}), []),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), CASES, ids=str)
def test_pods_that_are_over_and_gone_are_not_created_again(body: dict[str, Any], expected: list[str]) -> None:
    """A Job creates as many pods at a time as it may, but no more than "the number of remaining completions".

    Without a number of completions, "when any Pod from the Job terminates with success, no new Pods are created".
    """
    assert added(body) == expected


def test_every_kind_of_workload_counts_what_is_over_or_has_nothing_to_count() -> None:
    kinds = {*WORKLOADS, *(kind for _, kind in GANG_KINDS)}
    assert kinds == {*COUNTED, *RESTARTED, *AS_A_WHOLE}
    assert kinds == {body["kind"] for body, _ in CASES}
    assert {body["kind"] for body, _ in CASES if ended(manifest(body))} == set(COUNTED)


def test_pods_that_are_there_are_among_those_that_the_status_counts() -> None:
    """A pod that has succeeded and is still there is one of those that are counted, or not counted yet."""
    done = in_job("w-b-1-0-x", "b", 1, "Succeeded"), in_job("w-b-1-1-x", "b", 1, "Succeeded")
    assert added(job_set(a=1, b=1), *done) == ["b-0-0", "b-0-1", "b-2-0", "b-2-1"]
    assert added(job_set(a=1, b=1), done[0]) == ["b-0-0", "b-0-1", "b-2-0", "b-2-1"]  # the other pod of it is gone
    runs = in_job("w-b-0-0-x", "b", 0), in_job("w-b-0-1-x", "b", 0)
    assert added(job_set(a=1, b=1), *runs) == ["b-2-0", "b-2-1"]
    assert added(job_set(a=1, b=1), runs[0]) == ["b-0-1", "b-2-0", "b-2-1"]
    torch = kubeflow("PyTorchJob", {"Worker": {"succeeded": 1}})
    assert added(torch, there("w-worker-2", "PyTorchJob", "w", phase="Succeeded")) == [
        "master-0", "worker-0", "worker-1"]  # fmt: skip
    assert added(torch, there("w-worker-0", "PyTorchJob", "w")) == ["master-0", "worker-2"]
    tasks = volcano(taskStatusCount={"t": {"phase": {"Succeeded": 1}}})
    assert added(tasks, there("w-t-1", "Job", "w", phase="Succeeded")) == ["t-0", "u-0", "u-1"]
    assert added(tasks, there("w-t-0", "Job", "w")) == ["u-0", "u-1"]


def test_members_that_are_over_need_not_start_with_the_others() -> None:
    listed = list(pods([manifest(kubeflow("TFJob", {"Worker": {"succeeded": 1}}))], PLACES, Counter()))
    assert [one.together for one in listed] == [3, 3, 3]


def test_what_has_no_pods_left_is_named() -> None:
    mpi = kubeflow("MPIJob", {"Worker": {"succeeded": 3}, "Master": {"succeeded": 1}})
    bodies = [manifest(job({"succeeded": 1}, parallelism=3)), manifest(mpi)]
    assert without_pods(bodies) == "1 Job whose pods are over, 1 MPIJob without pods and no pods that ask for anything"


@pytest.mark.parametrize("count", [-1, "2", True])
def test_bad_numbers_are_named(count: object) -> None:
    with pytest.raises(InputError, match=r"succeeded: found .*, expected a whole number, 0 to 1,000,000"):
        added(job({"succeeded": count}))
    with pytest.raises(InputError, match=r"Worker: found .*, expected a whole number, 0 to 1,000,000"):
        added(kubeflow("TFJob", {"Worker": {"succeeded": count}}))
