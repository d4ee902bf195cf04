"""Sia: GPU model and number of GPUs of every job chosen anew each round, for the largest total goodput."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting
    from fastsim.policies.deciders.sia_decider import SiaDecider

SIA = """@inproceedings{subramanya2023sia,
  title = {Sia: Heterogeneity-aware, goodput-optimized {ML}-cluster scheduling},
  author = {Subramanya, Suhas Jayaram and Arfeen, Daiyaan and Lin, Shouxu and Qiao, Aurick and Jia, Zhihao and
    Ganger, Gregory R.},
  booktitle = {SOSP},
  year = {2023}
}"""

PICKS = ("drawn", "last")
"""Which of equal choices is taken."""
SOLVERS = ("highs", "cbc")


@policy("sia")
@dataclass(frozen=True)
class Sia(RoundRule):
    """Choose a GPU model and a number of GPUs for each job in every round, so that the sum of their goodput is best.

    minimise sum of (goodput[j, q] x keeping[j, q])^power x[j, q] + unserved x (jobs without GPUs); goodput is that of
    the job's worst configuration = 1, keeping the part of its life that a restart leaves.

    With `rigid=True` each job has the GPUs and the batch size it requested, or none; with `aware=False` all GPUs count
    as equal. Both are policies of their own in the published simulator; these are written after a reading of it and
    not compared with runs. It maximises the rigid one: `power=0.5, unserved=-1, changed=-0.02`.

    Many choices have equal value. One is drawn; `picks=last` takes that of the last GPU model and size instead; with
    `solver="cbc"` it is the published simulator's pick.
    """

    citation: ClassVar[str] = SIA
    engine: ClassVar[str] = "adaptive"

    power: float = field(default=-0.5, metadata=about("fairness: below 0 small goodput counts most"))
    unserved: float = field(default=1.1, metadata=about("term of a job without GPUs in the sum"))
    project: bool = field(default=True, metadata=about("estimate goodput on GPU models a job has not run on"))
    tuned: bool = field(default=True, metadata=about("adaptive jobs choose their batch sizes"))

    ties: int = field(default=0, metadata=about("seed of the draw among equal choices"))

    picks: str = field(default="drawn", metadata=about("equal choices: one is drawn, or the last one", choices=PICKS))

    rigid: bool = field(default=False, metadata=about("every job has the GPUs it requested, or none"))
    aware: bool = field(default=True, metadata=about("GPU models are told apart"))
    changed: float = field(default=0.0, metadata=about("term of a choice made or given up, if rigid or unaware"))

    measured_nodes: int = field(default=0, metadata=about("jobs arrive with all measurements on so many nodes"))
    measured_gpus: int = field(default=0, metadata=about("and on so many GPUs; 0: a job has its own measurements only"))

    solver: str = field(
        default="highs", metadata=about("cbc picks as published among equal choices (extra cbc)", choices=SOLVERS)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("power", "unserved"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not -100 <= value <= 100 or not value:
                raise PolicyError(self.where(name), repr(value), "a number from -100 to 100, not 0")
        for name in ("ties", "measured_nodes", "measured_gpus"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise PolicyError(self.where(name), repr(value), "a whole number, 0 or more")
        if isinstance(self.changed, bool) or not isinstance(self.changed, int | float) or not abs(self.changed) <= 100:
            raise PolicyError(self.where("changed"), repr(self.changed), "a number from -100 to 100")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.rigid and (self.power > 0) == (self.unserved > 0):
            sign = "below" if self.power > 0 else "above"
            raise PolicyError(self.where("unserved"), self.unserved, f"{sign} 0 if rigid with power={self.power}")
        if self.changed * self.power > 0:
            sign = "0 or below" if self.power > 0 else "0 or above"
            raise PolicyError(self.where("changed"), self.changed, f"{sign} with power={self.power}")
        if self.rigid and not self.aware:
            raise PolicyError(self.where("aware"), "False", "True if rigid: there is no program for both")
        if self.changed and self.aware and not self.rigid:
            raise PolicyError(self.where("changed"), repr(self.changed), "0, unless rigid=True or aware=False")
        if self.solver == "cbc" and (self.rigid or not self.aware):
            raise PolicyError(self.where("solver"), "'cbc'", "'highs' if rigid=True or aware=False")
        if self.picks == "last" and (self.solver == "cbc" or self.ties):
            raise PolicyError(self.where("picks"), "'last'", "'drawn' if solver='cbc', or with ties, a seed of draws")
        if self.solver == "cbc" and self.ties:
            raise PolicyError(self.where("ties"), self.ties, "0 if solver='cbc', which draws nothing")
        if bool(self.measured_nodes) != bool(self.measured_gpus):
            raise PolicyError(self.where("measured_gpus"), self.measured_gpus, "0 if measured_nodes is, else 1 or more")

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which the program decides."""
        from fastsim.engine.adaptive.plan import AdaptivePlan

        tuned = self.tuned and not self.rigid
        return AdaptivePlan(
            self._decider(setting, tuned), tuned, not self.aware, (self.measured_nodes, self.measured_gpus)
        )

    def _decider(self, setting: AdaptiveSetting, tuned: bool) -> SiaDecider:
        from fastsim.policies.deciders.sia_decider import SiaDecider
        from fastsim.policies.deciders.sia_variants import RigidSiaDecider, TypeBlindSiaDecider

        options = setting, self.power, self.unserved, self.project, tuned, self.ties
        if self.solver == "cbc":
            from fastsim.policies.deciders.sia_recorded import RecordedSiaDecider

            return RecordedSiaDecider(*options)
        last = self.picks == "last"
        if self.rigid:
            return RigidSiaDecider(*options, last=last, changed=self.changed)
        if self.aware:
            return SiaDecider(*options, last=last)
        return TypeBlindSiaDecider(*options, last=last, changed=self.changed)
