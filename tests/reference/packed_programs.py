"""The programs of jobs that may share GPUs, written down from their definitions and given to SciPy.

A share is the part of its time that a group, one job or two with as many GPUs, spends on a GPU model. The shares of a
model take no more GPUs than there are, those of all groups with a job no more than its time. A job's rate is the sum
over its groups and the models: its rate there, times the share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq, linprog

Group = tuple[int, ...]


@dataclass(frozen=True)
class SharedTime:
    """GPUs of each model, GPUs of each job, and by group the rates of its members on each model."""

    gpus: Any
    num_gpu: Any
    rates: Mapping[Group, Sequence[Any]]

    @cached_property
    def speed(self) -> Any:
        """A row for each job: what a share of each group on each model adds to its rate."""
        rows = np.zeros((len(self.num_gpu), len(self.rates), len(self.gpus)))
        for column, (group, members) in enumerate(self.rates.items()):
            for job, rate in zip(group, members, strict=True):
                rows[job, column] = rate
        return rows.reshape(len(rows), -1)

    @cached_property
    def limits(self) -> tuple[Any, Any]:
        """What shares take of each model's GPUs and of each job's time, and how much there is."""
        models = np.eye(len(self.gpus))
        taken = np.concatenate([self.num_gpu[group[0]] * models for group in self.rates], axis=1)
        member = np.array([[job in group for group in self.rates] for job in range(len(self.num_gpu))], float)
        time = np.repeat(member, len(self.gpus), axis=1)
        return np.concatenate([taken, time]), np.concatenate([self.gpus, np.ones(len(time))])

    def best(self, gain: Any, least: Any = None, method: str = "highs-ds") -> Any:
        """Shares with the largest gain in which no job is slower than its least rate; None if there are none."""
        rows, most = self.limits
        if least is not None:
            rows, most = np.concatenate([rows, -self.speed]), np.concatenate([most, -np.asarray(least)])
        found = linprog(-gain, rows, most, bounds=(0, 1), method=method)
        assert found.status in (0, 2), found.message
        return found.x if found.status == 0 else None

    def excess(self, shares: Any) -> float:
        """By how much shares break a limit."""
        rows, most = self.limits
        return float(max(-shares.min(), (rows @ shares - most).max()))

    def smallest(self, scale: Any, shares: Any) -> float:
        """The smallest rate times its scale."""
        return float((self.speed @ shares * scale).min())

    def largest_smallest(self, scale: Any, method: str = "highs-ds") -> tuple[float, Any]:
        """The largest that the smallest rate times its scale can be, and shares of it."""
        rows, most = self.limits
        level = np.concatenate([np.zeros(len(rows)), np.ones(len(self.speed))])[:, None]
        scaled = -self.speed * np.asarray(scale)[:, None]
        rows = np.concatenate([np.concatenate([rows, scaled]), level], axis=1)
        gain = np.zeros(rows.shape[1])
        gain[-1] = -1.0
        found = linprog(gain, rows, np.concatenate([most, np.zeros(len(self.speed))]), method=method)
        assert found.status == 0, found.message
        return float(found.x[-1]), found.x[:-1]


def worst_ratio(rate: Any, age_s: Any, left: Any, fair_s: Any) -> float:
    """Finish-time fairness: the largest of age and time left at these rates, over the time under a fair part."""
    return float(((age_s + left / rate) / fair_s).max())


def least_worst_ratio(case: SharedTime, age_s: Any, left: Any, fair_s: Any, method: str = "highs-ds") -> float:
    """The smallest that the worst ratio can be: the one for which rates of all jobs just suffice."""

    def slack(ratio: float) -> float:
        return case.largest_smallest((ratio * fair_s - age_s) / left, method)[0] - 1.0

    lowest = float((age_s / fair_s).max())
    high = lowest + 1.0
    while slack(high) < 0:
        high = lowest + 2 * (high - lowest)
    return float(brentq(slack, lowest + 1e-9 * max(lowest, 1.0), high, xtol=1e-13, rtol=1e-14))
