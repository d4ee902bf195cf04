"""Documented rules of workloads, gangs and devices, each on a dump worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.documented.dumps import FORMS, Dump, unexpected
from tests.objects import claim, device_class, gpu, node, pod, request, resource_slice

GPU = "nvidia.com/gpu"
ONE: dict[str, object] = {GPU: "1"}
RUNS = {"phase": "Running"}


def board(name: str, gpus: int, product: str = "Tesla-T4", **amounts: str) -> dict[str, Any]:
    return node(name, {"nvidia.com/gpu.product": product}, amounts={GPU: str(gpus), **amounts})


def owned(name: str, kind: str, owner: str, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A pod that a controller has made."""
    by = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "controller": True}
    return pod(name, ONE, labels=labels, meta={"ownerReferences": [by]}, **more)


def template(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "spec": pod("t", ONE)["spec"]}


def workload(kind: str, name: str, labels: dict[str, str], version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": labels}, "template": template(**labels), **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": body}


def job(
    name: str, status: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"template": template(), **spec}, "status": status or {}}  # fmt: skip


def group(least: int, version: str = "scheduling.x-k8s.io/v1alpha1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": least}}


def members(count: int, requests: dict[str, object] | None = None, **more: Any) -> list[dict[str, Any]]:
    return [pod(f"p{n}", requests or ONE, **more) for n in range(count)]


def slice_of(name: str, devices: int, slices: int = 1) -> dict[str, Any]:
    own = [gpu(f"g{number}", "Tesla-T4") for number in range(devices)]
    return resource_slice(name, *own, pool={"resourceSliceCount": slices})


def claim_for(name: str, count: int, status: dict[str, Any] | None = None) -> dict[str, Any]:
    return claim(name, request(count=count), status=status, meta={"namespace": "default"})


def using(name: str, claim: str, **more: Any) -> dict[str, Any]:
    return pod(name, {"cpu": 1}, resourceClaims=[{"name": "c", "resourceClaimName": claim}], **more)


APP = {"app": "web"}
HASHED = {**APP, "pod-template-hash": "abc"}
RUNNING = [owned(f"web-abc-{n}", "ReplicaSet", "web-abc", HASHED, status=RUNS, nodeName="n1") for n in range(3)]
IN_GROUP: dict[str, Any] = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
DONE = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
KUEUE = {"kueue.x-k8s.io/queue-name": "research"}
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}
MIG: dict[str, object] = {"nvidia.com/mig-1g.5gb": "1"}
DUMPS = [
    Dump("a Deployment without its pods is as many pods as it has replicas",
         [board("n1", 8), workload("Deployment", "web", APP, replicas=2)], {"web-0": "n1", "web-1": "n1"}),
    Dump("replicas are 1 unless they are told",
         [board("n1", 8), workload("Deployment", "web", APP)], {"web-0": "n1"}),
    Dump("a Deployment beside its pods adds only pods that are missing, without its ReplicaSet too",
         [board("n1", 8), *RUNNING, workload("Deployment", "web", APP, replicas=5)],
         {**dict.fromkeys(("web-abc-0", "web-abc-1", "web-abc-2", "web-3", "web-4"), "n1")}),
    Dump("a Deployment scaled to its pods adds none",
         [board("n1", 8), *RUNNING, workload("Deployment", "web", APP, replicas=3)],
         dict.fromkeys(("web-abc-0", "web-abc-1", "web-abc-2"), "n1")),
    Dump("a Job has as many pods as it needs completions",
         [board("n1", 8), job("j", parallelism=2, completions=2)], {"j-0": "n1", "j-1": "n1"}),
    Dump("a Job that is complete makes no more pods", [board("n1", 8), job("j", DONE), pod("p", ONE)], {"p": "n1"}),
    Dump("a Job that has failed makes no more pods", [board("n1", 8), job("j", FAILED), pod("p", ONE)], {"p": "n1"}),
    Dump("the pods of a Job that run are no more than the completions that remain",
         [board("n1", 8), job("j", {"succeeded": 3}, parallelism=2, completions=4)], {"j-0": "n1"}),
    Dump("a Job that Kueue has suspended half-way needs only the completions that remain",
         [board("n1", 8), job("j", {"succeeded": 3}, KUEUE, parallelism=2, completions=4, suspend=True)],
         {"j-0": "n1"}),
    Dump("a Job without completions of which a pod has succeeded starts no new pods",
         [board("n1", 8), job("j", {"succeeded": 1}, parallelism=3), pod("p", ONE)], {"p": "n1"}),
    Dump("a Job of a JobSet that has succeeded is not created again",
         [board("n1", 8), {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"},
          "spec": {"replicatedJobs": [{"name": name, "replicas": 1, "template": {"spec": {"template": template()}}}
                                      for name in ("a", "b")]},
          "status": {"replicatedJobsStatus": [{"name": "a", "succeeded": 1}]}}], {"s-b-0-0": "n1"}),
    Dump("a worker of a PyTorchJob that has succeeded is not created again",
         [board("n1", 8), {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "t"},
          "spec": {"pytorchReplicaSpecs": {name: {"replicas": 1, "template": template()}
                                           for name in ("Master", "Worker")}},
          "status": {"replicaStatuses": {"Master": {"active": 1}, "Worker": {"succeeded": 1}}}}],
         {"t-master-0": "n1"}),
    Dump("a suspended Job makes no pods", [board("n1", 8), job("j", suspend=True), pod("p", ONE)],
         {"p": "n1"}),
    Dump("a suspended Job in a queue of Kueue waits for its quota, with all its pods",
         [board("n1", 8), job("j", labels=KUEUE, parallelism=2, completions=2, suspend=True)],
         {"j-0": "n1", "j-1": "n1"}),
    Dump("a plain pod in a queue of Kueue is gated until it is admitted, so it waits as pods do",
         [board("n1", 1), pod("a", ONE, labels=KUEUE, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
          pod("b", ONE)], {"a": "n1", "b": ""}),
    Dump("a pod with a gate that is not Kueue's is not considered for a node",
         [board("n1", 1), pod("a", ONE, labels=KUEUE, schedulingGates=[
             {"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/check"}]), pod("b", ONE)], {"b": "n1"}),
    Dump("pods of a Job beside it are its pods, by the label job-name alone",
         [board("n1", 8), job("j"), pod("j-x", ONE, labels={"batch.kubernetes.io/job-name": "j"}, status=RUNS,
                                        nodeName="n1")], {"j-x": "n1"}),
    Dump("a DaemonSet runs one pod on each node that its pods may use",
         [node("n1"), node("n2", {"gpu": "x"}), {"apiVersion": "apps/v1", "kind": "DaemonSet",
          "metadata": {"name": "d"}, "spec": {"template": {"metadata": {}, "spec": {
              **pod("t", {"cpu": 1})["spec"], "nodeSelector": {"gpu": "x"}}}}}, pod("p", {"cpu": 8})],
         {"p": "n1", "d-n2": "n2"}),
    Dump("a pod that is listed twice is one pod",
         [board("n1", 2), *[pod("a", ONE, status=RUNS, nodeName="n1", meta={"uid": "1"})] * 2, pod("b", ONE)],
         {"a": "n1", "b": "n1"}),
    Dump("mirror pods of a node hold their resources",
         [node("n1"), pod("m", {"cpu": 8}, {"kubernetes.io/config.mirror": "x"}, status=RUNS, nodeName="n1"),
          pod("p", {"cpu": 1})], {"m": "n1", "p": ""}),
    Dump("pods of a group start together or not at all",
         [board("n1", 2), group(3), *members(3, **IN_GROUP), pod("q", ONE)],
         {"p0": "", "p1": "", "p2": "", "q": "n1"}),
    Dump("a group of which the least number fits starts",
         [board("n1", 3), group(3), *members(3, **IN_GROUP)], dict.fromkeys(("p0", "p1", "p2"), "n1")),
    Dump("a group with fewer pods than its least number waits",
         [board("n1", 4), group(3), *members(2, **IN_GROUP), pod("q", ONE)], {"p0": "", "p1": "", "q": "n1"}),
    Dump("a member beyond the least number starts only with its gang",
         [board("n1", 1), board("n2", 1), group(3), *members(4, **IN_GROUP), pod("q", ONE)],
         {**dict.fromkeys(("p0", "p1", "p2", "p3"), ""), "q": {"n1", "n2"}}),
    Dump("a member beyond the least number starts after its gang",
         [board("n1", 4), group(3), *members(4, **IN_GROUP)], dict.fromkeys(("p0", "p1", "p2", "p3"), "n1")),
    Dump("a claim for devices is met by devices of one node",
         [node("n1"), node("n2"), device_class(), slice_of("n2", 2), claim_for("two", 2), using("p", "two"),
          claim_for("more", 1), using("q", "more")], {"p": "n2", "q": ""}),
    Dump("devices of a pool that lacks slices are not given",
         [node("n1"), node("n2"), device_class(), slice_of("n1", 2, slices=2), slice_of("n2", 1), claim_for("one", 1),
          using("p", "one"), claim_for("more", 1), using("q", "more")], {"p": "n2", "q": ""}),
    Dump("a claim that is not there keeps a pod waiting",
         [node("n1"), device_class(), slice_of("n1", 2), using("p", "missing")], {"p": ""}),
    Dump("a device class that is not there keeps a pod waiting",
         [node("n1"), slice_of("n1", 2), claim_for("one", 1), using("p", "one")], {"p": ""}),
    Dump("devices that are allocated are not free",
         [node("n1"), device_class(), slice_of("n1", 1), claim_for("old", 1, {"allocation": {"devices": {"results": [
             {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "g0"}]}},
             "reservedFor": [{"resource": "pods", "name": "o", "uid": "1"}]}),
          using("o", "old", status=RUNS, nodeName="n1", meta={"uid": "1"}), claim_for("new", 1), using("p", "new")],
         {"o": "n1", "p": ""}),
    Dump("a pod asks for whole devices of one node",
         [board("n1", 1), board("n2", 1), pod("a", {GPU: "2"}), pod("b", ONE)], {"a": "", "b": {"n1", "n2"}}),
    Dump("instances of partitioned GPUs are resources by their names",
         [node("n1", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, amounts={"nvidia.com/mig-1g.5gb": "2"}),
          *members(3, MIG)], {"p0": "n1", "p1": "n1", "p2": ""}),
    Dump("instances that are shared in turns are a resource of their own",
         [node("n1", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
               amounts={"nvidia.com/mig-1g.5gb.shared": "2"}),
          pod("a", MIG), pod("b", {"nvidia.com/mig-1g.5gb.shared": "1"})], {"a": "", "b": "n1"}),
    Dump("devices of other makers are resources, too",
         [node("n1", amounts={"amd.com/gpu": "2"}), pod("a", {"amd.com/gpu": "2"}), pod("b", {"amd.com/gpu": "1"})],
         {"a": "n1", "b": ""}),
    Dump("a runtime class adds its overhead and its nodes to the pods of a template",
         [node("n1"), node("n2", {"runtime": "kata"}), {
             "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata",
             "overhead": {"podFixed": {"cpu": "2"}}, "scheduling": {"nodeSelector": {"runtime": "kata"}}},
          {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
              "replicas": 2, "template": {"metadata": {}, "spec": {
                  **pod("t", {"cpu": 3})["spec"], "runtimeClassName": "kata"}}}}], {"d-0": "n2", "d-1": ""}),
    Dump("defaults of a namespace are the requests of containers without any",
         [node("n1"), {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"},
                       "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "5"}}]}},
          {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
           "spec": {"replicas": 2, "template": {"metadata": {}, "spec": pod("t")["spec"]}}}], {"d-0": "n1", "d-1": ""}),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_pods_are_where_the_rule_says(dump: Dump, form: str, tmp_path: Path) -> None:
    assert unexpected(dump, form, tmp_path) == {}
