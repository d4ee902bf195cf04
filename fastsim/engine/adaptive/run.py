"""Runs of adaptive jobs: drives the compiled rounds, asks the policy, collects what happened."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.checkpoint import decisions, state_of, stateful_decider, take_over
from fastsim.engine.adaptive.ground_truth import GroundTruth
from fastsim.engine.adaptive.plan import (
    MODES,
    AdaptiveJob,
    AdaptivePlan,
    AdaptiveSetting,
    AdaptiveView,
    Belief,
    JobView,
    Place,
)
from fastsim.engine.rounds.checkpoint import CheckpointClock, RoundCheckpoint, RoundKeeping
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT, RoundOutcome
from fastsim.engine.tables import ROW
from fastsim.errors import InputError, PolicyError
from fastsim.foundation import interrupts
from fastsim.performance.goodput import Noise, Perf
from fastsim.performance.step_time_fit import Observation, fitted
from fastsim_ext.adaptive.loop import AdaptiveLoop
from fastsim_ext.adaptive.training_job import LearnedPerformance, PlacedStepTimes, TrainingJob
from fastsim_ext.build import CHECKED
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

LOOK_ROUNDS = 64
"""Rounds between two looks at progress and Ctrl-C."""
MOST_QUIET = 1000
"""Rounds without anyone at work, though jobs wait, after which a run is given up."""
TRAINED = np.dtype(
    [("id", "i8"), ("restarts", "i8"), ("gpu_s", "f8"), ("wasted_gpu_s", "f8"), ("contention", "f8"),
     ("batch_mean", "f8"), ("epochs", "i8")], align=True,
)  # fmt: skip
"""Restarts after the first start, GPU seconds held and lost to restarts, active jobs on average, samples, epochs."""


@dataclass
class AdaptiveRun(RoundOutcome):
    """A run of adaptive jobs that has finished; ``trained`` has a record (``TRAINED``) of every job."""

    trained: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, TRAINED))
    even: ClassVar[bool] = True


@dataclass
class AdaptiveDriver:
    """What goes between the compiled rounds and the policy."""

    setting: AdaptiveSetting
    plan: AdaptivePlan
    asked: Sequence[AdaptiveJob]
    ground: GroundTruth
    lessons: LearnedPerformance
    loop: AdaptiveLoop
    first__g: tuple[int, ...]
    """The first node of each group, among the nodes of the loop."""
    beliefs: dict[int, Belief] = field(default_factory=dict)
    places: Mapping[int, Place] = field(default_factory=dict)
    calls: int = 0
    rows: list[bytes] = field(default_factory=list)
    """The timeline (``ROW``) as far as it was drained."""

    @property
    def arrived(self) -> int:
        """Jobs that have come."""
        return len(self.loop.active) + len(self.loop.gone)

    def drain(self) -> None:
        """Take what the metrics have noted."""
        if self.loop.gauge is not None:
            self.rows.append(self.loop.gauge.drained())

    def decide(self) -> None:
        """Ask the policy and do what it says."""
        if self.loop.active:
            self.places = self.plan.decider.decide(self.view())
            self.calls += 1
        sites: list[PlacedStepTimes | None] = []
        nodes: list[tuple[int, ...]] = []
        for job in self.loop.active:
            place = self.places.get(job.id)
            sites.append(None if place is None else self.site(job.id, place))
            nodes.append(() if place is None else self.nodes(place))
        try:
            self.loop.settle(sites, nodes)
        except ValueError as error:
            raise PolicyError("places", str(error), "each GPU given to one job") from None

    def site(self, job: int, place: Place) -> PlacedStepTimes:
        """The placement of a job."""
        return self.ground.site(self.setting.applications[self.asked[job].application], place)

    def nodes(self, place: Place) -> tuple[int, ...]:
        """The node of each GPU, among the nodes of the loop."""
        first = self.first__g[place.group]
        return tuple(first + node for node in place.nodes)

    def view(self) -> AdaptiveView:
        """What the policy sees now."""
        return AdaptiveView(self.loop.now_s, [self.job_view(job) for job in self.loop.active])

    def job_view(self, job: TrainingJob) -> JobView:
        """One active job."""
        asked, seen = self.asked[job.id], job.gradients
        app = self.setting.applications[asked.application]
        noise = None if seen is None else Noise(*seen, app.init_batch)
        return JobView(
            job.id, asked, app, self.loop.now_s - job.submit_s, max(job.restarts, 0), job.restart_left_s,
            job.service_s, job.epoch, job.progress, noise, self.believed(job), self.places.get(job.id),
        )  # fmt: skip

    def believed(self, job: TrainingJob) -> dict[int, Belief]:
        """What a job has learned, by group."""
        about = range(len(self.setting.groups))
        lessons = {g: int(job.lesson__g[0 if self.plan.merged else g]) for g in about}
        return {g: self.belief(lesson) for g, lesson in lessons.items() if lesson}

    def belief(self, lesson: int) -> Belief:
        """One lesson as the policy sees it."""
        if lesson not in self.beliefs:
            perf, most = self.lessons.learned(lesson)
            self.beliefs[lesson] = Belief(Perf(*perf), most)
        return self.beliefs[lesson]


def run_adaptive(
    told: Setting,
    setting: AdaptiveSetting,
    plan: AdaptivePlan,
    jobs: Iterable[AdaptiveJob],
    *,
    until_s: float = float("inf"),
    record_tasks: bool = False,
    gauge: ClusterMetrics | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: RoundKeeping | None = None,
    resume: RoundCheckpoint | None = None,
) -> AdaptiveRun:
    """Play adaptive jobs, in order of arrival, until all have finished; ``told`` names models and applications.

    With ``checkpoint`` the state is written now and then, with ``resume`` the run begins from one that was.
    """
    rounds = begun(setting, plan, tuple(jobs), record_tasks, gauge)
    loop, write = rounds.loop, _keeping(rounds, checkpoint, resume, record_tasks)
    while (loop.active or loop.expected) and loop.now_s < until_s:
        interrupts.check()
        loop.work()
        rounds.decide()
        write(False)
        if CHECKED:
            loop.verify()
        if loop.quiet > MOST_QUIET and not loop.expected:
            found = f"no job at work for {MOST_QUIET} rounds at {loop.now_s:g} s"
            raise PolicyError("places", found, f"GPUs for one of {len(loop.active)} jobs")
        if progress is not None and loop.rounds % LOOK_ROUNDS == 0:
            progress(len(loop.gone))
    write(True)
    return _finished(told, rounds)


def _keeping(
    rounds: AdaptiveDriver, checkpoint: RoundKeeping | None, resume: RoundCheckpoint | None, recorded: bool
) -> Callable[[bool], None]:
    """What writes a checkpoint when it is due, or at the end; the run begins from one, if there is any."""
    if checkpoint is None and resume is None:
        return lambda end: None
    decided, loop = decisions(rounds.setting, recorded, rounds.loop.gauge is not None), rounds.loop
    if resume is not None:
        take_over(rounds, resume, decided)
    if checkpoint is None:
        return lambda end: None
    stateful_decider(rounds.plan)
    keeper, keeping = CheckpointClock(checkpoint, loop.rounds, rounds.arrived), checkpoint

    def write(end: bool) -> None:
        if keeping.at_end if end else keeper.due(loop.rounds, rounds.arrived):
            state_of(rounds, decided, keeping.note()).write(keeping.path)
            keeper.restart(loop.rounds, rounds.arrived)

    return write


def begun(
    setting: AdaptiveSetting,
    plan: AdaptivePlan,
    asked: Sequence[AdaptiveJob],
    record: bool = False,
    gauge: ClusterMetrics | None = None,
) -> AdaptiveDriver:
    """A run whose first round has not passed yet."""
    _check(asked, setting)
    ground, lessons = GroundTruth(setting), LearnedPerformance(_fit)
    taught = {name: _taught(name, setting, plan, ground, lessons) for name in {job.application for job in asked}}
    trainees = [
        _trainee(number, job, setting, plan, ground, lessons, taught[job.application])
        for number, job in enumerate(asked)
    ]
    sizes = [gpus for group in setting.groups for gpus in group.gpus__n]
    base = np.array([0, *accumulate(sizes)], np.int32)
    loop = AdaptiveLoop(trainees, setting.round_s, base, record, gauge)
    firsts = accumulate((len(group.gpus__n) for group in setting.groups), initial=0)
    return AdaptiveDriver(setting, plan, asked, ground, lessons, loop, tuple(firsts))


def _trainee(
    number: int,
    job: AdaptiveJob,
    setting: AdaptiveSetting,
    plan: AdaptivePlan,
    ground: GroundTruth,
    lessons: LearnedPerformance,
    taught: Sequence[int],
) -> TrainingJob:
    app = setting.applications[job.application]
    about = np.array(taught, np.int32)
    tuned = plan.tuned and job.mode == "adaptive"
    return TrainingJob(
        number, ground.course(app), lessons, about, job.submit_s, job.batch_size, job.num_gpu, tuned, plan.merged,
        app.restart_s, 1 / app.slowdown,
    )  # fmt: skip


def _taught(
    name: str, setting: AdaptiveSetting, plan: AdaptivePlan, ground: GroundTruth, lessons: LearnedPerformance
) -> list[int]:
    """What jobs of an application know of each group before they begin."""
    groups = range(len(setting.groups))
    if not min(plan.measured):
        return [0 for _ in groups]
    app = setting.applications[name]
    measured = [ground.measured(app, group, plan.measured) for group in groups]
    if plan.merged:  # of equal configurations the first one counts
        known = {at[:3]: at for part in reversed(measured) for at in part}
        measured = [list(known.values()), *([] for _ in groups[1:])]
    return [lessons.taught(part) for part in measured]


def _fit(measured: list[tuple[int, int, int, float, float]]) -> Perf:
    return fitted(Observation(*at) for at in measured)


def _check(asked: Sequence[AdaptiveJob], setting: AdaptiveSetting) -> None:
    models, before = {group.gpu_model for group in setting.groups}, 0.0
    for number, job in enumerate(asked):
        where = f"job {number}"
        app = setting.applications[job.application]
        if not app.init_batch <= job.batch_size <= app.max_batch:
            expected = f"{app.init_batch} to {app.max_batch} samples for {app.name}"
            raise InputError(f"{where}: batch_size", job.batch_size, expected)
        if models.isdisjoint(app.steps):
            raise InputError(
                f"{where}: {app.name}", f"GPU models {', '.join(sorted(models))}", f"one of {', '.join(app.steps)}"
            )
        if job.mode not in MODES or job.num_gpu < 1:
            raise InputError(
                where, f"mode {job.mode!r}, {job.num_gpu} GPUs", f"one of {', '.join(MODES)}, 1 GPU or more"
            )
        if not before <= job.submit_s < np.inf:
            raise InputError(f"{where}: submit_s", job.submit_s, f"{before:g} or later")
        before = job.submit_s


def _finished(told: Setting, rounds: AdaptiveDriver) -> AdaptiveRun:
    loop, setting = rounds.loop, rounds.setting
    jobs = sorted([*loop.gone, *loop.active], key=lambda job: job.id)
    apps = [setting.applications[rounds.asked[job.id].application] for job in jobs]
    kinds = {name: kind for kind, (name, _) in enumerate(told.oracle.kinds)}
    gangs = gang_records(
        jobs, [kinds[app.name] for app in apps], [app.curve.progress(app.curve.epochs) for app in apps]
    )
    ends = gangs["finish_s"]
    last = loop.now_s if loop.active or not len(ends) else float(ends.max())
    if loop.gauge is not None:
        loop.gauge.close(last)
    rounds.drain()
    rows, trained = np.frombuffer(b"".join(rounds.rows), ROW), trained_records(jobs)
    return AdaptiveRun(
        told, RoundOptions(round_s=setting.round_s), gangs, np.array([tuple(at) for at in loop.moments], MOMENT),
        np.array(loop.gpus, np.int32), rows, loop.rounds, rounds.calls, last, loop.max_active, loop.job_rounds, 0, 0,
        np.array(loop.busy_s), tuple(group.gpus for group in setting.groups), rounds.plan.decider.solver_s, loop.gauge,
        float(trained["wasted_gpu_s"].sum()), trained,
    )  # fmt: skip


def trained_records(jobs: Sequence[TrainingJob]) -> npt.NDArray[Any]:
    """One record (``TRAINED``) a job."""
    rows = [
        (
            job.id,
            max(job.restarts, 0),
            job.held_s,
            job.wasted_s,
            job.crowd / job.present if job.present else np.nan,
            job.samples / job.rounds if job.rounds else np.nan,
            job.epoch,
        )
        for job in jobs
    ]
    return np.array(rows, TRAINED)


def gang_records(jobs: Sequence[TrainingJob], kind: Sequence[int], total: Sequence[float]) -> npt.NDArray[Any]:
    """One record (``GANG``) a job; ``kind`` and ``total`` are the application and its progress at the end."""
    found = np.zeros(len(jobs), GANG)
    found["id"] = [job.id for job in jobs]
    found["submit_s"] = [job.submit_s for job in jobs]
    found["first_s"] = [job.first_s for job in jobs]
    found["finish_s"] = [job.finish_s for job in jobs]
    found["ended"] = ~np.isnan(found["finish_s"])
    found["gpu_s"] = [job.gpu_s for job in jobs]
    found["paused_s"] = [job.paused_s for job in jobs]
    found["left_s"] = np.nan_to_num([job.left_s for job in jobs])  # 0 of one that has GPUs
    found["restarts"] = [max(job.stays - 1, 0) for job in jobs]
    found["preemptions"] = [job.preemptions for job in jobs]
    found["holds"] = [job.site is not None and math.isnan(job.finish_s) for job in jobs]
    found["run"] = [job.progress for job in jobs]
    found["rounds"] = [job.rounds for job in jobs]
    found["num_gpu"] = [job.gpus_asked for job in jobs]
    found["kind"], found["total"] = kind, total
    found["deadline_s"], found["weight"] = np.inf, 1.0
    for name in ("tenant", "guise", "place", "task"):
        found[name] = -1
    return found
