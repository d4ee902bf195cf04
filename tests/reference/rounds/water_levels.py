"""Water filling by its definition, slowly: raise the level until some job is full, ask of every job whether it is.

All jobs that rise do so at the same speed, each by its claim; a job that cannot be faster while no job becomes slower
than its own level is full. Nothing else is, so filling ends when no job can have more at no cost to the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

Floats = npt.NDArray[np.float64]
FULL = (1e-6, 1e-5, 1e-4)
"""A job that can rise by no more than this is full, relative and absolute; more where slacks below add up to more."""
SLACKS = (1e-9, 1e-8, 1e-7)
"""How far a level may be missed later, relative; more where what the program before found was off by more."""


class Room:
    """Rates that jobs can have together: ``relative__jg`` alone on each model, ``num_gpu`` each, ``gpus`` there are."""

    def __init__(self, relative__jg: Floats, num_gpu: Floats, gpus: Floats) -> None:
        count, models = relative__jg.shape
        self.count, self.cells = count, count * models
        own = np.kron(np.eye(count), np.ones(models))
        self.gain = own * relative__jg.ravel()
        self.limits = np.block([[own], [np.kron(num_gpu, np.eye(models))]])
        self.room = np.concatenate([np.ones(count), gpus])

    def most(self, floor: Floats, rise: Floats, cost: Floats) -> tuple[float, Floats]:
        """Largest `cost` times (shares, level) with rates of `floor + rise * level` or more, and the rates then."""
        rows = np.block([[-self.gain, rise[:, None]], [self.limits, np.zeros((len(self.room), 1))]])
        for slack in SLACKS:
            limits = np.concatenate([-floor * (1 - slack), self.room])
            found = linprog(-cost, rows, limits, bounds=[(0, 1)] * self.cells + [(0, None)])
            if found.status == 0:
                return float(-found.fun), self.gain @ found.x[:-1]
        raise AssertionError(found.message)

    def highest_level(self, floor: Floats, rise: Floats) -> float:
        """How far the level can rise."""
        return self.most(floor, rise, np.append(np.zeros(self.cells), 1.0))[0]

    def can_rise(self, level: Floats, rising: npt.NDArray[np.bool_], least: float) -> npt.NDArray[np.bool_]:
        """Which of the rising jobs can be faster by more than ``least`` while no job is below its level."""
        left = rising.copy()
        while left.any():
            # If one of those that are left can rise, so can their sum.
            rate = self.most(level, np.zeros(self.count), np.append(self.gain[left].sum(axis=0), 0.0))[1]
            risen = left & (rate > level + least * (1 + level))
            if not risen.any():
                break
            left &= ~risen
        return rising & ~left


def claims(
    full: npt.NDArray[np.bool_], weight: Floats, entity: Sequence[str], entities: Mapping[str, tuple[float, str]]
) -> Floats:
    """Speed at which each job rises: its weight, or its part of the weight of its entity; 0 if it is full or waits."""
    if not entities:
        return np.where(full, 0.0, weight)
    speed = np.zeros(len(full))
    for name in set(entity):
        share, inner = entities.get(name, (1.0, "fairness"))
        left = [job for job, owner in enumerate(entity) if owner == name and not full[job]]
        if inner == "fifo":
            left = left[:1]
        total = 1.0 if inner == "fifo" else sum(weight[job] for job in left)
        for job in left:
            speed[job] = share if inner == "fifo" else share * weight[job] / total
    return speed


def filled(
    relative__jg: Floats, num_gpu: Floats, gpus: Floats, weight: Floats, entity: Sequence[str] = (),
    entities: Mapping[str, tuple[float, str]] | None = None,
) -> Floats:  # fmt: skip
    """Rate of every job when all are full."""
    room, level = Room(relative__jg, num_gpu, gpus), np.zeros(len(weight))
    full = np.array([not row.any() for row in relative__jg > 0])
    while not full.all():
        rise = claims(full, weight, entity, entities or {}) / num_gpu
        level = level + room.highest_level(level, rise) * rise
        full = full | newly_full(room, level, rise > 0)
    return level


def newly_full(room: Room, level: Floats, rising: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which of the rising jobs are full at the highest level; one is at least."""
    for least in FULL:
        full = rising & ~room.can_rise(level, rising, least)
        if full.any():
            return full
    raise AssertionError("no job is full at the highest level")
