"""What pods of Kubernetes ask for: containers added up, and shares of GPUs in every dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from fastsim import mig
from fastsim.errors import InputError
from fastsim.gpu_products import product
from fastsim.kubernetes_nodes import ALIBABA, CPU, GPU, GPUSHARE, MEMORY, MEMORY_UNITS, further_amount, is_device
from fastsim.manifests import mapping, sequence
from fastsim.quantity import mib_needed, milli, quantity, rounded_away, whole

SEED_LABEL = "GPU_MEM_REQ"
"""Label with MiB of the only GPU, as the monitoring thesis' scheduler reads it."""
FRACTION, FRACTION_MEMORY, FRACTION_DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
"""Annotations of KAI: share of a device, or MiB of it, and of how many."""

Amounts = dict[str, Fraction]
"""Quantities by name of the resource."""


class Surroundings(NamedTuple):
    """What requests depend on: MiB of the largest device if all are known, pods that share one in turns, a unit."""

    gpu_memory_mib: int | None = None
    slots_per_gpu: int = 1
    memory_unit: str = "GiB"


class Share(NamedTuple):
    """Devices a pod touches, thousandths and MiB of each."""

    num_gpu: int = 0
    gpu_milli: int = 0
    gpu_memory_mib: int | None = None


def pod_amounts(spec: Mapping[str, Any], where: str) -> Amounts:
    """Requests of the whole pod: containers and side-cars together, or one that initialises if it needs more."""
    running: Amounts = {}
    most: Amounts = {}
    for container in sequence(spec, "initContainers", where):
        amounts = _container(container, where)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, amounts)
        most = _largest(most, _sum(running, amounts) if container.get("restartPolicy") != "Always" else running)
    for container in sequence(spec, "containers", where):
        running = _sum(running, _container(container, where))
    return _sum(_largest(most, running), _quantities(mapping(spec, "overhead", where), f"{where}: overhead"))


def request_columns(
    amounts: Amounts, labels: Mapping[str, Any], annotations: Mapping[str, Any], where: str,
    surroundings: Surroundings, notices: Counter[str],
) -> dict[str, Any]:  # fmt: skip
    """The request as columns of a pod table."""
    share = _share(amounts, labels, annotations, where, surroundings, notices)
    extra = {
        mig.resource_name(name): further_amount(name, str_of(amount), f"{where}: {name}", mib_needed)
        for name, amount in amounts.items()
        if name not in (CPU, MEMORY) and (not is_device(name) or mig.resource_name(name).startswith(mig.PREFIX))
    }
    models = str(annotations.get(f"{ALIBABA}gpu-card-model") or "").replace(",", "|").split("|")
    if annotations.get(f"{ALIBABA}gpu-index"):
        notices["pods: devices chosen beforehand (gpu-index)"] += 1
    return {
        "cpu_milli": milli(str_of(amounts.get(CPU, Fraction(0))), where),
        "memory_mib": mib_needed(str_of(amounts.get(MEMORY, Fraction(0))), where),
        **share._asdict(),
        "gpu_models": [product(model.strip()).gpu_model for model in models if model.strip()] or None,
        "extra_resources": sorted((name, amount) for name, amount in extra.items() if amount) or None,
    }


def str_of(amount: Fraction) -> str:
    """An amount as a quantity again."""
    return f"{rounded_away(amount * 10**9)}n"


def _share(
    amounts: Amounts, labels: Mapping[str, Any], annotations: Mapping[str, Any], where: str,
    surroundings: Surroundings, notices: Counter[str],
) -> Share:  # fmt: skip
    """The first dialect that the pod speaks says what it asks of devices."""
    told = f"{where}: metadata: annotations"
    named = f"{ALIBABA}gpu-milli"
    if named in annotations:
        count = _number(annotations.get(f"{ALIBABA}gpu-count", "1"), f"{told}: {ALIBABA}gpu-count")
        return _parts(count, _number(annotations[named], f"{told}: {named}"), None, notices)
    named = f"{ALIBABA}gpu-mem"
    if named in annotations:
        # Without a count, or with 0, nothing is allocated there.
        count = _number(annotations.get(f"{ALIBABA}gpu-count", "0"), f"{told}: {ALIBABA}gpu-count")
        return _of_memory(count, mib_needed(annotations[named], f"{told}: {named}"), surroundings, notices)
    if FRACTION in annotations or FRACTION_MEMORY in annotations:
        return _kai(annotations, told, surroundings, notices)
    named = f"{GPUSHARE}gpu-mem"
    if amounts.get(named):
        mib = rounded_away(amounts[named] * MEMORY_UNITS[surroundings.memory_unit])
        return _of_memory(1, mib, surroundings, notices)
    if SEED_LABEL in labels:
        return _of_memory(1, _number(labels[SEED_LABEL], f"{where}: labels: {SEED_LABEL}"), surroundings, notices)
    count = _whole_devices(amounts.get(GPU, Fraction(0)), f"{where}: {GPU}")
    if count and surroundings.slots_per_gpu > 1:
        return _parts(count, 1000 // surroundings.slots_per_gpu, None, notices)
    return _parts(count, 1000, None, notices)


def _kai(annotations: Mapping[str, Any], told: str, surroundings: Surroundings, notices: Counter[str]) -> Share:
    count = _number(annotations.get(FRACTION_DEVICES, "1"), f"{told}: {FRACTION_DEVICES}")
    if FRACTION_MEMORY in annotations:
        mib = _number(annotations[FRACTION_MEMORY], f"{told}: {FRACTION_MEMORY}")
        return _of_memory(count, mib, surroundings, notices)
    part = quantity(annotations[FRACTION], f"{told}: {FRACTION}")
    if not 0 < part <= 1:
        raise InputError(f"{told}: {FRACTION}", repr(annotations[FRACTION]), "more than 0, at most 1")
    return _parts(count, rounded_away(1000 * part), None, notices)


def _of_memory(count: int, mib: int, surroundings: Surroundings, notices: Counter[str]) -> Share:
    """A share that is told in MiB: its part of the largest device, cut, so that memory alone decides what fits."""
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


def _container(container: Mapping[str, Any], where: str) -> Amounts:
    """Requests of a container; what only has a limit asks for that."""
    told = f"{where}: container {container.get('name') or ''}".rstrip()
    resources = mapping(container, "resources", told)
    limits, requests = mapping(resources, "limits", told), mapping(resources, "requests", told)
    return _quantities({**limits, **requests}, told)


def _quantities(given: Mapping[str, Any], where: str) -> Amounts:
    amounts = {str(name): quantity(amount, f"{where}: {name}") for name, amount in given.items()}
    for name, amount in amounts.items():
        if amount < 0:
            raise InputError(f"{where}: {name}", repr(given[name]), "0 or more")
    return amounts


def _sum(first: Amounts, second: Amounts) -> Amounts:
    return {name: first.get(name, Fraction(0)) + second.get(name, Fraction(0)) for name in [*first, *second]}


def _largest(first: Amounts, second: Amounts) -> Amounts:
    return {name: max(first.get(name, Fraction(0)), second.get(name, Fraction(0))) for name in [*first, *second]}


def _whole_devices(amount: Fraction, where: str) -> int:
    if amount.denominator != 1:
        raise InputError(where, f"{float(amount):g}", "a whole number of devices")
    return floor(amount)


def _number(given: object, where: str) -> int:
    found = whole(given, where)
    if found < 0:
        raise InputError(where, repr(given), "0 or more")
    return found
