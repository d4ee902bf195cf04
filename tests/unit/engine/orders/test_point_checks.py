"""Points of choosers: right ones stand by kind in their order; see test_returned_answers for those that are wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastsim.engine.orders.point_checks import checked_points
from fastsim.errors import PolicyError


def point(kind: Any, jobs: int, cpu: float = 1.0) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, jobs=jobs, cpu=cpu, memory_gb=1.0, speedup=1.5)


def test_points_stand_by_kind_in_their_order() -> None:
    fast, slow, other = point(2, 1), point(2, 3), point(np.int64(0), 1)
    assert checked_points((fast, other, slow), [1, 0, 4], "mine") == {2: [fast, slow], 0: [other]}
    assert checked_points([], [0, 0], "mine") == {}


def test_jobs_may_need_more_than_the_servers_have_and_every_job_has_a_point() -> None:
    assert checked_points([point(0, 2, 1e9)], [2], "mine")
    with pytest.raises(PolicyError, match=r"^mine: found points for 1 jobs of kind 0, expected points for 2"):
        checked_points([point(0, 1)], [2], "mine")
