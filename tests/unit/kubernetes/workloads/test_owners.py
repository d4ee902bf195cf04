"""Pods belong to the nearest workload among the objects, which adds only what it lacks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.kubernetes.controllers import LACKED, pods, without_pods
from fastsim.kubernetes.pod_rules.node_affinity import Places
from tests.objects import manifest, pod

TEMPLATE: dict[str, Any] = {"metadata": {}, "spec": {"containers": []}}
DONE = {"conditions": [{"type": "Suspended", "status": "False"}, {"type": "Complete", "status": "True"}]}


def made(kind: str, name: str, group: str = "apps", status: Any = None, owner: Any = (), **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "ownerReferences": references(*owner)}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "status": status or {}, "spec": spec}


def references(*owner: str) -> list[dict[str, Any]]:
    return [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []


def running(name: str, *owner: str, phase: str = "Running", meta: Any = None) -> dict[str, Any]:
    metadata = {"namespace": "ns", "ownerReferences": references(*owner), **(meta or {})}
    return pod(name, status={"phase": phase}, meta=metadata, nodeName="n")


def labelled(name: str, labels: dict[str, str], *owner: str) -> dict[str, Any]:
    return running(name, *owner, meta={"labels": labels})


def told(*objects: dict[str, Any], places: Places = Places()) -> tuple[list[tuple[str, int | None]], int]:  # noqa: B008
    """Names of the pods that workloads add, how many start together, and the number of those that are named."""
    notices: Counter[str] = Counter()
    listed = list(pods([manifest(item) for item in objects], places, notices))
    there = sum(item["kind"] == "Pod" for item in objects)
    added = [(one.name, one.together) for one in listed if not one.status]
    assert len(listed) == there + len(added)
    return added, notices[LACKED]


def hashed(name: str, *owner: str) -> dict[str, Any]:
    return labelled(name, {"pod-template-hash": "5d59d67564"}, *owner)


def test_a_deployment_beside_its_pods_adds_what_it_lacks() -> None:
    """A Deployment "adds a pod-template-hash label to every ReplicaSet"; the names of both end in it."""
    web = made("Deployment", "web", replicas=5, template=TEMPLATE)
    owned = [hashed(f"web-5d59d67564-{end}", "ReplicaSet", "web-5d59d67564") for end in ("abcde", "fghij", "klmno")]
    lacks = [("web-3", None), ("web-4", None)], 2
    assert told(web, *owned) == lacks
    assert told(web, *(hashed(f"web-5d59d67564-{end}") for end in ("abcde", "fghij", "klmno"))) == lacks
    chain = made("ReplicaSet", "web-5d59d67564", owner=("Deployment", "web"), replicas=5, template=TEMPLATE)
    assert told(web, chain, *owned) == ([("web-5d59d67564-3", None), ("web-5d59d67564-4", None)], 2)
    assert told(made("Deployment", "web", replicas=3, template=TEMPLATE), *owned) == ([], 0)
    assert told(made("Deployment", "other", replicas=1, template=TEMPLATE), *owned) == ([("other-0", None)], 0)


def test_pods_that_are_deleted_or_over_are_replaced() -> None:
    """A ReplicaSet counts active pods; a StatefulSet creates a pod anew only when that of its name is gone."""
    leaving = running("w-0", "ReplicaSet", "w", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    over = running("w-1", "ReplicaSet", "w", phase="Failed")
    pair = made("ReplicaSet", "w", replicas=2, template=TEMPLATE)
    assert told(pair, leaving, over) == ([("w-0", None), ("w-1", None)], 2)
    for body in (leaving, over):
        body["metadata"]["ownerReferences"] = references("StatefulSet", "w")
    assert told(made("StatefulSet", "w", replicas=2, template=TEMPLATE), leaving, over) == ([("w-1", None)], 1)


def test_a_stateful_set_lacks_the_pod_whose_name_is_missing() -> None:
    """ "Each Pod in a StatefulSet derives its hostname from the name of the StatefulSet and the ordinal of the Pod"."""
    there = [labelled("db-0", {"statefulset.kubernetes.io/pod-name": "db-0"}), running("db-2", "StatefulSet", "db")]
    assert told(made("StatefulSet", "db", replicas=3, template=TEMPLATE), *there) == ([("db-1", None)], 1)


def test_a_daemon_set_lacks_pods_on_nodes_without_one() -> None:
    """The controller "adds the .spec.affinity.nodeAffinity field" with the node's name to pods that wait."""
    agent = made("DaemonSet", "agent", template=TEMPLATE)
    waiting = running("agent-y", "DaemonSet", "agent", phase="Pending")
    field = {"key": "metadata.name", "operator": "In", "values": ["m"]}
    hard = "requiredDuringSchedulingIgnoredDuringExecution"
    waiting["spec"] |= {"nodeName": None, "affinity": {"nodeAffinity": {hard: {"nodeSelectorTerms": [
        {"matchFields": [field]}]}}}}  # fmt: skip
    places = Places(({"name": "m"}, {"name": "n"}, {"name": "o"}))
    assert told(agent, running("agent-x", "DaemonSet", "agent"), waiting, places=places) == ([("agent-o", None)], 1)


def test_a_job_creates_the_pods_that_may_run_now() -> None:
    """The number of active pods is at most ``parallelism``, and "won't exceed the number of remaining completions"."""

    def job(**status: Any) -> dict[str, Any]:
        return made("Job", "j", "batch", status, parallelism=2, completions=5, template=TEMPLATE)

    one = running("j-a", "Job", "j")
    assert told(job(), one) == ([("j-1", None)], 1)
    assert told(job(succeeded=4), one) == ([], 0)
    assert told(job(succeeded=3), one)[1] == 1
    for label in ("batch.kubernetes.io/job-name", "job-name"):
        assert told(job(), one, labelled("j-b", {label: "j"})) == ([], 0)
    # "When any Pod from the Job terminates with success, no new Pods are created": Jobs without completions.
    queue = made("Job", "j", "batch", parallelism=3, template=TEMPLATE)
    assert told(queue, one, running("j-c", "Job", "j", phase="Succeeded")) == ([], 0)
    assert told(queue, one)[1] == 2


def test_a_cron_job_with_a_pod_runs_already() -> None:
    """Names of its Jobs are its own and the minutes of the time for which they are scheduled."""
    nightly = made("CronJob", "nightly", "batch", jobTemplate={"spec": {"template": TEMPLATE}})
    assert told(nightly, running("nightly-29300000-x", "Job", "nightly-29300000")) == ([], 0)
    assert told(nightly, running("nightly-train-x", "Job", "nightly-train")) == ([("nightly-0", None)], 0)


JOB_SET = made("JobSet", "js", "jobset.x-k8s.io", replicatedJobs=[
    {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}])  # fmt: skip


def in_job_set(name: str, index: int) -> dict[str, Any]:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/replicatedjob-name": "w",
        "jobset.sigs.k8s.io/job-index": str(index), "job-name": f"js-w-{index}",
    }  # fmt: skip
    return labelled(name, labels, "Job", f"js-w-{index}")


def test_a_job_set_lacks_pods_of_its_jobs_which_start_with_those_there() -> None:
    """JobSet labels pods with its name, the name of the replicated job and the index of the Job."""
    there = [in_job_set("js-w-0-0-x", 0), in_job_set("js-w-0-1-x", 0), in_job_set("js-w-1-1-x", 1)]
    assert told(JOB_SET, *there) == ([("js-w-1-1", 1)], 1)
    assert told(JOB_SET, *there, in_job_set("js-w-1-0-x", 1)) == ([], 0)
    first = made("Job", "js-w-0", "batch", owner=("JobSet", "js"), parallelism=2, completions=2, template=TEMPLATE)
    assert told(JOB_SET, first, *there) == ([], 0)


def test_leaders_and_workers_are_known_by_their_labels() -> None:
    """Pods have the name of the LeaderWorkerSet, the index of their group and of the worker, 0 for the leader."""
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}}
    lws = made("LeaderWorkerSet", "v", "leaderworkerset.x-k8s.io", **spec)
    leader, worker = (
        labelled(name, {f"leaderworkerset.sigs.k8s.io/{key}": value for key, value in
                        (("name", "v"), ("group-index", "0"), ("worker-index", index))}, "StatefulSet", owner)
        for name, index, owner in (("v-0", "0", "v"), ("v-0-1", "1", "v-0"))
    )  # fmt: skip
    assert told(lws, leader, worker) == ([("v-1-0", 2), ("v-1-worker-0", 2)], 2)
    sets = [made("StatefulSet", "v", owner=("LeaderWorkerSet", "v"), replicas=1, template=TEMPLATE),
            made("StatefulSet", "v-0", owner=("Pod", "v-0"), replicas=1, template=TEMPLATE)]  # fmt: skip
    assert told(lws, *sets, leader, worker) == ([], 0)


def ray_pod(name: str, cluster: str, kind: str, group: str) -> dict[str, Any]:
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": kind, "ray.io/group": group}
    return labelled(name, labels, "RayCluster", cluster)


@pytest.mark.parametrize(
    ("cluster", "status"), [("rj-9k2xm", {}), ("rj-raycluster-9k2xm", {}), ("own", {"rayClusterName": "own"})]
)
def test_a_ray_job_finds_the_pods_of_its_cluster(cluster: str, status: dict[str, str]) -> None:
    """The RayCluster of a RayJob has its name with a random end; ``status.rayClusterName`` says which it is."""
    groups = {"headGroupSpec": {"template": TEMPLATE},
              "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2, "template": TEMPLATE}]}  # fmt: skip
    job = made("RayJob", "rj", "ray.io", status, rayClusterSpec=groups)
    there = [ray_pod("a", cluster, "head", "headgroup"), ray_pod("b", cluster, "worker", "gpu")]
    assert told(job, *there) == ([("rj-gpu-1", 1)], 1)
    submitter = running("rj-x", "Job", "rj")
    assert told(job, *there, submitter) == ([("rj-gpu-1", 1)], 1)
    assert len(told(made("RayJob", "r", "ray.io", rayClusterSpec=groups), *there)[0]) == 3


def test_a_cluster_of_ray_says_what_it_comes_from() -> None:
    """ "the RayCluster and the submitter Kubernetes Job will have" labels with kind and name of the RayJob."""
    spec = {"headGroupSpec": {"template": TEMPLATE}}
    cluster, job = made("RayCluster", "c", "ray.io", **spec), made("RayJob", "rj", "ray.io", rayClusterSpec=spec)
    cluster["metadata"]["labels"] = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "rj"}
    assert told(cluster, job) == ([("c-head-0", 1)], 0)


def test_roles_of_kubeflow_and_volcano() -> None:
    roles = {"Launcher": {"template": TEMPLATE}, "Worker": {"replicas": 3, "template": TEMPLATE}}
    mpi = made("MPIJob", "m", "kubeflow.org", mpiReplicaSpecs=roles)
    labels = {"training.kubeflow.org/job-name": "m", "training.kubeflow.org/job-role": "launcher"}
    launcher = labelled("m-launcher-x", labels, "Job", "m-launcher")
    assert told(mpi, launcher, running("m-worker-1", "MPIJob", "m")) == ([("m-worker-0", 2), ("m-worker-2", 2)], 2)
    volcano = made("Job", "v", "batch.volcano.sh", minAvailable=2, tasks=[{"name": "t", "replicas": 3}])
    assert told(volcano, running("v-t-0", "Job", "v")) == ([("v-t-1", 1), ("v-t-2", 1)], 2)


@pytest.mark.parametrize(
    "body",
    [
        made("Job", "j", "batch", DONE, template=TEMPLATE),
        made("Job", "j", "batch", {"conditions": [{"type": "Failed", "status": "True"}]}, template=TEMPLATE),
        JOB_SET | {"status": {"conditions": [{"type": "Completed", "status": "True"}]}},
        made("PyTorchJob", "p", "kubeflow.org", {"conditions": [{"type": "Succeeded", "status": "True"}]},
             pytorchReplicaSpecs={"Worker": {"template": TEMPLATE}}),
        made("RayJob", "rj", "ray.io", {"jobDeploymentStatus": "Complete"}, rayClusterSpec={}),
        made("RayJob", "rj", "ray.io", {"jobStatus": "STOPPED"}, rayClusterSpec={}),
        made("Job", "v", "batch.volcano.sh", {"state": {"phase": "Aborted"}}, tasks=[{"name": "t"}]),
    ],
)  # fmt: skip
def test_what_has_ended_adds_nothing(body: dict[str, Any]) -> None:
    """ "When a Job completes, no more Pods are created"; its pods may have been collected."""
    assert told(body) == ([], 0)
    assert without_pods([manifest(body)]) == f"1 finished {body['kind']} and no pods that ask for anything"
    assert told({**body, "status": {"conditions": [{"type": "Failed", "status": "False"}]}})[0]
