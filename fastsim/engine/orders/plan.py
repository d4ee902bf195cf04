"""The interface between ordered rounds and policies: the order in which jobs are served, and their CPUs and memory.

Both are data, so the compiled loop plays the rounds without Python. A sort key is a list of terms, see
``fastsim.scenario.sort_keys``. Jobs with equal keys keep the order of the round before; new jobs follow behind them.

CPUs and memory of a job follow from the mechanism. ``fair``: the server's part of each GPU. ``greedy``: the demand, or
the job waits. ``tune``: the demand, else the fair share; jobs above their fair share give the excess back when another
job lacks its own. ``opt``: the allocation with the largest sum of speedups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fastsim.errors import PolicyError, kind_of
from fastsim.scenario.sort_keys import key_fault, numbers

if TYPE_CHECKING:
    from fastsim.performance.sensitivity import Demands

MECHANISMS = ("fair", "greedy", "tune", "opt")
"""Allocation of CPUs and memory to jobs, by its number in the compiled loop."""
STARVING_S = 3.6e6
"""Seconds (1,000 h) without a round after which a job precedes all others."""


class ResourcePoint(Protocol):
    """Equal resources of ``jobs`` jobs of one kind: CPUs and GB of the whole job, and the speedup with these."""

    @property
    def kind(self) -> int:
        """Position of the kind."""

    @property
    def jobs(self) -> int:
        """Number of jobs."""

    @property
    def cpu(self) -> float:
        """CPUs of each job, for all its GPUs."""

    @property
    def memory_gb(self) -> float:
        """GB of each job, for all its GPUs."""

    @property
    def speedup(self) -> float:
        """Speedup of each job over its fair share."""


class Chooser(Protocol):
    """Allocates CPUs and memory to the jobs of a round, for the mechanism ``opt``."""

    @property
    def solver_s(self) -> float:
        """CPU seconds spent in a solver so far."""

    def parts(self, demands: Demands, count__k: Sequence[int], servers: int) -> Sequence[ResourcePoint]:
        """Resources of ``count__k[k]`` jobs of each kind on so many equal servers; by kind, the fastest first."""


@dataclass(frozen=True)
class OrderPlan:
    """Order and mechanism of a run.

    ``place``: a gang goes to one server if it fits, and single GPUs to the fullest server; otherwise GPUs are taken in
    order of their numbers. With ``skewed`` that holds for jobs of these workloads only, and all others spread.
    ``narrow``: only jobs that would run if they needed GPUs alone are served, with ``tune`` the largest gangs first;
    otherwise any job whose GPUs are free. ``sticky``: a job that is served again keeps its GPUs and takes CPUs and
    memory by the mechanism, before all other jobs. ``blocking``: the first job that gets no GPUs blocks all jobs behind
    it, except those that keep theirs. ``admit``: a new job is admitted only while admitted jobs demand at most so many
    times the cluster's GPUs; the others queue outside in order of arrival.
    """

    order: tuple[str, ...]
    mechanism: str = "fair"
    place: bool = False
    level_s: tuple[float, ...] = ()
    starving_s: float = STARVING_S
    narrow: bool = False
    sticky: bool = False
    blocking: bool = False
    admit: float = float("inf")
    chooser: Chooser | None = None
    skewed: tuple[str, ...] = ()

    pairs = False
    """Jobs never share GPUs."""
    estimates = None

    def __post_init__(self) -> None:
        if not isinstance(self.order, tuple) or not all(isinstance(term, str) for term in self.order):
            raise PolicyError("order", kind_of(self.order), "a tuple of terms, such as ('arrival',)")
        if fault := key_fault(self.order):
            raise PolicyError("order", *fault)
        if self.mechanism not in MECHANISMS:
            raise PolicyError("mechanism", repr(self.mechanism), f"one of {', '.join(MECHANISMS)}")
        if not self.starving_s > 0:
            raise PolicyError("starving_s", repr(self.starving_s), "seconds above 0")
        if self.skewed and not self.place:
            raise PolicyError("skewed", "|".join(self.skewed), "place, which is for these workloads then")
        if not self.admit > 0:
            raise PolicyError("admit", repr(self.admit), "a number above 0, of GPUs asked for over GPUs there")
        if any(not low < high for low, high in zip(self.level_s, self.level_s[1:], strict=False)):
            raise PolicyError("level_s", repr(self.level_s), "rising GPU seconds")

    def packs(self, workload: str) -> bool:
        """Whether gangs of a workload are kept together."""
        return self.place and (not self.skewed or not {workload, family(workload)}.isdisjoint(self.skewed))

    @property
    def terms(self) -> list[tuple[int, float]]:
        """Number and sign of each term."""
        return numbers(self.order)

    @property
    def identity(self) -> list[object]:
        """The part of a plan that must be the same in a resumed run."""
        return [list(self.order), self.mechanism, self.place, list(self.level_s), self.starving_s, self.narrow,
                self.sticky, self.blocking, repr(self.admit), list(self.skewed)]  # fmt: skip


def family(workload: str) -> str:
    """The name of a workload without the part in brackets, such as its batch size."""
    return workload.partition(" (")[0]
