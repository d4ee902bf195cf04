"""Points of choosers: right ones stand by kind in their order; see test_returned_answers for those that are wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastsim.cluster.server import Server
from fastsim.engine.orders.point_checks import EXCESS, checked_points
from fastsim.errors import PolicyError

SERVER = Server(4, 12.0, 250.0)


def point(kind: Any, jobs: int, cpu: float = 1.0) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, jobs=jobs, cpu=cpu, memory_gb=1.0, speedup=1.5)


def test_points_stand_by_kind_in_their_order() -> None:
    fast, slow, other = point(2, 1), point(2, 3), point(np.int64(0), 1)
    assert checked_points((fast, other, slow), [1, 0, 4], SERVER, 2, "mine") == {2: [fast, slow], 0: [other]}
    assert checked_points([], [0, 0], SERVER, 2, "mine") == {}


def test_all_jobs_together_fit_the_servers_but_for_the_noise_of_solvers() -> None:
    assert checked_points([point(0, 2, 12.0 * (1 + EXCESS / 2))], [2], SERVER, 2, "mine")
    with pytest.raises(PolicyError, match=r"^mine: cpu: found 24\.2 CPUs for all jobs, expected at most 24$"):
        checked_points([point(0, 2, 12.1)], [2], SERVER, 2, "mine")
