"""The socket of ordered rounds: a policy says once in which order jobs are served and what they get beside GPUs.

Both are data, so the compiled loop goes through the rounds by itself. A sort key is a list of terms, see
``fastsim.scenario.sort_keys``. Equal jobs keep the order of the round before, newcomers stand behind them.

``fair``: every GPU brings its part of the server. ``greedy``: what the job needs, or it waits. ``tune``: what it needs;
if that is not there, its fair share; if others have more than theirs, they give it back. ``opt``: what makes the sum of
speedups largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fastsim.errors import PolicyError
from fastsim.scenario.sort_keys import MOST_TERMS, TERMS, numbers

if TYPE_CHECKING:
    from fastsim.performance.sensitivity import Demands

MECHANISMS = ("fair", "greedy", "tune", "opt")
"""What jobs get beside GPUs, by its number in the compiled loop."""
STARVING_S = 3.6e6
"""Seconds (1,000 h) without a round after which a job goes before all others."""


class ResourcePoint(Protocol):
    """``jobs`` jobs of one kind that get the same: CPUs and GB of the whole job, and their speedup with that."""

    @property
    def kind(self) -> int:
        """Position of the kind."""

    @property
    def jobs(self) -> int:
        """How many jobs."""

    @property
    def cpu(self) -> float:
        """CPUs of each, in all."""

    @property
    def memory_gb(self) -> float:
        """GB of each, in all."""

    @property
    def speedup(self) -> float:
        """Of each."""


class Chooser(Protocol):
    """Says what the jobs of a round get, for the mechanism ``opt``."""

    @property
    def solver_s(self) -> float:
        """CPU seconds spent in a solver so far."""

    def parts(self, demands: Demands, count__k: Sequence[int], servers: int) -> Sequence[ResourcePoint]:
        """What ``count__k[k]`` jobs of each kind get on so many equal servers; by kind, the fastest first."""


@dataclass(frozen=True)
class OrderPlan:
    """Order and mechanism of a run.

    ``place``: a gang goes to one server if it can, and single GPUs to the fullest server; otherwise GPUs are taken one
    by one by their number. With ``skewed`` that is for jobs of these workloads only, and all others spread. ``narrow``:
    only the jobs that would run if GPUs were all they need are served, with ``tune`` the largest gangs first; otherwise
    any job whose GPUs are free. ``sticky``: who is served again keeps the very GPUs, with what the mechanism says
    beside them, and only then others get theirs. ``blocking``: the first job that gets no GPUs makes all behind it
    wait, but for those that keep theirs. ``admit``: a job that comes is let in only as long as jobs that are in ask for
    at most so many times the cluster's GPUs; the others wait outside, in order of arrival.
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
    """No jobs share GPUs."""
    beliefs = None

    def __post_init__(self) -> None:
        unknown = [term for term in self.order if term.removeprefix("-") not in TERMS]
        if unknown or not 1 <= len(self.order) <= MOST_TERMS:
            found = repr(unknown[0]) if unknown else f"{len(self.order)} terms"
            raise PolicyError("order", found, f"1 to {MOST_TERMS} of {', '.join(TERMS)}")
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
        """What must be the same in a run that goes on from a checkpoint."""
        return [list(self.order), self.mechanism, self.place, list(self.level_s), self.starving_s, self.narrow,
                self.sticky, self.blocking, repr(self.admit), list(self.skewed)]  # fmt: skip


def family(workload: str) -> str:
    """The name of a workload without what stands in brackets, such as its batch size."""
    return workload.partition(" (")[0]
