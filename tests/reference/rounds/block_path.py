"""The published solver's way to the optimum of a program of blocks: where it ends inside the face of all optima.

The method is that of interior_point (A. Domahidi, E. Chu and S. Boyd, ECC 2013), here with its second-order cones:
their scaling is Nesterov's and Todd's, W = eta * (hyperbolic rotation by a direction), with W z = s / W.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastsim.engine.shares.plan import Floats
from fastsim.policies.solvers.interior_point import KEEP, LEAST_AIM, LONGEST, MOST_KAPPA, SHORTEST, STEPS, TOLERANCE
from tests.reference.rounds.block_equations import HALF, BlockEquations, BlockProgram


class Step(NamedTuple):
    """Changes of slacks and multipliers in the scaled space, and of tau and kappa."""

    slack: Floats
    multiplier: Floats
    tau: float
    kappa: float


def optimum(program: BlockProgram) -> Floats | None:
    """Columns of each job where the method ends; None if it does not converge."""
    with np.errstate(all="ignore"):
        try:
            path = BlockPath(BlockEquations(program))
            while not path.ended():
                if path.steps == STEPS or not path.advance():
                    return None
        except np.linalg.LinAlgError:
            return None
        columns, _ = path.system.split(path.x)
        found: Floats = columns / path.system.column__jv / path.tau
        return found


class BlockPath:
    """Iterates of the homogeneous self-dual embedding: ``x``, slacks ``s``, multipliers ``z``, tau and kappa."""

    def __init__(self, system: BlockEquations) -> None:
        self.system, self.cones = system, Cones(system.linear, system.cones)
        self.steps, self.tau, self.kappa = 0, 1.0, 1.0
        identity = np.tile(np.eye(3), (system.cones, 1, 1))
        system.weigh(np.ones(system.linear), identity, np.ones((system.cones, 3)))
        nothing = np.zeros(len(system.cost))
        self.x, z = system.solve(nothing, system.room)
        self.s = self.cones.inside(-z)
        self.z = self.cones.inside(system.solve(-system.cost, np.zeros(len(system.room)))[1])
        self._update()

    def _update(self) -> None:
        """Update residuals, gap and complementarity."""
        system = self.system
        self.miss_x = -system.prices(self.z) - self.tau * system.cost
        self.miss_z = self.s + system.used(self.x) - self.tau * system.room
        self.worth, self.paid = float(system.cost @ self.x), float(system.room @ self.z)
        self.miss_tau = self.kappa + self.worth + self.paid
        self.gap = float(self.s @ self.z)
        self.mu = (self.gap + self.kappa * self.tau) / (self.cones.degree + 1.0)

    def ended(self) -> bool:
        """Whether residuals and gap are small enough."""
        system = self.system
        size_z = max(1.0, norm(system.room)) + norm(self.x) + norm(self.s)
        size_x = max(1.0, norm(system.cost)) + norm(self.z)
        bound = max(-self.worth, -self.paid, self.tau) / self.tau
        return bool(
            self.gap < TOLERANCE * bound
            and norm(self.miss_z) < TOLERANCE * size_z * self.tau
            and norm(self.miss_x) < TOLERANCE * size_x * self.tau
        )

    def advance(self) -> bool:
        """One predictor-corrector step; False if none is possible."""
        system, cones, tau, kappa = self.system, self.cones, self.tau, self.kappa
        middle = cones.scale(self.s, self.z)
        system.weigh(cones.linear**2, cones.axes, cones.value**2)
        one = system.solve(-system.cost, system.room)
        bend = kappa / tau - self._worth(one)
        two = system.solve(self.miss_x, self.s - self.miss_z)
        dtau = (self.miss_tau - kappa + self._worth(two)) / bend
        dz = cones.times(two[1] + dtau * one[1])
        aimed = Step(-dz - middle, dz, dtau, -kappa - kappa / tau * dtau)
        aim = min(max((1.0 - self._reach(middle, aimed)) ** 3, LEAST_AIM), 1.0)
        left = cones.product(middle, middle) + cones.product(aimed.slack, dz) - aim * self.mu * cones.one
        left = cones.quotient(middle, left)
        rest = 1.0 - aim
        two = system.solve(rest * self.miss_x, cones.times(left) - rest * self.miss_z)
        kappa_left = kappa * tau + aimed.kappa * dtau - aim * self.mu
        dtau = (rest * self.miss_tau - kappa_left / tau + self._worth(two)) / bend
        dz = cones.times(two[1] + dtau * one[1])
        step = Step(-left - dz, dz, dtau, -(kappa_left + kappa * dtau) / tau)
        share = KEEP * self._reach(middle, step)
        self.x = self.x + share * (two[0] + dtau * one[0])
        self.z = self.z + share * (two[1] + dtau * one[1])
        self.s = self.s + share * cones.times(step.slack)
        self.tau, self.kappa, self.steps = tau + share * dtau, kappa + share * step.kappa, self.steps + 1
        self._update()
        return bool(np.isfinite(self.mu) and share > SHORTEST and self.kappa < MOST_KAPPA * self.tau)

    def _worth(self, solution: tuple[Floats, Floats]) -> float:
        return float(self.system.cost @ solution[0]) + float(self.system.room @ solution[1])

    def _reach(self, middle: Floats, step: Step) -> float:
        """Largest step before a slack, a multiplier or a scalar leaves its cone."""
        fall = max(self.cones.fall(middle, step.slack), self.cones.fall(middle, step.multiplier))
        fall = max(fall, -step.tau / self.tau, -step.kappa / self.kappa)
        return min(max(1.0 / fall if fall > 0 else LONGEST, SHORTEST), LONGEST)


class Cones:
    """Arithmetic of vectors with ``linear`` plain entries and then three for each second-order cone."""

    def __init__(self, linear: int, cones: int) -> None:
        self.count, self.degree = linear, linear + cones
        self.one = np.zeros(linear + 3 * cones)
        self.one[:linear] = self.one[linear::3] = 1.0
        self.linear = np.ones(linear)
        self.axes, self.value = np.zeros((cones, 3, 3)), np.ones((cones, 3))

    def split(self, values: Floats) -> tuple[Floats, Floats]:
        """The plain entries, and the cones' in rows of three."""
        return values[: self.count], values[self.count :].reshape(-1, 3)

    def joined(self, plain: Floats, cone: Floats) -> Floats:
        """The vector of both."""
        return np.concatenate([plain, cone.ravel()])

    def inside(self, values: Floats) -> Floats:
        """The values moved along the identity until they are inside, or by little if all are."""
        plain, cone = self.split(values)
        lowest = min(plain.min(), (cone[:, 0] - length(cone)).min(initial=np.inf))
        return values + (1.0 - lowest if lowest <= 0 else 1.0 - KEEP) * self.one

    def scale(self, s: Floats, z: Floats) -> Floats:
        """Set the scaling by slacks and multipliers; returns the vector that both become."""
        (plain_s, cone_s), (plain_z, cone_z) = self.split(s), self.split(z)
        self.linear = np.sqrt(plain_s / plain_z)
        size_s, size_z = inner(cone_s), inner(cone_z)
        unit_s, unit_z = cone_s / size_s[:, None], cone_z / size_z[:, None]
        twice = 2.0 * np.sqrt(0.5 * (1.0 + (unit_s * unit_z).sum(axis=1)))
        lead, turn = (unit_s[:, 0] + unit_z[:, 0]) / twice, (unit_s[:, 1:] - unit_z[:, 1:]) / twice[:, None]
        far = np.hypot(turn[:, 0], turn[:, 1])
        along = np.where(far[:, None] > 0, turn / np.where(far > 0, far, 1.0)[:, None], [1.0, 0.0])
        self.axes[:, :2, 0] = HALF
        self.axes[:, 0, 1:], self.axes[:, 1, 1:] = HALF * along, -HALF * along
        self.axes[:, 2, 1], self.axes[:, 2, 2] = -along[:, 1], along[:, 0]
        # Written as one over the other, the short axis keeps all its digits.
        widths = np.stack([lead + far, 1.0 / (lead + far), np.ones(len(far))], axis=1)
        self.value = np.sqrt(size_s / size_z)[:, None] * widths
        return self.times(z)

    def times(self, values: Floats) -> Floats:
        """The scaling applied."""
        plain, cone = self.split(values)
        turned = self.value * np.einsum("jab,jb->ja", self.axes, cone)
        return self.joined(self.linear * plain, np.einsum("jab,ja->jb", self.axes, turned))

    def product(self, one: Floats, two: Floats) -> Floats:
        """The cones' product: entry by entry, and (inner product, both leads times the other's rest)."""
        (plain, a), (other, b) = self.split(one), self.split(two)
        rest = a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:]
        return self.joined(plain * other, np.concatenate([(a * b).sum(axis=1)[:, None], rest], axis=1))

    def quotient(self, by: Floats, values: Floats) -> Floats:
        """What, multiplied with ``by``, is ``values``."""
        (plain, a), (other, b) = self.split(by), self.split(values)
        both = (a[:, 1:] * b[:, 1:]).sum(axis=1)
        square = inner(a) ** 2
        lead = (a[:, 0] * b[:, 0] - both) / square
        rest = b[:, 1:] / a[:, :1] + ((both / a[:, 0] - b[:, 0]) / square)[:, None] * a[:, 1:]
        return self.joined(other / plain, np.concatenate([lead[:, None], rest], axis=1))

    def fall(self, middle: Floats, change: Floats) -> float:
        """One over the largest step from ``middle`` along ``change`` that stays inside; 0 or less if all do."""
        (plain, cone), (d_plain, d_cone) = self.split(middle), self.split(change)
        size = inner(cone)
        unit = cone / size[:, None]
        first = unit[:, 0] * d_cone[:, 0] - (unit[:, 1:] * d_cone[:, 1:]).sum(axis=1)
        rest = d_cone[:, 1:] - ((first + d_cone[:, 0]) / (unit[:, 0] + 1.0))[:, None] * unit[:, 1:]
        falls = (np.hypot(rest[:, 0], rest[:, 1]) - first) / size
        return float(max((-d_plain / plain).max(), falls.max(initial=-np.inf)))


def norm(values: Floats) -> float:
    """Euclidean length."""
    return float(np.sqrt(values @ values))


def length(cone: Floats) -> Floats:
    """Length of the last two of each three."""
    return np.hypot(cone[:, 1], cone[:, 2])


def inner(cone: Floats) -> Floats:
    """Root of the first squared less the others squared, without cancellation of the squares."""
    far = length(cone)
    return np.sqrt((cone[:, 0] - far) * (cone[:, 0] + far))
