"""The equations of a program of shares without pairs: every class by itself, then the GPU models.

A class has only its own time and its own rate in common with itself, so its columns and both rows are eliminated in
closed form, for all classes at once. What is left has one unknown per GPU model and one for the level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Floats, Ints
from fastsim.policies.solvers.interior_point import Solve
from fastsim_ext.solvers import interior_unpaired as compiled


class UnpairedEquations:
    """Columns: share of every class on every model. Rows: time of every class, rate of some, GPUs of every model.

    ``rate - level_weight * level >= floor`` holds for the classes in ``held``; ``rate`` is in the unit of the floor.
    """

    def __init__(
        self, size__c: Ints, use__c: Floats, gpus__g: Floats, held: Ints, rate__cg: Floats, level_weight__c: Floats,
        floor__c: Floats, cost__cg: Floats,
    ) -> None:  # fmt: skip
        self.classes, self.models = cost__cg.shape
        # All of them is the usual case, and a slice costs no copies.
        self.held: Any = slice(None) if len(held) == self.classes else held
        self.rate, self.level_weight = rate__cg, level_weight__c
        self.use, self.size = use__c[:, None], size__c.astype(np.float64)
        self.cost, self.gain = cost__cg.ravel(), float(level_weight__c.any())
        self.room = np.concatenate([np.ones(self.classes), -floor__c, gpus__g])
        each = np.repeat(self.size, self.models)
        self.count = np.concatenate([each, self.size, self.size[held], np.ones(self.models)])
        self._held, self._use = held, use__c
        self._each = self.size[:, None] * self.use
        n = self.classes * self.models
        self._cut = n, n + self.classes, n + self.classes + len(held)
        self._lifts = self.size[held] * level_weight__c

    def optimum(self) -> tuple[Floats, float] | None:
        """The result of ``interior_point.optimum``, by the compiled twin of it and of the equations below."""
        work, x = np.empty(compiled.space(self.classes, self.models, len(self._held))), np.empty(len(self.cost))
        level = compiled.optimum(
            self.size, self._use, self._held, self.rate, self.level_weight, self.gain, self.cost, self.room, self.count,
            work, x,
        )  # fmt: skip
        return None if level is None else (x, level)

    def used(self, x: Floats, level: float) -> Floats:
        """Time of each class, less than nothing of what each held class gets beyond the level, GPUs of each model."""
        share = x.reshape(self.classes, self.models)
        rate = (self.rate * share[self.held]).sum(axis=1)
        return np.concatenate([share.sum(axis=1), self.level_weight * level - rate, (self._each * share).sum(axis=0)])

    def prices(self, z: Floats) -> tuple[Floats, float]:
        """Price of each column, and of the level, at the multipliers."""
        own, time, rate, gpus = self._parts(z)
        found = time[:, None] - own + self.use * gpus
        found[self.held] -= self.rate * rate[:, None]
        return found.ravel(), float(self._lifts @ rate)

    def largest(self, column: Floats, level: float, row: Floats) -> tuple[Floats, float, Floats]:
        """Largest entry of each column, of the level and of each row if these are divided by that."""
        own, time, rate, gpus = self._parts(row)
        over = 1.0 / column.reshape(self.classes, self.models)
        by_own, by_time, by_gpus = over / own, over / time[:, None], over * self.use / gpus
        by_rate = self.rate * over[self.held] / rate[:, None]
        by_level = self.level_weight / (rate * level)
        by_column = np.maximum(np.maximum(by_own, by_time), by_gpus)
        by_column[self.held] = np.maximum(by_column[self.held], by_rate)
        by_row = [
            by_own.ravel(), by_time.max(axis=1), np.maximum(by_rate.max(axis=1), by_level), by_gpus.max(axis=0),
        ]  # fmt: skip
        return by_column.ravel(), float(by_level.max(initial=0.0)), np.concatenate(by_row)

    def _parts(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        one, two, three = self._cut
        return z[:one].reshape(self.classes, self.models), z[one:two], z[two:three], z[three:]

    def solver(self, weight: Floats, damping: Floats, level_damping: float) -> Solve:
        """The equations with these weights, ready to be solved."""
        return _Factored(self, weight, damping, level_damping)


class _Factored:
    """Time and rate eliminated, and the small matrix of the models and the level."""

    def __init__(self, system: UnpairedEquations, weight: Floats, damping: Floats, level_damping: float) -> None:
        self.of = system
        own, time, rate, gpus = system._parts(weight)
        self.keep = 1.0 / own
        own = 1.0 / (damping.reshape(own.shape) + self.keep)
        held, models = system.held, np.arange(system.models)
        self.own, self.total = own, time + own.sum(axis=1)
        # Weighted mean of the rates, and what is left of them beside it: sums of positive terms only.
        part = own[held]
        self.mean = (part * system.rate).sum(axis=1) / self.total[held]
        beside = system.rate - self.mean[:, None]
        self.beside = part * beside
        self.share = 1.0 / (rate + (self.beside * beside).sum(axis=1) + time[held] * self.mean**2)
        self.slope = self.beside * self.share[:, None]
        spread = own[:, :, None] * (own / -self.total[:, None])[:, None, :]
        between = spread.sum(axis=2) - spread[:, models, models]
        spread[:, models, models] = own * (time / self.total)[:, None] - between
        spread[held] -= self.slope[:, :, None] * self.beside[:, None, :]
        matrix = ((system.size * system.use[:, 0] ** 2) @ spread.reshape(len(own), -1)).reshape(models.size, -1)
        matrix[models, models] += gpus
        self.lift = (system._lifts * system.use[held, 0]) @ self.slope
        self.rise = float((system._lifts * system.level_weight) @ self.share) + level_damping
        if system.gain:
            matrix += np.outer(self.lift, self.lift) / self.rise
        self.inverse = np.linalg.inv(matrix)

    def __call__(self, rise: Floats, rise_level: float, fall: Floats) -> tuple[Floats, float, Floats]:
        """The columns, the level and the multipliers."""
        of = self.of
        held, use = of.held, of.use
        fall_x, fall_time, fall_rate, fall_gpus = of._parts(fall)
        rise = rise.reshape(fall_x.shape)
        start = self.own * (rise - fall_x * self.keep)
        time = start.sum(axis=1) - fall_time
        rate = self.share * (self.mean * time[held] - (of.rate * start[held]).sum(axis=1) - fall_rate)
        free = start - self.own * self._net(time / self.total, rate)
        gpus = (of._each * free).sum(axis=0) - fall_gpus
        level = 0.0
        if of.gain:
            miss = rise_level - float(of._lifts @ rate)
            gpus = self.inverse @ (gpus + self.lift * (miss / self.rise))
            level = (miss - float(self.lift @ gpus)) / self.rise
        else:
            gpus = self.inverse @ gpus
        rate = rate + use[held, 0] * (self.slope @ gpus) + self.share * of.level_weight * level
        time = (time - use[:, 0] * (self.own @ gpus)) / self.total
        x = start - self.own * (self._net(time, rate) + use * gpus)
        time[held] += self.mean * rate
        return x.ravel(), level, np.concatenate([((-fall_x - x) * self.keep).ravel(), time, rate, gpus])

    def _net(self, time: Floats, rate: Floats) -> Floats:
        """Multiplier of time less rate times its multiplier; ``time`` is still without its part of the latter."""
        flow: Floats = (self.mean[:, None] - self.of.rate) * rate[:, None]
        if len(flow) == len(time):
            return flow + time[:, None]
        net = np.repeat(time[:, None], self.of.models, axis=1)
        net[self.of.held] += flow
        return net
