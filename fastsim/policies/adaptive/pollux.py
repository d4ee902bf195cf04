"""Pollux: GPUs of every job chosen anew each round by a genetic search; all GPU models count as equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting

POLLUX = """@inproceedings{qiao2021pollux,
  title = {Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning},
  author = {Qiao, Aurick and Choe, Sang Keun and Subramanya, Suhas Jayaram and Neiswanger, Willie and Ho, Qirong and
    Zhang, Hao and Ganger, Gregory R. and Xing, Eric P.},
  booktitle = {OSDI},
  year = {2021}
}"""


@policy("pollux")
@dataclass(frozen=True)
class Pollux(RoundRule):
    """Share the cluster out anew in every round, so that jobs become as much faster as possible, and fairly so.

    maximise (sum of (speedup[j] x keeping[j]) ^ power / jobs) ^ (1 / power); a speedup is relative to a fair share of
    the GPUs, which all count as equal, keeping the part of a job's life that a restart leaves. The search is genetic.

    With `tuned=False` each job has the GPUs and the batch size it requested, or none: the published simulator's policy
    for fixed jobs, written after a reading of it and not compared with runs. Step times are fitted as in Sia's
    simulator; `fit_stop=2.2e-9` is the stop in that of the Pollux paper, whose fits come closer to the measurements.
    """

    citation: ClassVar[str] = POLLUX
    engine: ClassVar[str] = "adaptive"

    power: float = field(default=-1.0, metadata=about("fairness: the smaller, the more small speedups count"))
    tuned: bool = field(default=True, metadata=about("jobs choose GPUs and batch sizes; else as requested"))
    generations: int = field(default=100, metadata=about("of the search in every round"))
    apart: bool = field(default=True, metadata=about("no two jobs on several nodes share one"))
    fit_stop: float = field(default=1e-5, metadata=about("a fit ends when its loss falls by less than this part"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.power, bool) or not isinstance(self.power, int | float) or not -100 <= self.power <= 100:
            raise PolicyError(self.where("power"), repr(self.power), "a number from -100 to 100")
        count = self.generations
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 100_000:
            raise PolicyError(self.where("generations"), repr(count), "a whole number from 1 to 100000")
        stop = self.fit_stop
        if isinstance(stop, bool) or not isinstance(stop, int | float) or not 0 <= stop <= 1:
            raise PolicyError(self.where("fit_stop"), repr(stop), "a number from 0 to 1")

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which the search decides."""
        from fastsim.engine.adaptive.plan import AdaptivePlan
        from fastsim.policies.deciders.pollux_decider import PolluxDecider

        decider = PolluxDecider(setting, float(self.power), self.generations, self.tuned, self.apart)
        return AdaptivePlan(
            decider,
            self.tuned,
            merged=True,
            fit_stop=float(self.fit_stop),
            ignores_requests=self.tuned,
            generations=self.generations,
        )
