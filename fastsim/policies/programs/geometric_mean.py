"""Largest product of rates, and what each job costs the others.

The product is maximised as a sum of logarithms by a primal-dual interior-point method: a corner method would only find
the value to the solver's tolerance and the rates to its square root. The optimal rates are unique.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, Ints, RoundView

STEPS = 200
"""Newton steps at most; some 25 are usual."""
GAP = 1e-13
"""Complementarity, per job, at which the method ends: far below what 1e-6 in a rate needs."""
SHRINK, KEEP, DESCENT, LEAST_STEP = 0.1, 0.99, 0.01, 1e-6
"""Aim of a step over the gap, part of the way to the border it may go, descent it must bring, and when to end."""


class Discounted:
    """Maximises the product of rates; each job then gets its shares times what the others would lose without it."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def allocate(self, view: RoundView) -> Allocation | None:
        """Discounted shares for these jobs; None without jobs."""
        if not len(view):
            return None
        start_s = time.thread_time()
        share__jg, rate__j = self.proportional_fairness(view)
        share__jg = share__jg * self.discount__j(view, rate__j)[:, None]
        return Allocation.of_singles(view.job_id, share__jg, time.thread_time() - start_s)

    def proportional_fairness(self, view: RoundView) -> tuple[Floats, Floats]:
        """Shares of each job with the largest product of rates, and the rates, relative to the job's best."""
        key = view.num_gpu if self.mode == "base" else view.kind
        _, example, class__j, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        rate = np.nan_to_num(view.rate__jg[example])
        if self.mode == "base":
            rate = np.ones_like(rate)
        best = rate.max(axis=1)
        runs = np.flatnonzero(best > 0)
        share__cg = np.zeros(rate.shape)
        relative = rate[runs] / best[runs, None]
        use = (size * view.num_gpu[example])[runs]
        share__cg[runs] = largest_product(relative, size[runs], use, view.setting.gpus__g)
        reached = (rate * share__cg).sum(axis=1) / np.where(best > 0, best, 1.0)
        return share__cg[class__j], reached[class__j]

    def discount__j(self, view: RoundView, rate__j: Floats) -> Floats:
        """For each job the product over the others of their rate, over their rate if it were not there."""
        discount = np.ones(len(view))
        key = view.num_gpu if self.mode == "base" else view.kind
        for alike_rows in (np.flatnonzero(key == value) for value in np.unique(key)):
            others = np.delete(np.arange(len(view)), alike_rows[0])
            if rate__j[alike_rows[0]] > 0 and len(others):
                _, without = self.proportional_fairness(rows_of(view, others))
                runs = without > 0
                discount[alike_rows] = np.exp(np.log(rate__j[others][runs] / without[runs]).sum())
        return discount

    def state(self) -> dict[str, Any]:
        """No state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """No state to restore."""


def rows_of(view: RoundView, rows: Ints) -> RoundView:
    """The view of some of the jobs only."""
    names = ("job_id", "kind", "num_gpu", "weight", "submit_s", "steps_left", "deadline_s")
    columns: dict[str, Any] = {name: getattr(view, name)[rows] for name in names}
    return replace(view, tenant=tuple(view.tenant[row] for row in rows) if view.tenant else (), **columns)


def largest_product(rate__cg: Floats, size__c: Ints, use__c: Ints, gpus__g: Ints) -> Floats:
    """Shares of one job of each class under which the product of all jobs' rates is largest.

    ``use__c`` are the GPUs that all jobs of a class take while they run.
    """
    classes, models = rate__cg.shape
    if not classes:
        return np.zeros((0, models))
    time_rows = np.kron(np.eye(classes), np.ones(models))
    gpu_rows = np.kron(use__c.astype(np.float64), np.eye(models))
    # Scaled so that every limit is 1; a model without GPUs stays closed.
    open_models = gpus__g > 0
    limits = np.concatenate([time_rows, gpu_rows[open_models] / gpus__g[open_models, None]])
    columns = np.tile(open_models, classes)
    gains = time_rows * rate__cg.ravel()
    share = np.zeros(classes * models)
    share[columns] = _interior(gains[:, columns], size__c.astype(np.float64), limits[:, columns])
    return share.reshape(classes, models)


def _interior(gain: Floats, size: Floats, limit: Floats) -> Floats:
    """The x of 0 or more with ``limit @ x <= 1`` and the largest ``size @ log(gain @ x)``."""
    x = np.full(gain.shape[1], 0.5 / limit.sum(axis=1).max())
    slack = 1.0 - limit @ x
    z, w = 1.0 / slack, 1.0 / x
    for _ in range(STEPS):
        gap = float(slack @ z + x @ w)
        if gap <= GAP * size.sum():
            break
        aim = SHRINK * gap / (len(z) + len(w))
        rate = gain @ x
        slope = -(size / rate) @ gain
        bend = (gain.T * (size / rate**2)) @ gain + (limit.T * (z / slack)) @ limit
        # In units of x, so that directions in which nothing changes keep a bend that is not lost in rounding.
        bend = bend * np.outer(x, x)
        bend[np.diag_indices_from(bend)] += w * x
        dx = x * _refined(bend, x * (-slope - (aim / slack) @ limit) + aim)
        dslack = -(limit @ dx)
        dz, dw = (aim - z * dslack) / slack - z, (aim - w * dx) / x - w
        step = _reach(((x, dx), (slack, dslack), (z, dz), (w, dw)))
        before = _miss(gain=gain, size=size, limit=limit, x=x, z=z, w=w, aim=aim)
        while step > LEAST_STEP and not _miss(
            gain=gain, size=size, limit=limit, x=x + step * dx, z=z + step * dz, w=w + step * dw, aim=aim
        ) <= (1 - DESCENT * step) * before:  # fmt: skip
            step /= 2
        if step <= LEAST_STEP:
            break  # the rest is rounding
        x, z, w = x + step * dx, z + step * dz, w + step * dw
        slack = 1.0 - limit @ x
    return x


def _refined(matrix: Floats, right: Floats) -> Floats:
    """The solution, improved once: where many shares give the same rates, a matrix near the end is all but singular."""
    found = _solved(matrix, right)
    return found + _solved(matrix, right - matrix @ found)


def _solved(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:
        # Many shares give the same rates, and rounding has made the matrix singular: the shortest step will do.
        return np.asarray(np.linalg.lstsq(matrix, right)[0], np.float64)


def _reach(pairs: tuple[tuple[Floats, Floats], ...]) -> float:
    """The longest step, at most 1, that keeps every value above 0."""
    lengths = [float((-value[change < 0] / change[change < 0]).min(initial=np.inf)) for value, change in pairs]
    return min(1.0, KEEP * min(lengths))


def _miss(gain: Floats, size: Floats, limit: Floats, x: Floats, z: Floats, w: Floats, aim: float) -> float:
    """How far the conditions of the step's aim are from holding."""
    slope = -(size / (gain @ x)) @ gain + z @ limit - w
    parts = (slope, (1.0 - limit @ x) * z - aim, x * w - aim)
    return float(np.sqrt(sum((part**2).sum() for part in parts)))
