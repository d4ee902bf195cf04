"""How many requests the free devices of one node can satisfy.

Devices that share counters exclude each other where a counter does not suffice for both. What is found is a real
allocation, so a number is never too large; it is the largest one for devices without counters, for devices of one size,
and for claims whose devices share one attribute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from fastsim.kubernetes.devices.resource_slices import Counters, Identity, PublishedDevice

EXCLUSIVE = 1 << 10
"""Amount of a resource that one request for all devices of a node takes, more than the devices of any node."""
MOST_STEPS = 5_000
"""Most devices that the search for one claim tries; beyond, it counts as one that does not fit."""

Devices = frozenset[Identity]


@dataclass(frozen=True)
class Pick:
    """One device of a set; ``resource`` is that of pods which ask for it, if device plugins offer it, too."""

    devices: Devices
    resource: str = ""


@dataclass(frozen=True)
class Whole:
    """All devices of a node that are in a set."""

    devices: Devices


class SharedAttribute(NamedTuple):
    """An attribute of the devices of some alternatives, by numbers of request and alternative: equal, or distinct."""

    attribute: str
    distinct: bool
    concerned: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Bundle:
    """Requests that are satisfied together: alternatives of each, as sets and numbers of devices, and constraints.

    Alternatives with administrative access, by numbers of request and alternative, may have devices in use, but none
    that another request of the same claim has. ``claims`` are the claims of the requests; none are all of one claim.
    """

    requests: tuple[tuple[tuple[Devices, int], ...], ...]
    constraints: tuple[SharedAttribute, ...]
    administrative: frozenset[tuple[int, int]] = frozenset()
    claims: tuple[int, ...] = ()

    @cached_property
    def devices(self) -> Devices:
        """Devices of any of its sets."""
        return frozenset().union(*(devices for request in self.requests for devices, _ in request))


Demanded = Pick | Whole | Bundle


class FreeDevices:
    """The devices of one node that are free, and what is left of the counters that they share."""

    def __init__(self, devices: Sequence[PublishedDevice], counters: Counters) -> None:
        self.devices = {device.identity: device for device in devices}
        self.free = set(self.devices)
        self.total = counters
        shared = {key for device in devices for key, _ in device.consumes}
        self.left = {key: counters.get(key, Fraction(0)) for key in shared}

    def copy(self) -> FreeDevices:
        """The same devices, to be taken apart from these."""
        other = FreeDevices((), self.total)
        other.devices, other.free, other.left = self.devices, set(self.free), dict(self.left)
        return other

    def beside(self, others: Iterable[tuple[FreeDevices, PublishedDevice]]) -> FreeDevices:
        """The same devices and some of others, to be taken apart from these."""
        joint = self.copy()
        joint.devices = dict(self.devices)
        for free, device in others:
            joint.devices[device.identity] = device
            joint.free |= {device.identity} & free.free
            for key, _ in device.consumes:
                joint.left.setdefault(key, free.left[key])
        return joint

    def fits(self, device: PublishedDevice) -> bool:
        """Whether a device is free and its counters suffice."""
        return device.identity in self.free and all(self.left[key] >= amount for key, amount in device.consumes)

    def take(self, device: PublishedDevice, sign: int = 1) -> None:
        """Take a device that may be taken already by others, or give it back with ``sign`` -1."""
        (self.free.discard if sign > 0 else self.free.add)(device.identity)
        for key, amount in device.consumes:
            self.left[key] -= sign * amount

    def inside(self, devices: Collection[Identity]) -> list[PublishedDevice]:
        """The devices among these that are on the node, in its order."""
        return [device for identity, device in self.devices.items() if identity in devices]

    def amount(self, demanded: Demanded) -> int:
        """How many of a demand the node can satisfy; of one for all devices, what is left of ``EXCLUSIVE``."""
        if isinstance(demanded, Pick):
            return len(self.picked(demanded))
        own = self.inside(demanded.devices)
        if isinstance(demanded, Whole):
            return EXCLUSIVE - sum(not self.fits(device) for device in own) if own else 0
        rest, found = self.copy(), 0
        while (taken := rest.allocated(demanded)) is not None:
            for device in taken:
                rest.take(device)
            found += 1
            if not taken:
                return 0
        return found

    def pattern(self, bundle: Bundle) -> Hashable:
        """What the number of a bundle follows from; nodes with equal devices have equal patterns."""
        keys = [rule.attribute for rule in bundle.constraints]
        pools = {pool: number for number, pool in enumerate(dict.fromkeys(key[:2] for key in self.left))}
        own = tuple(
            (
                device.identity in self.free,
                tuple(device.identity in devices for request in bundle.requests for devices, _ in request),
                tuple(_key(device.named(key)) for key in keys),
                tuple((pools[key[:2]], key[2:], amount, self.left[key]) for key, amount in device.consumes),
            )
            for device in self.inside(bundle.devices)
        )
        return bundle, own

    def picked(self, demanded: Pick) -> list[PublishedDevice]:
        """As many devices of a set as can be had together, those that take least of their counters first."""
        own = self.inside(demanded.devices)
        if not any(device.consumes for device in own):
            return [device for device in own if device.identity in self.free]
        rest, found = self.copy(), []
        for device in sorted(own, key=self._size):
            if rest.fits(device):
                rest.take(device)
                found.append(device)
        return found

    def displaced(self, device: PublishedDevice, packed: Sequence[PublishedDevice]) -> int:
        """How many of these devices, which fill the node, must go so that a device fits."""
        if any(one.identity == device.identity for one in packed):
            return 1
        rest = self.copy()
        for one in packed:
            rest.take(one)
        remaining, gone = list(packed), 0
        while not rest.fits(device) and remaining:
            lacking = {key: amount - rest.left[key] for key, amount in device.consumes if rest.left[key] < amount}
            most = max(remaining, key=lambda one: sum(min(lacking.get(key, 0), amount) for key, amount in one.consumes))
            remaining.remove(most)
            rest.take(most, -1)
            gone += 1
        return gone

    def allocated(self, bundle: Bundle) -> list[PublishedDevice] | None:
        """Devices that satisfy the requests of a bundle together; None if there are none, or if they are not found."""
        return next(_Search(self.copy(), bundle).solutions(), None)

    def _size(self, device: PublishedDevice) -> Fraction:
        """The part of their counters that a device takes."""
        parts = (amount / self.total[key] for key, amount in device.consumes if self.total.get(key))
        return sum(parts, Fraction(0))


class _Choice(NamedTuple):
    """How one alternative takes its devices: numbers of its constraints, its claim, and whether it may use any."""

    ruled: list[int]
    claim: int
    administrative: bool


class _Search:
    """The devices of a bundle, chosen one after the other; what breaks a constraint is not followed."""

    def __init__(self, free: FreeDevices, bundle: Bundle) -> None:
        self.free, self.bundle, self.steps = free, bundle, 0
        self.values: list[list[object]] = [[] for _ in bundle.constraints]
        self.of_claim: set[tuple[int, Identity]] = set()

    def solutions(self) -> Iterator[list[PublishedDevice]]:
        """Every allocation, the first alternatives first."""
        yield from self._request(0, [])

    def _request(self, number: int, taken: list[PublishedDevice]) -> Iterator[list[PublishedDevice]]:
        if number == len(self.bundle.requests):
            yield list(taken)
            return
        for alternative, (devices, count) in enumerate(self.bundle.requests[number]):
            ruled = [c for c, rule in enumerate(self.bundle.constraints) if (number, alternative) in rule.concerned]
            claim = self.bundle.claims[number] if self.bundle.claims else 0
            how = _Choice(ruled, claim, (number, alternative) in self.bundle.administrative)
            candidates = self._ordered(self.free.inside(devices), ruled)
            yield from self._chosen(candidates, 0, count, how, taken, lambda: self._request(number + 1, taken))

    def _chosen(
        self, candidates: Sequence[PublishedDevice], start: int, count: int, how: _Choice,
        taken: list[PublishedDevice], then: Callable[[], Iterable[list[PublishedDevice]]],
    ) -> Iterator[list[PublishedDevice]]:  # fmt: skip
        if not count:
            yield from then()
            return
        for place in range(start, len(candidates) - count + 1):
            device, self.steps = candidates[place], self.steps + 1
            if self.steps > MOST_STEPS:
                return
            if not self._is_usable(device, how) or not all(self._allows(rule, device) for rule in how.ruled):
                continue
            self._take(device, how, taken)
            yield from self._chosen(candidates, place + 1, count - 1, how, taken, then)
            self._give_back(device, how, taken)

    def _is_usable(self, device: PublishedDevice, how: _Choice) -> bool:
        if (how.claim, device.identity) in self.of_claim:
            return False
        return how.administrative or self.free.fits(device)

    def _allows(self, number: int, device: PublishedDevice) -> bool:
        rule, value = self.bundle.constraints[number], device.named(self.bundle.constraints[number].attribute)
        if value is None:
            return False
        others = self.values[number]
        mine = _several(value)
        if rule.distinct:
            return not any(mine & _several(other) for other in others)
        return all(_key(value) == _key(other) for other in others)

    def _take(self, device: PublishedDevice, how: _Choice, taken: list[PublishedDevice]) -> None:
        if not how.administrative:
            self.free.take(device)
        self.of_claim.add((how.claim, device.identity))
        taken.append(device)
        for rule in how.ruled:
            self.values[rule].append(device.named(self.bundle.constraints[rule].attribute))

    def _give_back(self, device: PublishedDevice, how: _Choice, taken: list[PublishedDevice]) -> None:
        if not how.administrative:
            self.free.take(device, -1)
        self.of_claim.discard((how.claim, device.identity))
        taken.pop()
        for rule in how.ruled:
            self.values[rule].pop()

    def _ordered(self, devices: list[PublishedDevice], ruled: Sequence[int]) -> list[PublishedDevice]:
        """Devices in the node's order; where values must be distinct, those with the most frequent value first."""
        rules = [self.bundle.constraints[rule] for rule in ruled if self.bundle.constraints[rule].distinct]
        if not rules:
            return devices
        keys: Mapping[Identity, object] = {one.identity: _key(one.named(rules[0].attribute)) for one in devices}
        counts = Counter(keys[one.identity] for one in devices if one.identity in self.free.free)
        return sorted(devices, key=lambda one: -counts[keys[one.identity]])


def _key(value: object) -> tuple[str, object]:
    """A value that is equal to those of its own type alone; lists are sets."""
    return (type(value).__name__, frozenset(map(_key, value)) if isinstance(value, list) else value)


def _several(value: object) -> frozenset[tuple[str, object]]:
    return frozenset(map(_key, value if isinstance(value, list) else [value]))
