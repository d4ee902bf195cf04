"""An equal part of the cluster for every job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan


@policy("isolated")
@dataclass(frozen=True)
class Isolated(RoundRule):
    """Give each of the m jobs the time that 1/m of the cluster would give it, as if it had that part to itself.

    share[j, g] = N[g] / m / s[j], divided by max(1, sum over g); N[g] = GPUs of a model, s[j] = GPUs of the job.
    """

    engine: ClassVar[str] = "shares"

    per_gpu: bool = field(
        default=True,
        metadata=about("a job on s GPUs gets 1/s of the time; false: the part is of time, however many GPUs it takes"),
    )

    def begin(self, setting: Setting) -> SharePlan:
        """Rounds of drawn order, as the shares favour no GPU model."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.allocators.equal_shares import IsolatedShares

        return SharePlan(IsolatedShares(self.per_gpu), visit="shuffled", overcommitted=not self.per_gpu)
