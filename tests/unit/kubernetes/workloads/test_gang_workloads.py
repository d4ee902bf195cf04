"""Workloads with roles: which pods they have, and how many start together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import PodManifest, pods
from fastsim.kubernetes.pod_rules.node_affinity import Places
from tests.objects import manifest

ONE_GPU = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
NO_GPU: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


def made(group: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "w", "namespace": "ns"}, "spec": spec}


def found(*objects: dict[str, Any]) -> list[PodManifest]:
    notices: Counter[str] = Counter()
    listed = list(pods([manifest(item) for item in objects], Places(), notices))
    assert not notices
    return listed


def told(item: dict[str, Any]) -> list[tuple[str, int | None, str]]:
    return [(pod.name, pod.together, pod.owner) for pod in found(item)]


@pytest.mark.parametrize(
    ("kind", "key"),
    [("PyTorchJob", "pytorchReplicaSpecs"), ("TFJob", "tfReplicaSpecs"), ("MPIJob", "mpiReplicaSpecs"),
     ("XGBoostJob", "xgbReplicaSpecs"), ("PaddleJob", "paddleReplicaSpecs")],
)  # fmt: skip
def test_a_job_of_kubeflow_is_one_gang_of_its_roles(kind: str, key: str) -> None:
    roles = {"Master": {"template": NO_GPU}, "Worker": {"replicas": 2, "template": ONE_GPU}}
    job, owner = made("kubeflow.org", kind, **{key: roles}), f"{kind}/ns/w"
    assert told(job) == [("w-master-0", 3, owner), ("w-worker-0", 3, owner), ("w-worker-1", 3, owner)]
    assert found(job)[2].spec == ONE_GPU["spec"]
    policy = {"schedulingPolicy": {"minAvailable": 2}}
    assert {pod.together for pod in found(made("kubeflow.org", kind, **{key: roles}, runPolicy=policy))} == {2}
    assert found(made("kubeflow.org", kind, **{key: roles}, runPolicy={"suspend": True})) == []


def test_a_job_set_is_one_gang_of_what_its_jobs_run_at_a_time() -> None:
    body = {"parallelism": 3, "completions": 2, "template": ONE_GPU}
    jobs = [{"name": "a", "template": {"spec": {"template": NO_GPU}}},
            {"name": "b", "replicas": 2, "template": {"spec": body}}]  # fmt: skip
    names = ["w-a-0-0", "w-b-0-0", "w-b-0-1", "w-b-1-0", "w-b-1-1"]
    assert told(made("jobset.x-k8s.io", "JobSet", replicatedJobs=jobs)) == [(name, 5, "JobSet/ns/w") for name in names]
    assert found(made("jobset.x-k8s.io", "JobSet", replicatedJobs=jobs, suspend=True)) == []


def test_each_replica_of_leaders_and_workers_is_a_gang() -> None:
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": ONE_GPU}}
    assert told(made("leaderworkerset.x-k8s.io", "LeaderWorkerSet", **spec)) == [
        ("w-0-0", 2, "LeaderWorkerSet/ns/w/0"), ("w-0-worker-0", 2, "LeaderWorkerSet/ns/w/0"),
        ("w-1-0", 2, "LeaderWorkerSet/ns/w/1"), ("w-1-worker-0", 2, "LeaderWorkerSet/ns/w/1"),
    ]  # fmt: skip


def test_ray_has_a_head_and_groups_of_workers() -> None:
    groups = [{"groupName": "g", "replicas": 1, "minReplicas": 2, "template": ONE_GPU}]
    cluster = {"headGroupSpec": {"template": NO_GPU}, "workerGroupSpecs": groups}
    ray, job = made("ray.io", "RayCluster", **cluster), made("ray.io", "RayJob", rayClusterSpec=cluster)
    assert [name for name, _, _ in told(ray)] == [name for name, _, _ in told(job)] == ["w-head-0", "w-g-0", "w-g-1"]
    ray["metadata"]["ownerReferences"] = [{"kind": "RayJob", "name": "w"}]
    assert {pod.owner for pod in found(job, ray)} == {"RayCluster/ns/w"}  # what is there is not expanded again


@pytest.mark.parametrize("count", [-1, "2", True])
def test_bad_numbers_are_named(count: object) -> None:
    roles = {"Worker": {"replicas": count, "template": ONE_GPU}}
    with pytest.raises(InputError, match=r"Worker: replicas: found .*, expected a whole number, 0 to 1,000,000"):
        found(made("kubeflow.org", "PyTorchJob", pytorchReplicaSpecs=roles))
