"""A linear program by the homogeneous self-dual embedding, with the steps of the solver that Gavel was published with.

    maximise  cost . x + gain * level   so that   x >= 0,   A x + level_weight * level <= room

Where many optima are as good, an interior-point method ends inside their face, and where exactly depends on where it
starts and how far it steps. So the start, the aim and the length of the steps are those of A. Domahidi, E. Chu and
S. Boyd, "ECOS: An SOCP solver for embedded systems", ECC 2013, for programs without second-order cones.

Columns and rows that are alike stand for ``count`` of them each: the method treats equals equally at every step, so
the point it reaches is that of the program written out.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fastsim.engine.shares.plan import Floats

TOLERANCE = 1e-8
"""Relative residuals and duality gap at which the method ends."""
STEPS = 100
"""Newton steps at most; some ten are usual."""
KEEP, SHORTEST, LONGEST, LEAST_AIM = 0.99, 1e-6, 0.999, 1e-4
"""Part of the way to the border that a step goes, its bounds, and the least aim over the present complementarity."""
MOST_KAPPA = 1e6
"""Ratio of kappa to tau that only programs without a feasible point, or without a bound, come to."""
DAMPING = 7e-8
"""Damping on the diagonal of the balanced equations, so that weights far apart do not drown them in rounding."""
BALANCINGS = 3
"""Rounds in which rows and columns are divided by the roots of their largest entries before the start is chosen."""
EVEN = 1e-6
"""A row or column whose largest entry is below this is left as it is."""


class Solve(Protocol):
    """Newton's equations: ``prices(z) + damping * x = rise`` and ``(-x, used(x)) - weight * z = fall``."""

    def __call__(self, rise: Floats, rise_level: float, fall: Floats) -> tuple[Floats, float, Floats]:
        """The columns, the level, and the multipliers of ``x >= 0`` and of the rows."""


class System(Protocol):
    """A program's coefficients. Vectors ``s``, ``z`` and ``count`` have an entry per column, then one per row."""

    cost: Floats
    gain: float
    room: Floats
    count: Floats
    """How many of the program's columns and rows each entry stands for."""

    def used(self, x: Floats, level: float) -> Floats:
        """Use of each row by columns and level."""

    def prices(self, z: Floats) -> tuple[Floats, float]:
        """Price of each column, and of the level, at the multipliers."""

    def largest(self, column: Floats, level: float, row: Floats) -> tuple[Floats, float, Floats]:
        """Largest entry of each column, of the level and of each row if these are divided by that."""

    def solver(self, weight: Floats, damping: Floats, level_damping: float) -> Solve:
        """Newton's equations with these weights, ready to be solved."""


def optimum(system: System) -> tuple[Floats, float] | None:
    """The columns and the level where the method ends; None if it does not converge."""
    with np.errstate(all="ignore"):
        path = _Path(system)
        try:
            while not path.ended():
                if path.steps == STEPS or not path.advance():
                    return None
        except np.linalg.LinAlgError:
            return None
        return path.x / path.tau, path.level / path.tau


class _Path:
    """Iterates: ``x`` and level, slacks ``s`` and multipliers ``z``, and the embedding's scalars tau and kappa."""

    def __init__(self, system: System) -> None:
        self.system, self.steps, self.tau, self.kappa = system, 0, 1.0, 1.0
        self._count, self._count_x = system.count, system.count[: len(system.cost)]
        self._degree = float(system.count.sum()) + 1.0
        self._cost = self._count_x * system.cost
        self.room = np.concatenate([np.zeros(len(system.cost)), system.room])
        self._room = self._count * self.room
        self._column, self._level, self._row = balance(system)
        row = self._row
        solve = self._solver(row * row)
        self.x, self.level, z = solve(np.zeros(len(system.cost)), 0.0, self.room)
        self.s = inside(-z * row) * row
        self.z = inside(solve(system.cost, system.gain, np.zeros(len(row)))[2] * row) / row
        self._cost_size = max(1.0, self._size_x(system.cost / self._column, system.gain / self._level))
        self._room_size = max(1.0, self._size_z(self.room / row))
        self._aims = bool(system.gain or system.cost.any())
        self._update()

    def ended(self) -> bool:
        """Whether residuals and gap are small enough, relative to the balanced program's numbers."""
        # Without an objective there is nothing to be relative to.
        bound = self.worth / self.tau if self._aims else 1.0
        if self.gap >= TOLERANCE * bound or self.kappa >= self.tau:
            return False
        size_z = self._room_size + self._size_x(self.x * self._column, self.level * self._level)
        size_z += self._size_z(self.s / self._row)
        size_x = self._cost_size + self._size_z(self.z * self._row)
        primal = self._size_z(self.miss_z / self._row) / size_z / self.tau
        dual = self._size_x(self.miss_x / self._column, self.miss_level / self._level) / size_x / self.tau
        return primal < TOLERANCE and dual < TOLERANCE

    def advance(self) -> bool:
        """One predictor-corrector step: the reach of the predictor sets the aim. False if no step is possible."""
        s, z, tau, kappa = self.s, self.z, self.tau, self.kappa
        ratio = s / z
        solve = self._solver(ratio)
        one = solve(self.system.cost, self.system.gain, self.room)
        bend = kappa / tau + self._worth(one) - self._price(one)
        two = solve(self.miss_x, self.miss_level, s - self.miss_z)
        dtau = (self.miss_tau - kappa - self._worth(two) + self._price(two)) / bend
        dz = (two[2] + dtau * one[2]) / z
        ds, dkappa = -dz - 1.0, -kappa - kappa / tau * dtau
        aim = min(max((1.0 - self._reach(ds, dz, dtau, dkappa)) ** 3, LEAST_AIM), 1.0)

        left = s + s * ds * dz - aim * self.mu / z
        kappa_left = kappa * tau + dkappa * dtau - aim * self.mu
        rest = 1.0 - aim
        two = solve(rest * self.miss_x, rest * self.miss_level, left - rest * self.miss_z)
        dtau = (rest * self.miss_tau - kappa_left / tau - self._worth(two) + self._price(two)) / bend
        dz = two[2] + dtau * one[2]
        ds, dkappa = -left - ratio * dz, -(kappa_left + kappa * dtau) / tau
        step = KEEP * self._reach(ds / s, dz / z, dtau, dkappa)
        self.x = self.x + step * (two[0] + dtau * one[0])
        self.level += step * (two[1] + dtau * one[1])
        self.s, self.z = s + step * ds, z + step * dz
        self.tau, self.kappa = tau + step * dtau, kappa + step * dkappa
        self.steps += 1
        self._update()
        return bool(np.isfinite(self.mu) and step > SHORTEST and self.kappa < MOST_KAPPA * self.tau)

    def _solver(self, weight: Floats) -> Solve:
        column, level, row = self._column, self._level, self._row
        return self.system.solver(weight + DAMPING * row * row, DAMPING * column * column, DAMPING * level * level)

    def _update(self) -> None:
        """Update residuals, objectives and complementarity."""
        system = self.system
        prices, level_price = system.prices(self.z)
        self.worth = float(self._cost @ self.x) + system.gain * self.level
        self.price = float(self._room @ self.z)
        self.miss_x, self.miss_level = system.cost * self.tau - prices, system.gain * self.tau - level_price
        used = np.concatenate([-self.x, system.used(self.x, self.level)])
        self.miss_z = self.s + used - self.room * self.tau
        self.miss_tau = self.kappa - self.worth + self.price
        self.gap = float(self._count @ (self.s * self.z))
        self.mu = (self.gap + self.kappa * self.tau) / self._degree

    def _worth(self, solution: tuple[Floats, float, Floats]) -> float:
        return float(self._cost @ solution[0]) + self.system.gain * solution[1]

    def _price(self, solution: tuple[Floats, float, Floats]) -> float:
        return float(self._room @ solution[2])

    def _reach(self, ds: Floats, dz: Floats, dtau: float, dkappa: float) -> float:
        """Largest step before a slack, a multiplier or a scalar is 0; ``ds`` and ``dz`` are relative."""
        fall = max(-float(ds.min()), -float(dz.min()), -dtau / self.tau, -dkappa / self.kappa)
        return min(max(1.0 / fall if fall > 0 else LONGEST, SHORTEST), LONGEST)

    def _size_x(self, x: Floats, level: float) -> float:
        return float(np.sqrt(self._count_x @ (x * x) + level * level))

    def _size_z(self, z: Floats) -> float:
        return float(np.sqrt(self._count @ (z * z)))


def balance(system: System) -> tuple[Floats, float, Floats]:
    """Scales of columns, level and rows that bring the largest entries of all of them towards 1."""
    column, level, row = np.ones(len(system.cost)), 1.0, np.ones(len(system.count))
    for _ in range(BALANCINGS):
        by_column, by_level, by_row = system.largest(column, level, row)
        column = column * np.where(by_column < EVEN, 1.0, np.sqrt(by_column))
        row = row * np.where(by_row < EVEN, 1.0, np.sqrt(by_row))
        level = level if by_level < EVEN else level * float(np.sqrt(by_level))
    return column, level, row


def inside(values: Floats) -> Floats:
    """The values moved by one constant, so that the least is 1, or by little if all are positive."""
    lowest = float(values.min())
    return values + (1.0 - lowest if lowest <= 0 else 1.0 - KEEP)
