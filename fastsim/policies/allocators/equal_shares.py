"""Shares that are the same for every job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import ALONE, Allocation, Floats, Ints, RoundView


def part_of_cluster(view: RoundView, parts: int, num_gpu: Ints | None = None) -> Floats:
    """Share of each job on each model if every model were cut in ``parts``; never more than all of a job's time.

    With ``num_gpu`` the parts are of GPUs, and a job on s of them has 1/s of the time.
    """
    share = np.repeat((view.setting.gpus__g / parts)[None, :], len(view), axis=0)
    if num_gpu is not None:
        share /= num_gpu[:, None]
    within: Floats = share / np.maximum(share.sum(axis=1), 1.0)[:, None]
    return within


class Stateless:
    """An allocator that looks at nothing but the jobs of the moment."""

    def kept(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Nothing to take back."""


class IsolatedShares(Stateless):
    """1/m of the cluster for each of m jobs."""

    def __init__(self, per_gpu: bool = True) -> None:
        self._per_gpu = per_gpu

    def allocate(self, view: RoundView) -> Allocation | None:
        """The same part for everybody; None without jobs."""
        if not len(view):
            return None
        share__jg = part_of_cluster(view, len(view), view.num_gpu if self._per_gpu else None)
        return Allocation.of_singles(view.job_id, share__jg)


class ProportionalShares(Stateless):
    """Each model's part of the cluster, as a part of time."""

    def allocate(self, view: RoundView) -> Allocation | None:
        """The same shares for every job, whatever their number; None without jobs."""
        if not len(view):
            return None
        # Through 1/m of the cluster, as the original: its last bits follow the number of jobs.
        part__g = view.setting.gpus__g / len(view)
        return Allocation.of_singles(view.job_id, np.repeat((part__g / part__g.sum())[None, :], len(view), axis=0))


def singles_and_pairs(
    job_id: Ints, share__jg: Floats, pairs: Sequence[tuple[int, int]], share__pg: Floats
) -> Allocation:
    """Shares of every job alone, then those of ``pairs`` of rows of ``job_id``, whatever the order of their jobs."""
    if not len(pairs):
        return Allocation(job_id, np.full(len(job_id), ALONE, np.int64), share__jg)
    members = np.array(pairs, np.int64).reshape(-1, 2)
    one, two = job_id[members].min(axis=1), job_id[members].max(axis=1)
    order = np.lexsort((two, one))
    first = np.concatenate([job_id, one[order]])
    second = np.concatenate([np.full(len(job_id), ALONE, np.int64), two[order]])
    return Allocation(first, second, np.concatenate([share__jg, share__pg[order]]))
