"""Finish-time fairness over shares of the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastsim.policies.registry import policy
from fastsim.policies.round_policy import PROGRAM_COMPAT, ShareRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan


@policy("finish_time_fairness")
@dataclass(frozen=True)
class FinishTimeFairness(ShareRule):
    """Let no job end much later than it would with an equal part of the cluster to itself.

    minimise max_i (age_i + left_i / rate_i) / (past_i + left_i / isolated_i): seconds from arrival to the end over the
    same in isolation; past_i is what the steps done so far would have taken there, isolated_i the rate with one part
    in as many as there are jobs now.
    """

    program_compat: bool = field(default=False, metadata=PROGRAM_COMPAT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_program_compat(self.program_compat)

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.programs.finish_time import FinishTime

        return SharePlan(FinishTime(self.mode, self.solution, self.program_compat), self.mode == "packed", self.visit)
