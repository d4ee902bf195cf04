"""Requests of Kubernetes' pods: sums over containers, and shares of GPUs in every dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor
from types import MappingProxyType
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.hardware import mig
from fastsim.hardware.gpu_products import product, with_parts
from fastsim.kubernetes.devices.device_resources import (
    ALIBABA,
    GPU,
    GPU_MEM,
    HAMI_CORES,
    HAMI_MEMORY,
    HAMI_PERCENT,
    MILLI,
    OTHERS,
    PARTS_OF,
    SHARED,
    VGPU,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_PERCENT,
    is_device,
    is_instance,
)  # fmt: skip
from fastsim.kubernetes.devices.node_devices import MEMORY_UNITS
from fastsim.kubernetes.memory_step import IN_MIB, MemoryStep
from fastsim.kubernetes.nodes import CPU, MEMORY, further_amount
from fastsim.kubernetes.objects import mapping, sequence
from fastsim.kubernetes.quantity import MOST, milli, quantity, request_mib, rounded_away, whole

SEED_LABEL = "GPU_MEM_REQ"
"""Label with MiB of the only GPU, as the monitoring thesis' scheduler reads it."""
FRACTION, FRACTION_MEMORY, FRACTION_DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
"""Annotations of KAI: share of a device, or MiB of it, and of how many."""
HAMI = (
    (GPU, HAMI_MEMORY, HAMI_PERCENT, HAMI_CORES, HAMI_MEMORY),
    (VGPU, VGPU_MEMORY, VGPU_PERCENT, VGPU_CORES, VGPU),
)  # fmt: skip
"""Dialects of virtual GPUs: their number; MiB, percent of memory, percent of cores of each; the node's resource."""
EACH = {name: names[0] for names in HAMI for name in names[1:4]}
"""Amounts for each device of a container, and the resource that counts those devices."""
WHOLE = (GPU, SHARED, *OTHERS)
"""Resources that count whole devices, or slots."""

SHARES = (
    MILLI, f"{ALIBABA}gpu-count", f"{ALIBABA}gpu-mem", f"{ALIBABA}gpu-card-model", FRACTION, FRACTION_MEMORY,
    FRACTION_DEVICES,
)  # fmt: skip
"""Annotations that requests for devices follow from."""
REQUESTING = ("resources", "overhead", "initContainers", "containers")
"""Fields of a pod's spec that its ``pod_amounts`` follow from."""
OF_WHOLE_PODS = (CPU, MEMORY, "hugepages-")
"""Beginnings of the names of resources that a pod may request as a whole."""

MOST_DEVICES = 2**15 - 1
"""Most devices of a pod that a pod table can hold."""

Amounts = dict[str, Fraction]
"""Quantities by name of the resource."""


class Surroundings(NamedTuple):
    """Facts about nodes that requests depend on: MiB of the largest device, None unless all are known; slots of a GPU.

    ``instance`` is the profile of the instances that ``nvidia.com/gpu`` stands for, ``gpu_models`` are those of the
    nodes; ``shared_slots`` are the slots of ``nvidia.com/gpu.shared``; ``steps`` are the memory steps of resources in
    bytes that are not counted in MiB; ``one_slot`` says that some nodes give a container one slot at most.
    """

    gpu_memory_mib: int | None = None
    slots_per_gpu: int = 1
    memory_unit: str = "GiB"
    shared_slots: int = 1
    instance: str = ""
    gpu_models: tuple[str, ...] = ()
    memories_differ: bool = False
    steps: Mapping[str, MemoryStep] = MappingProxyType({})
    one_slot: bool = False


class Share(NamedTuple):
    """Devices a pod touches, thousandths and MiB of each."""

    num_gpu: int = 0
    gpu_milli: int = 0
    gpu_memory_mib: int | None = None


def with_enacted(spec: Mapping[str, Any], status: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The ``spec`` of a pod with what its containers hold while they are resized.

    Of each resource a container counts with the most of its desired, allocated and actual request. A resize that is
    infeasible on the pod's node leaves out the desired one.
    """
    kinds = [key for key in ("containerStatuses", "initContainerStatuses") if status.get(key) is not None]
    if not kinds:
        return spec
    held = {
        str(one.get("name")): [
            mapping(one, "allocatedResources", where), mapping(mapping(one, "resources", where), "requests", where)
        ]
        for key in kinds
        for one in sequence(status, key, where)
        if one.get("allocatedResources") or one.get("resources")
    }  # fmt: skip
    if not held:
        return spec
    refused = any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in sequence(status, "conditions", where)
    )
    replaced = {}
    for key in ("containers", "initContainers"):
        listed = sequence(spec, key, where)
        replaced[key] = [_resized(one, held.get(str(one.get("name")), []), refused, where) for one in listed]
    return {**spec, **{key: containers for key, containers in replaced.items() if containers}}


def _resized(
    container: Mapping[str, Any], held: Sequence[Mapping[str, Any]], refused: bool, where: str
) -> Mapping[str, Any]:
    """A container whose requests are the largest of those it desires and of those it holds."""
    place = f"{where}: container {container.get('name') or ''}".rstrip()
    resources = mapping(container, "resources", place)
    desired = {**mapping(resources, "limits", place), **mapping(resources, "requests", place)}
    requests = dict(desired)
    for name in dict.fromkeys(name for amounts in held for name in amounts):
        known = [amounts[name] for amounts in held if name in amounts]
        known += [desired[name]] if name in desired and not refused else []
        requests[name] = max(known, key=lambda amount: quantity(amount, f"{place}: {name}"))
    return {**container, "resources": {**resources, "requests": requests}}


def amount_parts(spec: Mapping[str, Any], where: str) -> list[object]:
    """The parts of a pod's ``spec`` that ``pod_amounts`` follow from."""
    held = [spec.get("resources"), spec.get("overhead")]
    for key in ("initContainers", "containers"):
        held.append([(one.get("resources"), one.get("restartPolicy")) for one in sequence(spec, key, where)])
    return held


def states_shares(labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> bool:
    """Whether labels or annotations say what a pod requests."""
    return SEED_LABEL in labels or any(name in annotations for name in (SHARES if annotations else ()))


def requesting_parts(
    spec: Mapping[str, Any], labels: Mapping[str, Any], annotations: Mapping[str, Any], where: str
) -> list[object]:
    """The parts of a pod that its ``request_columns`` and ``requested_devices`` follow from."""
    said = [{name: texts[name] for name in names if name in texts}
            for names, texts in (((SEED_LABEL,), labels), (SHARES, annotations))]  # fmt: skip
    return [*amount_parts(spec, where), *said]


def pod_amounts(spec: Mapping[str, Any], where: str) -> Amounts:
    """Requests of the whole pod: containers and side-cars together, or an init container if it needs more."""
    running: Amounts = {}
    most: Amounts = {}
    for container in sequence(spec, "initContainers", where):
        amounts = _container(container, where)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, amounts)
        most = _largest(most, _sum(running, amounts) if container.get("restartPolicy") != "Always" else running)
    for container in sequence(spec, "containers", where):
        running = _sum(running, _container(container, where))
    request = _whole_pod(spec, _largest(most, running), where)
    return _sum(request, _quantities(mapping(spec, "overhead", where), f"{where}: overhead"))


def request_columns(
    amounts: Amounts, labels: Mapping[str, Any], annotations: Mapping[str, Any], where: str,
    surroundings: Surroundings, notices: Counter[str],
) -> dict[str, Any]:  # fmt: skip
    """The request as columns of a pod table."""
    share, steps = (
        _share(
            amounts=amounts,
            labels=labels,
            annotations=annotations,
            where=where,
            surroundings=surroundings,
            notices=notices,
        ),
        surroundings.steps,
    )

    def rounded(name: str) -> Callable[[Fraction], int]:
        return steps.get(name, IN_MIB).request

    extra = Counter({
        mig.resource_name(name): further_amount(name, str_of(amount), f"{where}: {name}", rounded(name))
        for name, amount in amounts.items()
        if name not in (CPU, MEMORY) and (not is_device(name) or is_instance(name))
    })  # fmt: skip
    for name in extra if not share.num_gpu else ():
        if name.startswith(PARTS_OF):
            notices[f"pods: {name} without devices is a further resource, so the devices draw nothing for it"] += 1
    if surroundings.instance and share.num_gpu and requested_devices(amounts, labels, annotations)[0] == GPU:
        extra[mig.PREFIX + surroundings.instance.replace("+", ".")] += share.num_gpu
        share = Share()
    models = str(annotations.get(f"{ALIBABA}gpu-card-model") or "").replace(",", "|").split("|")
    named = [product(model.strip()).gpu_model for model in models if model.strip()]
    return {
        "cpu_milli": milli(str_of(amounts.get(CPU, Fraction(0))), where, MOST),
        "memory_mib": rounded(MEMORY)(amounts.get(MEMORY, Fraction(0))),
        **share._asdict(),
        "gpu_models": with_parts(named, surroundings.gpu_models) or None,
        "extra_resources": sorted((name, amount) for name, amount in extra.items() if amount) or None,
    }


def str_of(amount: Fraction) -> str:
    """An amount as the text of a quantity, in nanos."""
    return f"{rounded_away(amount * 10**9)}n"


def _share(
    amounts: Amounts, labels: Mapping[str, Any], annotations: Mapping[str, Any], where: str,
    surroundings: Surroundings, notices: Counter[str],
) -> Share:  # fmt: skip
    """The request for devices, in the first dialect that the pod uses."""
    place = f"{where}: metadata: annotations"
    named = MILLI
    if named in annotations:
        count = _number(annotations.get(f"{ALIBABA}gpu-count", "1"), f"{place}: {ALIBABA}gpu-count")
        return _parts(count, _number(annotations[named], f"{place}: {named}"), None, notices)
    named = f"{ALIBABA}gpu-mem"
    if named in annotations:
        # Without a count, or with 0, that scheduler allocates nothing.
        count = _number(annotations.get(f"{ALIBABA}gpu-count", "0"), f"{place}: {ALIBABA}gpu-count")
        return _of_memory(count, request_mib(annotations[named], f"{place}: {named}"), surroundings, notices)
    if FRACTION in annotations or FRACTION_MEMORY in annotations:
        return _kai(annotations, place, surroundings, notices)
    if amounts.get(GPU_MEM):
        mib = rounded_away(amounts[GPU_MEM] * MEMORY_UNITS[surroundings.memory_unit])
        return _of_memory(1, mib, surroundings, notices)
    if SEED_LABEL in labels:
        return _of_memory(1, _number(labels[SEED_LABEL], f"{where}: labels: {SEED_LABEL}"), surroundings, notices)
    for names in HAMI:
        if any(amounts.get(name) for name in names[1:4]) or (names[0] == VGPU and amounts.get(VGPU)):
            return _virtual(amounts, names, where, surroundings, notices)
    name = next((name for name in WHOLE if amounts.get(name)), GPU)
    count = _whole_devices(amounts.get(name, Fraction(0)), f"{where}: {name}")
    slots = {GPU: surroundings.slots_per_gpu, SHARED: surroundings.shared_slots}.get(name, 1)
    if count > 1 and slots > 1 and surroundings.one_slot:
        notices["pods: several slots of shared GPUs, of which GKE gives a container only one"] += 1
    return _slots(count, slots, notices) if slots > 1 else _parts(count, 1000, None, notices)


def requested_devices(amounts: Amounts, labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> list[str]:
    """Names of resources that a pod's node must offer, in the first dialect that the pod uses; [""] without GPUs."""
    if any(name in annotations for name in (MILLI, f"{ALIBABA}gpu-mem", FRACTION, FRACTION_MEMORY)):
        return [MILLI]
    if amounts.get(GPU_MEM):
        return [GPU_MEM]
    if SEED_LABEL in labels:
        return [MILLI]
    for names in HAMI:
        if any(amounts.get(name) for name in names[1:4]) or (names[0] == VGPU and amounts.get(VGPU)):
            return [names[4]]
    return [name for name in WHOLE if amounts.get(name)] or [""]


def _slots(count: int, slots: int, notices: Counter[str]) -> Share:
    """Slots on GPUs that all nodes divide alike; the slots of one pod share a GPU if they fit there."""
    if count > 1:
        notices["pods: several slots of time-sliced GPUs stand on one GPU, or are whole GPUs if they are too many"] += 1
    if count <= slots:
        return _parts(min(count, 1), max(1, 1000 // slots) * count, None, notices)
    return _parts(-(-count // slots), 1000, None, notices)


def _virtual(
    amounts: Amounts, names: tuple[str, ...], where: str, surroundings: Surroundings, notices: Counter[str]
) -> Share:
    """Virtual GPUs: parts of boards in MiB, or percent of the memory, and percent of the cores.

    Without memory in its request a pod has a whole board. Without cores its part is that of the memory.
    """
    counts, memory, percent, cores, _ = names
    count = _whole_devices(amounts.get(counts, Fraction(0)), f"{where}: {counts}") or 1
    each = {name: amounts.get(name, Fraction(0)) / count for name in (memory, percent, cores)}
    mib, largest = rounded_away(each[memory]), surroundings.gpu_memory_mib
    part = min(1000, rounded_away(10 * each[cores]))
    if not mib and 0 < each[percent] < 100:
        if largest is None:
            notices["pods: a percentage of a device's memory, where memories are unknown, is a part of the device"] += 1
            return _parts(count, max(part, rounded_away(10 * each[percent])), None, notices)
        if surroundings.memories_differ:
            notices["pods: a percentage of a device's memory is that of the largest device"] += 1
        mib = floor(largest * each[percent] / 100)
    if not mib:
        return _parts(count, 1000, None, notices)
    return _parts(count, part, mib, notices) if part else _of_memory(count, mib, surroundings, notices)


def _kai(annotations: Mapping[str, Any], place: str, surroundings: Surroundings, notices: Counter[str]) -> Share:
    count = _number(annotations.get(FRACTION_DEVICES, "1"), f"{place}: {FRACTION_DEVICES}")
    if FRACTION_MEMORY in annotations:
        mib = _number(annotations[FRACTION_MEMORY], f"{place}: {FRACTION_MEMORY}")
        return _of_memory(count, mib, surroundings, notices)
    part = quantity(annotations[FRACTION], f"{place}: {FRACTION}")
    if not 0 < part <= 1:
        raise InputError(f"{place}: {FRACTION}", repr(annotations[FRACTION]), "more than 0, at most 1")
    return _parts(count, rounded_away(1000 * part), None, notices)


def _of_memory(count: int, mib: int, surroundings: Surroundings, notices: Counter[str]) -> Share:
    """A share in MiB: its part of the largest device, rounded down, so that memory alone decides what fits."""
    if not count or not mib:
        return Share()
    largest = surroundings.gpu_memory_mib
    part = min(1000, max(1, 1000 * mib // largest)) if largest else 1
    return _parts(count, part, mib, notices)


def _parts(count: int, gpu_milli: int, mib: int | None, notices: Counter[str]) -> Share:
    if not count or not gpu_milli:
        return Share()
    if count > 1 and gpu_milli < 1000:
        notices["pods: shares of several GPUs count as whole ones"] += 1
    return Share(count, 1000 if count > 1 else min(gpu_milli, 1000), mib)


def _whole_pod(spec: Mapping[str, Any], containers: Amounts, where: str) -> Amounts:
    """Requests at the level of the pod replace those of its containers; its limits count for resources without one."""
    place = f"{where}: resources"
    resources = mapping(spec, "resources", where)
    limits = _quantities(mapping(resources, "limits", place), place)
    pod_level = {name: amount for name, amount in limits.items() if name not in containers}
    pod_level |= _quantities(mapping(resources, "requests", place), place)
    return {**containers, **{name: amount for name, amount in pod_level.items() if name.startswith(OF_WHOLE_PODS)}}


def _container(container: Mapping[str, Any], where: str) -> Amounts:
    """Requests of a container; a resource with a limit alone requests that."""
    place = f"{where}: container {container.get('name') or ''}".rstrip()
    resources = mapping(container, "resources", place)
    limits, requests = mapping(resources, "limits", place), mapping(resources, "requests", place)
    amounts = _quantities({**limits, **requests}, place)
    for name, count in EACH.items():
        if amounts.get(name):
            amounts.setdefault(count, Fraction(1))
    # Amounts for each device become sums for the container, so that those of several containers add up.
    for name in EACH.keys() & amounts.keys():
        amounts[name] *= max(amounts.get(EACH[name], 1), 1)
    return amounts


def _quantities(texts: Mapping[str, Any], where: str) -> Amounts:
    amounts = {str(name): quantity(amount, f"{where}: {name}") for name, amount in texts.items()}
    for name, amount in amounts.items():
        if amount < 0:
            raise InputError(f"{where}: {name}", repr(texts[name]), "0 or more")
    return amounts


def _sum(first: Amounts, second: Amounts) -> Amounts:
    if not first or not second:
        return first or second
    return {name: first.get(name, Fraction(0)) + second.get(name, Fraction(0)) for name in [*first, *second]}


def _largest(first: Amounts, second: Amounts) -> Amounts:
    if not first or not second:
        return first or second  # no amount is below 0
    return {name: max(first.get(name, Fraction(0)), second.get(name, Fraction(0))) for name in [*first, *second]}


def _whole_devices(amount: Fraction, where: str) -> int:
    if amount.denominator != 1:
        raise InputError(where, f"{float(amount):g}", "a whole number of devices")
    if amount > MOST_DEVICES:
        raise InputError(where, f"{float(amount):g}", f"at most {MOST_DEVICES:,} devices")
    return floor(amount)


def _number(value: object, where: str) -> int:
    number = whole(value, where, MOST)
    if number < 0:
        raise InputError(where, repr(value), "0 or more")
    return number
