"""Largest smallest: the program that raises the level under every job at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.policies.programs.job_classes import Groups, alike, grouped
from fastsim.policies.programs.share_program import NO_FLOOR, Shares, inverse, proportional_rate
from fastsim.policies.solvers.highs import Program, Solver


class Stateless:
    """An allocator that remembers nothing between calls; it holds the solver, which may be kept."""

    def __init__(self, mode: str, solution: str) -> None:
        self.mode, self.solver = mode, Solver(solution)

    def allocate(self, view: RoundView) -> Allocation | None:
        """Shares for these jobs; None without jobs."""
        self.solver.forget()
        before_s = self.solver.spent_s
        if not len(view):
            return None
        groups, share__rg = self.shares(view)
        return groups.allocation(view, share__rg, self.solver.spent_s - before_s)

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """The groups of the jobs, and the share of the time of each group on each GPU model."""
        raise NotImplementedError

    def kept(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Nothing to take back."""


class MaxMin(Stateless):
    """Maximises the smallest normalised rate."""

    def shares(self, view: RoundView) -> tuple[Groups, Floats]:
        """Shares under which the slowest job, by its normalised rate, is as fast as it can be."""
        groups = fair_groups(view, self.mode)
        shares = Shares(view, groups)
        scale__c = fair_scale(view, groups)
        found = self.solver.maximum(level_program(shares, scale__c), what="max-min fairness")
        return groups, shares.share__rg(found)


def fair_groups(view: RoundView, mode: str, *also: Any) -> Groups:
    """Groups of jobs of equal kind and weight; in mode ``base`` all GPU models and kinds count as equally fast."""
    if mode == "base":
        rate = np.ones((len(view), len(view.setting.gpu_models)))
        return grouped(view, rate, alike(view.num_gpu, view.weight, *also))
    return grouped(view, view.rate__jg, alike(view.kind, view.weight, *also), mode == "packed")


def fair_scale(view: RoundView, groups: Groups) -> Floats:
    """GPUs over weight and proportional rate: what makes rates of different jobs comparable."""
    example = groups.example__c
    proportional = proportional_rate(groups.rate__rg[: groups.classes], view.setting.gpus__g)
    return view.num_gpu[example] / view.weight[example] * inverse(proportional)


def level_program(shares: Shares, scale__c: Floats) -> Program:
    """Maximise the smallest of scale times rate; jobs that run nowhere (scale 0) do not hold the others down."""
    counts = scale__c > 0
    return shares.program(scale__c, counts.astype(np.float64), np.where(counts, 0.0, NO_FLOOR))
