"""Quotas of Kueue's queues, as the rule of a run that comes nearest."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.kubernetes.workloads.kueue_quotas import QUEUES, SHARED, UNUSED, kueue_notice
from fastsim.scenario.run_rules import quotas_from
from tests.objects import node, pod

GPU = "nvidia.com/gpu"


def cluster_queue(name: str, *flavors: dict[str, Any], **spec: Any) -> Manifest:
    """A ClusterQueue whose flavors have these nominal quotas by resource."""
    listed = []
    for number, flavor in enumerate(flavors):
        resources = [{"name": key, "nominalQuota": amount} for key, amount in flavor.items()]
        listed.append({"name": f"flavor-{number}", "resources": resources})
    groups = {"resourceGroups": [{"flavors": listed}]}
    body = {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec | groups}
    return Manifest(f"ClusterQueue {name}", body)


def local_queue(name: str, queue: str, namespace: str = "default") -> Manifest:
    """A LocalQueue of a ClusterQueue."""
    metadata = {"name": name, "namespace": namespace}
    return Manifest(f"LocalQueue {name}", {"kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": queue}})


def test_the_quota_of_one_tenant_is_told_as_the_rule_that_honours_it() -> None:
    queues = [cluster_queue("research", {"cpu": "40", "memory": "2Gi", GPU: 8}), cluster_queue("web", {GPU: "2"})]
    local = [local_queue("team", "research"), local_queue("team", "research", "other"), local_queue("shop", "web")]
    text = kueue_notice(queues, local)
    assert quotas_from(text.split("'")[1]) == {
        "team": {"cpu_milli": 40000, "memory_mib": 2048, "gpu_milli": 8000}, "shop": {"gpu_milli": 2000},
    }  # fmt: skip
    assert text.startswith(f"{QUEUES}; --quotas '") and text.endswith("of CPU, memory and GPUs")


@pytest.mark.parametrize(
    ("queue", "local", "lacking"),
    [
        (cluster_queue("q", {GPU: 8}), [local_queue("a", "q"), local_queue("b", "q")], SHARED),
        (cluster_queue("q", {GPU: 8}), [local_queue("a", "q"), local_queue("a", "r")], SHARED),
        (cluster_queue("q", {GPU: 8}), [], UNUSED),
        (cluster_queue("q", {"pods": 3}), [local_queue("a", "q")], "quotas of pods"),
    ],
)
def test_a_quota_that_no_option_honours_is_named(queue: Manifest, local: list[Manifest], lacking: str) -> None:
    assert kueue_notice([queue], local) == f"{QUEUES}; no option honours {lacking}"


@pytest.mark.parametrize(
    ("queue", "lacking"),
    [
        (cluster_queue("q", {GPU: 8}, cohort="all"), "loans within a cohort"),
        (cluster_queue("q", {GPU: 8}, cohortName="all"), "loans within a cohort"),
        (cluster_queue("q", {GPU: 5}, {GPU: 3}), "quotas of single flavors"),
    ],
)
def test_what_a_limit_of_a_tenant_lacks_is_named(queue: Manifest, lacking: str) -> None:
    text = kueue_notice([queue], [local_queue("a", "q")])
    assert quotas_from(text.split("'")[1]) == {"a": {"gpu_milli": 8000}}
    assert text.endswith(f"no option honours {lacking}")


def test_queues_of_a_dump_are_in_the_notices() -> None:
    queue, local = cluster_queue("q", {GPU: "two"}), local_queue("a", "q")
    beside = [Manifest("node", node()), Manifest("pod", pod())]
    with pytest.raises(InputError, match=r"nominalQuota of flavor-0: nvidia\.com/gpu: found 'two'"):
        Snapshot([*beside, queue, local]).pod_rows()
    read = Snapshot([*beside, cluster_queue("q", {GPU: 2}), local])
    read.pod_rows()
    assert read.notices[kueue_notice([cluster_queue("q", {GPU: 2})], [local])] == 1
