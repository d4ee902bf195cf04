"""The chooser of ``opt`` asks the program of the best points."""

from __future__ import annotations

import pytest

from fastsim.cluster.server import Server
from fastsim.performance.sensitivity import Sensitivity
from fastsim.policies.programs.opt_allocation import best_points
from fastsim.policies.programs.point_chooser import PointChooser
from fastsim.policies.solvers.highs import Solver


def test_it_answers_with_the_best_points() -> None:
    kinds = (("alexnet", 1), ("gnmt", 1), ("m5", 2))
    demands = Sensitivity.default().demands(kinds, Server(8, 24, 500, 500))
    chooser = PointChooser()
    parts = chooser.parts(demands, [4, 3, 1], 1)
    best, _ = best_points(demands, [4, 3, 1], 1, Solver("vertex"))
    assert sum(part.jobs for part in parts) == 8
    assert sum(part.jobs * part.speedup for part in parts) == pytest.approx(best, rel=1e-12)
    assert chooser.solver_s > 0
