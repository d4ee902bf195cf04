"""Served: adaptive jobs at their requested size, served one after the other in an order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting

ORDERS = ("tiresias", "demotion", "las", "srtf", "fifo")
NODES = ("first", "emptiest")
HOUR_S = 3600.0


@policy("served")
@dataclass(frozen=True)
class Served(RoundRule):
    """Give jobs the GPUs and the batch size they requested, in an order, on the fastest GPU model that has room.

    tiresias: two queues, the second from first_h GPU hours on, by arrival in each; demotion: so, the second in the
    order of entry; las: fewest GPU seconds; srtf: fewest GPU seconds left; fifo: by arrival. A running job stays on
    its model if that has room when its turn comes. The Pollux paper's Tiresias is
    `served(order=demotion, first_h=16, nodes=emptiest)`.
    """

    engine: ClassVar[str] = "adaptive"

    order: str = field(default="tiresias", metadata=about("order of service", choices=ORDERS))
    first_h: float = field(default=1.0, metadata=about("end of the first of two queues", unit="GPU hours"))
    nodes: str = field(
        default="first", metadata=about("nodes of a job that starts: the first or the emptiest ones", choices=NODES)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.first_h, bool) or not isinstance(self.first_h, int | float) or not self.first_h > 0:
            raise PolicyError(self.where("first_h"), repr(self.first_h), "a number above 0")

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which jobs are served; batch sizes stay fixed."""
        from fastsim.engine.adaptive.plan import AdaptivePlan
        from fastsim.policies.deciders.fixed_size_decider import ServedDecider

        decider = ServedDecider(setting, self.order, (self.first_h * HOUR_S,), self.nodes == "emptiest")
        return AdaptivePlan(decider, tuned=False, held=True)
