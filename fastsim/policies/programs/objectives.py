"""Objectives of share programs: largest smallest rate, largest sum of rates, shortest total duration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.errors import PolicyError
from fastsim.policies.programs.job_classes import Groups, alike, grouped
from fastsim.policies.programs.share_program import NO_FLOOR, Shares, inverse, proportional_rate
from fastsim.policies.solvers.highs import Program, Solver

FIRST_S, LAST_S, CLOSE = 100.0, 1e6, 1.05
"""The published bisection: first interval in seconds, and the ratio of its ends at which it stops."""


class StatelessProgram:
    """An allocator without state between calls; the solver it holds may be reused."""

    def __init__(self, mode: str, solution: str) -> None:
        self.mode, self.solver = mode, Solver(solution)

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares for these jobs; None without jobs."""
        self.solver.reset()
        before_s = self.solver.spent_s
        if not len(view):
            return None
        groups, share__rg = self.shares(view)
        return groups.allocation(view, share__rg, self.solver.spent_s - before_s)

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """The groups of the jobs, and the share of the time of each group on each GPU model."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """No state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """No state to restore."""


class MaxMin(StatelessProgram):
    """Maximises the smallest normalised rate."""

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """Shares under which the slowest job, by its normalised rate, is as fast as it can be."""
        groups = fair_groups(view, self.mode)
        shares = Shares(view, groups)
        scale__c = fair_scale(view, groups)
        optimum = self.solver.maximum(level_program(shares, scale__c), what="max-min fairness")
        return groups, shares.share__rg(optimum)


def fair_groups(view: RoundView, mode: str, *also: Any) -> Groups:
    """Groups of jobs of equal kind and weight; in mode ``base`` all GPU models and kinds count as equally fast."""
    if mode == "base":
        rate = np.ones((len(view), len(view.setting.gpu_models)))
        return grouped(view, rate, alike(view.num_gpu, view.weight, *also))
    return grouped(view, view.rate__jg, alike(view.kind, view.weight, *also), mode == "packed")


def fair_scale(view: RoundView, groups: Groups) -> Floats:
    """GPUs over weight and proportional rate: the factor that makes rates of different jobs comparable."""
    example = groups.example__c
    proportional = proportional_rate(groups.rate__rg[: groups.classes], view.setting.gpus__g)
    return view.num_gpu[example] / view.weight[example] * inverse(proportional)


def level_program(shares: Shares, scale__c: Floats) -> Program:
    """Maximise the smallest of scale times rate; jobs that run nowhere (scale 0) do not limit the others."""
    counts = scale__c > 0
    return shares.program(scale__c, counts.astype(np.float64), np.where(counts, 0.0, NO_FLOOR))


class MaxSum(StatelessProgram):
    """Maximises the sum of rates, by price with ``per_cost``, and meets deadlines if that is possible."""

    def __init__(self, mode: str, solution: str, per_cost: bool, deadlines: bool) -> None:
        super().__init__(mode, solution)
        self.per_cost, self.deadlines = per_cost, deadlines

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """Shares under which the sum is largest; deadlines that cannot all be kept count for nothing."""
        needed__j = needed_rate(view) if self.deadlines else np.zeros(len(view))
        groups = grouped(view, view.rate__jg, alike(view.kind, needed__j), self.mode == "packed")
        shares = Shares(view, groups)
        worth = worth__rg(groups, self._price(view))
        # Relative, because tolerances of the solver are absolute.
        most = float(worth.max()) or 1.0
        needed__c = needed__j[groups.example__c]
        scale__c = inverse(needed__c)
        nothing, floor__c = np.zeros(groups.classes), np.where(scale__c > 0, 1.0, NO_FLOOR)
        unit__c = np.where(scale__c > 0, needed__c, 1.0)
        program = shares.program(scale__c, nothing, floor__c, worth / most, unit__c, most)
        optimum = self.solver.attempt(program, what="largest sum of rates")
        if optimum is None:
            program = shares.program(nothing, nothing, np.full(groups.classes, NO_FLOOR), worth / most, cost_unit=most)
            optimum = self.solver.maximum(program, what="largest sum of rates")
        return groups, shares.share__rg(optimum)

    def _price(self, view: RoundView) -> Floats:
        if not self.per_cost:
            return np.ones(len(view.price__g))
        for model, price in zip(view.setting.gpu_models, view.price__g.tolist(), strict=True):
            if not price > 0:
                raise PolicyError("policy max_sum_throughput, per_cost", f"price {price} of {model}", "prices above 0")
        return view.price__g


def needed_rate(view: RoundView) -> Floats:
    """Rate that ends each job at its deadline, steps/s; 0 without one and when it has passed."""
    left_s = view.deadline_s - view.now_s
    return np.divide(view.steps_left, left_s, out=np.zeros(len(view)), where=left_s > 0)


def worth__rg(groups: Groups, price__g: Floats) -> Floats:
    """Increase of the sum for one unit of each variable."""
    inner = groups.first__r == groups.second__r
    partner = np.where(inner[:, None], groups.rate__rg, groups.partner_rate__rg)
    worth: Floats = groups.mass__r[:, None] * (groups.rate__rg + partner) / price__g
    return worth


class MinDuration(StatelessProgram):
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
        optimum = self.solver.maximum(
            level_program(shares, scale__c * unit_s), "vertex" if self.search == "bisection" else "", "total duration"
        )
        if self.search == "bisection":
            duration_s = bisected_s(unit_s / optimum.objective)
            floor__c = np.where(counts, unit_s / duration_s, NO_FLOOR)
            program = shares.program(
                scale__c * unit_s, np.zeros(groups.classes), floor__c, unit__c=view.steps_left / unit_s
            )
            optimum = self.solver.maximum(program, what="total duration")
        return groups, shares.share__rg(optimum)


def job_groups(view: RoundView, mode: str) -> Groups:
    """Every job a class of its own; in mode ``base`` every GPU model counts as the fastest."""
    own_class = np.arange(len(view))
    if mode == "base":
        return grouped(view, np.repeat(view.reference__j[:, None], len(view.setting.gpu_models), axis=1), own_class)
    return grouped(view, view.rate__jg, own_class, mode == "packed")


def bisected_s(shortest_s: float) -> float:
    """The end of the published bisection if exactly the durations from ``shortest_s`` on are feasible, seconds."""
    low, high = FIRST_S, LAST_S
    while True:
        shortest_feasible = 0.0
        start_high = high
        while low * CLOSE < high:
            middle = (low + high) / 2
            if middle >= shortest_s:
                shortest_feasible = high = middle
            else:
                low = middle
        if shortest_feasible:
            return shortest_feasible
        low, high = start_high, start_high * 10
