"""First come, first served."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import ShareAllocator, SharePlan
    from fastsim.policies.orders import FirstComeFirstServed

FIFO_MODES = ("base", "perf", "packed")


@policy("fifo")
@dataclass(frozen=True)
class Fifo(RoundRule):
    """Give jobs a GPU model to themselves in order of arrival; the first that fits on none makes the others wait.

    share[j, g] = 1 on the job's model, else 0. base: a model drawn from those with room, kept until the job ends;
    perf: the fastest with room, chosen anew each time; packed: perf, then waiting jobs join the running job r for
    which rate together / rate alone, summed over both, is largest, if it is above 1.5.
    """

    engine: ClassVar[str] = "shares"

    mode: str = field(
        default="base",
        metadata=about("rates that are known: none, of jobs alone, also of pairs", choices=FIFO_MODES),
    )
    fifo_compat: bool = field(
        default=False,
        metadata=about(
            "base: the model is not the drawn one but the last with room for any job, even if full; packed: the first "
            "job that has to wait joins none while GPUs are free, too few for it"
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fifo_compat and self.mode == "perf":
            raise PolicyError(self.where("fifo_compat"), "true with mode=perf", "true with mode=base or packed only")

    def filled(self, word: str) -> FirstComeFirstServed:
        """The order of arrival with a mechanism: ``fifo + tune``."""
        from fastsim.policies.orders import FirstComeFirstServed

        if self != Fifo():
            raise PolicyError(f"policy {self}", f"{word} added to it", "fifo + tune, without parameters")
        return FirstComeFirstServed().filled(word)

    def begin(self, setting: Setting) -> SharePlan:
        """Rounds in which nothing runs but what has a share."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.allocators.fifo_queues import FastestQueue, HeldQueue

        base, packed = self.mode == "base", self.mode == "packed"
        compat = self.fifo_compat
        allocator: ShareAllocator = HeldQueue(setting.seed, compat) if base else FastestQueue(packed, compat)
        visit = "shuffled" if base else "fastest"
        # The original overfills the last model of its list.
        return SharePlan(allocator, pairs=packed, visit=visit, strict=True, overcommitted=base and compat)
