"""Slots on GPUs: the units of ``nvidia.com/gpu`` where GPUs are time-sliced, or partitioned with strategy "single".

If all nodes that offer a resource divide their GPUs alike, boards stay boards: a slot is a part of the time of one,
which draws its full watts as soon as one slot is used, or an instance. Else a slot is a device of its own on the nodes
that divide GPUs: a GPU with 4 slots counts as 4 devices of model ``T4/4``, each with a quarter of the memory and of the
watts, idle and busy. A pod then takes one device on any node, and every node has as many as Kubernetes counts; a board
whose slots are all taken, or all free, draws its own watts, and one that is taken in part draws in proportion. Figures
in devices count slots on such nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fastsim.errors import InputError, short
from fastsim.hardware import mig
from fastsim.hardware.gpu_products import product
from fastsim.hardware.node_constraints import MAX_GPUS
from fastsim.kubernetes.devices.device_resources import GPU, MODEL_LABELS, SHARED, allocatable, is_instance
from fastsim.kubernetes.devices.hami import boards
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.quantity import whole

REPLICAS = "nvidia.com/gpu.replicas"
"""Label with the number of pods that share one GPU, or one instance, by time-slicing."""
GKE_CLIENTS, GKE_PARTITION = (
    "cloud.google.com/gke-max-shared-clients-per-gpu",
    "cloud.google.com/gke-gpu-partition-size",
)
"""Labels of GKE with that number, and with the profile of instances."""
GKE_STRATEGY, IN_TURNS, AT_ONCE = "cloud.google.com/gke-gpu-sharing-strategy", "time-sharing", "mps"
"""Label of GKE that says how pods share a GPU, and its values."""
MOST_DIGITS = 15
"""Of a number in a label."""
_SINGLE = re.compile(r"-MIG-(\d+g\.\d+gb)(\.me)?(?:-SHARED)?$")


class Slots(NamedTuple):
    """Division of one GPU: pods that share it in time, and the profile of its instances ("" = not partitioned)."""

    replicas: int = 1
    profile: str = ""

    def on(self, model: str) -> int | None:
        """Slots on one GPU of a model; None if the model has no instances of this profile."""
        if not self.profile:
            return self.replicas
        known = mig.profiles().get(model, {}).get(self.profile)
        return None if known is None else self.replicas * known.instances


WHOLE = Slots()
"""A GPU that is one slot."""


def slots(node: Manifest) -> Slots:
    """Division of a node's GPUs; registered boards are divided by their plugin."""
    if boards(node):
        return WHOLE
    match = _SINGLE.search(model_label(node) or "")
    profile = match[1] + ("+me" if match[2] else "") if match else ""
    profile = profile or str(node.part("metadata", "labels").get(GKE_PARTITION) or "")
    return Slots(label_number(node, REPLICAS) or label_number(node, GKE_CLIENTS) or 1, profile)


def common_division(nodes: Iterable[Manifest]) -> Mapping[str, Slots]:
    """Division of GPUs by resource, where all nodes that offer it divide them alike and boards can stay boards."""
    divisions: dict[str, set[tuple[Slots, bool]]] = {}
    instances = False
    for node in nodes:
        amounts = allocatable(node)
        instances = instances or any(is_instance(str(name)) for name in amounts)
        for name in (GPU, SHARED):
            if name in amounts and whole(amounts[name], f"{node.where}: status: allocatable: {name}"):
                division = slots(node)
                known = division.on(product(model_label(node) or "").gpu_model) is not None
                count = whole(amounts[name], name)
                divisions.setdefault(name, set()).add((division, known and _full(node, count, division)))
    common = {name: next(iter(kinds)) for name, kinds in divisions.items() if len(kinds) == 1}
    return {
        name: division
        for name, (division, known) in common.items()
        if known and not (division.profile and (division.replicas > 1 or instances or name == SHARED))
    }


def gives_one_slot(node: Manifest) -> bool:
    """Whether a container gets one slot at most: in turns on GKE, and at once on its nodes with several boards."""
    strategy, division = node.part("metadata", "labels").get(GKE_STRATEGY), slots(node)
    count = whole(allocatable(node).get(GPU) or 0, f"{node.where}: status: allocatable: {GPU}")
    return strategy == IN_TURNS or (strategy == AT_ONCE and count > division.replicas)


def _full(node: Manifest, count: int, division: Slots) -> bool:
    """Whether `count` are all slots of the node's boards; true for more than a node may have devices."""
    boards = label_number(node, "nvidia.com/gpu.count") or -(-count // division.replicas)
    return count > MAX_GPUS or division.replicas == 1 or boards * division.replicas == count


def model_label(node: Manifest) -> str | None:
    """Model of NVIDIA's devices from the node's label; None without one."""
    labels = node.part("metadata", "labels")
    return next((str(labels[key]) for key in MODEL_LABELS if labels.get(key)), None)


def label_number(node: Manifest, name: str) -> int | None:
    """The whole number in a label; None without the label."""
    text = node.part("metadata", "labels").get(name)
    if text is None:
        return None
    if not str(text).isascii() or not str(text).isdigit() or len(str(text)) > MOST_DIGITS:
        expected = f"a whole number of at most {MOST_DIGITS} digits"
        raise InputError(f"{node.where}: metadata: labels: {name}", short(text), expected)
    return int(text)
