"""Jobs that enter a program alike are one class, and the pairs of two classes one group.

Any optimum of a symmetric program may be averaged over all ways to swap jobs of a class: the average is as good, and
in it equal jobs have equal shares. So one variable for a class, or for all pairs of two classes, loses nothing.

One unit of a group's variable stands for ``mass__r`` units of time, spread evenly over its ``count__r`` jobs or pairs.
The mass is the size of the smaller class (half of it for pairs within one class), so that a variable is at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fastsim.engine.shares.plan import ALONE, Allocation, Floats, Ints, RoundView

MOST_KEYS = 10_000
"""Largest key up to which classes are found by counting instead of sorting."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Axes: ``j`` jobs, ``c`` classes, ``r`` groups (every class alone, pairs within classes, pairs of two), ``g``."""

    class__j: Ints
    size__c: Ints
    example__c: Ints
    """Row of the class's first job."""
    first__r: Ints
    second__r: Ints
    """Class of a pair's second member; ``ALONE`` without one."""
    count__r: Ints
    mass__r: Floats
    rate__rg: Floats
    """Rate of the first member, steps/s."""
    partner_rate__rg: Floats
    """Rate of the second member, steps/s; 0 without one."""
    idle: tuple[Ints, Ints]
    """Classes of the members of the groups that were left out because they run nowhere."""

    @property
    def classes(self) -> int:
        """Number of classes, which are the first groups."""
        return len(self.size__c)

    @property
    def mixed(self) -> int:
        """Position of the first group of pairs of two classes."""
        inner = (self.second__r == ALONE) | (self.second__r == self.first__r)
        return int(inner.sum())

    def whole(self) -> Groups:
        """These groups, then those that were left out."""
        first, second = self.idle
        size = self.size__c
        count = np.where(first == second, size[first] * (size[first] - 1) // 2, size[first] * size[second])
        mass = np.where(first == second, size[first] / 2, np.minimum(size[first], size[second]))
        nothing = np.zeros((len(first), self.rate__rg.shape[1]))
        return replace(
            self, first__r=np.concatenate([self.first__r, first]), second__r=np.concatenate([self.second__r, second]),
            count__r=np.concatenate([self.count__r, count]), mass__r=np.concatenate([self.mass__r, mass]),
            rate__rg=np.concatenate([self.rate__rg, nothing]),
            partner_rate__rg=np.concatenate([self.partner_rate__rg, nothing]), idle=(first[:0], second[:0]),
        )  # fmt: skip

    def allocation(self, view: RoundView, share__rg: Floats, solver_s: float) -> Allocation:
        """Shares of jobs and pairs from the groups' variables."""
        share = np.clip(share__rg, 0.0, 1.0)
        alone = share[: self.classes][self.class__j]
        if len(share) == self.classes:
            return Allocation.of_singles(view.job_id, alone, solver_s)
        each = share * (self.mass__r / self.count__r)[:, None]
        first, second, group = self._pairs(np.flatnonzero((share > 0).any(axis=1)))
        ids = view.job_id
        order = np.argsort(first * len(ids) + second)
        return Allocation(
            np.concatenate([ids, ids[first[order]]]),
            np.concatenate([np.full(len(ids), ALONE, np.int64), ids[second[order]]]),
            np.concatenate([alone, each[group[order]]]),
            solver_s,
        )

    def _pairs(self, groups: Ints) -> tuple[Ints, Ints, Ints]:
        """Rows of the two members, lower one first, and the group of every pair in these groups."""
        groups = groups[groups >= self.classes]
        by_class, start = np.argsort(self.class__j, kind="stable"), np.cumsum(self.size__c) - self.size__c
        one, two = self.first__r[groups], self.second__r[groups]
        # Every member of the one class with every member of the other.
        count = self.size__c[one] * self.size__c[two]
        at = np.repeat(np.arange(len(groups)), count)
        place = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        many = self.size__c[two][at]
        first, second = by_class[start[one][at] + place // many], by_class[start[two][at] + place % many]
        distinct = (one != two)[at] | (first < second)
        first, second = first[distinct], second[distinct]
        return np.minimum(first, second), np.maximum(first, second), groups[at[distinct]]


def grouped(view: RoundView, rate__jg: Floats, alike__j: Ints, pairs: bool = False) -> Groups:
    """Groups of the jobs: those with equal ``alike__j`` are one class; ``rate__jg`` are their rates alone."""
    if view.partner_rates is not None:  # estimates may differ between jobs of one kind
        alike__j = np.arange(len(view))
    example, class__j, size = classes(alike__j)
    first, second = _partners(view.num_gpu[example], size) if pairs else (np.zeros(0, np.int64),) * 2
    known, partner = _pair_rates(view, example[first], example[second])
    useful = ((known > 0) | (partner > 0)).any(axis=1)
    idle = first[~useful], second[~useful]
    first, second, known, partner = first[useful], second[useful], known[useful], partner[useful]
    inner = first == second
    count = np.where(inner, size[first] * (size[first] - 1) // 2, size[first] * size[second])
    mass = np.where(inner, size[first] / 2, np.minimum(size[first], size[second]))
    alone = np.arange(len(size))
    return Groups(
        class__j=class__j, size__c=size, example__c=example,
        first__r=np.concatenate([alone, first]), second__r=np.concatenate([np.full(len(size), ALONE), second]),
        count__r=np.concatenate([size, count]), mass__r=np.concatenate([size.astype(np.float64), mass]),
        rate__rg=np.concatenate([_measured(rate__jg[example]), known]),
        partner_rate__rg=np.concatenate([np.zeros((len(size), rate__jg.shape[1])), partner]),
        idle=idle,
    )  # fmt: skip


def alike(*columns: Ints | Floats) -> Ints:
    """One number of 0 or more for each row of these columns; rows with equal values have equal numbers."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if (column == column[0]).all():
            continue
        values, position = np.unique(column, return_inverse=True)
        key = key * len(values) + position
    return key


def classes(key__j: Ints) -> tuple[Ints, Ints, Ints]:
    """First row of every key, in the order of the keys; the class of every row; the size of every class."""
    if key__j.max() > MOST_KEYS:
        _, example, class__j, size = np.unique(key__j, return_index=True, return_inverse=True, return_counts=True)
        return example, class__j, size
    count = np.bincount(key__j)
    keys = np.flatnonzero(count)
    place = np.empty(len(count), np.int64)
    place[keys] = np.arange(len(keys))
    class__j = place[key__j]
    example = np.empty(len(keys), np.int64)
    example[class__j[::-1]] = np.arange(len(key__j))[::-1]
    return example, class__j, count[keys]


def _partners(num_gpu__c: Ints, size__c: Ints) -> tuple[Ints, Ints]:
    """Classes that may share: those within themselves first, then two classes of as many GPUs."""
    within = np.flatnonzero(size__c >= 2)
    low, high = np.triu_indices(len(size__c), 1)
    equal = num_gpu__c[low] == num_gpu__c[high]
    return np.concatenate([within, low[equal]]), np.concatenate([within, high[equal]])


def _pair_rates(view: RoundView, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    if not len(first):
        empty = np.zeros((0, len(view.setting.gpu_models)))
        return empty, empty
    one, two = view.pair_rates(first, second)
    return _measured(one), _measured(two)


def _measured(rate: Floats) -> Floats:
    """Rates, which are finite; 0 for those that were not measured. numpy's own function takes eight times as long."""
    measured: Floats = np.where(np.isnan(rate), 0.0, rate)
    return measured
