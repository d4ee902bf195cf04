"""Shortest total duration: the program that makes the job that ends last end as early as it can."""

from __future__ import annotations

import numpy as np

from fastsim.engine.shares.plan import Floats, RoundView
from fastsim.policies.programs.job_classes import Groups, grouped
from fastsim.policies.programs.objectives import Stateless, level_program
from fastsim.policies.programs.share_program import NO_FLOOR, Shares, inverse

FIRST_S, LAST_S, CLOSE = 100.0, 1e6, 1.05
"""The published bisection: first interval in seconds, and the ratio of its ends at which it stops."""


class MinDuration(Stateless):
    """Minimises the time until every job has ended. ``search``: the optimum, or the published bisection's result."""

    def __init__(self, mode: str, solution: str, search: str) -> None:
        super().__init__(mode, solution)
        self.search = search

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """Shares under which all jobs end within the shortest duration, or within the bisection's."""
        groups = job_groups(view, self.mode)
        shares = Shares(view, groups)
        best = groups.rate__rg[: groups.classes].max(axis=1)
        counts = best > 0
        if not counts.any():
            return groups, np.zeros(groups.rate__rg.shape)
        scale__c = np.where(counts, 1.0 / view.steps_left, 0.0)
        # In units of the longest duration on a GPU of one's own, so that the numbers are near 1.
        unit_s = float((view.steps_left * inverse(best)).max()) or 1.0
        found = self.solver.maximum(
            level_program(shares, scale__c * unit_s), "vertex" if self.search == "bisection" else "", "total duration"
        )
        if self.search == "bisection":
            duration_s = bisected_s(unit_s / found.objective)
            floor__c = np.where(counts, unit_s / duration_s, NO_FLOOR)
            program = shares.program(
                scale__c * unit_s, np.zeros(groups.classes), floor__c, unit__c=view.steps_left / unit_s
            )
            found = self.solver.maximum(program, what="total duration")
        return groups, shares.share__rg(found)


def job_groups(view: RoundView, mode: str) -> Groups:
    """Every job a class of its own; in mode ``base`` every GPU model counts as the fastest."""
    apart = np.arange(len(view))
    if mode == "base":
        return grouped(view, np.repeat(view.reference__j[:, None], len(view.setting.gpu_models), axis=1), apart)
    return grouped(view, view.rate__jg, apart, mode == "packed")


def bisected_s(shortest_s: float) -> float:
    """Where the published bisection ends if exactly the durations from ``shortest_s`` on are feasible, seconds."""
    low, high = FIRST_S, LAST_S
    while True:
        found = 0.0
        start_high = high
        while low * CLOSE < high:
            middle = (low + high) / 2
            if middle >= shortest_s:
                found = high = middle
            else:
                low = middle
        if found:
            return found
        low, high = start_high, start_high * 10
