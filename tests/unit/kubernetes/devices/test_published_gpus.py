"""GPUs of ResourceSlices as columns of nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastsim.kubernetes.devices.published_gpus import NO_MEMORY, NO_MODEL, PARTS, PLUGIN, SEVERAL, gpu_columns
from fastsim.kubernetes.devices.resource_slices import published
from tests.objects import device, gpu, manifest, resource_slice


def columns(*devices: dict[str, Any], num_gpu: int = 0) -> tuple[dict[str, Any], dict[str, int]]:
    notices: Counter[str] = Counter()
    found = published([manifest(resource_slice("a", *devices))], [], [{"name": "a"}], Counter())
    return gpu_columns({"num_gpu": num_gpu}, found.devices, notices), dict(notices)


def test_gpus_have_a_number_a_model_and_memory() -> None:
    own = {"num_gpu": 2, "gpu_model": "A100-40GB", "gpu_memory_mib": 40 << 10}
    assert columns(gpu("g0"), gpu("g1")) == (own, {})
    assert columns(device("n", attributes={"type": "nic"})) == ({}, {PARTS: 1})


def test_gpus_of_several_kinds_count_as_the_most_frequent() -> None:
    found, notices = columns(gpu("g0"), gpu("g1"), gpu("g2", "NVIDIA H100 80GB HBM3", "80Gi"))
    assert (found["num_gpu"], found["gpu_model"], found["gpu_memory_mib"]) == (3, "A100-40GB", 40 << 10)
    assert notices == {SEVERAL: 1}


def test_what_is_not_published_is_named() -> None:
    found, notices = columns(device("g", attributes={"type": "gpu"}))
    assert found["gpu_model"] == "unlabelled" and notices == {NO_MODEL: 1, NO_MEMORY: 1}
    assert columns(gpu("g0"), gpu("m", type="mig"))[1] == {PARTS: 1}


def test_gpus_of_a_device_plugin_alone_are_counted() -> None:
    assert columns(gpu("g0"), num_gpu=4) == ({}, {PLUGIN: 1})
