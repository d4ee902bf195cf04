"""GPUs of nodes that a driver publishes in ResourceSlices: number, model and memory as columns of a node table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fastsim.hardware.gpu_products import UNLABELLED, product
from fastsim.hardware.node_constraints import MAX_GPUS
from fastsim.kubernetes.devices.resource_slices import GPU_DRIVERS, PublishedDevice

PLUGIN = "nodes: GPUs of ResourceSlices beside those of a device plugin, which alone are counted as GPUs"
PARTS = "nodes: parts of GPUs in ResourceSlices are further resources, behind which no GPUs and no watts are counted"
SEVERAL = "nodes: GPUs of several kinds in ResourceSlices of one node count as the most frequent, with the least memory"
NO_MODEL = "nodes: GPUs in ResourceSlices without the name of their model"
NO_MEMORY = "nodes: GPUs of unknown memory, which is not limited"


def gpus_of(row: Mapping[str, Any], devices: Sequence[PublishedDevice]) -> list[PublishedDevice]:
    """The GPUs among a node's devices that stand in its row; none if its row has GPUs of a device plugin."""
    found = [device for device in devices if device.is_gpu]
    return found if not row["num_gpu"] and len(found) <= MAX_GPUS else []


def gpu_columns(row: Mapping[str, Any], devices: Sequence[PublishedDevice], notices: Counter[str]) -> dict[str, Any]:
    """Columns of a node's GPUs; none without GPUs, or if its row has some already."""
    found = gpus_of(row, devices)
    if any(device.identity[0].startswith(GPU_DRIVERS) and not device.is_gpu for device in devices):
        notices[PARTS] += 1
    if not found:
        notices.update([PLUGIN] * any(device.is_gpu for device in devices))
        return {}
    models = Counter(device.model for device in found)
    memories = {device.memory_mib for device in found}
    if len(models) > 1 or len(memories) > 1:
        notices[SEVERAL] += 1
    named = models.most_common(1)[0][0]
    notices.update([NO_MODEL] * (not named))
    model = product(named.replace(" ", "-") or UNLABELLED)
    known = [memory for memory in memories if memory]
    memory = min(known) if len(known) == len(memories) else model.memory_mib
    notices.update([NO_MEMORY] * (memory is None))
    return {"num_gpu": len(found), "gpu_model": model.gpu_model, "gpu_memory_mib": memory}
