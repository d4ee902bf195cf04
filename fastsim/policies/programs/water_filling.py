"""Water filling: raise the level under all jobs, hold those that cannot rise further, raise the others again.

The jobs to hold follow from the duals: a job whose row has a positive dual is at its level in every optimum, so it
cannot rise while the others stand as high as they do. At least one job has one, so every program holds at least one
class. The rates that are left in the end, largest smallest, then largest second smallest and so on, are unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.engine.shares.plan import Floats, Ints, RoundView
from fastsim.errors import SolverError
from fastsim.policies.programs.job_classes import Groups
from fastsim.policies.programs.objectives import StatelessProgram, fair_groups, fair_scale, level_program
from fastsim.policies.programs.published_programs import last_rise
from fastsim.policies.programs.share_program import NO_FLOOR, Shares, inverse
from fastsim.policies.solvers.highs import Solution

HELD = 1e-6
"""Dual from which a job counts as held. All rising jobs' duals sum to 1; the solver's noise is below 1e-8."""
SLACKS = (1e-9, 1e-8, 1e-7)
"""How far a level that was reached may be missed later, relative: the solver's own tolerance, more if that is too
little, because its rounding adds up from level to level."""

Flags = npt.NDArray[np.bool_]
Entities = Mapping[str, tuple[float, str]]
"""Weight of each entity, and its inner policy: ``fairness`` or ``fifo``."""


class WaterFilling(StatelessProgram):
    """Maximises the smallest normalised rate, then the next smallest, and so on."""

    def __init__(
        self, mode: str, solution: str, entities: Entities, published: bool = False, hold_all: bool = False
    ) -> None:
        super().__init__(mode, solution)
        self.entities, self.published, self.hold_all = entities, published, hold_all

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """Shares under which no job can be faster unless one that is no faster than it becomes slower."""
        entity__j, fifo__j, weight__e = self._entities_of(view)
        # In an entity that serves its jobs in order no two jobs are alike.
        own__j = np.where(fifo__j, np.arange(len(view)) + 1, 0)
        groups = fair_groups(view, self.mode, entity__j, own__j)
        shares = Shares(view, groups)
        example = groups.example__c
        claims = Claims(
            weight__c=view.weight[example],
            entity__c=entity__j[example],
            fifo__c=fifo__j[example],
            weight__e=weight__e,
            size__c=groups.size__c,
            example__c=example,
        )
        rises = self._rises(shares, fair_scale(view, groups), claims)
        if self.published and rises:
            with self.solver.timed():
                found = self._last(view, groups, rises[-1])
            if found is not None:
                return groups, found
        level__c = rises[-1].level__c + rises[-1].by * rises[-1].rise__c if rises else np.zeros(groups.classes)
        # Standing at the levels is what raising each to itself leads to; so the end is one more program of level 1.
        scale__c = fair_scale(view, groups) * inverse(level__c)
        return groups, shares.share__rg(self.solver.maximum(level_program(shares, scale__c), what="water filling"))

    def _rises(self, shares: Shares, scale__c: Floats, claims: Claims) -> list[Rise]:
        """The steps from level to level; after the last one every class is held. With `hold_all` each rises once."""
        level__c, held = np.zeros(len(scale__c)), scale__c <= 0
        rises: list[Rise] = []
        for _ in range(len(scale__c)):
            if held.all():
                break
            rise__c = claims.rise(held)
            raised = self._raised(shares, scale__c, rise__c, level__c)
            rises.append(Rise(level__c, rise__c, max(raised.objective, 0.0)))
            level__c = level__c + rises[-1].by * rise__c
            # Duals are those of the rows as they stand; times the rise they sum to 1.
            dual = -raised.row_dual[: len(scale__c)] * rise__c
            held = held | ((rise__c > 0) if self.hold_all else dual > min(HELD, float(dual.max())) * 0.5)
        return rises

    def _last(self, view: RoundView, groups: Groups, rise: Rise) -> Floats | None:
        """The shares where the published program of the last rise ends, job by job; None if it does not."""
        example, size = groups.example__c, groups.size__c
        unit__c = view.num_gpu[example] / view.weight[example]
        rate__cg = groups.rate__rg[: groups.classes] * (fair_scale(view, groups) / unit__c)[:, None]
        factor__c = unit__c * inverse(rise.rise__c)
        each = np.repeat(np.arange(groups.classes), size)
        found = last_rise(
            rate__jg=rate__cg[each],
            use__j=view.num_gpu[example][each],
            gpus__g=view.setting.gpus__g,
            level__j=(rise.level__c / unit__c)[each],
            factor__j=factor__c[each],
            rising__j=(rise.rise__c > 0)[each],
        )
        return None if found is None else found[np.cumsum(size) - size]

    def _raised(self, shares: Shares, scale__c: Floats, rise__c: Floats, level__c: Floats) -> Solution:
        """The largest rise of the level at which no job falls."""
        for slack in SLACKS:
            floor__c = np.where(scale__c > 0, level__c * (1 - slack), NO_FLOOR)
            solution = self.solver.attempt(shares.program(scale__c, rise__c, floor__c), "vertex", "water filling")
            if solution is not None:
                return solution
        raise SolverError("water filling: found no way to stay at a level that was reached, expected one")

    def _entities_of(self, view: RoundView) -> tuple[Ints, Flags, Floats]:
        """Entity of each job, whether it serves in order, and the weight of each entity; without entities one."""
        if not self.entities or not view.tenant:
            return np.zeros(len(view), np.int64), np.zeros(len(view), np.bool_), np.zeros(1)
        names = sorted(set(view.tenant))
        options = [self.entities.get(name, (1.0, "fairness")) for name in names]
        position = {name: index for index, name in enumerate(names)}
        entity__j = np.array([position[name] for name in view.tenant], np.int64)
        fifo__e = np.array([inner == "fifo" for _, inner in options])
        return entity__j, fifo__e[entity__j], np.array([weight for weight, _ in options])


class Rise(NamedTuple):
    """One step: levels before it, the rise of each class with the level, and how far the level rose."""

    level__c: Floats
    rise__c: Floats
    by: float


@dataclass(frozen=True, eq=False)
class Claims:
    """Rise of each class with the level. ``weight__e`` of 0: no entities, every job rises by its own weight."""

    weight__c: Floats
    entity__c: Ints
    fifo__c: Flags
    weight__e: Floats
    size__c: Ints
    example__c: Ints

    def rise(self, held: Flags) -> Floats:
        """Rise of each class, over the weight that its rate is scaled by already; 0 for those that are held."""
        if not self.weight__e.any():
            return np.where(held, 0.0, 1.0)
        free = np.where(held, 0.0, self.weight__c * self.size__c)
        total__e = np.asarray(np.bincount(self.entity__c, free, len(self.weight__e)), np.float64)
        fair = self.weight__e[self.entity__c] * inverse(total__e)[self.entity__c]
        # Classes of an entity that serves in order are its jobs; the one in the lowest row is served.
        waiting = np.flatnonzero(self.fifo__c & ~held)
        waiting = waiting[np.argsort(self.example__c[waiting])]
        serving = np.zeros(len(held), np.bool_)
        serving[waiting[np.unique(self.entity__c[waiting], return_index=True)[1]]] = True
        in_order = np.where(serving, self.weight__e[self.entity__c] / self.weight__c, 0.0)
        rise: Floats = np.where(held, 0.0, np.where(self.fifo__c, in_order, fair))
        return rise
