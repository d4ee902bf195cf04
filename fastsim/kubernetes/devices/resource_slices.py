"""Devices that drivers publish in ResourceSlices, for Dynamic Resource Allocation.

Of a pool only the slices of its highest generation count. A pool that lacks slices is incomplete: its devices do not
count, and nothing that asks for all devices of a node fits on its nodes. A pool with two devices of one name is
invalid, and its nodes offer nothing. Taints of slices and of DeviceTaintRules keep requests away that do not tolerate
them. Devices that several nodes can reach are dealt to these nodes one by one, so that each counts once: fewer may fit
then than in Kubernetes.

A driver whose name begins with ``gpu`` or ``tpu`` publishes GPUs; instances of a partitioned one are no GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from types import MappingProxyType
from typing import Any, NamedTuple

from fastsim.errors import InputError, short
from fastsim.kubernetes.devices.device_expressions import Domains, Version, version_of
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import allowed, node_terms
from fastsim.kubernetes.quantity import MIB, quantity

SLICE, TAINT_RULE = "ResourceSlice", "DeviceTaintRule"
GPU_DRIVERS = ("gpu.", "tpu.")
"""Beginnings of the names of drivers whose devices are GPUs."""
WHOLE_TYPES = ("gpu", "amdgpu")
"""Values of the attribute ``type`` of devices that are whole GPUs; without the attribute they are."""
MODEL_ATTRIBUTES = ("productName", "model")
"""Attributes that name the model of a GPU."""
EFFECTS = ("NoSchedule", "NoExecute")
"""Effects of device taints that keep requests away; others, also those that are not known, do not."""
TYPES: Mapping[str, type] = {"int": int, "bool": bool, "string": str, "version": str}
"""Types of attributes; with an ``s`` behind them they are lists."""

READ = ("name", "attributes", "capacity", "consumesCounters", "taints", "nodeName", "nodeSelector", "allNodes",
        "allowMultipleAllocations", "basic")  # fmt: skip
"""Fields of a device that are read."""
HARMLESS = ("bindsToNode", "bindingConditions", "bindingFailureConditions")
"""Fields of a device without influence on where it may go; others are named."""

Identity = tuple[str, str, str]
"""Driver, pool and name of a device."""
Counters = Mapping[tuple[str, ...], Fraction]
"""Amounts by driver, pool, counter set and counter."""


class DeviceTaint(NamedTuple):
    """A taint of a device: key, value and one of ``EFFECTS``."""

    key: str
    value: str
    effect: str


class PublishedDevice(NamedTuple):
    """A device: its identity, its node, what selectors see of it, taints, and what it takes of shared counters.

    ``shared`` is whether other nodes, that may be there, reach it, ``reach`` the nodes that do if they are several.
    """

    identity: Identity
    node: str
    seen: Mapping[str, Any]
    taints: tuple[DeviceTaint, ...] = ()
    consumes: tuple[tuple[tuple[str, ...], Fraction], ...] = ()
    shared: bool = False
    reach: tuple[str, ...] = ()

    @property
    def attributes(self) -> Domains:
        """Attributes by domain and name."""
        found: Domains = self.seen["attributes"]
        return found

    def named(self, qualified: str) -> Any:
        """The attribute of a qualified name, ``domain/name``; None without it."""
        domain, _, name = qualified.rpartition("/")
        return self.attributes.get(domain or self.identity[0], {}).get(name)

    def capacity(self, qualified: str) -> Fraction | None:
        """The capacity of a name with or without its domain; None without it."""
        domain, _, name = qualified.rpartition("/")
        found: Fraction | None = self.seen["capacity"].get(domain or self.identity[0], {}).get(name)
        return found

    @property
    def is_gpu(self) -> bool:
        """Whether it is a whole GPU."""
        kind = self.named("type")
        return self.identity[0].startswith(GPU_DRIVERS) and (kind is None or kind in WHOLE_TYPES)

    @property
    def model(self) -> str:
        """The name of a GPU's model; "" if it is unknown."""
        return next((str(name) for key in MODEL_ATTRIBUTES if isinstance(name := self.named(key), str)), "")

    @property
    def memory_mib(self) -> int | None:
        """MiB of a GPU; None if unknown."""
        memory = self.capacity("memory")
        return None if memory is None else floor(memory / MIB)


class Published(NamedTuple):
    """Devices in the order of their pools, and the amounts of shared counters."""

    devices: tuple[PublishedDevice, ...] = ()
    counters: Counters = MappingProxyType({})
    incomplete: frozenset[str] = frozenset()


class _Pool(NamedTuple):
    """Slices of one pool with its highest generation."""

    slices: list[Manifest]
    complete: bool
    valid: bool


def published(
    slices: Sequence[Manifest], rules: Sequence[Manifest], nodes: Sequence[Mapping[str, str]], notices: Counter[str]
) -> Published:
    """The devices of all pools; ``nodes`` are the labels of the nodes, with their `name`."""
    devices: list[PublishedDevice] = []
    places = {node["name"]: node for node in nodes}
    counters: dict[tuple[str, ...], Fraction] = {}
    invalid, incomplete = set[str](), set[str]()
    for (driver, name), pool in sorted(_pools(slices).items()):
        key = f"{driver}/{name}"
        for item in pool.slices:
            for counter_set in sequence(item.part("spec"), "sharedCounters", item.where):
                for counter, amount in _counters(counter_set, item.where):
                    counters[driver, name, str(counter_set.get("name")), counter] = amount
        found = list(_devices(driver, name, pool, places, notices))
        if not pool.valid:
            notices[f"nodes: pool {key} has two devices of one name, so its nodes offer none"] = 1
            invalid.update(device.node for device in found)
        if pool.complete:
            devices += found
        else:
            notices[f"nodes: pool {key} is incomplete, so its devices do not count"] = 1
            incomplete.update(device.node for device in found)
    listed = [device for device in devices if device.node not in invalid]
    return Published(tuple(_tainted(listed, rules)), counters, frozenset(incomplete))


def _pools(slices: Sequence[Manifest]) -> dict[tuple[str, str], _Pool]:
    """The pools by driver and name."""
    by_pool: dict[tuple[str, str], list[Manifest]] = {}
    for item in slices:
        pool = item.part("spec", "pool")
        by_pool.setdefault((str(item.part("spec").get("driver") or ""), str(pool.get("name") or "")), []).append(item)
    found = {}
    for key, items in by_pool.items():
        newest = max(_whole(item, "generation") for item in items)
        current = [item for item in items if _whole(item, "generation") == newest]
        names = [str(one.get("name")) for item in current for one in sequence(item.part("spec"), "devices", item.where)]
        complete = all(_whole(item, "resourceSliceCount", len(current)) == len(current) for item in current)
        found[key] = _Pool(current, complete, len(set(names)) == len(names))
    return found


def _whole(item: Manifest, key: str, otherwise: int = 0) -> int:
    value = item.part("spec", "pool").get(key, otherwise)
    if type(value) is not int:
        raise InputError(f"{item.where}: spec: pool: {key}", short(value), "a whole number")
    return value


def _devices(
    driver: str, pool_name: str, pool: _Pool, nodes: Mapping[str, Mapping[str, str]], notices: Counter[str]
) -> Iterator[PublishedDevice]:
    """The devices of a pool on the nodes that reach them."""
    dealt = 0
    for item in pool.slices:
        spec = item.part("spec")
        for entry in sequence(spec, "devices", item.where):
            body = {**entry, **mapping(entry, "basic", item.where)}
            where = f"{item.where}: device {entry.get('name') or ''}".rstrip()
            own = body if spec.get("perDeviceNodeSelection") else spec
            reach = _reach(own, where, nodes)
            if not reach:
                continue
            notices.update(
                f"nodes: {key} of devices in ResourceSlices" for key in body if key not in (*READ, *HARMLESS)
            )
            if len(reach) > 1:
                notices["nodes: devices that several nodes reach, of which one each can use them"] += 1
            if body.get("allowMultipleAllocations"):
                notices["nodes: devices for several requests at a time, which count as devices for one"] += 1
            dealt += 1
            yield PublishedDevice(
                identity=(driver, pool_name, str(entry.get("name") or "")), node=reach[(dealt - 1) % len(reach)],
                seen=_seen(driver, body, where), taints=tuple(_taints(body, where)),
                consumes=tuple(_consumed(driver, pool_name, body, where)), shared=not own.get("nodeName"),
                reach=tuple(reach) if len(reach) > 1 else (),
            )  # fmt: skip


def _reach(own: Mapping[str, Any], where: str, nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Names of the nodes that reach a device."""
    if own.get("nodeName"):
        return [str(own["nodeName"])] if str(own["nodeName"]) in nodes else []
    if own.get("allNodes"):
        return list(nodes)
    selector = mapping(own, "nodeSelector", where)
    terms = sequence(selector, "nodeSelectorTerms", where)
    return allowed(node_terms(terms, where), list(nodes.values())) if terms else []


def _seen(driver: str, body: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The view of a device for selectors."""
    attributes, capacity = Domains(), Domains()
    for name, value in mapping(body, "attributes", where).items():
        _put(attributes, driver, str(name), _attribute(value, f"{where}: attributes: {name}"))
    for name, value in mapping(body, "capacity", where).items():
        amount = value.get("value") if isinstance(value, Mapping) else value
        _put(capacity, driver, str(name), quantity(amount, f"{where}: capacity: {name}"))
    several = bool(body.get("allowMultipleAllocations"))
    return {"driver": driver, "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": several}


def _put(domains: Domains, driver: str, qualified: str, value: Any) -> None:
    """Enter a value under its name; a name without a domain is of the driver's."""
    domain, _, name = qualified.rpartition("/")
    domains[domain or driver] = {**domains.get(domain or driver, {}), name: value}


def _attribute(value: Any, where: str) -> Any:
    for name, kind in TYPES.items():
        if isinstance(value, Mapping) and type(value.get(name)) is kind:
            return _read(name, value[name], where)
        listed = value.get(f"{name}s") if isinstance(value, Mapping) else None
        if isinstance(listed, list) and all(type(one) is kind for one in listed):
            return [_read(name, one, where) for one in listed]
    raise InputError(where, short(value), f"one of {', '.join(TYPES)} with a value")


def _read(name: str, value: Any, where: str) -> Any:
    if name != "version":
        return value
    try:
        found: Version = version_of(value)
    except ValueError:
        raise InputError(where, short(value), "a semantic version such as 12.4.0") from None
    return found


def _taints(body: Mapping[str, Any], where: str) -> Iterator[DeviceTaint]:
    for entry in sequence(body, "taints", where):
        yield from _taint(entry)


def _taint(entry: Mapping[str, Any]) -> Iterator[DeviceTaint]:
    """The taint if its effect keeps requests away."""
    taint = DeviceTaint(str(entry.get("key") or ""), str(entry.get("value") or ""), str(entry.get("effect") or ""))
    if taint.effect in EFFECTS:
        yield taint


def _tainted(devices: Sequence[PublishedDevice], rules: Sequence[Manifest]) -> Iterator[PublishedDevice]:
    """The devices with the taints of rules that select them; a rule without a selector selects none."""
    for device in devices:
        taints = device.taints
        for rule in rules:
            selector = rule.part("spec").get("deviceSelector")
            if isinstance(selector, Mapping) and _selects(selector, device.identity):
                taints += tuple(_taint(rule.part("spec", "taint")))
        yield device._replace(taints=taints)


def _selects(selector: Mapping[str, Any], identity: Identity) -> bool:
    return all(
        selector.get(key) in (None, part) for key, part in zip(("driver", "pool", "device"), identity, strict=True)
    )


def _consumed(
    driver: str, pool: str, body: Mapping[str, Any], where: str
) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    """Amounts that a device takes of the counters of its pool."""
    for entry in sequence(body, "consumesCounters", where):
        for counter, amount in _counters(entry, where):
            yield (driver, pool, str(entry.get("counterSet")), counter), amount


def _counters(entry: Mapping[str, Any], where: str) -> Iterable[tuple[str, Fraction]]:
    for name, value in mapping(entry, "counters", where).items():
        amount = value.get("value") if isinstance(value, Mapping) else value
        yield str(name), quantity(amount, f"{where}: counters: {name}")
