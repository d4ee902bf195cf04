"""A finished run as a log of Gavel's simulator, for notebooks that read those logs.

Events come first, one a line, fields separated by tabs; then the duration, a line for each job that counts, means,
cost and use. A job that was given up has ``None`` for a time, which the notebooks skip. The lines of cost,
deadlines and leases, which the notebooks do not read, have other words than the original. Of tasks that failed only
those that ended a job are known, and of rounds only those in which a job ran.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.job_metrics import RoundFigures, counted, given_up, round_figures
from fastsim.engine.rounds.options import MOST_FAILURES
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.errors import ResultError
from fastsim.foundation.parquet import replacing

LOW, HIGH = 1.0, 5.0
"""Weights of the two priorities that the original has."""
MODELS = ("v100", "p100", "k80")
"""GPU models in the order of its folders' names."""

Candidate = tuple[int, ...]


def write_gavel_log(
    path: str | os.PathLike[str], run: RoundOutcome, *, pairs: bool = False, slo_compare_absolute: bool = False
) -> None:
    """Write the log of a run that recorded its tasks; folders on the way are made.

    ``pairs``: the policy lets jobs share GPUs, so that a GPU may be busy for longer than the run.
    ``slo_compare_absolute``: count missed deadlines as the original does.
    """
    if len(run.jobs["rounds"]) and run.jobs["rounds"].any() and not len(run.tasks):
        raise ResultError(f"{path}: found a run without its tasks, expected one that recorded them")
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultError(f"{target.parent}: cannot be made: {error.strerror or error}") from error
    with replacing(target) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in event_lines(run))
        file.writelines(f"{line}\n" for line in summary_lines(run, pairs, slo_compare_absolute))


def log_path(
    root: str | os.PathLike[str],
    gpus: Mapping[str, int],
    policy: str,
    seed: int,
    *,
    interarrival_s: float | None = None,
    num_total_jobs: int | None = None,
    profiling: tuple[float, int] | None = None,
) -> Path:
    """The path at which a sweep stores the log of one run; ``policy`` is the original's name of it.

    A sweep over loads gives the mean time between arrivals, seconds; one over static jobs their number. ``profiling``
    is the part of pairs that is measured and the number of reference models, if rates are estimated.
    """
    if (interarrival_s is None) == (num_total_jobs is None):
        raise ValueError("one of interarrival_s and num_total_jobs")
    cluster = ".".join(f"{model}={gpus.get(model, 0)}" for model in MODELS)
    folder = Path(root) / "raw_logs" / cluster / policy
    if profiling is not None:
        folder = folder / f"profiling_percentage={profiling[0]:f}" / f"num_reference_models={profiling[1]}"
    name = f"lambda={interarrival_s:f}" if interarrival_s is not None else f"num_total_jobs={num_total_jobs}"
    return folder / f"seed={seed}" / f"{name}.log"


def result_line(run: RoundOutcome, *, static: bool = False) -> str:
    """The line that a sweep prints of each run; one over static jobs adds the duration and the cost."""
    figures = round_figures(run)
    line = f"Results: average JCT={figures.jct_mean_s:f}, utilization={figures.utilization:f}"
    return f"{line}, makespan={figures.makespan_s:f}, total_cost={figures.cost:f}" if static else line


# ---------------------------------------------------------------------- events


def event_lines(run: RoundOutcome) -> Iterator[str]:
    """The events in order: tasks that end, then jobs that arrive, then tasks that begin."""
    tasks = run.tasks
    dispatch_s = dispatch_times(run)
    order, next_job = np.argsort(dispatch_s, kind="stable"), 0
    begins = np.flatnonzero(np.diff(tasks["round"], prepend=-1))
    ends = np.append(begins[1:], len(tasks))[: len(begins)]  # none if no job ever ran
    before: list[tuple[Any, list[int]]] = []
    outcome = Outcomes(run)
    for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
        now_s = float(tasks["t"][first])
        yield from outcome.lines(before)
        while next_job < len(order) and dispatch_s[order[next_job]] <= now_s:
            yield dispatched(run, int(order[next_job]), dispatch_s)
            next_job += 1
        held = dict(_candidate(task, gpus) for task, gpus in before)
        before = []
        for task in tasks[first:last]:
            gpus = _gpus(run, task, held)
            before.append((task, gpus))
            yield scheduled(run, task, gpus)
    if before and before[0][0]["round"] < run.rounds - 1:
        yield from outcome.lines(before)
    yield from (dispatched(run, int(job), dispatch_s) for job in order[next_job:])


def dispatch_times(run: RoundOutcome) -> npt.NDArray[np.float64]:
    """The round start at which each job is dispatched, seconds."""
    starts = np.append(np.unique(run.tasks["t"]), np.inf)
    submit_s: npt.NDArray[np.float64] = run.jobs["submit_s"]
    begin = starts[np.searchsorted(starts, submit_s)]
    return np.where(np.isinf(begin), submit_s, begin)


class Outcomes:
    """Lines of the ends of tasks, round by round; a job that was given up failed in its last rounds."""

    def __init__(self, run: RoundOutcome) -> None:
        self.run = run
        self.left = run.jobs["rounds"].copy()
        self.lost = given_up(run.jobs)

    def lines(self, tasks: Sequence[tuple[Any, list[int]]]) -> Iterator[str]:
        """Lines of these tasks; the last to finish comes first."""
        for task, gpus in sorted(tasks, key=lambda pair: (-pair[0]["finish_s"], pair[0]["mate_id"] >= 0)):
            members = _members(task)
            self.left[list(members)] -= 1
            if not any(self.lost[job] and self.left[job] < MOST_FAILURES for job in members):
                yield event(
                    task["finish_s"], "Micro-task succeeded", f"Job ID: {_named(members)}",
                    f"Worker type: {_model(self.run, task)}", f"Worker ID(s): {gpus}",
                )  # fmt: skip
            for job in members:
                if self.run.jobs["finish_s"][job] == task["finish_s"]:
                    yield event(task["finish_s"], "Job succeeded", f"Job ID: {job}")
                elif self.lost[job] and not self.left[job]:
                    yield event(task["finish_s"], "Job failed", f"Job ID: {job}")


def dispatched(run: RoundOutcome, job: int, dispatch_s: npt.NDArray[np.float64]) -> str:
    """The line of a job's arrival."""
    return event(dispatch_s[job], "Job dispatched", f"Job ID: {run.jobs['id'][job]}")


def scheduled(run: RoundOutcome, task: Any, gpus: list[int]) -> str:
    """The line of a task that begins."""
    return event(
        task["t"], "Micro-task scheduled", f"Job ID: {_named(_members(task))}", f"Worker type: {_model(run, task)}",
        f"Worker ID(s): {','.join(map(str, gpus))}", f"Priority: {task['priority']:.2f}",
        f"Deficit: {task['deficit']:.2f}",
    )  # fmt: skip


def event(now_s: float, name: str, *fields: str) -> str:
    """One line."""
    return "\t".join((f"scheduler:INFO [{float(now_s)}] [{name}]", *fields))


def _candidate(task: Any, gpus: list[int]) -> tuple[Candidate, list[int]]:
    return _members(task), gpus


def _members(task: Any) -> Candidate:
    one, two = int(task["id"]), int(task["mate_id"])
    return (one,) if two < 0 else (one, two)


def _named(members: Candidate) -> str:
    return str(members[0]) if len(members) == 1 else str(members)


def _model(run: RoundOutcome, task: Any) -> str:
    return run.setting.gpu_models[int(task["model"])]


def _gpus(run: RoundOutcome, task: Any, held: Mapping[Candidate, list[int]]) -> list[int]:
    """The task's GPUs: those of the last round if it kept them."""
    begin = int(task["held"])
    if begin < 0:
        return held[_members(task)]
    return [int(gpu) for gpu in run.held[begin : begin + int(task["num_gpu"])]]


# ---------------------------------------------------------------------- summary


def summary_lines(run: RoundOutcome, pairs: bool = False, slo_compare_absolute: bool = False) -> Iterator[str]:
    """Duration, jobs, means, deadlines, cost, leases, use."""
    figures = round_figures(run, slo_compare_absolute=slo_compare_absolute)
    jobs = counted(run)
    yield f"Total duration: {_span(figures.makespan_s)}"
    yield "Job completion times:"
    for job, jct_s in zip(jobs["id"].tolist(), (jobs["finish_s"] - jobs["submit_s"]).tolist(), strict=True):
        yield f"Job {job}: None" if np.isnan(jct_s) else f"Job {job}: {jct_s:.3f}"
    yield from _means(figures)
    if np.isfinite(jobs["deadline_s"]).any():
        yield f"Number of SLO violations: {figures.slo_violations}"
    if figures.cost:
        yield f"Total cost: ${figures.cost:.2f}"
    if run.opportunities:
        yield f"Lease extensions: {run.extensions} of {run.opportunities} ({100 * figures.lease_extension_share:.2f}%)"
    use = utilization(run, pairs)
    yield f"Cluster utilization: {use}" if use is None else f"Cluster utilization: {use:.3f}"


def utilization(run: RoundOutcome, pairs: bool) -> float | None:
    """Busy part of the time, mean over GPUs; None where the original finds an impossible value.

    The original counts idle gaps as busy, so a GPU may have been busy for longer than the run.
    """
    if not pairs and (run.busy_s > run.makespan_s).any():
        return None
    return round_figures(run).utilization


def _means(figures: RoundFigures) -> Iterator[str]:
    means = [("", figures.jct_mean_s)]
    weights = ((" (low priority)", LOW), (" (high priority)", HIGH))
    means += [(name, figures.jct_mean_by_weight_s.get(weight, np.nan)) for name, weight in weights]
    yield from (f"Average job completion time{name}: {_span(mean)}" for name, mean in means if not np.isnan(mean))


def _span(seconds: float) -> str:
    return f"{seconds:.3f} seconds ({seconds / 3600:.2f} hours)"
