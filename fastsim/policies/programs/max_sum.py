"""Largest sum: the program that makes the cluster do most, with or without prices and deadlines."""

from __future__ import annotations

import numpy as np

from fastsim.engine.shares.plan import Floats, RoundView
from fastsim.errors import PolicyError
from fastsim.policies.programs.job_classes import Groups, alike, grouped
from fastsim.policies.programs.objectives import Stateless
from fastsim.policies.programs.share_program import NO_FLOOR, Shares, inverse


class MaxSum(Stateless):
    """Maximises the sum of rates, each by the price of its GPU if asked, and keeps deadlines if that is possible."""

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
        found = self.solver.attempt(program, what="largest sum of rates")
        if found is None:
            program = shares.program(nothing, nothing, np.full(groups.classes, NO_FLOOR), worth / most, cost_unit=most)
            found = self.solver.maximum(program, what="largest sum of rates")
        return groups, shares.share__rg(found)

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
    """What one unit of each variable adds to the sum."""
    inner = groups.first__r == groups.second__r
    partner = np.where(inner[:, None], groups.rate__rg, groups.partner_rate__rg)
    worth: Floats = groups.mass__r[:, None] * (groups.rate__rg + partner) / price__g
    return worth
