"""What the jobs of a round get under ``opt``: the best points of their surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastsim.policies.programs.opt_allocation import best_points
from fastsim.policies.solvers.highs import Solver

if TYPE_CHECKING:
    from fastsim.performance.sensitivity import Demands


class PointChooser:
    """Asks HiGHS for the best points."""

    def __init__(self) -> None:
        self.solver = Solver("vertex")

    @property
    def solver_s(self) -> float:
        """CPU seconds spent in a solver so far."""
        return self.solver.spent_s

    def parts(self, demands: Demands, count__k: Sequence[int], servers: int) -> Sequence[Any]:
        """What ``count__k[k]`` jobs of each kind get on so many equal servers; by kind, the fastest first."""
        return best_points(demands, count__k, servers, self.solver)[1]
