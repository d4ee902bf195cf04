"""Largest product of rates, at a price that makes true rates the best report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan

PROOF_MODES = ("base", "perf")


@policy("strategy_proof")
@dataclass(frozen=True)
class StrategyProof(RoundRule):
    """Make the product of all jobs' rates as large as it can be, and give each job what is left of its share.

    maximise product_i rate_i; share_i times product over k != i of rate_k / (rate_k if i were not there). A job that
    takes much from the others pays with time, so reporting false rates does not help it.
    """

    engine: ClassVar[str] = "shares"

    mode: str = field(
        default="perf",
        metadata=about("base: all GPU models count as equally fast; perf: measured rates", choices=PROOF_MODES),
    )

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.programs.geometric_mean import Discounted

        return SharePlan(Discounted(self.mode), visit="shuffled" if self.mode == "base" else "fastest")
