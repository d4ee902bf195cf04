"""Finish-time fairness: how late a job ends, against a cluster of which it has an equal part to itself.

A bound rho on that ratio holds if every job's rate is at least ``left / (rho * isolated - age)``. The smallest rho is
found by Newton steps from below: at a rho that is too small, the duals of the program weigh the jobs so that no
allocation has a larger weighted sum of rates; that sum then bounds rho from below, and the bound is the next rho. There
are finitely many corners of duals, so the steps end at the optimum; usually after three to six.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.policies.programs.job_classes import Groups
from fastsim.policies.programs.objectives import StatelessProgram, job_groups, level_program
from fastsim.policies.programs.published_programs import least_ratio
from fastsim.policies.programs.share_program import Shares, inverse, isolated_rate
from fastsim.policies.solvers.highs import Solution

STEPS = 100
"""Newton steps at most; the bound rises with each, so more only means noise."""
ENOUGH = 1e-10
"""Relative distance to the optimum at which the steps end; the solver's corners are exact to 1e-9."""


class FinishTime(StatelessProgram):
    """Minimises the largest ratio. State: the time that each job's progress would have taken in isolation."""

    def __init__(self, mode: str, solution: str, published: bool = False) -> None:
        super().__init__(mode, solution)
        self.published = published
        self._isolated_s: dict[int, float] = {}
        self._last: dict[int, tuple[float, float]] = {}

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares for these jobs; None without jobs."""
        if not len(view):
            self._last = {}
        return super().allocate(view)

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """Shares under which the job that is worst off, against its equal part, is as well off as it can be."""
        groups = job_groups(view, self.mode)
        shares = Shares(view, groups)
        alone = isolated_rate(groups.rate__rg[: groups.classes], view.num_gpu, view.setting.gpus__g)
        fair_s = self._past_s(view, alone) + view.steps_left * inverse(alone)
        # Packed, and only packed, the published policy weighs rates.
        left = view.steps_left * (view.weight if self.mode == "packed" else 1.0)
        bound = Bound(shares, view.now_s - view.submit_s, left, fair_s)
        if not bound.counts.any():
            return groups, np.zeros(groups.rate__rg.shape)
        if self.published and bound.counts.all():
            with self.solver.timed():
                rate, past = groups.rate__rg[: groups.classes], (view.now_s - view.submit_s) / fair_s
                found = least_ratio(rate, view.num_gpu, view.setting.gpus__g, past, view.steps_left / fair_s)
            if found is not None:
                return groups, found
        return groups, shares.share__rg(self._least(bound))

    def state(self) -> dict[str, Any]:
        """Per job: seconds in isolation so far, and steps left and isolated rate (steps/s) at the last call."""
        last = {str(job): list(pair) for job, pair in self._last.items()}
        return {"isolated_s": {str(job): past_s for job, past_s in self._isolated_s.items()}, "last": last}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._isolated_s = {int(job): float(past_s) for job, past_s in state["isolated_s"].items()}
        self._last = {int(job): (float(left), float(rate)) for job, (left, rate) in state["last"].items()}

    def _past_s(self, view: RoundView, alone: Floats) -> Floats:
        """Time that the steps done so far would have taken in isolation, seconds."""
        past: dict[int, float] = {}
        last: dict[int, tuple[float, float]] = {}
        columns = (view.job_id.tolist(), view.steps_left.tolist(), alone.tolist())
        for job, left, rate in zip(*columns, strict=True):
            before, its_rate = self._last.get(job, (left, 1.0))
            past[job] = self._isolated_s.get(job, 0.0) + ((before - left) / its_rate if its_rate > 0 else 0.0)
            last[job] = (left, rate)
        self._isolated_s, self._last = past, last
        return np.array(list(past.values()))

    def _least(self, bound: Bound) -> Solution:
        rho = bound.floor
        if self.solver.solution == "centered":
            # Mostly no job limits the one that is worst off; then the first point is the final one.
            optimum = self._best(bound, rho, "centered")
            if optimum.objective >= 1 - ENOUGH:
                return optimum
        for _ in range(STEPS):
            optimum = self._best(bound, rho, "vertex")
            if optimum.objective >= 1 - ENOUGH:
                break
            rho = bound.raised(rho, optimum)
        return optimum if self.solver.solution == "vertex" else self._best(bound, rho, "centered")

    def _best(self, bound: Bound, rho: float, solution: str) -> Solution:
        """The largest level under a ratio: 1 or more if every job can keep it."""
        return self.solver.maximum(level_program(bound.shares, bound.scale(rho)), solution, "finish-time fairness")


class Bound:
    """Rates that a bound on the ratio requires of jobs; jobs that run nowhere, or have no work left, are left out."""

    def __init__(self, shares: Shares, age_s: Floats, left: Floats, fair_s: Floats) -> None:
        self.shares, self.age_s, self.left, self.fair_s = shares, age_s, left, fair_s
        groups = shares.groups
        best = np.zeros(groups.classes)
        np.maximum.at(best, groups.first__r, groups.rate__rg.max(axis=1))
        np.maximum.at(best, groups.second__r[groups.mixed :], groups.partner_rate__rg[groups.mixed :].max(axis=1))
        self.counts = (groups.rate__rg[: groups.classes].max(axis=1) > 0) & (fair_s > 0) & (left > 0)
        # No job is faster than on its best model all the time.
        least = (age_s + left * inverse(best)) * inverse(fair_s)
        self.floor = float(least[self.counts].max(initial=0.0))

    def scale(self, rho: float) -> Floats:
        """One over the rate that each job needs, s/step."""
        slack = rho * self.fair_s - self.age_s
        return np.divide(slack, self.left, out=np.zeros(len(slack)), where=self.counts)

    def raised(self, rho: float, optimum: Solution) -> float:
        """The bound at which the weighted sum of needed rates is no larger than the largest there is."""
        dual = np.maximum(-optimum.row_dual[: len(self.left)], 0.0)
        held = np.flatnonzero((dual > 0) & self.counts)
        fair_s, age_s = self.fair_s[held], self.age_s[held]
        weight = dual[held] * (rho * fair_s - age_s)
        # The sum falls and is convex in rho, so Newton's steps come from below and never pass.
        for _ in range(STEPS):
            slack = rho * fair_s - age_s
            step = float(((weight / slack).sum() - optimum.objective) / (weight * fair_s / slack**2).sum())
            if not step > rho * 1e-15:
                break
            rho += step
        return rho
