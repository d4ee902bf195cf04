"""Programs in which each job makes one choice or none, and GPUs of each model are limited: exact, and mostly at once.

Prices of GPUs bound what choices can cost together. Hardly any program's best choice is far from that bound, so a
search among the few choices close to it (`fastsim_ext.solvers.knapsack`) finds it; HiGHS solves the programs that
the search gives up.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import SolverError
from fastsim.policies.solvers.highs import FIRST_REACH, WholeProgram, WholeSolver
from fastsim_ext.solvers.knapsack import MOST, Knapsack

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NODES = 60_000
"""States of the search without a choice, after which HiGHS is quicker."""
MORE_NODES = 2_000
"""States after the first choice, in which the search looks for a better one of those that a step makes equal."""
REACHES = 12
"""Reaches that are tried."""
SINGLE = 1.2e-7
"""Relative error of costs that were single precision once."""


class ChoiceProgram(NamedTuple):
    """Minimise ``cost @ x``: each of the ``count`` jobs of a class takes one of its columns at most.

    Columns stand class by class, those of class ``c`` in ``first[c]:first[c + 1]``; a forced class has one column, and
    its jobs take it. ``staying`` is the most that a job's cost was moved off its step, to break ties.
    """

    cost__x: Floats
    gpus__x: Ints
    group__x: Ints
    first__c: Ints
    count__c: Ints
    forced__c: npt.NDArray[np.bool_]
    room__g: Ints
    staying: float = 0.0


class ChoiceSolver:
    """Solves a program once: rounding makes a quarter of Sia's the same as one before. ``spent_s`` are CPU seconds."""

    def __init__(self, searched: bool = True) -> None:
        self.searched, self.spent_s, self.given_up = searched, 0.0, 0
        self.known: dict[bytes, Ints] = {}
        self._whole: WholeSolver | None = None

    def minimum(self, program: ChoiceProgram, step: float = 0.0, what: str = "choices") -> Ints:
        """How often each column is taken; objectives are multiples of ``step``, if any, up to ``staying``."""
        start_s = time.thread_time()
        try:
            key = _digest(program, step)
            if key not in self.known:
                counts = _searched(program, step, what) if self.searched and len(program.room__g) <= MOST else None
                if counts is None:
                    self.given_up += 1
                    self._whole = self._whole or WholeSolver()
                    counts = self._whole.minimum(whole_program(program), step, what)
                self.known[key] = counts
            return self.known[key]
        finally:
            self.spent_s += time.thread_time() - start_s


def whole_program(p: ChoiceProgram) -> WholeProgram:
    """The same for HiGHS: a row for each GPU model, then one for each class; every column stands in one of both."""
    sizes = np.diff(p.first__c)
    of_class__x = np.repeat(np.arange(len(p.count__c)), sizes)
    columns, count = len(p.cost__x), p.count__c.astype(np.float64)
    return WholeProgram(
        cost=p.cost__x,
        high=count[of_class__x],
        row_low=np.concatenate([np.zeros(len(p.room__g)), np.where(p.forced__c, count, 0.0)]),
        row_high=np.concatenate([p.room__g.astype(np.float64), count]),
        start=np.arange(0, 2 * columns + 1, 2, dtype=np.int32),
        index=np.stack([p.group__x, len(p.room__g) + of_class__x], axis=1).astype(np.int32).ravel(),
        value=np.stack([p.gpus__x, np.ones_like(p.gpus__x)], axis=1).astype(np.float64).ravel(),
    )


def _searched(program: ChoiceProgram, step: float, what: str) -> Ints | None:
    """The answer of the search; None if it gave up."""
    fixed, free = _without_forced(program, what)
    knapsack = Knapsack(free.cost__x, free.gpus__x, free.group__x, free.first__c, free.count__c, free.room__g)
    bound = knapsack.bound()
    noise = _noise(free)
    if step and noise > step / 4:
        return None
    first = math.ceil((bound - noise) / step) * step - bound + noise if step else 0.0
    for nearest, reach in _reaches(first, step):
        excess = knapsack.search(reach, NODES, MORE_NODES if step else NODES)
        if excess is not None and (knapsack.ended or excess <= nearest):
            return fixed + _spread(program, knapsack.chosen)
        if not knapsack.ended:
            return None
    return None


def _reaches(first: float, step: float) -> Iterator[tuple[float, float]]:
    """Distances from the bound: of the least objective that was not ruled out yet, and how far to look next."""
    nearest = first
    for turn in range(REACHES):
        yield nearest, first + (step or FIRST_REACH) * (2.0**turn - 1 if step else 2.0**turn)
        nearest = first + step * 2.0**turn if step else 0.0


def _noise(program: ChoiceProgram) -> float:
    """How far an objective may be from a multiple of the step."""
    largest = float(np.abs(program.cost__x).max()) if len(program.cost__x) else 0.0
    return 1e-7 + float(program.count__c.sum()) * (program.staying + SINGLE * largest)


def _without_forced(p: ChoiceProgram, what: str) -> tuple[Ints, ChoiceProgram]:
    """Counts of the columns of forced classes, and the program of the others in the room that is left."""
    taken = np.zeros(len(p.cost__x), np.int64)
    if not p.forced__c.any():
        return taken, p
    sizes = np.diff(p.first__c)
    if (sizes[p.forced__c] == 0).any():
        raise SolverError(f"{what}: found a forced class without a choice, expected one")
    columns = p.first__c[:-1][p.forced__c]
    taken[columns] = p.count__c[p.forced__c]
    room = p.room__g - np.bincount(
        p.group__x[columns], p.gpus__x[columns] * taken[columns], minlength=len(p.room__g)
    ).astype(np.int64)
    if (room < 0).any():
        raise SolverError(f"{what}: found no feasible point, expected an optimum")
    free, loose = np.repeat(~p.forced__c, sizes), ~p.forced__c
    first = np.concatenate([[0], np.cumsum(sizes[loose])]).astype(np.int64)
    return taken, ChoiceProgram(
        cost__x=p.cost__x[free],
        gpus__x=p.gpus__x[free],
        group__x=p.group__x[free],
        first__c=first,
        count__c=p.count__c[loose],
        forced__c=p.forced__c[loose],
        room__g=room,
        staying=p.staying,
    )


def _spread(p: ChoiceProgram, chosen: Ints) -> Ints:
    """Counts of the columns of loose classes, among all columns."""
    counts = np.zeros(len(p.cost__x), np.int64)
    counts[np.repeat(~p.forced__c, np.diff(p.first__c))] = chosen
    return counts


def _digest(program: ChoiceProgram, step: float) -> bytes:
    total = hashlib.sha256(repr((step, program.staying)).encode())
    for part in program[:-1]:
        total.update(len(part).to_bytes(8, "little") + part.tobytes())
    return total.digest()
