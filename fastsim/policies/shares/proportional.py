"""Time on each GPU model in proportion to how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan


@policy("proportional")
@dataclass(frozen=True)
class Proportional(RoundRule):
    """Let every job spend its whole time on the models in the proportion in which the cluster has them.

    share[j, g] = N[g] / sum of N; N[g] = GPUs of a model. More is promised than there is if jobs outnumber GPUs.
    """

    engine: ClassVar[str] = "shares"

    def begin(self, setting: Setting) -> SharePlan:
        """Equal shares; each round fills the GPU models in an order drawn anew."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.allocators.equal_shares import ProportionalShares

        return SharePlan(ProportionalShares(), visit="shuffled", overcommitted=True)
