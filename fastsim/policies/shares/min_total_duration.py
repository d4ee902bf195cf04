"""Shortest total duration over shares of the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import ShareRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan

SEARCHES = ("optimum", "bisection")


@policy("min_total_duration")
@dataclass(frozen=True)
class MinTotalDuration(ShareRule):
    """Make the job that ends last end as early as it can.

    minimise T so that rate_i >= left_i / T for every job. The published search halves [100 s, 1e6 s] until its ends
    are within 5 %, and any allocation that reaches the last feasible T will do.
    """

    search: str = field(
        default="optimum",
        metadata=about("optimum: the shortest T itself; bisection: the T of the published search", choices=SEARCHES),
    )

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.programs.objectives import MinDuration

        return SharePlan(MinDuration(self.mode, self.solution, self.search), self.mode == "packed", self.visit)
