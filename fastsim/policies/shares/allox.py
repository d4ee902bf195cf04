"""The order of jobs on GPUs with the smallest mean completion time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan


@policy("allox")
@dataclass(frozen=True)
class Allox(RoundRule):
    """Match jobs with places in the queues of GPUs so that they end soonest on average; start the head of each queue.

    cost of job j in the k-th place from the end of the queue of a GPU of model g = k * steps left / rate[j, g] + age.
    share[j, g] = 1 for the heads and for jobs that started before, which stay until they end; else 0. Jobs on one GPU
    only.
    """

    citation: ClassVar[str] = """@inproceedings{le2020allox,
  title = {{AlloX}: Compute Allocation in Hybrid Clusters},
  author = {Le, Tan N. and Sun, Xiao and Chowdhury, Mosharaf and Liu, Zhenhua},
  booktitle = {EuroSys},
  year = {2020}
}"""
    engine: ClassVar[str] = "shares"

    alpha: float = field(
        default=1.0,
        metadata=about(
            "part of the waiting jobs that are matched, the oldest; at least as many as there are free GPUs"
        ),
    )
    allox_compat: bool = field(
        default=False,
        metadata=about("match with every place of every GPU instead of those that can be needed: slow, other ties"),
    )
    munkres_ties: bool = field(
        default=False,
        metadata=about("match by Munkres' method, as SciPy did before 1.4: slow, other ties"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 <= self.alpha <= 1:
            raise PolicyError(self.where("alpha"), repr(self.alpha), "a number from 0 to 1")

    def begin(self, setting: Setting) -> SharePlan:
        """Rounds on the fastest models first, for jobs of at most ``max_num_gpu`` GPUs."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.allocators.allox_queues import MatchedPlaces

        allocator = MatchedPlaces(float(self.alpha), self.allox_compat, self.munkres_ties)
        return SharePlan(allocator, max_num_gpu=1)
