"""Servers in one ordered round, in plain Python: what is free, who sits where, and three ways to look for seats."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from fastsim.engine.orders.server_demands import ServerDemands

Vector = tuple[float, ...]
"""Milli-CPU, MiB, MB/s."""
Seats = dict[int, list[int]]
"""GPUs by server; GPUs are numbered on their server."""


@dataclass(eq=False)
class Seated:
    """A job with its seats."""

    model: int = 0
    seats: dict[int, tuple[list[int], Vector]] = field(default_factory=dict)
    given: Vector = ()
    gpus: tuple[int, ...] = ()


def enough(there: float, wanted: float) -> bool:
    """Whether so much is there; parts of servers are quotients, so sums of them may miss the last bits."""
    return there >= wanted - wanted * 1e-12


class Place:
    """All servers."""

    def __init__(self, needs: ServerDemands) -> None:
        self.needs = needs
        self.caps = [tuple(float(value) for value in row) for row in needs.cap__sr]
        self.first = [sum(needs.num_gpu__s[:s]) for s in range(len(needs.num_gpu__s))]
        self.fair = [tuple(c / n for c in cap) for cap, n in zip(self.caps, needs.num_gpu__s, strict=True)]
        self.clear()

    def clear(self, absent: Set[int] = frozenset()) -> None:
        """Everybody leaves; servers of these GPUs have nothing."""
        there = [first not in absent for first in self.first]
        self.free = [list(range(n)) if t else [] for n, t in zip(self.needs.num_gpu__s, there, strict=True)]
        self.left = [list(cap) if t else [-math.inf] * len(cap) for cap, t in zip(self.caps, there, strict=True)]
        self.listed: list[list[Any]] = [[] for _ in self.caps]

    def of_model(self, model: int) -> range:
        """Servers with GPUs of a model."""
        return range(self.needs.base[model], self.needs.base[model + 1])

    def free_gpus(self, model: int) -> int:
        """On all of them."""
        return sum(len(self.free[s]) for s in self.of_model(model))

    def by_server(self, gpus: Sequence[int]) -> Seats:
        """GPUs numbered on their servers; without any, no seat at all."""
        found: Seats = {}
        for gpu in gpus:
            s = max(s for s, first in enumerate(self.first) if first <= gpu)
            found.setdefault(s, []).append(gpu - self.first[s])
        return found

    def commit(self, a: Seated, found: Seats, need: Vector | None) -> None:
        """Take seats; without a need, each GPU brings its part of the server."""
        total = sum(map(len, found.values()))
        a.seats, a.gpus = {}, ()
        for s, gpus in found.items():
            share = [f * len(gpus) for f in self.fair[s]] if need is None else [
                n / total * len(gpus) if total else n for n in need
            ]  # fmt: skip
            self.left[s] = [has - part for has, part in zip(self.left[s], share, strict=True)]
            self.free[s] = [gpu for gpu in self.free[s] if gpu not in gpus]
            a.seats[s] = (gpus, tuple(share))
            a.gpus += tuple(self.first[s] + gpu for gpu in sorted(gpus))
            if gpus:
                self.listed[s].append(a)
        a.given = self.total(a)

    def reshare(self, a: Seated, need: Vector) -> None:
        """Another need on the same GPUs."""
        total = len(a.gpus)
        for s, (gpus, old) in a.seats.items():
            share = tuple(n / total * len(gpus) for n in need)
            self.left[s] = [has + (was - part) for has, was, part in zip(self.left[s], old, share, strict=True)]
            a.seats[s] = (gpus, share)
        a.given = self.total(a)

    def total(self, a: Seated) -> Vector:
        """What a job has in all."""
        return tuple(sum(column) for column in zip(*(share for _, share in a.seats.values()), strict=True))

    def fits(self, server: int, held: Sequence[float], each: Vector) -> bool:
        """Whether so much is there beside what is held."""
        return all(enough(has - h, e) for has, h, e in zip(self.left[server], held, each, strict=True))

    def holds(self, found: Seats, num_gpu: int, need: Vector) -> bool:
        """Whether these servers have enough for a gang that needs so much in all."""
        return all(
            enough(has, n / num_gpu * len(gpus))
            for s, gpus in found.items()
            for has, n in zip(self.left[s], need, strict=True)
        )

    def has_room(self, a: Seated, need: Vector) -> bool:
        """Whether its servers have enough for another need on the same GPUs."""
        return all(
            enough(has + old, n / len(a.gpus) * len(gpus))
            for s, (gpus, share) in a.seats.items()
            for has, old, n in zip(self.left[s], share, need, strict=True)
        )


def first_fit(place: Place, servers: Sequence[int], num_gpu: int, each: Vector) -> Seats | None:
    """Free GPUs one by one, by rising number, if their server has enough for each."""
    if num_gpu == 0:
        first = next((s for s in servers if place.fits(s, [0.0] * len(each), each)), None)
        return None if first is None else {first: []}
    return _one_by_one(place, [(s, gpu) for s in servers for gpu in place.free[s]], num_gpu, each)


def fullest(place: Place, servers: Sequence[int], num_gpu: int, each: Vector) -> Seats | None:
    """The same from the server with the fewest free GPUs on, by falling number."""
    order = sorted((s for s in servers if place.free[s]), key=lambda s: (len(place.free[s]), s))
    return _one_by_one(place, [(s, gpu) for s in order for gpu in reversed(place.free[s])], num_gpu, each)


def _one_by_one(place: Place, gpus: Sequence[tuple[int, int]], num_gpu: int, each: Vector) -> Seats | None:
    found: Seats = {}
    held: dict[int, list[float]] = {}
    for s, gpu in gpus:
        has = held.setdefault(s, [0.0] * len(each))
        if num_gpu and place.fits(s, has, each):
            held[s] = [h + e for h, e in zip(has, each, strict=True)]
            found.setdefault(s, []).append(gpu)
            num_gpu -= 1
    return found if num_gpu == 0 else None


def consolidated(place: Place, servers: Sequence[int], num_gpu: int, need: Vector) -> Seats | None:
    """All on the server with the fewest free GPUs of those that have enough."""
    enough = [s for s in servers if len(place.free[s]) >= num_gpu and place.fits(s, [0.0] * len(need), need)]
    best = min(enough, key=lambda s: (len(place.free[s]), s), default=None)
    return None if best is None else {best: place.free[best][:num_gpu]}
