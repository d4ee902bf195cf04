"""Drives rounds of adaptive jobs: calls the policy for places, and collects records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

from fastsim.engine.adaptive.ground_truth import GroundTruth
from fastsim.engine.adaptive.place_checks import checked_places, excess_of_gpus
from fastsim.engine.adaptive.plan import (
    AdaptiveJob,
    AdaptivePlan,
    AdaptiveSetting,
    AdaptiveView,
    JobView,
    Place,
    SpeedEstimate,
    StatefulDecider,
)
from fastsim.engine.driving.drive import Stop
from fastsim.engine.rounds.driver import Driver, JobCounts
from fastsim.engine.rounds.solver_time import solver_seconds
from fastsim.errors import InputError, PolicyError
from fastsim.foundation.limits.knobs import DECISIONS, GENERATIONS
from fastsim.performance.goodput import Noise, Perf
from fastsim.workload.oversized_pods import smaller_jobs
from fastsim_ext.adaptive.loop import AdaptiveLoop
from fastsim_ext.adaptive.training_job import LearnedPerformance, PlacedStepTimes, TrainingJob

MOST_ROUNDS = 2.0**53
"""A number of rounds above every budget."""
MOST_QUIET = 1000
"""Rounds in which jobs wait and none runs, after which a run is given up."""
STATE = "the state of a run of adaptive jobs"
"""The expected kind of checkpoint, in messages."""


@dataclass
class AdaptiveDriver(Driver):
    """Drives rounds of adaptive jobs: calls the policy for places, and collects records."""

    loop: AdaptiveLoop
    setting: AdaptiveSetting
    plan: AdaptivePlan
    jobs: Sequence[AdaptiveJob]
    ground: GroundTruth
    performance: LearnedPerformance
    first__g: tuple[int, ...]
    """The first node of each group, among the nodes of the loop."""
    estimates: dict[int, SpeedEstimate] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    calls: int = 0
    rows: list[bytes] = field(default_factory=list)
    """Drained rows of the timeline (``ROW``)."""
    until_s: float = math.inf
    pause_rounds: ClassVar[int] = 1  # each decision takes milliseconds
    kept: ClassVar[str] = STATE

    @property
    def solver_s(self) -> float:
        """CPU seconds that the policy has spent in solvers."""
        decider = self.plan.decider
        return solver_seconds(decider.solver_s, f"policy {self.plan.policy or type(decider).__qualname__}")

    def count_jobs(self) -> JobCounts:
        """The jobs of the loop by now."""
        active, ended = len(self.loop.active), len(self.loop.ended_jobs)
        return JobCounts(active + ended, active, ended)

    def begin(self, resumed: bool) -> None:
        """Refuse a run whose policy keeps no state, if it writes checkpoints, or one that will decide too often."""
        if self.clock is not None:
            stateful_decider(self.plan)
        if self.jobs and not resumed:
            self._foresee()

    def _foresee(self) -> None:
        """ScenarioError if the decisions before any job can end are more than their budget."""
        # Every job starts with a restart, in which it makes no progress, and ends in a round after it at the earliest.
        start_s = min(self.setting.applications[job.application].restart_s for job in self.jobs)
        length_s, round_s = max(0.0, self.until_s - self.jobs[0].submit_s), self.setting.round_s
        restarting = math.floor(min(start_s / round_s, MOST_ROUNDS))  # of rounds below 1e-300 s it is infinite
        decisions = min(length_s / round_s, restarting + 1)
        DECISIONS.refuse(decisions)
        GENERATIONS.refuse(decisions, self.plan.generations)

    def play_on(self, rounds: int) -> int:
        """Play the next round up to the policy's decision."""
        loop = self.loop
        if loop.quiet > MOST_QUIET and not loop.expected:
            return Stop.DEADLOCK
        if not (loop.active or loop.expected) or loop.now_s >= self.until_s:
            return Stop.DONE
        if not rounds:
            return Stop.PAUSE
        loop.work()
        return Stop.ASK_POLICY

    def report_deadlock(self) -> None:
        """Raise PolicyError: jobs wait, and none has been at work for long."""
        found = f"no job at work for {MOST_QUIET} rounds at {self.loop.now_s:g} s"
        raise PolicyError("places", found, f"GPUs for one of {self.active} jobs", _smaller(self.setting, self.jobs))

    def collect_records(self) -> None:
        """Collect the rows that the metrics have written."""
        if self.loop.metrics is not None:
            self.rows.append(self.loop.metrics.drained())

    def ask_policy(self) -> None:
        """Place the active jobs as the policy decides."""
        view, name = self.view(), self.plan.policy or type(self.plan.decider).__qualname__
        if self.loop.active:
            answer = self.plan.decider.decide(view)
            self.places = checked_places(answer, view, self.setting, self.places, name)
            self.calls += 1
        try:
            self._settle()
        except (ValueError, InputError) as error:  # no step times are measured on more GPUs than there are
            raise excess_of_gpus(self.places, view, self.setting, name) or error from None

    def _settle(self) -> None:
        """Move the active jobs to their places."""
        step_times: list[PlacedStepTimes | None] = []
        nodes: list[tuple[int, ...]] = []
        for job in self.loop.active:
            place = self.places.get(job.id)
            step_times.append(None if place is None else self.step_times(job.id, place))
            nodes.append(() if place is None else self.nodes(place))
        self.loop.settle(step_times, nodes)

    def step_times(self, job: int, place: Place) -> PlacedStepTimes:
        """Step times of a job at a place."""
        return self.ground.step_times(self.setting.applications[self.jobs[job].application], place)

    def nodes(self, place: Place) -> tuple[int, ...]:
        """The node of each GPU, among the nodes of the loop."""
        first = self.first__g[place.group]
        return tuple(first + node for node in place.nodes)

    def view(self) -> AdaptiveView:
        """The policy's view of the active jobs."""
        return AdaptiveView(self.loop.now_s, [self.job_view(job) for job in self.loop.active])

    def job_view(self, job: TrainingJob) -> JobView:
        """One active job."""
        request, gradients = self.jobs[job.id], job.gradients
        app = self.setting.applications[request.application]
        noise = None if gradients is None else Noise(*gradients, app.init_batch)
        return JobView(
            id=job.id,
            job=request,
            application=app,
            age_s=self.loop.now_s - job.submit_s,
            restarts=max(job.restarts, 0),
            restart_left_s=job.restart_left_s,
            service_s=job.service_s,
            epoch=job.epoch,
            progress=job.progress,
            noise=noise,
            estimates=self.estimates_of(job),
            place=self.places.get(job.id),
        )

    def estimates_of(self, job: TrainingJob) -> dict[int, SpeedEstimate]:
        """The fits of a job, by group; none of groups without measurements."""
        groups = range(len(self.setting.groups))
        history__g = {g: int(job.history__g[0 if self.plan.merged else g]) for g in groups}
        return {g: self.estimate(history) for g, history in history__g.items() if history}

    def estimate(self, history: int) -> SpeedEstimate:
        """The fit of one set of measurements."""
        if history not in self.estimates:
            perf, most = self.performance.parameters(history)
            self.estimates[history] = SpeedEstimate(Perf(*perf), most)
        return self.estimates[history]


def _smaller(setting: AdaptiveSetting, jobs: Sequence[AdaptiveJob]) -> str:
    """Advice about jobs that ask for more GPUs than any model has; empty if there are none."""
    most = max(group.gpus for group in setting.groups)
    wide = sum(job.num_gpu > most for job in jobs)
    return f"{wide} ask for more than the {most} GPUs of one model: {smaller_jobs('drop or shrink')}" if wide else ""


def stateful_decider(plan: AdaptivePlan) -> StatefulDecider:
    """The decider, if its state can be stored; else PolicyError."""
    if not all(hasattr(plan.decider, name) for name in ("state", "restore")):
        name = type(plan.decider).__qualname__
        raise PolicyError("checkpoint", f"{name}, whose state cannot be stored", "a decider with state() and restore()")
    return cast(StatefulDecider, plan.decider)
