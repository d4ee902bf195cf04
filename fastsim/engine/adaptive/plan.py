"""The interface between rounds of adaptive jobs and policies: the view of the jobs, the plan, and placements.

A policy answers once with an :class:`AdaptivePlan`, whose :class:`Decider` is called in every round. From an
:class:`AdaptiveView` it decides the GPU model and the nodes of each active job until the next round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fastsim.performance.applications.application import Application
from fastsim.performance.applications.family import Applications
from fastsim.performance.goodput import Noise, Perf
from fastsim.performance.step_time_fit import STOP

MODES = ("adaptive", "scale-gpus", "rigid")
"""Variables of a job in training: GPUs and batch size; GPUs only; none."""
NEVER = -1
"""Restarts of a job that has not started yet."""


class AdaptiveJob(NamedTuple):
    """One job: arrival in seconds, application, GPUs and batch size (samples) of the request, and mode."""

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
    """The constants of a run: groups of nodes (sorted by GPU model), applications, length of a round, seed.

    ``interference`` is the part of its speed that a job on several nodes loses while another such job shares one.
    """

    groups: tuple[NodeGroup, ...]
    applications: Applications
    round_s: float
    seed: int = 0
    interference: float = 0.0

    @property
    def gpus(self) -> int:
        """GPUs of the cluster."""
        return sum(group.gpus for group in self.groups)


class SpeedEstimate(NamedTuple):
    """A job's model of its speed on one GPU model: fitted step times, and the most replicas it was measured on."""

    perf: Perf
    most_replicas: int


class Place(NamedTuple):
    """The place of a job: a group of nodes, and the node of each of its GPUs, counted within the group."""

    group: int
    nodes: tuple[int, ...]


class JobView(NamedTuple):
    """One active job at the start of a round, after its work in the last one.

    ``estimates`` are by group; under a plan with ``merged`` fits all of them are equal. ``service_s`` are GPU seconds,
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
    estimates: Mapping[int, SpeedEstimate]
    place: Place | None


class AdaptiveView(NamedTuple):
    """The active jobs in order of their ids."""

    now_s: float
    jobs: Sequence[JobView]


class Decider(Protocol):
    """Decides the places of all jobs, round by round."""

    @property
    def solver_s(self) -> float:
        """CPU seconds in solvers so far."""

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Places by job id; a job without one waits."""


class Offer(NamedTuple):
    """A configuration that a decision may give to a job.

    ``group`` is that of the nodes, -1 if GPU models are equal to the policy; ``nodes`` are as many at least.
    ``goodput`` is in the unit of the policy; ``value`` is what the choice adds to what the policy makes as large as it
    can, 0 for none. ``kept``: the job restarts, and has what it had.
    """

    job: int
    group: int
    nodes: int
    gpus: int
    goodput: float
    value: float
    kept: bool = False


class OfferingDecider(Decider, Protocol):
    """A decider that lists the offers that it compares."""

    def offers(self, view: AdaptiveView) -> Sequence[Offer]:
        """The configurations that the next decision about these jobs compares; nothing changes."""


class StatefulDecider(Decider, Protocol):
    """A decider whose state can be stored, so that its runs may write checkpoints."""

    def state(self) -> dict[str, Any]:
        """Its complete state as JSON values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore that state."""


@dataclass(frozen=True)
class AdaptivePlan:
    """A decider, and the rules of training under it.

    ``tuned``: adaptive jobs choose their batch sizes; else all keep those of their requests. ``merged``: one fit of
    step times holds for all GPU models; else each model has its own. ``measured``: jobs arrive with all measurements of
    their application on at most so many nodes and GPUs (nodes, GPUs). ``fit_stop``: a fit ends when its loss falls by
    less than this part. ``held``: each job has the GPUs that it requested, or none. ``ignores_requests``: adaptive jobs
    run the same whatever GPUs and batch sizes they requested. ``generations``: those of the search that each decision
    makes, if it is one; they have a budget. ``policy``: the policy, as errors name it.
    """

    decider: Decider
    tuned: bool = True
    merged: bool = False
    measured: tuple[int, int] = (0, 0)
    fit_stop: float = STOP
    held: bool = False
    ignores_requests: bool = False
    generations: int = 0
    policy: str = ""


class AdaptivePolicy(Protocol):
    """A policy for adaptive jobs, which makes one plan for a setting."""

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """The plan for a run."""
