"""Runs of adaptive jobs: makes the jobs of the compiled rounds, and collects the outcome."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.checkpoint import decisions, state_of, take_over
from fastsim.engine.adaptive.driver import AdaptiveDriver
from fastsim.engine.adaptive.ground_truth import GroundTruth
from fastsim.engine.adaptive.plan import MODES, AdaptiveJob, AdaptivePlan, AdaptiveSetting
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.rounds.driver import RunRecords
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT, RoundOutcome
from fastsim.engine.tables import ROW
from fastsim.errors import InputError
from fastsim.performance.goodput import Perf
from fastsim.performance.step_time_fit import Observation, fitted
from fastsim_ext.adaptive.loop import AdaptiveLoop
from fastsim_ext.adaptive.training_job import LearnedPerformance, TrainingJob

TRAINED = np.dtype(
    [("id", "i8"), ("restarts", "i8"), ("gpu_s", "f8"), ("wasted_gpu_s", "f8"), ("contention", "f8"),
     ("batch_mean", "f8"), ("epochs", "i8")], align=True,
)  # fmt: skip
"""Restarts after the first start, GPU seconds held and lost to restarts, active jobs on average, samples, epochs."""


@dataclass
class AdaptiveOutcome(RoundOutcome):
    """A run of adaptive jobs that has finished; ``trained`` has a record (``TRAINED``) of every job."""

    trained: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, TRAINED))
    even: ClassVar[bool] = True


class AdaptiveRounds(AdaptiveDriver):
    """A run of adaptive jobs, whose state can be kept."""

    def decisions(self) -> dict[str, Any]:
        """The properties that decide the run, besides its jobs and its policy."""
        return decisions(self.setting, self.record_tasks, self.metrics is not None)

    def state(self) -> RunState:
        """The complete state after a round."""
        return state_of(self)

    def take_over(self, state: RunState) -> None:
        """Restore a checkpoint, maybe under another policy; jobs keep their measurements and fits."""
        take_over(self, state)


def run_adaptive(
    names: Setting,
    setting: AdaptiveSetting,
    plan: AdaptivePlan,
    jobs: Iterable[AdaptiveJob],
    *,
    until_s: float = float("inf"),
    **records: Unpack[RunRecords],
) -> AdaptiveOutcome:
    """Play adaptive jobs, in order of arrival, until all have finished; tables take models and kinds from ``names``."""
    rounds = adaptive_driver(setting, plan, tuple(jobs), **records)
    rounds.until_s = until_s
    rounds.play()
    return _finished(names, rounds)


def adaptive_driver(
    setting: AdaptiveSetting,
    plan: AdaptivePlan,
    jobs: Sequence[AdaptiveJob],
    **records: Unpack[RunRecords],
) -> AdaptiveRounds:
    """The driver of a run before its first round."""
    check_jobs(jobs, setting)
    ground, performance = GroundTruth(setting), LearnedPerformance(partial(_fit, stop=plan.fit_stop))
    initial = {
        name: _initial_fits(name, setting, plan, ground, performance) for name in {job.application for job in jobs}
    }
    training_jobs = [
        _training_job(
            number=number,
            job=job,
            setting=setting,
            plan=plan,
            ground=ground,
            performance=performance,
            initial=initial[job.application],
        )
        for number, job in enumerate(jobs)
    ]
    sizes = [gpus for group in setting.groups for gpus in group.gpus__n]
    base = np.array([0, *accumulate(sizes)], np.int32)
    record, metrics = records.get("record_tasks", False), records.get("metrics")
    loop = AdaptiveLoop(training_jobs, setting.round_s, base, record, metrics, setting.interference)
    firsts = accumulate((len(group.gpus__n) for group in setting.groups), initial=0)
    return AdaptiveRounds(
        loop=loop,
        setting=setting,
        plan=plan,
        jobs=jobs,
        ground=ground,
        performance=performance,
        first__g=tuple(firsts),
        generations=plan.generations,
        **records,
    )


def _training_job(
    number: int,
    job: AdaptiveJob,
    setting: AdaptiveSetting,
    plan: AdaptivePlan,
    ground: GroundTruth,
    performance: LearnedPerformance,
    initial: Sequence[int],
) -> TrainingJob:
    app = setting.applications[job.application]
    history__g = np.array(initial, np.int32)
    tuned = plan.tuned and job.mode == "adaptive"
    return TrainingJob(
        number, ground.training_curve(app), performance, history__g, job.submit_s, job.batch_size, job.num_gpu, tuned,
        plan.merged, app.restart_s, 1 / app.slowdown,
    )  # fmt: skip


def _initial_fits(
    name: str, setting: AdaptiveSetting, plan: AdaptivePlan, ground: GroundTruth, performance: LearnedPerformance
) -> list[int]:
    """The measurements with which jobs of an application arrive, by group."""
    groups = range(len(setting.groups))
    if not min(plan.measured):
        return [0 for _ in groups]
    app = setting.applications[name]
    measured = [ground.measured(app, group, plan.measured) for group in groups]
    if plan.merged:  # of equal configurations the first one counts
        known = {at[:3]: at for part in reversed(measured) for at in part}
        measured = [list(known.values()), *([] for _ in groups[1:])]
    return [performance.fitted_once(part) for part in measured]


def _fit(measured: list[tuple[int, int, int, float, float]], stop: float) -> Perf:
    return fitted((Observation(*at) for at in measured), stop)


def check_jobs(jobs: Sequence[AdaptiveJob], setting: AdaptiveSetting) -> None:
    """InputError for the first job that could never run."""
    models, before = {group.gpu_model for group in setting.groups}, 0.0
    for number, job in enumerate(jobs):
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


def _finished(names: Setting, rounds: AdaptiveDriver) -> AdaptiveOutcome:
    loop, setting = rounds.loop, rounds.setting
    jobs = sorted([*loop.ended_jobs, *loop.active], key=lambda job: job.id)
    apps = [setting.applications[rounds.jobs[job.id].application] for job in jobs]
    kinds = {name: kind for kind, (name, _) in enumerate(names.oracle.kinds)}
    gangs = job_records(jobs, [kinds[app.name] for app in apps], [app.curve.progress(app.curve.epochs) for app in apps])
    ends = gangs["finish_s"]
    last = loop.now_s if loop.active or not len(ends) else float(ends.max())
    if loop.metrics is not None:
        loop.metrics.close(last)
    rounds.collect_records()
    rows, trained = np.frombuffer(b"".join(rounds.rows), ROW), trained_records(jobs)
    return AdaptiveOutcome(
        setting=names,
        options=RoundOptions(round_s=setting.round_s),
        jobs=gangs,
        tasks=np.array([tuple(at) for at in loop.tasks], MOMENT),
        held=np.array(loop.gpus, np.int32),
        rows=rows,
        rounds=loop.rounds,
        calls=rounds.calls,
        makespan_s=last,
        max_active=loop.max_active,
        job_rounds=loop.job_rounds,
        extensions=0,
        opportunities=0,
        busy_s=np.array(loop.busy_s),
        gpus__g=tuple(group.gpus for group in setting.groups),
        solver_s=rounds.solver_s,
        metrics=loop.metrics,
        wasted_gpu_s=float(trained["wasted_gpu_s"].sum()),
        trained=trained,
    )


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


def job_records(jobs: Sequence[TrainingJob], kind: Sequence[int], total: Sequence[float]) -> npt.NDArray[Any]:
    """One record (``GANG``) a job; ``kind`` and ``total`` are the application and its progress at the end."""
    records = np.zeros(len(jobs), GANG)
    records["id"] = [job.id for job in jobs]
    records["submit_s"] = [job.submit_s for job in jobs]
    records["first_s"] = [job.first_s for job in jobs]
    records["finish_s"] = [job.finish_s for job in jobs]
    records["ended"] = ~np.isnan(records["finish_s"])
    records["gpu_s"] = [job.gpu_s for job in jobs]
    records["paused_s"] = [job.paused_s for job in jobs]
    records["delayed_s"] = [job.delayed_s for job in jobs]
    records["left_s"] = np.nan_to_num([job.left_s for job in jobs])  # 0 of one that has GPUs
    records["restarts"] = [max(job.stays - 1, 0) for job in jobs]
    records["preemptions"] = [job.preemptions for job in jobs]
    records["holds"] = [job.placement is not None and math.isnan(job.finish_s) for job in jobs]
    records["run"] = [job.progress for job in jobs]
    records["rounds"] = [job.rounds for job in jobs]
    records["num_gpu"] = [job.gpus_requested for job in jobs]
    records["kind"], records["total"] = kind, total
    records["deadline_s"], records["weight"] = np.inf, 1.0
    for name in ("tenant", "estimated_kind", "place", "task"):
        records[name] = -1
    return records
