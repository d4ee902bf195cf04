"""The sockets of rounds for adaptive jobs: what a policy sees of the jobs, and what it hands over.

A policy answers once with an :class:`AdaptivePlan`; its :class:`Decider` is asked in every round. It sees an
:class:`AdaptiveView` and says which GPU model and which nodes each active job has until the next round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fastsim.performance.applications.application import Application, Applications
from fastsim.performance.goodput import Noise, Perf

MODES = ("adaptive", "scale-gpus", "rigid")
"""What may change while a job trains: GPUs and batch size; GPUs only; nothing."""
NEVER = -1
"""Restarts of a job that has not started yet."""


class AdaptiveJob(NamedTuple):
    """One job as the engine takes it: arrival in seconds, and what a user asked for: batch size in samples, GPUs."""

    submit_s: float
    application: str
    num_gpu: int
    batch_size: int
    mode: str = "adaptive"


class NodeGroup(NamedTuple):
    """The nodes of one GPU model: GPUs of each, and their positions in the cluster's table."""

    gpu_model: str
    gpus__n: tuple[int, ...]
    position__n: tuple[int, ...]

    @property
    def gpus(self) -> int:
        """GPUs of all of them."""
        return sum(self.gpus__n)


@dataclass(frozen=True)
class AdaptiveSetting:
    """What does not change during a run: groups of nodes (sorted by GPU model), applications, the round, the seed."""

    groups: tuple[NodeGroup, ...]
    applications: Applications
    round_s: float
    seed: int = 0

    @property
    def gpus(self) -> int:
        """GPUs of the cluster."""
        return sum(group.gpus for group in self.groups)


class Belief(NamedTuple):
    """What a job has learned of one GPU model: fitted step times, and the most replicas it was seen on."""

    perf: Perf
    most_replicas: int


class Place(NamedTuple):
    """Where a job stands: a group of nodes, and the node of each of its GPUs, counted within the group."""

    group: int
    nodes: tuple[int, ...]


class JobView(NamedTuple):
    """One active job at the start of a round, after its work in the last one.

    ``beliefs`` counts groups; of a plan with merged beliefs all of them are the same. ``service_s`` are GPU seconds,
    those of restarts included.
    """

    id: int
    job: AdaptiveJob
    application: Application
    age_s: float
    restarts: int
    restart_left_s: float
    service_s: float
    epoch: int
    progress: float
    noise: Noise | None
    beliefs: Mapping[int, Belief]
    place: Place | None


class AdaptiveView(NamedTuple):
    """The active jobs in order of their ids."""

    now_s: float
    jobs: Sequence[JobView]


class Decider(Protocol):
    """Decides what runs where."""

    @property
    def solver_s(self) -> float:
        """CPU seconds in solvers so far."""

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Places by job id; a job without one waits."""


class StatefulDecider(Decider, Protocol):
    """A decider whose state can be saved, so that its runs write checkpoints."""

    def state(self) -> dict[str, Any]:
        """State between rounds, as JSON values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


@dataclass(frozen=True)
class AdaptivePlan:
    """How adaptive jobs are run.

    ``measured``: jobs come with all measurements there are on so many nodes and GPUs at most (nodes, GPUs).

    ``tuned``: adaptive jobs choose their batch sizes; else all keep those asked for. ``merged``: what a job measures on
    one GPU model it believes of all.
    """

    decider: Decider
    tuned: bool = True
    merged: bool = False
    measured: tuple[int, int] = (0, 0)


class AdaptivePolicy(Protocol):
    """A policy for adaptive jobs."""

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """The plan for a run."""
