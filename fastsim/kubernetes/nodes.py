"""Nodes of Kubernetes as rows of a node table: capacities, devices in every dialect, labels and taints.

Allocatable amounts count, and a resource without one offers nothing. Further resources keep their names:
bytes (``ephemeral-storage``, ``hugepages-...``) are MiB, anything else is a number. A taint is a
label ``taint:KEY=VALUE:EFFECT``, which pods that do not tolerate it must avoid, or with ``PreferNoSchedule`` rather
avoid; an image that a pod in question has is a label ``image:NAME`` with its size in bytes; a label called ``name`` is
``label:name``, because ``name`` is the node's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import IMAGE
from fastsim.kubernetes.devices.device_resources import ALIBABA, allocatable, is_device
from fastsim.kubernetes.devices.gpu_slots import Slots, common_division
from fastsim.kubernetes.devices.hami import REGISTERED
from fastsim.kubernetes.devices.node_devices import devices
from fastsim.kubernetes.memory_step import IN_MIB, MemoryStep
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
from fastsim.kubernetes.quantity import MOST, capacity_mib, milli, quantity, whole

CPU, MEMORY, PODS = "cpu", "memory", "pods"
HOSTNAME = "kubernetes.io/hostname"
"""Label with the name of a node, which makes each node a topology domain of its own."""
IN_BYTES = ("ephemeral-storage", "hugepages-", "storage")
"""Beginnings of the names of further resources that are bytes."""
TAINT = "taint:"
"""Beginning of the labels that stand for taints."""
KEPT_AWAY = ("NoSchedule", "NoExecute")
"""Effects of a taint that keep pods away."""
AVOIDED = "PreferNoSchedule"
"""Effect of a taint that pods rather avoid."""
CPU_MODEL = f"{ALIBABA}cpu-model"
"""Label with the model of a node's CPU."""
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""Key of the taint that a cordoned node has."""


MOST_PODS, MOST_CPU_MILLI = 2**31 - 1, 2**31 - 1
"""Most pods and thousandths of CPUs of a node that a node table can hold."""


class Taint(NamedTuple):
    """A taint; pods that do not tolerate it stay away, or rather avoid the node."""

    key: str
    value: str
    effect: str

    @property
    def label(self) -> str:
        """The label of the node table that stands for it."""
        return f"{TAINT}{self.key}={self.value}:{self.effect}"

    @property
    def keeps_away(self) -> bool:
        """Whether pods that do not tolerate it must stay away."""
        return self.effect in KEPT_AWAY

    @classmethod
    def of_label(cls, label: str) -> Taint:
        """The taint that a label of the node table stands for."""
        name, _, effect = label.removeprefix(TAINT).rpartition(":")
        key, _, value = name.partition("=")
        return cls(key, value, effect)


class NodeFacts(NamedTuple):
    """What the columns of all nodes of some objects depend on.

    ``divided`` is the common division of their GPUs, see `gpu_slots.common_division`; None is that of each node alone.
    ``steps`` are the memory steps of resources in bytes that are not counted in MiB.
    ``wanted`` are the images whose sizes become labels.
    """

    memory_unit: str
    divided: Mapping[str, Slots] | None = None
    steps: Mapping[str, MemoryStep] = MappingProxyType({})
    wanted: Collection[str] = ()


def node_row(node: Manifest, facts: NodeFacts, notices: Counter[str], kept: KeptParts | None = None) -> dict[str, Any]:
    """The node as columns of a node table; what is not honoured is counted in `notices`."""
    if not node.name:
        raise InputError(f"{node.where}: metadata: name", "nothing", "a name")
    labels = {label_key(str(key)): str(value) for key, value in node.part("metadata", "labels").items()}
    labels |= {taint.label: "" for taint in taints(node)}
    if facts.wanted:
        labels |= {label: str(size) for label, size in images(node).items() if label in facts.wanted}
    made = partial(_amount_columns, node, facts)
    amounts = (kept or KeptParts()).of("allocatable", partial(offer_parts, node), made, notices)
    return {"name": node.name, "labels": sorted(labels.items()), **amounts}


def offer_parts(node: Manifest) -> list[object]:
    """The parts of a node that its amounts and devices follow from: all labels but its own name."""
    metadata = node.part("metadata")
    labels = mapping(metadata, "labels", node.where)
    return [
        node.part("status").get("allocatable"), node.part("status").get("capacity"),
        {key: value for key, value in labels.items() if key != HOSTNAME},
        {key: value for key, value in mapping(metadata, "annotations", node.where).items() if key in REGISTERED},
    ]  # fmt: skip


def _amount_columns(node: Manifest, facts: NodeFacts, notices: Counter[str]) -> dict[str, Any]:
    offered = allocatable(node) or {PODS: 0}
    capacity = {CPU: 0, MEMORY: 0, **offered}
    if len(capacity) > len(offered):
        notices["nodes: without allocatable CPU or memory, which offer none"] += 1
    where = f"{node.where}: status: allocatable"
    capacity_mib(capacity[MEMORY], f"{where}: {MEMORY}")  # an error names the node if the amount is out of range
    divided, steps = common_division([node]) if facts.divided is None else facts.divided, facts.steps
    return {
        "cpu_milli": milli(capacity[CPU], f"{where}: {CPU}", MOST_CPU_MILLI),
        "memory_mib": steps.get(MEMORY, IN_MIB).capacity(quantity(capacity[MEMORY], f"{where}: {MEMORY}")),
        **devices(node, capacity, facts.memory_unit, divided, notices)._asdict(),
        "cpu_model": _known_cpu(node),
        "max_pods": whole(capacity[PODS], f"{where}: {PODS}", MOST_PODS) if PODS in capacity else None,
        "extra_resources": sorted(_further(where, capacity, steps).items()) or None,
    }


def label_key(key: str) -> str:
    """The key of a node's label in the constraints of a pod table."""
    return f"label:{key}" if key == "name" else key


def taints(node: Manifest) -> list[Taint]:
    """The taints of a node, that of a cordoned one among them."""
    found = []
    for number, entry in enumerate(sequence(node.part("spec"), "taints", node.where), start=1):
        taint = Taint(str(entry.get("key") or ""), str(entry.get("value") or ""), str(entry.get("effect") or ""))
        if taint.effect not in (*KEPT_AWAY, AVOIDED) or not taint.key:
            expected = f"a key, and an effect of {', '.join(KEPT_AWAY)}, {AVOIDED}"
            raise InputError(f"{node.where}: spec: taint {number}", repr(dict(entry)), expected)
        found.append(taint)
    cordon = Taint(UNSCHEDULABLE, "", "NoSchedule")
    return [*found, cordon] if node.part("spec").get("unschedulable") and cordon not in found else found


def images(node: Manifest) -> dict[str, int]:
    """Bytes of the images that a node has, by the labels that stand for their names."""
    found: dict[str, int] = {}
    for entry in sequence(node.part("status"), "images", node.where):
        where = f"{node.where}: status: images"
        size = whole(entry.get("sizeBytes") or 0, f"{where}: sizeBytes", MOST)
        names = entry.get("names")
        if names is not None and not isinstance(names, list):
            raise InputError(f"{where}: names", repr(names), "a list of texts")
        found |= {image_label(str(name)): size for name in names or ()}
    return found


def image_label(name: str) -> str:
    """The label that stands for an image; without a tag it is the latest one."""
    tagged = name.rfind(":") > name.rfind("/")
    return f"{IMAGE}{name if tagged else name + ':latest'}"


def further_amount(name: str, amount: object, where: str, rounded: Callable[[Fraction], int]) -> int:
    """An amount of a further resource; `rounded` turns bytes into MiB."""
    return rounded(quantity(amount, where)) if name.startswith(IN_BYTES) else whole(amount, where, MOST)


def amount_text(name: str, amount: int) -> str:
    """An amount of a further resource of a node table in words: ``2 example.com/fpga``, ``4 MiB of hugepages-2Mi``."""
    return f"{amount:,}{' MiB of' if name.startswith(IN_BYTES) else ''} {name}"


def _further(where: str, capacity: Mapping[str, Any], steps: Mapping[str, MemoryStep]) -> dict[str, int]:
    amounts = {
        name: further_amount(name, amount, f"{where}: {name}", steps.get(name, IN_MIB).capacity)
        for name, amount in capacity.items()
        if name not in (CPU, MEMORY, PODS) and not is_device(name) and not name.startswith("attachable-volumes-")
    }
    return {name: amount for name, amount in amounts.items() if amount}


def _known_cpu(node: Manifest) -> str | None:
    """The CPU model from the node's label, if the default catalogue has it."""
    from fastsim.hardware.model_catalog import Catalog

    name = mapping(node.part("metadata"), "labels", node.where).get(CPU_MODEL)
    return str(name) if name in Catalog.default().cpu else None
