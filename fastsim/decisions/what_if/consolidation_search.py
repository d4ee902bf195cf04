"""The search for the set of nodes to empty: by orders of nodes, and by all sets in a cluster of few nodes.

Orders are tried node by node: a node is emptied if all pods on it find room. The first order is greedy: nodes with the
fewest devices, and then the least CPU, to move come first.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from fastsim.decisions.what_if.relocation import HeldPlace, Relocation

FEW = 12
"""Most nodes of a cluster in which all sets of nodes that can be emptied are searched."""
TRIES = 30_000
"""Most placements of pods in the search of all sets."""
ORDERED = 12_000
"""Placements of pods after which no further order of nodes is tried."""


class ConsolidationSearch:
    """The best set of nodes to empty, and the places of their pods."""

    def __init__(
        self, room: Relocation, movable: Mapping[int, Mapping[str, Any]], names: Sequence[str],
        stay: Collection[str], prices: Mapping[str, float] | None,
    ) -> None:  # fmt: skip
        self.room, self.movable, self.names = room, movable, names
        self.nodes = [n for n, name in enumerate(names) if name not in stay]
        self.worth = [1.0 if prices is None else prices.get(name, 0.0) for name in names]
        self.best: tuple[float, int] = (-1.0, 0)
        self.emptied: list[int] = []
        self.places: dict[int, HeldPlace] = {}
        self.optimal, self.greedy_count, self.placed, self.tries = False, 0, 0, 0

    def run(self) -> None:
        """Try orders of nodes, and all sets if there are few nodes."""
        order = sorted(self.nodes, key=lambda n: (*self.load(n), n))
        self._try(order)
        self.greedy_count = len(self.emptied)
        for further in self._orders(order):
            if len(self.emptied) == len(self.nodes) or self.placed >= ORDERED:
                break
            self._try(further)
        self.optimal = len(self.emptied) == len(self.nodes)
        if not self.optimal and len(self.names) <= FEW:
            self._all_sets()

    @cached_property
    def own(self) -> dict[int, list[int]]:
        """Pods that can move, by node at the beginning, largest first."""
        pods: dict[int, list[int]] = {}
        for pod in sorted(self.movable, key=self.size):
            place = self.room.origin[pod]
            assert place is not None
            pods.setdefault(place.node, []).append(pod)
        return pods

    def size(self, pod: int) -> tuple[int, ...]:
        """Sort key of pods, largest first."""
        row = self.movable[pod]
        return -row["num_gpu"] * row["gpu_milli"], -row["cpu_milli"], -row["memory_mib"], pod

    def load(self, node: int) -> tuple[int, int]:
        """Milli-GPU and milli-CPU that a node has to move."""
        rows = [self.movable[pod] for pod in self.own.get(node, ())]
        return sum(row["num_gpu"] * row["gpu_milli"] for row in rows), sum(row["cpu_milli"] for row in rows)

    def reset(self) -> None:
        """Put every pod back where it was, and open all nodes."""
        room = self.room
        moved = [pod for pod in self.movable if room.place[pod] != room.origin[pod]]
        room.take(pod for pod in moved if room.place[pod] is not None)
        room.open(range(len(self.names)))
        if not room.put([(pod, place) for pod in moved if (place := room.origin[pod]) is not None]):
            raise RuntimeError("a pod finds no room where it was")

    def _orders(self, order: Sequence[int]) -> list[list[int]]:
        """Further orders: by CPU, by worth, then with one node of the best set behind all others, then drawn ones."""
        orders = [sorted(order, key=lambda n: (self.load(n)[::-1], n)), sorted(order, key=lambda n: -self.worth[n])]
        orders.append(sorted(order, key=lambda n: (len(self.own.get(n, ())), n)))
        head = set(self.emptied)
        for node in reversed(self.emptied[-8:]):
            rest = [n for n in order if n not in head]
            orders.append([*(n for n in order if n in head and n != node), *rest, node])
        draw = random.Random(0)
        return [*orders, *(draw.sample(list(order), len(order)) for _ in range(8))]

    def _try(self, order: Sequence[int]) -> None:
        """Empty nodes one by one, each if all pods on it find room; keep the set if it is the best so far."""
        self.reset()
        on = {node: list(pods) for node, pods in self.own.items()}
        emptied = [node for node in order if self._emptied(node, on)]
        self._keep(emptied)

    def _emptied(self, node: int, on: dict[int, list[int]]) -> bool:
        room, pods = self.room, sorted(on.get(node, ()), key=self.size)
        before = [(pod, place) for pod in pods if (place := room.place[pod]) is not None]
        self.placed += len(pods)
        room.close([node])
        room.take(pods)
        if not room.choose(pods):
            room.take(pod for pod in pods if room.place[pod] is not None)
            room.open([node])
            room.put(before)
            return False
        on[node] = []
        for pod in pods:
            place = room.place[pod]
            assert place is not None
            on.setdefault(place.node, []).append(pod)
        return True

    def _keep(self, emptied: Sequence[int]) -> None:
        value = sum(self.worth[n] for n in emptied), -sum(len(self.own.get(n, ())) for n in emptied)
        if value > self.best:
            self.best, self.emptied = value, sorted(emptied, key=lambda n: (*self.load(n), n))
            moving = [pod for n in emptied for pod in self.own.get(n, ())]
            self.places = {pod: place for pod in moving if (place := self.room.place[pod]) is not None}

    def _all_sets(self) -> None:
        """Sets of more worth than the best, most worth first, until one is feasible."""
        sets = [chosen for size in range(len(self.nodes) + 1) for chosen in combinations(self.nodes, size)]
        worth = {chosen: sum(self.worth[n] for n in chosen) for chosen in sets}
        for chosen in sorted(sets, key=lambda chosen: (-worth[chosen], len(chosen))):
            if worth[chosen] <= self.best[0] + 1e-9:
                break
            if self._is_feasible(chosen):
                self._keep(chosen)
                break
            if self.tries >= TRIES:  # the last set may have been cut short
                return
        self.optimal = True

    def _is_feasible(self, chosen: Sequence[int]) -> bool:
        """Whether the pods of these nodes find room on the others, whatever places they take."""
        self.reset()
        room, pods = self.room, sorted((pod for n in chosen for pod in self.own.get(n, ())), key=self.size)
        targets = [n for n in range(len(self.names)) if n not in chosen]
        for name, free in (("cpu_milli", "cpu_left"), ("memory_mib", "mem_left")):
            if sum(self.movable[pod][name] for pod in pods) > sum(int(room.columns[free][n]) for n in targets):
                return False
        gpu = sum(self.movable[pod]["num_gpu"] * self.movable[pod]["gpu_milli"] for pod in pods)
        if gpu > sum(int(room.columns["gpu_left"][n].sum()) for n in targets):
            return False
        room.take(pods)
        room.close(range(len(self.names)))
        return self._all_fit(pods, targets, 0)

    def _all_fit(self, pods: Sequence[int], targets: Sequence[int], first: int) -> bool:
        """Whether the pods from the first on fit beside those that are placed; if so, they are."""
        if not pods:
            return True
        pod, room, rest = pods[0], self.room, pods[1:]
        same = bool(rest) and room.rule_columns is None and self.size(rest[0])[:3] == self.size(pod)[:3]
        for at in range(first, len(targets)):
            for place in self._places(pod, targets[at]):
                room.open([targets[at]])
                fits = room.put([(pod, place)])
                room.close([targets[at]])
                if fits and self._all_fit(rest, targets, at if same else 0):
                    return True
                room.take([pod] if fits else [])
                if self.tries > TRIES:
                    return False
        return False

    def _places(self, pod: int, node: int) -> list[HeldPlace]:
        """Places of a pod on a node that the engine lets it have: each choice among devices that differ."""
        room, row = self.room, self.movable[pod]
        self.tries += 1
        room.open([node])
        fits = room.choose([pod])
        room.close([node])
        if not fits:
            return []
        place = room.place[pod]
        assert place is not None
        room.take([pod])
        if not row["num_gpu"] or row["gpu_milli"] == 1000:
            return [place]
        left = [int(milli) for milli in room.columns["gpu_left"][node]]
        kinds = {tuple(sorted(left[g] for g in devices(place.gpus))): place}
        usable = [g for g, milli in enumerate(left) if milli >= row["gpu_milli"]]
        for gpus in combinations(usable, row["num_gpu"]):
            kinds.setdefault(tuple(sorted(left[g] for g in gpus)), HeldPlace(node, sum(1 << g for g in gpus)))
        return list(kinds.values())


def devices(bits: int) -> tuple[int, ...]:
    """Numbers of devices by their bits."""
    return tuple(g for g in range(64) if bits >> g & 1)
