"""Devices of a node: the first dialect with devices counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastsim.kubernetes.devices.gpu_slots import Slots
from fastsim.kubernetes.devices.node_devices import Devices, devices, offered
from tests.objects import manifest, node

SLICED = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}


def devices_of(body: dict[str, Any], alike: dict[str, Slots]) -> Devices:
    return devices(manifest(body), body["status"]["allocatable"], "GiB", alike, Counter())


def test_a_divided_gpu_is_a_board_only_where_all_are_divided_alike() -> None:
    body = node(labels=SLICED, amounts={"nvidia.com/gpu": "8"})
    assert devices_of(body, {"nvidia.com/gpu": Slots(4)}) == Devices(2, "T4", 15109)
    assert devices_of(body, {}) == Devices(8, "T4/4", 3777)


def test_what_a_node_offers() -> None:
    assert offered(manifest(node())) == frozenset()
    assert offered(manifest(node(amounts={"nvidia.com/gpu": "0", "amd.com/gpu": "1"}))) == {"amd.com/gpu"}
    body = node(amounts={"nvidia.com/gpu": "10"})
    body["metadata"]["annotations"] = {"hami.io/node-nvidia-register": "GPU-1,10,15360,100,NVIDIA-Tesla T4,0,true:"}
    assert offered(manifest(body)) == {"nvidia.com/gpu", "alibabacloud.com/gpu-milli", "nvidia.com/gpumem"}
