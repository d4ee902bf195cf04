"""Requests for devices as amounts of further resources: what claims take, and what nodes offer.

A node table has no devices with attributes, so each set of devices that some request means becomes a further resource
``devices:CLASS``; a node offers as many as it has of the set. Requests that mean the same devices on every node share
one resource, and devices of different sets need not know each other: there the numbers are those of Kubernetes.

Where sets overlap, the smaller one comes first in an order, and a request takes an amount of each later resource whose
devices it may use up. Of sets inside each other any number fits for which there is a choice of devices; Kubernetes
takes the first devices that match, with which fewer may fit. Of sets that overlap in part fewer may fit than in
Kubernetes, never more. The same order holds for claims with constraints, which come first and count as bundles, and for
devices that share counters: a whole GPU takes as many of its parts as it displaces at most. A request for all devices
of a node is a number of them if all nodes with such devices have the same number; else it takes a resource of its own
completely, of which every other request for such devices takes one.

Of alternatives the first that a node has enough devices for counts there, and the largest of their numbers; if every
alternative is one device, any of them does. Requests with administrative access take nothing; labels
``devices:CLASS`` with the number of devices keep them on nodes that have them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.devices.device_allocation import (
    EXCLUSIVE,
    Bundle,
    Demanded,
    Devices,
    FreeDevices,
    Pick,
    SharedAttribute,
    Whole,
)  # fmt: skip
from fastsim.kubernetes.devices.device_requests import (
    ALL,
    MOST_DEVICES,
    Alternative,
    ClaimSpec,
    Classes,
    DeviceRequest,
    UnknownRequest,
    tolerated,
)  # fmt: skip
from fastsim.kubernetes.devices.resource_slices import Identity, Published, PublishedDevice

DEVICES = "devices:"
"""Beginning of the further resources, and labels, that stand for devices of claims."""
SHARED = f"{DEVICES}shared:"
"""The same for sets with devices that several nodes reach, which a further node does not add."""


class Asked(NamedTuple):
    """The demands of a claim: amounts, whole GPUs, and sets of which a node must have a number of devices."""

    amounts: tuple[tuple[Demanded, int], ...] = ()
    gpus: int = 0
    present: tuple[tuple[Devices, int], ...] = ()
    unequal: bool = False


class Supply:
    """The devices of each node, and what requests mean by them."""

    def __init__(self, published: Published, classes: Classes) -> None:
        self.published, self.classes = published, classes
        self.of: dict[Identity, PublishedDevice] = {device.identity: device for device in published.devices}
        self.nodes: dict[str, list[PublishedDevice]] = {}
        for device in published.devices:
            self.nodes.setdefault(device.node, []).append(device)
        self._meant: dict[Alternative, Devices] = {}
        self._by_node: dict[Devices, dict[str, Devices]] = {}
        self._asked: dict[ClaimSpec, Asked | UnknownRequest] = {}
        self.labels: dict[Demanded | Devices, str] = {}

    def free(self, node: str) -> FreeDevices:
        """All devices of a node."""
        return FreeDevices(self.nodes.get(node, ()), self.published.counters)

    def asked(self, spec: ClaimSpec) -> Asked:
        """The demands of a claim; UnknownRequest if it cannot be honoured."""
        if spec not in self._asked:
            try:
                self._asked[spec] = self._read(spec)
            except UnknownRequest as error:
                self._asked[spec] = error
        found = self._asked[spec]
        if isinstance(found, UnknownRequest):
            raise found
        return found

    def meant(self, asked: Alternative) -> Devices:
        """The devices that a request means, those without taints against it; for all of a node see `all_of_nodes`."""
        if asked not in self._meant:
            found = self.classes.meant(asked, self.published.devices)
            self._meant[asked] = frozenset(device.identity for device in found if tolerated(asked, device))
        return self._meant[asked]

    def by_node(self, devices: Devices) -> dict[str, Devices]:
        """A set of devices, apart by node."""
        if devices not in self._by_node:
            found: dict[str, set[Identity]] = {}
            for identity in devices:
                found.setdefault(self.of[identity].node, set()).add(identity)
            self._by_node[devices] = {node: frozenset(own) for node, own in found.items()}
        return self._by_node[devices]

    def _read(self, spec: ClaimSpec) -> Asked:
        numbers = {request: number for number, request in enumerate(spec.requests)}
        bound = [request for request in spec.requests if any(
            rule.concerns(request, number) for rule in spec.constraints for number in range(len(request.alternatives))
        )]  # fmt: skip
        parts = [self._bundle(spec, bound)] if bound else []
        parts += [self._request(request) for request in sorted(spec.requests, key=numbers.__getitem__)
                  if request not in bound]  # fmt: skip
        amounts: Counter[Demanded] = Counter()
        for part in parts:
            amounts.update(dict(part.amounts))
        present = tuple(one for part in parts for one in part.present)
        return Asked(tuple(amounts.items()), sum(part.gpus for part in parts), present,
                     any(part.unequal for part in parts))  # fmt: skip

    def _request(self, request: DeviceRequest) -> Asked:
        """The demands of a request that no constraint is about."""
        first = request.alternatives[0]
        if len(request.alternatives) > 1:
            return self._alternatives(request)
        devices = self.all_of_nodes(first) if first.number == ALL else self.meant(first)
        if first.admin:
            self.labels.setdefault(devices, first.device_class)
            return Asked(present=((devices, max(first.number, 1)),))
        if first.number != ALL:
            return self._picked(devices, first.number, first.device_class)
        sizes = {len(own) for own in self.by_node(devices).values()}
        if len(sizes) > 1:
            self.labels.setdefault(Whole(devices), first.device_class)
            return Asked(((Whole(devices), 1),), min(sizes) if self._are_gpus(devices) else 0)
        return self._picked(devices, max(sizes, default=1), first.device_class)

    def _picked(self, devices: Devices, number: int, label: str, unequal: bool = False) -> Asked:
        self.labels.setdefault(Pick(devices), label)
        gpus = number if devices and self._are_gpus(devices) else 0
        return Asked(((Pick(devices), number),), gpus, unequal=unequal)

    def all_of_nodes(self, asked: Alternative) -> Devices:
        """The devices that a request for all of a node means, without nodes where it cannot have all of them."""
        found = self.classes.meant(asked, self.published.devices)
        away = {device.node for device in found if not tolerated(asked, device)}
        away |= self.published.incomplete
        counts = Counter(device.node for device in found)
        away |= {node for node, count in counts.items() if count > MOST_DEVICES}
        return frozenset(device.identity for device in found if device.node not in away)

    def _alternatives(self, request: DeviceRequest) -> Asked:
        """Of each node the devices of the first alternative that it has enough for."""
        listed = [(self.meant(one), one.number) for one in request.alternatives if one.number != ALL]
        if len(listed) < len(request.alternatives):
            raise UnknownRequest(f"request {request.name} with all devices of a node as one of its alternatives")
        apart = [(self.by_node(devices), number) for devices, number in listed]
        chosen: set[Identity] = set()
        numbers: set[int] = set()
        cut = False
        for node in self.nodes:
            usable = [(own[node], number) for own, number in apart if len(own.get(node, ())) >= number]
            one_each = all(number == 1 for _, number in usable)
            counted = usable if one_each else usable[:1]
            cut = cut or len(counted) < len(usable)
            chosen.update(identity for devices, _ in counted for identity in devices)
            numbers.update(number for _, number in counted)
        label = request.alternatives[0].device_class
        return self._picked(frozenset(chosen), max(numbers, default=1), label, cut or len(numbers) > 1)

    def _bundle(self, spec: ClaimSpec, requests: Sequence[DeviceRequest]) -> Asked:
        """Requests that a constraint is about, together."""
        if any(one.admin or one.number == ALL for request in requests for one in request.alternatives):
            raise UnknownRequest("a constraint on all devices of a node, or on administrative access")
        sets = tuple(tuple((self.meant(one), one.number) for one in request.alternatives) for request in requests)
        rules = tuple(
            SharedAttribute(rule.attribute, rule.distinct, frozenset(
                (number, alternative) for number, request in enumerate(requests)
                for alternative in range(len(request.alternatives)) if rule.concerns(request, alternative)
            ))
            for rule in spec.constraints
        )  # fmt: skip
        bundle = Bundle(sets, rules)
        self.labels.setdefault(bundle, requests[0].alternatives[0].device_class)
        gpus = sum(min(number if devices and self._are_gpus(devices) else 0 for devices, number in request)
                   for request in sets)  # fmt: skip
        return Asked(((bundle, 1),), gpus)

    def _are_gpus(self, devices: Devices) -> bool:
        return all(self.of[identity].is_gpu for identity in devices)


class DeviceResources:
    """Further resources for demands: what each demand takes of them, and what nodes offer."""

    def __init__(self, supply: Supply, asked: Iterable[Asked]) -> None:
        self.supply = supply
        listed = list(asked)
        demands = dict.fromkeys(demanded for one in listed for demanded, _ in one.amounts)
        self._order = sorted(demands, key=self._rank)
        names = Counter(supply.labels[demanded] for demanded in self._order)
        seen: Counter[str] = Counter()
        self.names: dict[Demanded, str] = {}
        for demanded in self._order:
            label = supply.labels[demanded]
            seen[label] += 1
            beginning = SHARED if any(supply.of[one].shared for one in demanded.devices) else DEVICES
            self.names[demanded] = f"{beginning}{label}" + (f":{seen[label]}" if names[label] > 1 else "")
        admin = dict.fromkeys(devices for one in listed for devices, _ in one.present)
        self._present = {
            devices: f"{DEVICES}{supply.labels[devices]}:present:{number}" for number, devices in enumerate(admin, 1)
        }  # fmt: skip
        self._amounts: dict[Hashable, int] = {}
        self.inside: set[Demanded] = set()
        self.crossing: set[Demanded] = set()
        self._taken = self._weights()

    def _rank(self, demanded: Demanded) -> tuple[int, int, list[Identity]]:
        """The place of a demand in the order: bundles of more devices, then smaller sets, in front of others.

        What device plugins offer, too, comes last, because their nodes offer nothing else of it.
        """
        kind = 0 if isinstance(demanded, Bundle) else 2 if isinstance(demanded, Pick) and demanded.resource else 1
        size = -sum(_most(request) for request in demanded.requests) if isinstance(demanded, Bundle) else len(
            demanded.devices)  # fmt: skip
        return kind, size, sorted(demanded.devices)

    def knows(self, asked: Asked) -> bool:
        """Whether resources for all demands of a claim are there."""
        return all(demanded in self.names for demanded, _ in asked.amounts) and all(
            devices in self._present for devices, _ in asked.present
        )

    def taken(self, asked: Asked) -> Counter[str]:
        """Amounts of further resources that a claim takes."""
        found: Counter[str] = Counter()
        for demanded, number in asked.amounts:
            for name, amount in self._taken[demanded].items():
                found[name] += amount * number
        return found

    def constraints(self, asked: Asked) -> list[Constraint]:
        """Node-label expressions of a claim with administrative access."""
        return [Constraint(self._present[devices], "Gt", (str(number - 1),)) for devices, number in asked.present]

    def offered(self, free: FreeDevices) -> dict[str, int]:
        """Amounts of further resources that the free devices of a node are."""
        return {self.names[demanded]: self._amount(demanded, free) for demanded in self._order}

    def _amount(self, demanded: Demanded, free: FreeDevices) -> int:
        if not isinstance(demanded, Bundle):
            return free.amount(demanded)
        pattern = free.pattern(demanded)
        if pattern not in self._amounts:
            self._amounts[pattern] = free.amount(demanded)
        return self._amounts[pattern]

    def labels(self, node: str) -> list[tuple[str, str]]:
        """Labels of a node with the numbers of its devices that administrative access is about."""
        own = {device.identity for device in self.supply.nodes.get(node, ())}
        counts = {name: len(own & devices) for devices, name in self._present.items()}
        return [(name, str(count)) for name, count in counts.items() if count]

    def overlaps(self, asked: Asked) -> tuple[bool, bool]:
        """Whether a claim's devices are inside those of others or the reverse, and whether they overlap in part."""
        demands = {demanded for demanded, _ in asked.amounts}
        return not demands.isdisjoint(self.inside), not demands.isdisjoint(self.crossing)

    def _weights(self) -> dict[Demanded, Counter[str]]:
        """The amount of every resource for one of each demand."""
        nodes = list(self._kinds_of_nodes())
        taken: dict[Demanded, Counter[str]] = {}
        for place, demanded in enumerate(self._order):
            own = EXCLUSIVE if isinstance(demanded, Whole) else 1
            taken[demanded] = Counter({self.names[demanded]: own})
            for other_place, other in enumerate(self._order):
                if other_place == place or not (weight := max((_weight(free, demanded, other) for free in nodes),
                                                              default=0)):  # fmt: skip
                    continue
                self._note(demanded, other, nodes)
                if isinstance(other, Whole) or (other_place > place and not isinstance(demanded, Whole)):
                    taken[demanded][self.names[other]] += weight
        return taken

    def _note(self, demanded: Demanded, other: Demanded, nodes: Sequence[FreeDevices]) -> None:
        """Note how the devices of two demands overlap."""
        pairs = [({*map(_identity, free.inside(demanded.devices))}, {*map(_identity, free.inside(other.devices))})
                 for free in nodes]  # fmt: skip
        inside = all(own <= others for own, others in pairs) or all(own >= others for own, others in pairs)
        whole = isinstance(demanded, Whole) or isinstance(other, Whole)
        bundled = isinstance(demanded, Bundle) or isinstance(other, Bundle)
        equal = not bundled and all(own == others for own, others in pairs)
        if equal or (whole and inside):
            return
        counted = any(one.consumes for free in nodes for one in free.inside(demanded.devices | other.devices))
        (self.inside if inside or counted else self.crossing).update((demanded, other))

    def _kinds_of_nodes(self) -> Iterator[FreeDevices]:
        """One node of each kind: devices in the same sets that take the same counters."""
        sets = [demanded.devices for demanded in self._order]
        seen = set()
        for node, devices in self.supply.nodes.items():
            pools = {pool: number for number, pool in enumerate(dict.fromkeys(d.identity[1] for d in devices))}
            kind = tuple(
                (device.identity[0], pools[device.identity[1]], tuple(device.identity in one for one in sets),
                 tuple((key[2:], amount) for key, amount in device.consumes))
                for device in devices
            )  # fmt: skip
            if kind not in seen:
                seen.add(kind)
                yield self.supply.free(node)


def _identity(device: PublishedDevice) -> Identity:
    return device.identity


def _most(request: Sequence[tuple[Devices, int]]) -> int:
    """The most devices that a request of a bundle takes."""
    return max((number for _, number in request), default=0)


def _weight(free: FreeDevices, demanded: Demanded, other: Demanded) -> int:
    """How many of another demand one of a demand makes impossible at most on a node."""
    if isinstance(other, Whole):
        return _devices_of(demanded) if _touches(free, demanded.devices, other.devices) else 0
    if isinstance(demanded, Whole):
        return int(_touches(free, demanded.devices, other.devices))
    if isinstance(demanded, Bundle) and isinstance(other, Bundle) and _alike(demanded, other):
        pairs = zip(demanded.requests, other.requests, strict=True)
        return max((-(-_most(own) // _most(theirs)) for own, theirs in pairs), default=0)
    displaced = _displacement(free, other)
    if isinstance(demanded, Pick):
        return max(map(displaced, free.inside(demanded.devices)), default=0)
    return sum(
        max((number * max(map(displaced, free.inside(devices)), default=0) for devices, number in request), default=0)
        for request in demanded.requests
    )


def _displacement(free: FreeDevices, other: Pick | Bundle) -> Callable[[PublishedDevice], int]:
    """How many of a demand a device displaces at most."""
    if isinstance(other, Pick):
        packed = free.picked(other)
        meant = {one.identity for one in free.inside(other.devices)}
        plain = not any(one.consumes for one in packed)
        return lambda device: int(device.identity in meant) if plain else free.displaced(device, packed)
    return lambda device: int(_touches(free, frozenset([device.identity]), other.devices))


def _alike(first: Bundle, second: Bundle) -> bool:
    """Whether two bundles differ in the numbers of devices alone, under one constraint that they are equal."""
    sets = [[[devices for devices, _ in request] for request in one.requests] for one in (first, second)]
    single = all(len(request) == 1 for one in (first, second) for request in one.requests)
    plain = len(first.constraints) == 1 and not first.constraints[0].distinct
    every = plain and len(first.constraints[0].concerned) == len(first.requests)
    return single and every and sets[0] == sets[1] and first.constraints == second.constraints


def _devices_of(demanded: Demanded) -> int:
    return sum(map(_most, demanded.requests)) if isinstance(demanded, Bundle) else 1


def _touches(free: FreeDevices, own: Devices, other: Devices) -> bool:
    """Whether two sets have a device of a node, or counters of its devices, in common."""
    mine, theirs = free.inside(own), free.inside(other)
    if not {*map(_identity, mine)}.isdisjoint(map(_identity, theirs)):
        return True
    counters = {key for device in mine for key, _ in device.consumes}
    return any(key in counters for device in theirs for key, _ in device.consumes)
