"""Resources of Kubernetes that are devices: their names, the labels with their models, and the nodes that offer them.

A pod that requests one of them needs a node that offers it. Nodes with devices of other makers get the label
``resource:NAME``, which constraints of pods require. Where only some nodes offer a name of NVIDIA's devices, the others
get the label ``without:NAME``, which constraints of pods exclude; so nodes from elsewhere, of unknown resources, remain
possible. Such labels are no labels of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from fastsim.hardware import mig
from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.quantity import whole

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
ALIBABA, GPUSHARE = "alibabacloud.com/", "aliyun.com/"
MILLI, GPU_MEM = f"{ALIBABA}gpu-milli", f"{GPUSHARE}gpu-mem"
HAMI_MEMORY, HAMI_PERCENT, HAMI_CORES = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
"""Requests of HAMi's pods for each device: MiB, or percent of its memory, and percent of its cores."""
VGPU = "volcano.sh/vgpu-number"
VGPU_MEMORY, VGPU_PERCENT = "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage"
VGPU_CORES = "volcano.sh/vgpu-cores"
"""The same under Volcano's names."""
COUNTS = (GPU, f"{ALIBABA}gpu-count", f"{GPUSHARE}gpu-count", SHARED)
"""Resources that count devices of NVIDIA, or slots on them."""
MODEL_LABELS = (
    "nvidia.com/gpu.product", f"{ALIBABA}gpu-card-model", "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name", "k8s.amazonaws.com/accelerator", "aliyun.accelerator/nvidia_name",
)  # fmt: skip
"""Labels that name the model of a node's devices."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
OTHERS: Mapping[str, tuple[str, ...]] = {
    "amd.com/gpu": ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
    "gpu.intel.com/i915": ("gpu.intel.com/product",),
    "gpu.intel.com/xe": ("gpu.intel.com/product",),
    "aws.amazon.com/neuron": (INSTANCE_TYPE,),
    "aws.amazon.com/neurondevice": (INSTANCE_TYPE,),
    "google.com/tpu": ("cloud.google.com/gke-tpu-accelerator",),
    "habana.ai/gaudi": (),
    "huawei.com/Ascend310": (),
    "huawei.com/Ascend310P": (),
    "huawei.com/Ascend910": (),
    "huawei.com/Ascend910A": (),
    "huawei.com/Ascend910B": (),
    "huawei.com/Ascend910B2": (),
    "huawei.com/Ascend910B3": (),
    "huawei.com/Ascend910B4": (),
}
"""Resources that count devices of others, and the labels that name their models."""
FOREIGN = (SHARED, *OTHERS)
"""Resources that nodes always label and pods always require, because no other name of the devices implies them."""
SAME = ("aws.amazon.com/neuron", "aws.amazon.com/neurondevice")
"""Two names of the same devices."""
PARTS_OF = ("gpu.intel.com/", "aws.amazon.com/neuroncore")
"""Beginnings of resources that are on devices but do not count them."""
FURTHER = (
    f"{ALIBABA}gpu-mem", MILLI, GPU_MEM, HAMI_MEMORY, HAMI_PERCENT, HAMI_CORES, VGPU, VGPU_MEMORY, VGPU_PERCENT,
    VGPU_CORES,
)  # fmt: skip
OFFERED, LACKING = "resource:", "without:"
"""Beginnings of labels for resources that a node offers, or lacks."""


def allocatable(node: Manifest) -> Mapping[str, Any]:
    """Amounts that a node offers: the allocatable ones; without that field its capacity, as in the API server."""
    stated = node.part("status").get("allocatable") is not None
    return node.part("status", "allocatable" if stated else "capacity")


def resource_label(name: str) -> str:
    """The label of a node that offers a resource."""
    return OFFERED + name


@lru_cache(maxsize=1024)
def is_device(name: str) -> bool:
    """Whether a resource belongs to the columns of devices, not to further resources."""
    return name in COUNTS or name in OTHERS or name in FURTHER or is_instance(name)


@lru_cache(maxsize=1024)
def is_instance(name: str) -> bool:
    """Whether a resource is an instance of a partitioned GPU that one pod has at a time."""
    return mig.resource_name(name).startswith(mig.PREFIX)


def shared_instances(amounts: Mapping[str, object], where: str) -> list[str]:
    """Resources that are turns on instances, which the device plugin calls ``.shared``."""
    turns = [name for name in amounts if name.startswith(mig.DOMAIN + mig.PREFIX) and not is_instance(name)]
    return [name for name in turns if amount(amounts, name, where)]


def amount(amounts: Mapping[str, object], name: str, where: str) -> int:
    """Amount of a resource, 0 where it is not named."""
    return whole(amounts[name], f"{where}: {name}") if name in amounts else 0


def counted_other(amounts: Mapping[str, object], where: str) -> str:
    """The resource of another maker that counts a node's devices; "" if they are NVIDIA's or there are none."""
    if any(amount(amounts, name, where) for name in (*COUNTS, MILLI, GPU_MEM, VGPU)):
        return ""
    return next((name for name in OTHERS if amount(amounts, name, where)), "")


def second_kind(amounts: Mapping[str, object], where: str) -> list[str]:
    """Resources of devices of a second kind, which are ignored: a node has devices of one kind."""
    counted = [name for name in (GPU, SHARED, *OTHERS) if amount(amounts, name, where)]
    return [name for name in counted[1:] if not (name in SAME and counted[0] in SAME)]


def offers(amounts: Mapping[str, object], where: str, by_hami: bool) -> frozenset[str]:
    """The names under which pods get this node's devices; `by_hami` if it registered its boards."""
    hidden = second_kind(amounts, where)
    own = [name for name in amounts if is_device(name) and name not in hidden and not is_instance(name)]
    present = {name for name in own if amount(amounts, name, where)}
    names = present & {GPU, SHARED, GPU_MEM, VGPU, *OTHERS}
    if GPU in present or any(name.startswith(ALIBABA) for name in present):
        names.add(MILLI)
    if by_hami:
        names.add(HAMI_MEMORY)
    return frozenset(names)


def labelled(offered: Sequence[frozenset[str]]) -> list[list[str]]:
    """Labels of each node about its resources; none if all nodes with devices offer the same names of NVIDIA."""
    listed = _listed(offered)
    own = {names: [resource_label(name) for name in sorted(names & {*FOREIGN})] for names in offered}
    return [own[names] + [LACKING + name for name in sorted(listed - names)] if names else [] for names in offered]


def device_expressions(names: Collection[str], offered: Collection[frozenset[str]]) -> list[Constraint]:
    """Node-label expressions of a pod that requests devices under these names; `offered` are the names of each node.

    There are none for names of NVIDIA if no node has devices, or if every node with devices offers these names.
    """
    kinds, listed = {kind for kind in offered if kind}, _listed(offered)
    expressions = []
    for name in sorted(names if kinds else {*names} & {*FOREIGN} if offered else ()):
        if name not in listed:
            expressions.append(Constraint(resource_label(name), "Exists"))
        elif any(name not in kind for kind in kinds):
            expressions.append(Constraint(LACKING + name, "DoesNotExist"))
    return expressions


def _listed(offered: Collection[frozenset[str]]) -> frozenset[str]:
    """The names with labels on nodes that lack them."""
    return frozenset({GPU, MILLI}.union(*offered) - {*FOREIGN})
