"""Newton's equations of cone programs whose jobs meet only in the GPUs and in one level.

    minimise  cost . x + price * level   so that   x_jg >= 0,   sum over j of use_j * x_jg <= gpus_g
    row r:  coefficient_r . x_j(r) + lift_r * level <= room_r          cone of j:  (rate_j . x_j) * time_j >= 1

``time_j`` is one more column of a job with a cone, and the cone the second-order one of
(rate + time, rate - time, 2). Everything but GPUs and level belongs to one job, so the equations are a small matrix
for each job and one of GPU models and level.

Rows and columns are divided by roots of their largest entries, as the published solver does (interior_point.balance);
vectors of this module are in these units. ``x`` is columns by job, then the level; ``z`` and ``s`` have an entry for
every x_jg, every row, every GPU model, then three for every cone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastsim.engine.shares.plan import Floats, Ints
from fastsim.policies.solvers.interior_point import BALANCINGS, DAMPING, EVEN

HALF = np.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """A program's coefficients: the job of each row and its entries; ``rate__jg`` has no rows without cones."""

    use__j: Floats
    gpus__g: Floats
    job__r: Ints
    row__rv: Floats
    lift__r: Floats
    room__r: Floats
    cost__jv: Floats
    price: float
    rate__jg: Floats


class BlockEquations:
    """The balanced program, and its equations for the weights last given."""

    def __init__(self, program: BlockProgram) -> None:
        self.of = program
        self.jobs, self.width = program.cost__jv.shape
        self.models, self.rows, self.cones = len(program.gpus__g), len(program.job__r), len(program.rate__jg)
        self.linear = self.jobs * self.models + self.rows + self.models
        self._balance()
        first = np.concatenate([[0], np.flatnonzero(np.diff(program.job__r)) + 1]).astype(np.int64)
        self._slot__r = np.arange(self.rows) - np.repeat(first, np.diff(np.append(first, self.rows)))
        self._slots = int(self._slot__r.max()) + 1

    def _balance(self) -> None:
        """Divide rows and columns by the roots of their largest entries, a few times over."""
        p, g = self.of, self.models
        own, row = np.ones((self.jobs, g)), p.row__rv.copy()
        lift, gpus = p.lift__r.copy(), np.repeat(p.use__j[:, None], g, axis=1)
        rate, time = p.rate__jg.copy(), np.ones(self.cones)
        self.column__jv, self.level = np.ones((self.jobs, self.width)), 1.0
        own_by, row_by, gpus_by, cone_by = np.ones_like(own), np.ones(self.rows), np.ones(g), np.ones(self.cones)
        for _ in range(BALANCINGS):
            column = np.zeros_like(self.column__jv)
            np.maximum.at(column, p.job__r, abs(row))
            column[:, :g] = np.maximum(np.maximum(column[:, :g], gpus), own)
            if self.cones:
                column[:, :g], column[:, g] = np.maximum(column[:, :g], rate), np.maximum(column[:, g], time)
            # A cone counts as the sum of its rows, of which two have entries.
            by = [root(part) for part in (column, own, np.maximum(abs(row).max(axis=1), abs(lift)), gpus.max(axis=0))]
            cone = root(2.0 * np.maximum(rate.max(axis=1, initial=0.0), time))
            level = float(root(np.array(abs(lift).max(initial=0.0))))
            own, gpus = own / by[0][:, :g] / by[1], gpus / by[0][:, :g] / by[3]
            row, lift = row / by[0][p.job__r] / by[2][:, None], lift / level / by[2]
            if self.cones:
                rate, time = rate / by[0][:, :g] / cone[:, None], time / by[0][:, g] / cone
            self.column__jv, self.level = self.column__jv * by[0], self.level * level
            own_by, row_by, gpus_by, cone_by = own_by * by[1], row_by * by[2], gpus_by * by[3], cone_by * cone
        self.own, self.row, self.lift, self.gpus, self.rate, self.time = own, row, lift, gpus, rate, time
        two = np.zeros((self.cones, 3))
        two[:, 2] = 2.0 / cone_by
        self.room = np.concatenate([np.zeros(own.size), p.room__r / row_by, p.gpus__g / gpus_by, two.ravel()])
        self.cost = np.append((p.cost__jv / self.column__jv).ravel(), p.price / self.level)

    def split(self, x: Floats) -> tuple[Floats, float]:
        """The columns by job, and the level."""
        return x[:-1].reshape(self.jobs, self.width), float(x[-1])

    def parts(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The entries of columns, rows, GPU models and cones."""
        one = self.jobs * self.models
        two, three = one + self.rows, self.linear
        return z[:one].reshape(self.jobs, -1), z[one:two], z[two:three], z[three:].reshape(self.cones, 3)

    def used(self, x: Floats) -> Floats:
        """The left sides of all rows; a cone's are those below zero."""
        columns, level = self.split(x)
        shares = columns[:, : self.models]
        row = (self.row * columns[self.of.job__r]).sum(axis=1) + self.lift * level
        cone = np.zeros((self.cones, 3))
        if self.cones:
            rate, time = (self.rate * shares).sum(axis=1), self.time * columns[:, self.models]
            cone[:, 0], cone[:, 1] = -rate - time, time - rate
        return np.concatenate([-(self.own * shares).ravel(), row, (self.gpus * shares).sum(axis=0), cone.ravel()])

    def prices(self, z: Floats) -> Floats:
        """The prices of columns and level at the multipliers."""
        own, row, gpus, cone = self.parts(z)
        found = np.zeros((self.jobs, self.width))
        np.add.at(found, self.of.job__r, self.row * row[:, None])
        found[:, : self.models] += self.gpus * gpus - self.own * own
        if self.cones:
            found[:, : self.models] -= self.rate * (cone[:, 0] + cone[:, 1])[:, None]
            found[:, self.models] += self.time * (cone[:, 1] - cone[:, 0])
        return np.append(found.ravel(), self.lift @ row)

    def weigh(self, weight: Floats, axes: Floats, value: Floats) -> None:
        """Set the weights: of linear rows, and of each cone by principal axes (a row each) and their values."""
        self.linear_by = 1.0 / (weight + DAMPING)
        self._axes = axes / np.sqrt(value + DAMPING)[:, :, None]
        own, row, gpus, _ = self.parts(np.append(self.linear_by, np.zeros(3 * self.cones)))
        self._own_by, self._row_by = own, np.sqrt(row)
        g, v, slots = self.models, self.width, self._slots
        size = v + slots + (3 if self.cones else 0)
        matrix = np.zeros((self.jobs, size, size))
        every = np.arange(size)
        matrix[:, every[:v], every[:v]] = DAMPING
        matrix[:, every[:g], every[:g]] += self.own**2 * own
        matrix[:, every[v:], every[v:]] = -1.0
        border = np.zeros((self.jobs, size, g + 1))
        border[:, every[:g], every[:g]] = self.gpus
        job, slot = self.of.job__r, v + self._slot__r
        matrix[job, slot, :v] = self.row * self._row_by[:, None]
        border[job, slot, g] = self.lift * self._row_by
        if self.cones:
            matrix[:, v + slots :, :g] = (-self._axes[:, :, 0] - self._axes[:, :, 1])[:, :, None] * self.rate[
                :, None, :
            ]
            matrix[:, v + slots :, g] = (self._axes[:, :, 1] - self._axes[:, :, 0]) * self.time[:, None]
        matrix[:, :v, v:] = matrix[:, v:, :v].transpose(0, 2, 1)
        even = 1.0 / np.sqrt(abs(matrix).max(axis=2))
        scale = even[:, :, None] * even[:, None, :]
        self._inverse = np.linalg.inv(matrix * scale) * scale
        self._border, self._reach = border, self._inverse @ border
        middle = np.diag(np.append(-1.0 / gpus, DAMPING))
        self._middle = np.linalg.inv(middle - np.einsum("jia,jib->ab", border, self._reach))

    def solve(self, rise: Floats, fall: Floats) -> tuple[Floats, Floats]:
        """x and z with ``prices(z) + damping * x = rise`` and ``used(x) - (weight + damping) * z = fall``."""
        columns, level = self.split(rise)
        own, row, gpus, cone = self.parts(fall)
        g, v, slots = self.models, self.width, self._slots
        side = np.zeros((self.jobs, self._inverse.shape[1]))
        side[:, :v] = columns
        side[:, :g] -= self.own * self._own_by * own
        side[self.of.job__r, v + self._slot__r] = self._row_by * row
        if self.cones:
            side[:, v + slots :] = np.einsum("jab,jb->ja", self._axes, cone)
        inner = np.einsum("jab,jb->ja", self._inverse, side)
        ends = self._middle @ (np.append(gpus, level) - np.einsum("jia,ji->a", self._border, inner))
        inner -= self._reach @ ends
        row = self._row_by * inner[self.of.job__r, v + self._slot__r]
        own = -self._own_by * (self.own * inner[:, :g] + own)
        cone = np.einsum("jab,ja->jb", self._axes, inner[:, v + slots :]) if self.cones else np.zeros(0)
        return np.append(inner[:, :v].ravel(), ends[g]), np.concatenate([own.ravel(), row, ends[:g], cone.ravel()])


def root(largest: Floats) -> Floats:
    """Roots of largest entries; 1 where there is as good as none."""
    return np.where(largest < EVEN, 1.0, np.sqrt(largest))
