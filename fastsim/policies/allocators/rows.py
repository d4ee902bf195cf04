"""Allocations made of jobs that run alone and of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastsim.engine.shares.plan import ALONE, Allocation, Floats, Ints


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
