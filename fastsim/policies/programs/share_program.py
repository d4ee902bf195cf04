"""The linear program common to share policies: the time of each group of jobs on each GPU model.

Variables: the share of the time of every group on every GPU model, and one level. Rows: for every class

    scale * rate - rise * level >= floor,

for every class at most all of its time, for every GPU model at most its GPUs. The policies differ in scale, rise,
floor and cost only.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from fastsim.engine.shares.plan import Floats, Ints, RoundView
from fastsim.policies.programs.interior_paired import PairedEquations
from fastsim.policies.programs.interior_unpaired import UnpairedEquations
from fastsim.policies.programs.job_classes import Groups
from fastsim.policies.solvers.highs import Program, Rows, Solution

NO_FLOOR = -np.inf
MOST_CLASSES = 300
"""Classes up to which pairs are solved with dense equations of two rows per class; beyond, HiGHS is as fast."""


class Shares:
    """The program's structure for some groups; ``program`` fills in a policy's coefficients."""

    def __init__(self, view: RoundView, groups: Groups) -> None:
        self.groups, self.gpus__g = groups, view.setting.gpus__g.astype(np.float64)
        num_gpu__r = view.num_gpu[groups.example__c][groups.first__r]
        mixed = groups.mixed
        self._inner, self._mixed = slice(0, mixed), slice(mixed, None)
        self._use__r = num_gpu__r * groups.mass__r
        # Time that a member's class spends in a group, for one unit of the variable.
        self.time__r = np.ones(len(groups.first__r))
        self.time__r[mixed:] = groups.mass__r[mixed:] / groups.size__c[groups.first__r[mixed:]]
        self.partner_time__r = np.zeros(len(groups.first__r))
        self.partner_time__r[mixed:] = groups.mass__r[mixed:] / groups.size__c[groups.second__r[mixed:]]
        useful = (groups.rate__rg > 0) | (groups.partner_rate__rg > 0)
        # The rows of time bound all open variables; a bound of 1 besides them would only push the centre away from it.
        self._high = np.append(np.where(useful.ravel(), np.inf, 0.0), np.inf)

    def program(
        self, scale__c: Floats, rise__c: Floats, floor__c: Floats, cost__rg: Floats | None = None,
        unit__c: Floats | float = 1.0, cost_unit: float = 1.0,
    ) -> Program:  # fmt: skip
        """Maximise the level or, with a cost, the cost; classes without a floor do not limit the level.

        The units are those of the rows and the objective of the published program: a corner does not depend on them,
        but the start of an interior method does, and so its end.
        """
        level = cost__rg is None and bool((rise__c > 0).any())
        cost = np.zeros(len(self._high))
        if cost__rg is not None:
            cost[:-1] = cost__rg.ravel()
        cost[-1] = level
        return Program(
            cost, np.zeros(len(cost)), self._high if level else np.append(self._high[:-1], 0.0),
            partial(self._rows, scale__c, rise__c, floor__c),
            partial(self._centre, scale__c * unit__c, rise__c * unit__c, floor__c * unit__c, cost[:-1] * cost_unit),
        )  # fmt: skip

    def _rows(self, scale__c: Floats, rise__c: Floats, floor__c: Floats) -> Rows:
        groups, count, models = self.groups, self.groups.classes, len(self.gpus__g)
        rising = np.flatnonzero(rise__c > 0).astype(np.int32)
        index, start = self._pattern
        return Rows(
            np.concatenate([floor__c, np.full(count + models, -np.inf)]),
            np.concatenate([np.full(count, np.inf), np.ones(count), self.gpus__g]),
            np.append(start, start[-1] + len(rising)).astype(np.int32),
            np.concatenate([index, rising]),
            np.concatenate([self._values(scale__c, groups), -rise__c[rising]]),
        )

    def _centre(self, scale__c: Floats, rise__c: Floats, floor__c: Floats, cost: Floats) -> Floats | None:
        """The columns of the program to which the published solver's steps lead; None if to none."""
        groups, gpus__g = self.groups, self.gpus__g
        pairs = len(groups.first__r) > groups.classes or len(groups.idle[0]) > 0
        if not gpus__g.all() or (pairs and groups.classes > MOST_CLASSES):
            return None
        held = np.flatnonzero((rise__c > 0) | (floor__c > NO_FLOOR))
        use__c = self._use__r[: groups.classes] / groups.size__c
        worth__rg = cost.reshape(groups.rate__rg.shape) / groups.mass__r[:, None]
        system: UnpairedEquations | PairedEquations
        if pairs:
            whole = groups.whole()
            worth__rg = np.concatenate([worth__rg, np.zeros((len(groups.idle[0]), len(gpus__g)))])
            system = PairedEquations(
                groups=whole,
                use__c=use__c,
                gpus__g=gpus__g,
                held=held,
                scale__c=scale__c,
                level_weight__c=rise__c[held],
                floor__c=floor__c[held],
                cost__rg=worth__rg,
            )
        else:
            rate__cg = groups.rate__rg[held] * scale__c[held][:, None]
            system = UnpairedEquations(
                size__c=groups.size__c,
                use__c=use__c,
                gpus__g=gpus__g,
                held=held,
                rate__cg=rate__cg,
                level_weight__c=rise__c[held],
                floor__c=floor__c[held],
                cost__cg=worth__rg,
            )
        optimum = system.optimum()
        if optimum is None:
            return None
        each__rg = optimum[0].reshape(-1, len(gpus__g))[: len(groups.first__r)]
        share = each__rg * (groups.count__r / groups.mass__r)[:, None]
        return np.append(np.clip(share.ravel(), 0.0, self._high[:-1]), optimum[1])

    def share__rg(self, solution: Solution) -> Floats:
        """The groups' variables in a solution."""
        return np.clip(solution.x[:-1], 0.0, 1.0).reshape(-1, len(self.gpus__g))

    def rate__c(self, share__rg: Floats) -> Floats:
        """Rate of one job of each class, steps/s."""
        groups = self.groups
        own = (groups.rate__rg * share__rg).sum(axis=1) * self.time__r
        rate: Floats = np.asarray(np.bincount(groups.first__r, own, groups.classes), np.float64)
        m = self._mixed
        other = (groups.partner_rate__rg[m] * share__rg[m]).sum(axis=1) * self.partner_time__r[m]
        rate += np.bincount(groups.second__r[m], other, groups.classes)
        return rate

    @cached_property
    def _pattern(self) -> tuple[Ints, Ints]:
        """Rows of the entries and starts of the columns. A column has 3 entries, or 5 if two classes meet in it."""
        groups, models, count = self.groups, len(self.gpus__g), self.groups.classes
        one, two = (np.repeat(column, models) for column in (groups.first__r, groups.second__r))
        capacity = 2 * count + np.tile(np.arange(models), len(groups.first__r))
        inner = slice(0, self._inner.stop * models)
        outer = slice(inner.stop, None)
        three = np.stack([one[inner], count + one[inner], capacity[inner]], axis=1)
        five = np.stack([one[outer], two[outer], count + one[outer], count + two[outer], capacity[outer]], axis=1)
        lengths: Ints = np.concatenate([[0], np.full(len(three), 3), np.full(len(five), 5)])
        return np.concatenate([three.ravel(), five.ravel()]).astype(np.int32), np.cumsum(lengths)

    def _values(self, scale__c: Floats, groups: Groups) -> Floats:
        """Values of the entries, in the order of the pattern."""
        inner, mixed = self._inner, self._mixed
        models = len(self.gpus__g)
        three = np.ones((inner.stop, models, 3))
        three[..., 0] = groups.rate__rg[inner] * scale__c[groups.first__r[inner]][:, None]
        three[..., 2] = self._use__r[inner][:, None]
        five = np.empty((len(groups.first__r) - inner.stop, models, 5))
        one, two = self.time__r[mixed], self.partner_time__r[mixed]
        five[..., 0] = groups.rate__rg[mixed] * (scale__c[groups.first__r[mixed]] * one)[:, None]
        five[..., 1] = groups.partner_rate__rg[mixed] * (scale__c[groups.second__r[mixed]] * two)[:, None]
        five[..., 2], five[..., 3] = one[:, None], two[:, None]
        five[..., 4] = self._use__r[mixed][:, None]
        return np.concatenate([three.ravel(), five.ravel()])


def proportional_rate(rate__cg: Floats, gpus__g: Ints) -> Floats:
    """Rate of a job that spends on every GPU model that model's share of the GPUs, steps/s."""
    shares: Floats = gpus__g / gpus__g.sum()
    rate: Floats = rate__cg @ shares
    return rate


def isolated_rate(rate__jg: Floats, num_gpu__j: Ints, gpus__g: Ints) -> Floats:
    """Rate of a job that has an equal part of the cluster to itself, steps/s."""
    share = gpus__g[None, :] / len(rate__jg) / num_gpu__j[:, None]
    share /= np.maximum(1.0, share.sum(axis=1, keepdims=True))
    rate: Floats = (rate__jg * share).sum(axis=1)
    return rate


def inverse(values: Floats) -> Floats:
    """One over each value; 0 where the value is 0, which leaves the row empty."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0)
