"""Devices of Kubernetes' nodes in every dialect: number, model, MiB of each, partitions.

The first of these sources counts: boards registered by HAMi or Volcano, resources of NVIDIA's and Alibaba's plugins,
resources of other makers. A node has devices of one kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.hardware import mig
from fastsim.hardware.gpu_products import UNLABELLED, layouts, part_of, product
from fastsim.hardware.node_constraints import MAX_GPUS
from fastsim.kubernetes.devices import hami
from fastsim.kubernetes.devices.device_resources import (
    ALIBABA,
    COUNTS,
    GPU_MEM,
    MILLI,
    OTHERS,
    VGPU,
    VGPU_CORES,
    VGPU_MEMORY,
    allocatable,
    counted_other,
    is_instance,
    offers,
    second_kind,
    shared_instances,
)  # fmt: skip
from fastsim.kubernetes.devices.gpu_slots import WHOLE, Slots, label_number, model_label, slots
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.quantity import MOST, capacity_mib, whole

BYTES_FROM = 1 << 20
"""Smallest number in a label of device memory that means bytes, not MiB: no device has a TiB."""
MEMORY_UNITS = {"GiB": 1024, "MiB": 1}
"""MiB of the units of ``aliyun.com/gpu-mem``; the choice is a flag of the plugin, which no object shows."""


MOST_SLOTS = 2**15 - 1
"""Most devices, or slots on them, of a node that a node table can hold."""


class Devices(NamedTuple):
    """A node's GPUs: number, model, MiB of each, and layouts of partitions."""

    num_gpu: int
    gpu_model: str | None
    gpu_memory_mib: int | None = None
    mig: str | None = None


def devices(
    node: Manifest, amounts: Mapping[str, Any], memory_unit: str, common: Mapping[str, Slots], notices: Counter[str]
) -> Devices:
    """The node's devices; `common` is the division of GPUs by resource, see ``gpu_slots.common_division``."""
    where = f"{node.where}: status: allocatable"
    registered = hami.boards(node)
    for name in second_kind(amounts, where):
        notices[f"nodes: {name} beside other devices, which alone count"] += 1
    for name in shared_instances(amounts, where):
        notices[f"nodes: {name} is a further resource, behind which no GPUs and no watts are counted"] += 1
    if registered:
        return _registered(registered, notices)
    other = counted_other(amounts, where)
    if other:
        return _of_other(node, other, whole(amounts[other], f"{where}: {other}", MOST_SLOTS), notices)
    return _of_nvidia(node, amounts, memory_unit, common, notices)


def offered(node: Manifest) -> frozenset[str]:
    """The names under which pods get this node's devices."""
    return offers(allocatable(node), f"{node.where}: status: allocatable", bool(hami.boards(node)))


def _registered(boards: list[hami.Board], notices: Counter[str]) -> Devices:
    notices["nodes: how many pods share a registered board is limited by memory and cores alone"] += 1
    named = Counter(board.product for board in boards)
    if len(named) > 1 or len({board.memory_mib for board in boards}) > 1:
        notices["nodes: boards of several kinds on one node count as the most frequent, with the least memory"] += 1
    model = product(named.most_common(1)[0][0] or UNLABELLED)
    return Devices(len(boards), model.gpu_model, min(board.memory_mib for board in boards) or model.memory_mib)


def _of_other(node: Manifest, name: str, count: int, notices: Counter[str]) -> Devices:
    """Devices of a maker whose nodes publish only their number; without a label the resource names the model."""
    labels = node.part("metadata", "labels")
    model = product(next((str(labels[key]) for key in OTHERS[name] if labels.get(key)), name))
    if model.memory_mib is None:
        notices["nodes: GPUs of unknown memory, which is not limited"] += 1
    return Devices(count, model.gpu_model, model.memory_mib)


def _of_nvidia(
    node: Manifest, amounts: Mapping[str, Any], memory_unit: str, common: Mapping[str, Slots], notices: Counter[str]
) -> Devices:
    where, named, division = f"{node.where}: status: allocatable", model_label(node), slots(node)
    model = product(named or UNLABELLED)
    counted = {name: whole(value, f"{where}: {name}", MOST) for name, value in amounts.items() if is_instance(name)}
    instances = {mig.resource_name(name): amount for name, amount in counted.items() if amount}
    resource, count = _count(where, amounts)
    if count and division != WHOLE and common.get(resource) != division:
        return _parts(
            where=f"{where}: {resource}",
            node=node,
            model=model.gpu_model,
            division=division,
            count=count,
            notices=notices,
        )
    if count and division.profile:
        instances[mig.PREFIX + division.profile.replace("+", ".")] = count
        count = 0
    elif division.replicas > 1 and count:
        count = label_number(node, "nvidia.com/gpu.count") or -(-count // division.replicas)
    partitioned = layouts(where, model.gpu_model, instances) if instances else []
    count += len(partitioned)
    if not count:
        return Devices(0, None)
    if named is None:
        notices["nodes: GPUs without a label of their model"] += 1
    memory = (None if division.profile else _memory_mib(node, amounts, count, memory_unit)) or model.memory_mib
    if memory is None:
        notices["nodes: GPUs of unknown memory, which is not limited"] += 1
    text = ";".join([""] * (count - len(partitioned)) + partitioned) if partitioned else None
    return Devices(count, model.gpu_model, memory, text)


def _parts(where: str, node: Manifest, model: str, division: Slots, count: int, notices: Counter[str]) -> Devices:
    """Each slot as a device of its own, with its part of the watts and the memory."""
    if count > MAX_GPUS:
        do = "divide the GPUs of all nodes alike, or leave the others out"
        raise InputError(where, f"{count} slots", f"at most {MAX_GPUS} where nodes divide their GPUs differently", do)
    per_gpu = division.on(model)
    notices["nodes: a slot on a divided GPU counts as a device with its part of the watts, because nodes differ"] += 1
    if per_gpu is None:
        return Devices(count, f"{model}/{division.profile}", label_number(node, "nvidia.com/gpu.memory"))
    known = mig.profiles()[model][division.profile].memory_mib if division.profile else None
    memory = known or _labelled_mib(node) or product(model).memory_mib
    if memory is None:
        notices["nodes: GPUs of unknown memory, which is not limited"] += 1
    return Devices(count, part_of(model, per_gpu), memory and memory // division.replicas)


def _count(where: str, amounts: Mapping[str, Any]) -> tuple[str, int]:
    """The first resource that counts devices, and their number; milli-GPUs count as thousandths."""
    for name in COUNTS:
        if name in amounts and (count := whole(amounts[name], f"{where}: {name}", MOST_SLOTS)):
            return name, count
    if MILLI in amounts:
        return MILLI, whole(amounts[MILLI], f"{where}: {MILLI}", 1000 * MOST_SLOTS) // 1000
    if VGPU in amounts:
        # Without a list of boards their number follows from the cores.
        cores = whole(amounts.get(VGPU_CORES, 0), f"{where}: {VGPU_CORES}", 100 * MOST_SLOTS)
        return VGPU, -(-cores // 100) or whole(amounts[VGPU], f"{where}: {VGPU}", MOST_SLOTS)
    return GPU_MEM, int(GPU_MEM in amounts)


def _labelled_mib(node: Manifest) -> int | None:
    label = label_number(node, "nvidia.com/gpu.memory") or label_number(node, "karpenter.k8s.aws/instance-gpu-memory")
    return label if not label or label < BYTES_FROM else label // BYTES_FROM


def _memory_mib(node: Manifest, amounts: Mapping[str, Any], count: int, memory_unit: str) -> int | None:
    """MiB of each device; None if unknown."""
    label = _labelled_mib(node)
    if label:
        return label
    where = f"{node.where}: status: allocatable"
    for name, unit in ((f"{ALIBABA}gpu-mem", 0), (GPU_MEM, MEMORY_UNITS[memory_unit]), (VGPU_MEMORY, 1)):
        if name in amounts:
            place = f"{where}: {name}"
            given = amounts[name]
            capacity = whole(given, place, MOST // unit) * unit if unit else capacity_mib(given, place)
            return capacity // count
    return None
