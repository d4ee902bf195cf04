"""Nodes of Kubernetes as rows of a node table: capacities, devices in every dialect, labels and taints.

What is allocatable counts; what only stands under capacity counts as well. Further resources keep their names: bytes
(``ephemeral-storage``, ``hugepages-...``) are MiB, anything else is a number. A taint that keeps pods away is a label
``taint:KEY=VALUE:EFFECT``, which pods that do not tolerate it must not find; a label called ``name`` is ``label:name``,
because ``name`` is the node's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastsim import mig
from fastsim.errors import InputError
from fastsim.gpu_products import UNLABELLED, layouts, product
from fastsim.manifests import Manifest, mapping, sequence
from fastsim.quantity import mib_there, milli, quantity, whole

CPU, MEMORY, PODS = "cpu", "memory", "pods"
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
ALIBABA, GPUSHARE = "alibabacloud.com/", "aliyun.com/"
COUNTS = (GPU, f"{ALIBABA}gpu-count", f"{GPUSHARE}gpu-count")
"""Resources that count devices."""
MODEL_LABELS = ("nvidia.com/gpu.product", f"{ALIBABA}gpu-card-model", "cloud.google.com/gke-accelerator")
"""Labels that name the model of a node's devices."""
IN_BYTES = ("ephemeral-storage", "hugepages-", "storage")
"""Beginnings of the names of further resources that are bytes."""
KEPT_AWAY = ("NoSchedule", "NoExecute")
"""Effects of a taint that keep pods away."""
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""Key of the taint that a cordoned node has."""
BYTES_FROM = 1 << 20
"""MiB from which the label of a device's memory means bytes: no device has a TiB."""
MEMORY_UNITS = {"GiB": 1024, "MiB": 1}
"""What one of ``aliyun.com/gpu-mem`` may be, in MiB; the plugin is told by a flag, not by the objects."""


class Taint(NamedTuple):
    """What keeps pods away that do not tolerate it."""

    key: str
    value: str
    effect: str

    @property
    def label(self) -> str:
        """The label that stands for it."""
        return f"taint:{self.key}={self.value}:{self.effect}"


class Devices(NamedTuple):
    """A node's GPUs: how many, of which model, MiB of each, and how they are partitioned."""

    num_gpu: int
    gpu_model: str | None
    gpu_memory_mib: int | None = None
    mig: str | None = None


def node_row(node: Manifest, memory_unit: str, notices: Counter[str]) -> dict[str, Any]:
    """The node as columns of a node table; what is not honoured is counted in `notices`."""
    if not node.name:
        raise InputError(f"{node.where}: metadata: name", "nothing", "a name")
    told = {**node.part("status", "capacity"), **node.part("status", "allocatable")}
    for name in (CPU, MEMORY):
        if name not in told:
            raise InputError(f"{node.where}: status: allocatable: {name}", "nothing", "a quantity")
    where = f"{node.where}: status: allocatable"
    devices = _devices(node, told, memory_unit, notices)
    labels = {label_key(str(key)): str(value) for key, value in node.part("metadata", "labels").items()}
    labels |= {taint.label: "" for taint in taints(node, notices)}
    return {
        "name": node.name,
        "cpu_milli": milli(told[CPU], f"{where}: {CPU}"),
        "memory_mib": mib_there(told[MEMORY], f"{where}: {MEMORY}"),
        **devices._asdict(),
        "cpu_model": _known_cpu(node),
        "max_pods": whole(told[PODS], f"{where}: {PODS}") if PODS in told else None,
        "labels": sorted(labels.items()),
        "extra_resources": sorted(_further(where, told).items()) or None,
    }


def slots_per_gpu(node: Manifest) -> int:
    """How many pods take turns on one device that is time-sliced; 1 if it is not."""
    return _label_number(node, "nvidia.com/gpu.replicas") or 1


def label_key(key: str) -> str:
    """The key of a node's label as constraints of a pod table name it."""
    return f"label:{key}" if key == "name" else key


def taints(node: Manifest, notices: Counter[str]) -> list[Taint]:
    """The taints that keep pods away, that of a cordoned node among them."""
    found = []
    for number, given in enumerate(sequence(node.part("spec"), "taints", node.where), start=1):
        taint = Taint(str(given.get("key") or ""), str(given.get("value") or ""), str(given.get("effect") or ""))
        if taint.effect == "PreferNoSchedule":
            notices["nodes: taints with effect PreferNoSchedule"] += 1
        elif taint.effect not in KEPT_AWAY or not taint.key:
            expected = f"a key, and an effect of {', '.join(KEPT_AWAY)}, PreferNoSchedule"
            raise InputError(f"{node.where}: spec: taint {number}", repr(dict(given)), expected)
        else:
            found.append(taint)
    cordon = Taint(UNSCHEDULABLE, "", "NoSchedule")
    return [*found, cordon] if node.part("spec").get("unschedulable") and cordon not in found else found


def is_device(name: str) -> bool:
    """Whether a resource is told by the columns of devices, not by further resources."""
    return name in (*COUNTS, f"{ALIBABA}gpu-mem", f"{ALIBABA}gpu-milli", f"{GPUSHARE}gpu-mem") or _instances(name)


def further_amount(name: str, given: object, where: str, rounded: Any) -> int:
    """An amount of a further resource; `rounded` makes MiB of bytes."""
    amount: int = rounded(given, where) if name.startswith(IN_BYTES) else whole(given, where)
    return amount


def _further(where: str, told: Mapping[str, Any]) -> dict[str, int]:
    amounts = {
        name: further_amount(name, given, f"{where}: {name}", mib_there)
        for name, given in told.items()
        if name not in (CPU, MEMORY, PODS) and not is_device(name) and not name.startswith("attachable-volumes-")
    }
    return {name: amount for name, amount in amounts.items() if amount}


def _instances(name: str) -> bool:
    return mig.resource_name(name).startswith(mig.PREFIX)


def _devices(node: Manifest, told: Mapping[str, Any], memory_unit: str, notices: Counter[str]) -> Devices:
    labels, where = node.part("metadata", "labels"), f"{node.where}: status: allocatable"
    named = next((str(labels[key]) for key in MODEL_LABELS if labels.get(key)), None)
    counted = {name: whole(given, f"{where}: {name}") for name, given in told.items() if _instances(name)}
    count, slots = _count(where, told), slots_per_gpu(node)
    if slots > 1 and count:
        count = _label_number(node, "nvidia.com/gpu.count") or -(-count // slots)
    if SHARED in told:
        notices[f"nodes: {SHARED} is a further resource, its devices are not seen"] += 1
    parted = layouts(where, product(named or UNLABELLED).gpu_model, {
        mig.resource_name(name): amount for name, amount in counted.items() if amount
    }) if any(counted.values()) else []  # fmt: skip
    count += len(parted)
    if not count:
        return Devices(0, None)
    if named is None:
        notices["nodes: GPUs without a label of their model"] += 1
    model = product(named or UNLABELLED)
    memory = _memory_mib(node, told, count, memory_unit) or model.memory_mib
    if memory is None:
        notices["nodes: GPUs of unknown memory, which is not limited"] += 1
    text = ";".join([""] * (count - len(parted)) + parted) if parted else None
    return Devices(count, model.gpu_model, memory, text)


def _count(where: str, told: Mapping[str, Any]) -> int:
    """Whole devices, as the first resource says that counts them; milli-GPUs count as thousandths."""
    for name in COUNTS:
        if name in told and (count := whole(told[name], f"{where}: {name}")):
            return count
    name = f"{ALIBABA}gpu-milli"
    return whole(told[name], f"{where}: {name}") // 1000 if name in told else int(f"{GPUSHARE}gpu-mem" in told)


def _memory_mib(node: Manifest, told: Mapping[str, Any], count: int, memory_unit: str) -> int | None:
    """MiB of each device; null if nothing tells."""
    label = _label_number(node, "nvidia.com/gpu.memory")
    if label:
        return label if label < BYTES_FROM else label // BYTES_FROM
    where = f"{node.where}: status: allocatable"
    for prefix in (ALIBABA, GPUSHARE):
        name = f"{prefix}gpu-mem"
        if name in told:
            if prefix == ALIBABA:
                return mib_there(told[name], f"{where}: {name}") // count
            return int(quantity(told[name], f"{where}: {name}") * MEMORY_UNITS[memory_unit]) // count
    return None


def _label_number(node: Manifest, name: str) -> int | None:
    """The whole number that a label says; null without the label."""
    text = node.part("metadata", "labels").get(name)
    if text is None:
        return None
    if not str(text).isascii() or not str(text).isdigit():
        raise InputError(f"{node.where}: metadata: labels: {name}", repr(text), "a whole number")
    return int(text)


def _known_cpu(node: Manifest) -> str | None:
    """The CPU model, if a label tells one that the default catalogue has."""
    from fastsim.catalog import Catalog

    name = mapping(node.part("metadata"), "labels", node.where).get(f"{ALIBABA}cpu-model")
    return str(name) if name in Catalog.default().cpu else None
