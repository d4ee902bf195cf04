"""The equations of a program of shares in which pairs may share GPUs: a dense matrix of classes and GPU models."""

from __future__ import annotations

import numpy as np

from fastsim.engine.shares.plan import ALONE, Floats, Ints
from fastsim.policies.programs.job_classes import Groups
from fastsim.policies.solvers.interior_point import Solve
from fastsim_ext.solvers import interior_paired as paired

REFINEMENTS = 2
"""Corrections of every answer: near the end the matrix is almost singular, and its inverse exact to a few digits."""


class PairedEquations:
    """Columns: share of every job, and of every pair, on every model. Rows: as in ``alone``.

    A column stands for one job or pair, so two jobs of one class put twice their time into the rows of that class.
    """

    def __init__(
        self, groups: Groups, use__c: Floats, gpus__g: Floats, held: Ints, scale__c: Floats, level_weight__c: Floats,
        floor__c: Floats, cost__rg: Floats,
    ) -> None:  # fmt: skip
        self.classes, self.held, self.level_weight = groups.classes, held, np.ascontiguousarray(level_weight__c)
        self.shape = (len(groups.first__r), len(gpus__g))
        size = groups.size__c.astype(np.float64)
        self.number = groups.count__r.astype(np.float64)
        mixed = (groups.second__r != ALONE) & (groups.second__r != groups.first__r)
        # Members of every group: class, how many of it one column holds, and the scaled rates of those.
        self.member = groups.first__r, np.where(mixed, groups.second__r, groups.first__r)
        self.hold = np.where(groups.second__r == groups.first__r, 2.0, 1.0), mixed.astype(np.float64)
        rates = groups.rate__rg, groups.partner_rate__rg
        self.rate = tuple(r * (scale__c[m] * h)[:, None] for r, m, h in zip(rates, self.member, self.hold, strict=True))
        self.use = use__c[groups.first__r]
        self.cost, self.gain = cost__rg.ravel(), float(level_weight__c.any())
        self.room = np.concatenate([np.ones(self.classes), -floor__c, gpus__g])
        self.weigh = np.concatenate([size, size[held], np.ones(len(gpus__g))])
        self.count = np.concatenate([np.repeat(self.number, self.shape[1]), self.weigh])
        self.lift = np.zeros(len(self.weigh))
        self.lift[self.classes : self.classes + len(held)] = size[held] * level_weight__c
        # Rows of the matrix in the program: all, except rates of classes that are not held.
        count_c = self.classes
        self.rows = np.concatenate([np.arange(count_c), count_c + held, 2 * count_c + np.arange(len(gpus__g))])

    def optimum(self) -> tuple[Floats, float] | None:
        """The result of ``interior_point.optimum``, by the compiled twin of it and of the equations below."""
        groups, models = self.shape
        work = np.empty(paired.space(groups, self.classes, models, len(self.held)))
        x, place = np.empty(len(self.cost)), np.full(self.classes, -1)
        place[self.held] = np.arange(len(self.held))
        level = paired.optimum(
            np.stack(self.member), np.stack(self.hold), np.stack(self.rate), self.number, self.use, place,
            self.level_weight, self.gain, self.cost, self.room, self.weigh, self.lift, self.count, work, x,
        )  # fmt: skip
        return None if level is None else (x, level)

    def used(self, x: Floats, level: float) -> Floats:
        """Time of each class, minus the rate of each held class beyond the level, GPUs of each model."""
        use: Floats = (self.gathered(x.reshape(self.shape)) + self.lift * level) / self.weigh
        return use

    def gathered(self, x__rg: Floats) -> Floats:
        """Use of each row by the columns."""
        each = x__rg * self.number[:, None]
        total, classes = each.sum(axis=1), self.classes
        time, rate = np.zeros(classes), np.zeros(classes)
        for member, hold, rates in zip(self.member, self.hold, self.rate, strict=True):
            time += np.bincount(member, total * hold, classes)
            rate += np.bincount(member, (each * rates).sum(axis=1), classes)
        gpus = each.T @ self.use
        return np.concatenate([time, -rate[self.held], gpus])

    def prices(self, z: Floats) -> tuple[Floats, float]:
        """Price of each column, and of the level, at the multipliers."""
        rows = z[len(self.cost) :]
        return self.column_prices(rows).ravel() - z[: len(self.cost)], float(self.lift @ rows)

    def column_prices(self, rows: Floats) -> Floats:
        """Price of each column at the rows' multipliers."""
        time, gpus = rows[: self.classes], rows[self.classes + len(self.held) :]
        rate = np.zeros(self.classes)
        rate[self.held] = rows[self.classes : self.classes + len(self.held)]
        price: Floats = self.use[:, None] * gpus
        for member, hold, rates in zip(self.member, self.hold, self.rate, strict=True):
            price += (time[member] * hold)[:, None] - rates * rate[member][:, None]
        return price

    def largest(self, column: Floats, level: float, row: Floats) -> tuple[Floats, float, Floats]:
        """Largest entry of each column, of the level and of each row if these are divided by that."""
        over = 1.0 / column.reshape(self.shape)
        own, row = row[: len(column)].reshape(self.shape), row[len(column) :]
        time, gpus = row[: self.classes], row[self.classes + len(self.held) :]
        rate = np.full(self.classes, np.inf)
        rate[self.held] = row[self.classes : self.classes + len(self.held)]
        by_gpus = over * self.use[:, None] / gpus
        by_column = np.maximum(over / own, by_gpus)
        by_time, by_rate = np.zeros(self.classes), np.zeros(self.classes)
        for member, hold, rates in zip(self.member, self.hold, self.rate, strict=True):
            here = hold > 0
            # Two jobs of one class are two rows of the program written out: each has the entry of one.
            one = over / time[member][:, None] * here[:, None]
            two = over * rates / (rate[member] * np.maximum(hold, 1.0))[:, None]
            by_column = np.maximum(by_column, np.maximum(one, two))
            np.maximum.at(by_time, member, one.max(axis=1))
            np.maximum.at(by_rate, member, two.max(axis=1))
        by_level = self.level_weight / (rate[self.held] * level)
        by_row = [(over / own).ravel(), by_time, np.maximum(by_rate[self.held], by_level), by_gpus.max(axis=0)]
        return by_column.ravel(), float(by_level.max(initial=0.0)), np.concatenate(by_row)

    def solver(self, weight: Floats, damping: Floats, level_damping: float) -> Solve:
        """The equations with these weights, ready to be solved."""
        return _Factored(self, weight, damping, level_damping)

    def matrix(self, give__rg: Floats) -> Floats:
        """Decrease of each row for one more of each multiplier, if each column yields by ``give``."""
        classes, models = self.classes, self.shape[1]
        decrease: Floats = np.zeros((2 * classes + models,) * 2)
        time, rate, gpus = slice(0, classes), slice(classes, 2 * classes), slice(2 * classes, None)
        total = give__rg.sum(axis=1)
        members = list(zip(self.member, self.hold, self.rate, strict=True))
        for one, hold, rates in members:
            for two, other_hold, other in members:
                place = one * classes + two
                decrease[time, time] += _table(place, total * hold * other_hold, classes)
                decrease[time, rate] -= _table(place, (give__rg * other).sum(axis=1) * hold, classes)
                decrease[rate, rate] += _table(place, (give__rg * rates * other).sum(axis=1), classes)
            for g in range(models):
                used = give__rg[:, g] * self.use
                decrease[time, 2 * classes + g] += np.bincount(one, used * hold, classes)
                decrease[rate, 2 * classes + g] -= np.bincount(one, used * rates[:, g], classes)
        decrease[rate, time] = decrease[time, rate].T
        decrease[gpus, : 2 * classes] = decrease[: 2 * classes, gpus].T
        decrease[gpus, gpus] = np.diag((self.use**2) @ give__rg)
        of_rows: Floats = decrease[np.ix_(self.rows, self.rows)]
        return of_rows


class _Factored:
    """The columns eliminated, and the inverse of what is left."""

    def __init__(self, system: PairedEquations, weight: Floats, damping: Floats, level_damping: float) -> None:
        self.of, self.weight, self.damping, self.level_damping = system, weight, damping, level_damping
        columns = len(system.cost)
        self.keep = 1.0 / weight[:columns].reshape(system.shape)
        self.own = 1.0 / (damping.reshape(system.shape) + self.keep)
        matrix = system.matrix(self.own * system.number[:, None])
        matrix[np.diag_indices_from(matrix)] += system.weigh * weight[columns:]
        self.inverse = np.linalg.inv(matrix)
        self.slope = self.inverse @ system.lift
        self.rise = float(system.lift @ self.slope) + level_damping

    def __call__(self, rise: Floats, rise_level: float, fall: Floats) -> tuple[Floats, float, Floats]:
        """The columns, the level and the multipliers; residuals are solved for again."""
        of = self.of
        x, level, z = self._once(rise, rise_level, fall)
        for _ in range(REFINEMENTS):
            prices, level_price = of.prices(z)
            used = np.concatenate([-x, of.used(x, level)])
            dx, dlevel, dz = self._once(
                rise - prices - self.damping * x, rise_level - level_price - self.level_damping * level,
                fall - used + self.weight * z,
            )  # fmt: skip
            x, level, z = x + dx, level + dlevel, z + dz
        return x, level, z

    def _once(self, rise: Floats, rise_level: float, fall: Floats) -> tuple[Floats, float, Floats]:
        of = self.of
        columns = len(of.cost)
        fall_x = fall[:columns].reshape(of.shape)
        start = self.own * (rise.reshape(of.shape) - fall_x * self.keep)
        rows = self.inverse @ (of.gathered(start) - of.weigh * fall[columns:])
        level = (rise_level - float(of.lift @ rows)) / self.rise if of.gain else 0.0
        rows = rows + self.slope * level
        x = start - self.own * of.column_prices(rows)
        return x.ravel(), level, np.concatenate([((-fall_x - x) * self.keep).ravel(), rows])


def _table(place: Ints, values: Floats, side: int) -> Floats:
    return np.asarray(np.bincount(place, values, side * side), np.float64).reshape(side, side)
