"""Nodes of Kubernetes: capacities, every dialect of devices, labels and taints."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import InputError
from tests.objects import node, row_of


def devices(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["num_gpu"], row["gpu_model"], row["gpu_memory_mib"], row["mig"]


@pytest.mark.parametrize(
    ("labels", "amounts", "expected"),
    [
        ({}, {}, (0, None, None, None)),
        ({"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360"}, {"nvidia.com/gpu": "4"},
         (4, "T4", 15360, None)),
        ({"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.memory": str(22 << 30)}, {"nvidia.com/gpu": 1},
         (1, "A10", 22 << 10, None)),  # some versions wrote bytes
        ({"alibabacloud.com/gpu-card-model": "V100M16"},
         {"alibabacloud.com/gpu-count": "2", "alibabacloud.com/gpu-mem": "32560Mi"}, (2, "V100M16", 16280, None)),
        ({"alibabacloud.com/gpu-card-model": "P4"}, {"alibabacloud.com/gpu-milli": "3000"}, (3, "P4", 7611, None)),
        ({"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}, {"aliyun.com/gpu-mem": "62", "aliyun.com/gpu-count": "2"},
         (2, "V100M32", 31744, None)),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, {"nvidia.com/gpu": "1", "nvidia.com/mig-3g.40gb": "2"},
         (2, "A100-80GB", 81920, ";2*3g.40gb")),
        ({"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"},
         {"nvidia.com/gpu": "8"}, (2, "T4", 15109, None)),
    ],
)  # fmt: skip
def test_devices(labels: dict[str, str], amounts: dict[str, object], expected: tuple[Any, ...]) -> None:
    assert devices(row_of(node(labels=labels, amounts=amounts))[0]) == expected


def test_what_is_allocatable_counts() -> None:
    """Allocatable "is defined as the amount of compute resources that are available for pods"."""
    body = node()
    body["status"] = {
        "capacity": {"cpu": "4", "memory": "8Gi", "alibabacloud.com/gpu-count": "2", "rdma/hca": "3"},
        "allocatable": {"cpu": "7500m", "memory": "15999Ki", "ephemeral-storage": "10Gi"},
    }
    row, notices = row_of(body)
    assert (row["cpu_milli"], row["memory_mib"], row["max_pods"], row["num_gpu"]) == (7500, 15, None, 0)
    assert (row["extra_resources"], notices) == ([("ephemeral-storage", 10240)], {})
    del body["status"]["allocatable"]  # the API server fills the field with the capacity
    row, _ = row_of(body)
    assert (row["cpu_milli"], row["num_gpu"], row["extra_resources"]) == (4000, 2, [("rdma/hca", 3)])


@pytest.mark.parametrize("status", [None, {}, {"capacity": None}, {"allocatable": {}, "capacity": {"cpu": "4"}}])
def test_a_node_without_allocatable_offers_nothing(status: object) -> None:
    row, notices = row_of({**node(), "status": status})
    assert (row["cpu_milli"], row["memory_mib"], row["max_pods"], devices(row)[0]) == (0, 0, 0, 0)
    assert notices == {"nodes: without allocatable CPU or memory, which offer none": 1}


def test_turns_on_instances_are_a_further_resource() -> None:
    """With time slicing or MPS the device plugin can append ".shared" to the names of the resources that it offers."""
    name = "nvidia.com/mig-1g.10gb.shared"
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    row, notices = row_of(node(labels=labels, amounts={name: "14", "nvidia.com/gpu": "1"}))
    assert (row["extra_resources"], devices(row)) == ([(name, 14)], (1, "A100-80GB", 81920, None))
    assert notices == {f"nodes: {name} is a further resource, behind which no GPUs and no watts are counted": 1}


def test_memory_of_the_plugin_that_shares_may_be_counted_in_mib() -> None:
    body = node(labels={"nvidia.com/gpu.product": "Tesla-T4"}, amounts={"aliyun.com/gpu-mem": "15000"})
    assert devices(row_of(body, "MiB")[0]) == (1, "T4", 15000, None)


def test_taints_are_labels_and_a_cordon_is_one() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    soft = {"key": "old", "effect": "PreferNoSchedule"}
    row, notices = row_of(
        node(labels={"name": "x", "zone": "a"}, spec={"unschedulable": True, "taints": [taint, soft]})
    )
    assert dict(row["labels"]) == {
        "label:name": "x", "zone": "a", "taint:gpu=yes:NoSchedule": "", "taint:old=:PreferNoSchedule": "",
        "taint:node.kubernetes.io/unschedulable=:NoSchedule": "",
    }  # fmt: skip
    assert notices == {}


def test_shared_slots_are_turns_on_devices() -> None:
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"}
    row, notices = row_of(node(labels=labels, amounts={"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"}))
    assert (devices(row), row["extra_resources"], notices) == ((2, "T4", 15109, None), None, {})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            node(amounts={"memory": "16GB"}),
            r"a\.json: Node n1: status: allocatable: memory: found '16GB', expected a quantity",
        ),
        (node(amounts={"nvidia.com/gpu": "two"}), "nvidia.com/gpu: found 'two'"),
        (node(labels={"nvidia.com/gpu.memory": "15G"}, amounts={"nvidia.com/gpu": "1"}), "gpu.memory: found '15G'"),
        (node(amounts={"pods": "2147483648"}), "allocatable: pods: found '2147483648', expected an amount of at most"),
        (node(amounts={"cpu": "1e30"}), "allocatable: cpu: found '1e30', expected an amount of at most"),
        (node(amounts={"memory": "1e30"}), "allocatable: memory: found"),
        (node(amounts={"nvidia.com/gpu": "1000000000"}), "nvidia.com/gpu: found"),
        (node(amounts={"aliyun.com/gpu-mem": "1Ei"}), "gpu-mem: found '1Ei', expected an amount of at most"),
        (node(labels={"nvidia.com/gpu.memory": "9" * 16}, amounts={"nvidia.com/gpu": "1"}), "gpu.memory: found '999"),
        (node(amounts={"nvidia.com/mig-1g.5gb": "1e17"}), "mig-1g.5gb: found '1e17'"),
        (node(spec={"taints": [{"key": "a", "effect": "Never"}]}), "taint 1"),
        ({"kind": "Node", "metadata": {"name": ""}}, "metadata: name: found nothing"),
    ],
)
def test_bad_nodes_are_named(body: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        row_of(body)
