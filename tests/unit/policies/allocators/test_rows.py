"""Rows of singles and pairs stand in order."""

from __future__ import annotations

import numpy as np

from fastsim.engine.shares.plan import ALONE
from fastsim.policies.allocators.rows import singles_and_pairs


def test_pairs_follow_the_singles_by_the_ids_of_their_jobs() -> None:
    job_id, alone = np.array([3, 5, 8, 9]), np.arange(4.0)[:, None] / 10
    found = singles_and_pairs(job_id, alone, [(3, 1), (0, 2)], np.array([[0.7], [0.8]]))
    assert found.first.tolist() == [3, 5, 8, 9, 3, 5]
    assert found.second.tolist() == [ALONE] * 4 + [8, 9]
    assert found.share__rg[:, 0].tolist() == [0.0, 0.1, 0.2, 0.3, 0.8, 0.7]


def test_without_pairs() -> None:
    assert singles_and_pairs(np.array([3]), np.ones((1, 2)), [], np.zeros((0, 2))).second.tolist() == [ALONE]
