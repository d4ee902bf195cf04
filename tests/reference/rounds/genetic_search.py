"""Pollux's genetic search in plain steps: what `fastsim_ext.adaptive.pareto_fronts` and
`fastsim_ext.adaptive.genetic_search` do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.reference.rounds.genetic_operators import Counts, States, crossed, mutated, repaired

CROSSOVER_CHANCE = 0.9
"""Chance of two parents to exchange rows."""
MATING_ROUNDS = 101
"""How often parents meet in a generation until there are enough children."""
LARGEST_CUT = 32767
LARGEST_SEED = 10_000_000
SHORT = 15
"""Distance of the ends up to which numpy's quicksort inserts."""

Losses = Sequence[tuple[float, float]]
"""Minus mean speedup and minus utility of each state: both shall be small."""


@dataclass(frozen=True)
class Herd:
    """States with what is known of them; ``rank`` counts fronts."""

    states: list[States]
    losses: list[tuple[float, float]]
    ranks: list[int]
    crowding: list[float]


@dataclass(frozen=True)
class Search:
    """What a search is about: what jobs have, how good states are, most and least GPUs of each job."""

    base__jn: States
    loss: Callable[[States], tuple[float, float]]
    most__j: Counts
    least__j: Counts
    node_gpus: int
    size: int = 100
    apart: bool = True

    def front(self, random: np.random.RandomState, states: Sequence[States], generations: int) -> Herd:
        """The first front after some generations."""
        random.seed(random.randint(0, LARGEST_SEED))
        begun = repaired(random, np.array(states), self.most__j, self.least__j, self.node_gpus, self.apart)
        new = _unseen(begun, [])
        herd = survivors(random, self._judged(new), len(new))
        for _ in range(1, generations):
            children = self._children(random, herd)
            if not children:
                break
            both = self._judged(children)
            herd = survivors(
                random, Herd(herd.states + both.states, herd.losses + both.losses, [], []), self.size
            )  # fmt: skip
        return _some(herd, [p for p, rank in enumerate(herd.ranks) if rank == 0])

    def _judged(self, states: list[States]) -> Herd:
        return Herd(states, [self.loss(state) for state in states], [], [])

    def _children(self, random: np.random.RandomState, herd: Herd) -> list[States]:
        """New states until there are as many as live on, or nothing new comes any more."""
        found: list[States] = []
        for _ in range(MATING_ROUNDS):
            couples = math.ceil((self.size - len(found)) / 2)
            states = np.array([herd.states[winner] for winner in winners(random, herd, 2 * couples)])
            exchange = random.random_sample(couples) < CROSSOVER_CHANCE
            first, second = crossed(random, states[::2], states[1::2])
            first[~exchange], second[~exchange] = states[::2][~exchange], states[1::2][~exchange]
            random.randint(LARGEST_CUT, size=(2, couples))  # for sizes of clusters, which never change here
            litter = mutated(random, np.concatenate([first, second]), self.base__jn, self.node_gpus)
            litter = repaired(random, litter, self.most__j, self.least__j, self.node_gpus, self.apart)
            found = (found + _unseen(litter, herd.states + found))[: self.size]
            if len(found) == self.size:
                break
        return found


def winners(random: np.random.RandomState, herd: Herd, wanted: int) -> list[int]:
    """Who wins tournaments of two: who beats the other, is less crowded, or is lucky."""
    rounds = math.ceil(2 * wanted / len(herd.states))
    order = np.concatenate([random.permutation(len(herd.states)) for _ in range(rounds)])[: 2 * wanted]
    found = []
    for a, b in order.reshape(-1, 2).tolist():
        if beats(herd.losses[a], herd.losses[b]) or beats(herd.losses[b], herd.losses[a]):
            found.append(a if beats(herd.losses[a], herd.losses[b]) else b)
        elif herd.crowding[a] != herd.crowding[b]:
            found.append(a if herd.crowding[a] > herd.crowding[b] else b)
        else:
            found.append(int(random.choice([a, b])))
    return found


def survivors(random: np.random.RandomState, herd: Herd, wanted: int) -> Herd:
    """Those on the first fronts, of the last one those that are least crowded."""
    order: list[int] = []
    ranks, crowded = [0] * len(herd.states), [0.0] * len(herd.states)
    for rank, front in enumerate(fronts(herd.losses)):
        distance = crowding([herd.losses[p] for p in front])
        for p, d in zip(front, distance, strict=True):
            ranks[p], crowded[p] = rank, d
        if len(order) + len(front) > wanted:
            drawn = random.permutation(len(front)).tolist()
            ascending = quicksorted([distance[at] for at in drawn])
            front = [front[drawn[at]] for at in ascending[::-1]]
        order += front[: wanted - len(order)]
        if len(order) >= wanted:
            break
    return _some(replace(herd, ranks=ranks, crowding=crowded), order)


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether one is smaller somewhere and larger nowhere."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def fronts(losses: Losses) -> list[list[int]]:
    """Whom nobody beats, whom nobody else beats, and so on; in the order in which their last rival is taken away."""
    rivals = [sum(beats(other, one) for other in losses) for one in losses]
    front, found = [p for p, count in enumerate(rivals) if not count], []
    while front:
        found.append(front)
        freed = []
        for p in front:
            for q in range(len(losses)):
                if beats(losses[p], losses[q]):
                    rivals[q] -= 1
                    freed += [q] * (not rivals[q])
        front = freed
    return found


def crowding(losses: Losses) -> list[float]:
    """How far the neighbours of each member of a front are from one another; 0 for all but one of equal members."""
    if len(losses) <= 2:
        return [math.inf] * len(losses)
    unique = [p for p in range(len(losses)) if losses[p] not in losses[:p]]
    found = [0.0] * len(losses)
    for axis in range(2):
        order = sorted(unique, key=lambda p: losses[p][axis])
        values = [losses[p][axis] for p in order]
        spread = values[-1] - values[0]
        for at, p in enumerate(order):
            if spread and 0 < at < len(order) - 1:
                found[p] += (values[at] - values[at - 1]) / spread + (values[at + 1] - values[at]) / spread
            elif spread:
                found[p] = math.inf
    return [distance / 2 for distance in found]


def quicksorted(values: Sequence[float]) -> list[int]:
    """Positions in ascending order; ties end where numpy's quicksort leaves them."""
    index = list(range(len(values)))

    def swap(i: int, j: int, only_if: bool = True) -> None:
        if only_if:
            index[i], index[j] = index[j], index[i]

    def ordered(low: int, high: int) -> None:
        while high - low > SHORT:
            middle = (low + high) // 2
            for i, j in ((low, middle), (middle, high), (low, middle)):
                swap(i, j, values[index[j]] < values[index[i]])
            pivot, left, right = values[index[middle]], low, high - 1
            swap(middle, right)
            while True:
                left = next(i for i in range(left + 1, high + 1) if values[index[i]] >= pivot)
                right = next(i for i in range(right - 1, low - 1, -1) if values[index[i]] <= pivot)
                if left >= right:
                    break
                swap(left, right)
            swap(left, high - 1)
            ordered(low, left - 1)
            low = left + 1
        index[low : high + 1] = sorted(index[low : high + 1], key=lambda p: values[p])

    ordered(0, len(values) - 1)
    return index


def _unseen(states: States, seen: Sequence[States]) -> list[States]:
    known, found = {state.tobytes() for state in seen}, []
    for state in states:
        if state.tobytes() not in known:
            known.add(state.tobytes())
            found.append(state)
    return found


def _some(herd: Herd, order: Sequence[int]) -> Herd:
    return Herd(
        [herd.states[p] for p in order], [herd.losses[p] for p in order], [herd.ranks[p] for p in order],
        [herd.crowding[p] for p in order],
    )  # fmt: skip
