"""Nodes that offer the devices of a pod's request, of every maker and under every name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.hardware.model_catalog import Catalog
from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.devices.device_resources import MILLI, device_expressions, labelled, offers, second_kind
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.reports.kubernetes.export import bound_pods, node_objects
from tests.objects import cluster_of, node, pod, row_of, workload_of, written

T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
GPU_MEM = "aliyun.com/gpu-mem"
MI300X = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}


def placed(path: Path, *objects: dict[str, Any]) -> dict[str, str | None]:
    """The node of each pod."""
    snapshot = Snapshot.read(written(path / "a.json", *objects))
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    names = [item["native_id"] for batch in workload_of(snapshot).batches() for item in batch.to_pylist()]
    rows = result.placements.select("pod_id", "node").with_columns(pl.col("node").cast(pl.String)).rows()
    return {names[number].removeprefix("default/"): name for number, name in rows}


def test_memory_of_the_sharing_plugin_and_whole_gpus_keep_apart(tmp_path: Path) -> None:
    nodes = [node("whole", T4, amounts={"nvidia.com/gpu": "1"}),
             node("parts", T4, amounts={GPU_MEM: "15", "aliyun.com/gpu-count": "1"})]  # fmt: skip
    pods = [pod(f"m{i}", {GPU_MEM: "5"}) for i in range(4)] + [pod(f"w{i}", {"nvidia.com/gpu": 1}) for i in range(2)]
    assert placed(tmp_path, *nodes, *pods) == {
        "m0": "parts", "m1": "parts", "m2": "parts", "m3": None, "w0": "whole", "w1": None,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
@pytest.mark.parametrize(
    ("offered", "asked"),
    [({"nvidia.com/gpu": "1"}, {GPU_MEM: "5"}), ({GPU_MEM: "15"}, {"nvidia.com/gpu": "1"}),
     ({"amd.com/gpu": "1"}, {"nvidia.com/gpu": "1"}), ({"nvidia.com/gpu": "1"}, {"amd.com/gpu": "1"})],
)  # fmt: skip
def test_pods_wait_for_devices_that_no_node_offers(
    tmp_path: Path, offered: dict[str, str], asked: dict[str, object]
) -> None:
    assert placed(tmp_path, node("n", T4, amounts=offered), pod("p", asked)) == {"p": None}


def test_shares_in_annotations_go_to_gpus_that_can_be_shared(tmp_path: Path) -> None:
    nodes = [node("amd", MI300X, amounts={"amd.com/gpu": "8"}), node("t4", T4, amounts={"nvidia.com/gpu": "1"})]
    pods = [pod("kai", annotations={"gpu-fraction": "0.5"}),
            pod("milli", annotations={"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "1"}),
            pod("third", annotations={"gpu-fraction": "0.5"})]  # fmt: skip
    assert placed(tmp_path, *nodes, *pods) == {"kai": "t4", "milli": "t4", "third": None}


@pytest.mark.parametrize(
    ("resource", "labels", "model"),
    [
        ("amd.com/gpu", MI300X, "MI300X"),
        ("amd.com/gpu", {"beta.amd.com/gpu.product-name": "MI210"}, "MI210"),
        ("gpu.intel.com/i915", {"gpu.intel.com/product": "Flex_170"}, "Flex_170"),
        ("gpu.intel.com/xe", {"gpu.intel.com/product": "Max_1550"}, "Max_1550"),
        ("aws.amazon.com/neuron", {"node.kubernetes.io/instance-type": "trn1.32xlarge"}, "trn1.32xlarge"),
        ("aws.amazon.com/neurondevice", {"node.kubernetes.io/instance-type": "inf1.2xlarge"}, "inf1.2xlarge"),
        ("google.com/tpu", {"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice"}, "tpu-v5p-slice"),
        ("amd.com/gpu", {}, "amd.com/gpu"), ("habana.ai/gaudi", {}, "habana.ai/gaudi"),
        ("huawei.com/Ascend910", {}, "huawei.com/Ascend910"), ("huawei.com/Ascend910B3", {}, "huawei.com/Ascend910B3"),
    ],
)  # fmt: skip
def test_devices_of_every_maker(tmp_path: Path, resource: str, labels: dict[str, str], model: str) -> None:
    row, _ = row_of(node(labels=labels, amounts={resource: "2"}))
    assert (row["num_gpu"], row["gpu_model"], row["extra_resources"]) == (2, model, None)
    nodes = [node("nvidia", T4, amounts={"nvidia.com/gpu": "4"}), node("other", labels, amounts={resource: "2"})]
    pods = [pod(f"p{i}", {resource: "1"}) for i in range(3)] + [pod("n", {"nvidia.com/gpu": "4"})]
    assert placed(tmp_path, *nodes, *pods) == {"p0": "other", "p1": "other", "p2": None, "n": "nvidia"}
    snapshot = Snapshot.read(written(tmp_path / "b.json", *nodes))
    known = Catalog.default().gpu.get(model)
    assert cluster_of(snapshot).watts["gpu_peak_w"].to_pylist() == [70, known.peak_w if known else 0]
    assert (f"nodes: GPU model {model} of unknown watts counts 0 W" in snapshot.notices) == (known is None)


@pytest.mark.parametrize(
    ("labels", "model", "memory_mib"),
    [
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "T4", 15109),
        ({"karpenter.k8s.aws/instance-gpu-name": "a10g", "karpenter.k8s.aws/instance-gpu-memory": "22888"}, "A10G",
         22888),
        ({"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"}, "V100M16", 16160),
        ({"aliyun.accelerator/nvidia_name": "Tesla-P40"}, "P40", 23040),
    ],
)  # fmt: skip
def test_labels_of_clouds_name_the_model(labels: dict[str, str], model: str, memory_mib: int) -> None:
    row, _ = row_of(node(labels=labels, amounts={"nvidia.com/gpu": "2"}))
    assert (row["num_gpu"], row["gpu_model"], row["gpu_memory_mib"]) == (2, model, memory_mib)


def test_two_names_of_the_same_devices_and_devices_of_a_second_kind() -> None:
    amounts = {"aws.amazon.com/neuron": "16", "aws.amazon.com/neurondevice": "16", "aws.amazon.com/neuroncore": "32"}
    row, notices = row_of(node(labels={"node.kubernetes.io/instance-type": "trn1"}, amounts=amounts))
    assert (row["num_gpu"], row["extra_resources"]) == (16, [("aws.amazon.com/neuroncore", 32)])
    assert offers(amounts, "n", False) == {"aws.amazon.com/neuron", "aws.amazon.com/neurondevice"} and len(notices) == 1
    amounts = {"nvidia.com/gpu": "2", "amd.com/gpu": "1"}
    row, notices = row_of(node(labels=T4, amounts=amounts))
    assert row["num_gpu"] == 2 and notices == {"nodes: amd.com/gpu beside other devices, which alone count": 1}
    assert second_kind(amounts, "n") == ["amd.com/gpu"] and "amd.com/gpu" not in offers(amounts, "n", False)


def test_parts_of_devices_are_further_resources_with_a_notice(tmp_path: Path) -> None:
    amounts = {"aws.amazon.com/neuron": "1", "aws.amazon.com/neuroncore": "2"}
    pods = [pod(f"p{i}", {"aws.amazon.com/neuroncore": 1}) for i in range(3)]
    path = written(tmp_path / "a.json", node(amounts=amounts), *pods)
    assert list(placed(tmp_path, node(amounts=amounts), *pods).values()) == ["n1", "n1", None]
    snapshot = Snapshot.read(path)
    assert workload_of(snapshot) and [count for text, count in snapshot.notices.items() if "neuroncore" in text] == [3]


def test_labels_stand_only_where_nodes_differ() -> None:
    own, other, none = frozenset({"nvidia.com/gpu", MILLI}), frozenset({"amd.com/gpu", MILLI}), frozenset[str]()
    assert labelled([own, none, own]) == [[], [], []] and device_expressions(["nvidia.com/gpu"], [own, none]) == []
    assert labelled([own, other]) == [[], ["resource:amd.com/gpu", "without:nvidia.com/gpu"]]
    assert device_expressions(["nvidia.com/gpu"], [own, other]) == [
        Constraint("without:nvidia.com/gpu", "DoesNotExist")
    ]
    assert device_expressions(["amd.com/gpu"], [own]) == [Constraint("resource:amd.com/gpu", "Exists")]
    assert device_expressions(["amd.com/gpu"], []) == [] and labelled([none]) == [[]]


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_nodes_from_elsewhere_host_pods_with_nvidias_devices(tmp_path: Path) -> None:
    nodes = [node("whole", T4, amounts={"nvidia.com/gpu": "1"}), node("amd", MI300X, amounts={"amd.com/gpu": "8"})]
    pods = [pod("p", {"nvidia.com/gpu": 1}), pod("a", {"amd.com/gpu": 1})]
    workload = workload_of(Snapshot.read(written(tmp_path / "a.json", *nodes, *pods)))
    result = fs.simulate(fs.Cluster.mix(t4=1), workload, "best_fit")
    assert result.placements.sort("native_id")["node"].is_not_null().to_list() == [False, True]


def test_exported_objects_have_the_resources_but_no_labels_of_fastsim(tmp_path: Path) -> None:
    nodes = [node("nvidia", T4, amounts={"nvidia.com/gpu": "1"}), node("amd", MI300X, amounts={"amd.com/gpu": "8"})]
    pods = [pod("a", {"amd.com/gpu": "2"}), pod("b", {"amd.com/gpu": "1"}, nodeName="amd"),
            pod("c", {"nvidia.com/gpu": "1"})]  # fmt: skip
    snapshot = Snapshot([Manifest(item["metadata"]["name"], item) for item in [*nodes, *pods]])
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    objects = [*node_objects(cluster_of(snapshot)), *bound_pods(result, workload_of(snapshot))]
    assert "resource:" not in str(objects) and "without:" not in str(objects) and len(objects) == 5
    assert [item["status"]["allocatable"].get("amd.com/gpu") for item in objects[:2]] == ["8", None]
    limits = {item["metadata"]["name"]: item["spec"]["containers"][0]["resources"]["limits"] for item in objects[2:]}
    assert (limits["a"]["amd.com/gpu"], limits["b"]["amd.com/gpu"], limits["c"]["nvidia.com/gpu"]) == ("2", "1", "1")
    again = Snapshot([Manifest(item["metadata"]["name"], item) for item in objects])
    assert cluster_of(again).nodes["gpu_model"].to_pylist() == ["MI300X", "T4"]
