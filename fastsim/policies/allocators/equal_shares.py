"""Equal shares of the cluster, and allocations of single jobs and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import ALONE, Allocation, Floats, Ints, RoundView


class Stateless:
    """An allocator without state: shares follow from the current jobs alone."""

    def state(self) -> dict[str, Any]:
        """No state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """No state to restore."""


class IsolatedShares(Stateless):
    """1/m of the cluster for each of m jobs."""

    def __init__(self, per_gpu: bool = True) -> None:
        self._per_gpu = per_gpu

    def allocate(self, view: RoundView) -> Allocation | None:
        """The same part for every job; None without jobs."""
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
        # By way of 1/m of the cluster, as in the original: the last bits depend on the number of jobs.
        part__g = view.setting.gpus__g / len(view)
        return Allocation.of_singles(view.job_id, np.repeat((part__g / part__g.sum())[None, :], len(view), axis=0))


def part_of_cluster(view: RoundView, parts: int, num_gpu: Ints | None = None) -> Floats:
    """Share of each job on each model if every model is cut into ``parts``; the sum over models is at most 1.

    With ``num_gpu`` the parts are of GPUs, and a job on s of them has 1/s of the time.
    """
    share = np.repeat((view.setting.gpus__g / parts)[None, :], len(view), axis=0)
    if num_gpu is not None:
        share /= num_gpu[:, None]
    within: Floats = share / np.maximum(share.sum(axis=1), 1.0)[:, None]
    return within


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
