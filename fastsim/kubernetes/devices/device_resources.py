"""Resources of Kubernetes that are devices: their names, the labels that name their models, and who offers which.

A pod that asks for one of them must find a node that offers it. A node has the label ``resource:NAME`` for devices of
other makers, which pods are told to look for. Where only some nodes offer what NVIDIA's devices are asked for by, the
others have the label ``without:NAME``, which pods are told to keep away from; so nodes from elsewhere, of which nothing
is known, host them. Such labels are no labels of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fastsim.hardware import mig
from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.quantity import whole

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
ALIBABA, GPUSHARE = "alibabacloud.com/", "aliyun.com/"
MILLI, GPU_MEM = f"{ALIBABA}gpu-milli", f"{GPUSHARE}gpu-mem"
HAMI_MEMORY, HAMI_PERCENT, HAMI_CORES = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
"""What a pod of HAMi asks of each of its devices: MiB, or percent of its memory, and percent of its cores."""
VGPU = "volcano.sh/vgpu-number"
VGPU_MEMORY, VGPU_PERCENT = "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage"
VGPU_CORES = "volcano.sh/vgpu-cores"
"""The same under the names that Volcano has for it."""
COUNTS = (GPU, f"{ALIBABA}gpu-count", f"{GPUSHARE}gpu-count", SHARED)
"""Resources that count devices of NVIDIA, or slots on them."""
MODEL_LABELS = ("nvidia.com/gpu.product", f"{ALIBABA}gpu-card-model", "cloud.google.com/gke-accelerator")
"""Labels that name the model of a node's devices."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
OTHERS: Mapping[str, tuple[str, ...]] = {
    "amd.com/gpu": ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
    "gpu.intel.com/i915": ("gpu.intel.com/product",),
    "gpu.intel.com/xe": ("gpu.intel.com/product",),
    "aws.amazon.com/neuron": (INSTANCE_TYPE,),
    "aws.amazon.com/neurondevice": (INSTANCE_TYPE,),
    "google.com/tpu": ("cloud.google.com/gke-tpu-accelerator",),
}
"""Resources that count devices of others, and the labels that name their models."""
FOREIGN = (SHARED, *OTHERS)
"""What is always said of nodes and pods, because neither NVIDIA's own name nor a share stands for it."""
SAME = ("aws.amazon.com/neuron", "aws.amazon.com/neurondevice")
"""Two names of the same devices."""
PARTS_OF = ("gpu.intel.com/", "aws.amazon.com/neuroncore")
"""Beginnings of resources that are on devices but do not count them."""
FURTHER = (
    f"{ALIBABA}gpu-mem", MILLI, GPU_MEM, HAMI_MEMORY, HAMI_PERCENT, HAMI_CORES, VGPU, VGPU_MEMORY, VGPU_PERCENT,
    VGPU_CORES,
)  # fmt: skip
OFFERED, LACKING = "resource:", "without:"
"""Beginnings of labels that say what a node offers, or that it does not."""


def resource_label(name: str) -> str:
    """The label of a node that offers a resource."""
    return OFFERED + name


def is_device(name: str) -> bool:
    """Whether a resource is told by the columns of devices, not by further resources."""
    return name in COUNTS or name in OTHERS or name in FURTHER or is_instance(name)


def is_instance(name: str) -> bool:
    """Whether a resource is an instance of a partitioned GPU."""
    return mig.resource_name(name).startswith(mig.PREFIX)


def amount(amounts: Mapping[str, object], name: str, where: str) -> int:
    """How much of a resource there is, 0 where it is not named."""
    return whole(amounts[name], f"{where}: {name}") if name in amounts else 0


def counted_other(amounts: Mapping[str, object], where: str) -> str:
    """The resource of another maker that counts a node's devices; "" if NVIDIA's count or there are none."""
    if any(amount(amounts, name, where) for name in (*COUNTS, MILLI, GPU_MEM, VGPU)):
        return ""
    return next((name for name in OTHERS if amount(amounts, name, where)), "")


def unseen(amounts: Mapping[str, object], where: str) -> list[str]:
    """Devices of a second kind: a node has devices of one."""
    counted = [name for name in (GPU, SHARED, *OTHERS) if amount(amounts, name, where)]
    return [name for name in counted[1:] if not (name in SAME and counted[0] in SAME)]


def offers(amounts: Mapping[str, object], where: str, by_hami: bool) -> frozenset[str]:
    """The names under which pods get this node's devices; `by_hami` says that it registered its boards."""
    hidden = unseen(amounts, where)
    seen = [name for name in amounts if is_device(name) and name not in hidden and not is_instance(name)]
    there = {name for name in seen if amount(amounts, name, where)}
    found = there & {GPU, SHARED, GPU_MEM, VGPU, *OTHERS}
    if GPU in there or any(name.startswith(ALIBABA) for name in there):
        found.add(MILLI)
    if by_hami:
        found.add(HAMI_MEMORY)
    return frozenset(found)


def labelled(offered: Sequence[frozenset[str]]) -> list[list[str]]:
    """The labels of each node: none where all nodes with devices offer the same, and NVIDIA's own."""
    listed = _listed(offered)
    sought = {found: [resource_label(name) for name in sorted(found & {*FOREIGN})] for found in offered}
    return [sought[found] + [LACKING + name for name in sorted(listed - found)] if found else [] for found in offered]


def looked_for(asked: Collection[str], offered: Collection[frozenset[str]]) -> list[Constraint]:
    """Node-label expressions of a pod that asks for devices under these names, among nodes that offer these.

    There are none if no node has devices, or if every one that has devices offers what is asked.
    """
    kinds, listed = {found for found in offered if found}, _listed(offered)
    found = []
    for name in sorted(asked) if kinds else []:
        if name not in listed:
            found.append(Constraint(resource_label(name), "Exists"))
        elif any(name not in kind for kind in kinds):
            found.append(Constraint(LACKING + name, "DoesNotExist"))
    return found


def _listed(offered: Collection[frozenset[str]]) -> frozenset[str]:
    """The names of which nodes say that they lack them."""
    return frozenset({GPU, MILLI}.union(*offered) - {*FOREIGN})
