"""Finish-time fairness: each job's completion time over its time alone on a fair part of the cluster.

Jobs of fixed size: the time alone comes from one run of all of them under the policy ``isolated``, which gives each
active job an equal part. Adaptive jobs: the fair part is the cluster's GPUs over the mean number of jobs active while
it is; the time alone is the mean of runs of this job alone on each GPU model, under the same policy, weighted
by the GPUs of the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptivePolicy, AdaptiveSetting, NodeGroup
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.engine.result import Result
from fastsim.errors import InputError, PolicyError, ResultError
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import simulate as simulation
from fastsim.simulation.engines.adaptive import prepared_adaptive, table_setting

SingleRun = tuple[AdaptiveJob, int, int]
"""A job with its arrival within a round, the group of nodes it runs on, and its GPUs."""
SCHEMA = {"pod_id": pl.Int64, "share_gpus": pl.Float64, "jct_s": pl.Float64, "alone_s": pl.Float64, "rho": pl.Float64}
"""Columns of the ratios."""
TAKEN_OVER = ("cluster", "workload", "seed", "rates", "round_s", "window")
"""Fields that the run under ``isolated`` takes from the compared run."""
PARTS = 16
"""Parts into which runs are divided for each worker, so that workers end together."""


class Interpolation(NamedTuple):
    """Interpolation of a time between two numbers of GPUs: (time(low) + part * difference) * times."""

    low: int
    high: int
    part: float = 0.0
    times: float = 1.0


@dataclass
class IsolatedRuns:
    """Runs of single jobs, each played once; equal jobs that arrive at the same time within a round share one.

    ``plan`` says whether jobs have what they requested, and whether requests count.
    """

    setting: AdaptiveSetting
    policy: AdaptivePolicy
    plan: AdaptivePlan
    seconds_of: dict[SingleRun, float] = field(default_factory=dict)

    def seconds(self, job: AdaptiveJob, share_gpus: float) -> float:
        """Seconds to completion alone on `share_gpus` GPUs, the mean over models; NaN if the job runs on none."""
        times = [self._on(job, number, share_gpus) for number in range(len(self.setting.groups))]
        weights = [group.gpus for group in self.setting.groups]
        known = [(time_s, weight) for time_s, weight in zip(times, weights, strict=True) if not math.isnan(time_s)]
        return sum(t * w for t, w in known) / sum(w for _, w in known) if known else math.nan

    def needed(self, job: AdaptiveJob, share_gpus: float) -> Iterator[SingleRun]:
        """The runs that :meth:`seconds` needs."""
        for number in range(len(self.setting.groups)):
            interpolation = self._interpolation(job, number, share_gpus)
            if interpolation is not None:
                yield from ((self._alone(job), number, gpus) for gpus in interpolation[:2])

    def play(self, runs: Iterable[SingleRun], workers: int = 1) -> Iterator[int]:
        """Play the missing ones of these runs on `workers` processes, and yield the number done after each part.

        Results are the same on any number of workers.
        """
        from fastsim.experiments.executors.choice import executor

        missing = [run for run in dict.fromkeys(runs) if run not in self.seconds_of]
        size = max(1, len(missing) // (PARTS * workers))
        parts = [missing[start : start + size] for start in range(0, len(missing), size)]
        done = 0
        with executor(workers, len(parts)) as pool:
            times = pool.map(_part_seconds, ((self.setting, self.policy, part) for part in parts))
            for part, seconds in zip(parts, times, strict=True):
                self.seconds_of |= zip(part, seconds, strict=True)
                done += len(part)
                yield done

    def _on(self, job: AdaptiveJob, number: int, share_gpus: float) -> float:
        """Seconds on one model: linear between the two nearest sizes; below 1 GPU in inverse proportion to it."""
        interpolation = self._interpolation(job, number, share_gpus)
        if interpolation is None:
            return math.nan
        first, last = (self._seconds((self._alone(job), number, gpus)) for gpus in interpolation[:2])
        return (first + (last - first) * interpolation.part) * interpolation.times

    def _interpolation(self, job: AdaptiveJob, number: int, share_gpus: float) -> Interpolation | None:
        group = self.setting.groups[number]
        if job.mode == "rigid" or self.plan.held:  # so many GPUs for a part of the time
            fits = job.num_gpu <= group.gpus
            return Interpolation(job.num_gpu, job.num_gpu, 0.0, max(job.num_gpu / share_gpus, 1.0)) if fits else None
        if share_gpus < 1:
            return Interpolation(1, 1, 0.0, 1 / share_gpus)
        sizes = sizes_of(group)
        high = next((size for size in sizes if size >= share_gpus), sizes[-1])
        low = max(size for size in sizes if size <= min(share_gpus, high))
        return Interpolation(low, high, 0.0 if low == high else (share_gpus - low) / (high - low))

    def _alone(self, job: AdaptiveJob) -> AdaptiveJob:
        """The job with its arrival within a round, and with the same request as others where none counts."""
        alone = job._replace(submit_s=math.fmod(job.submit_s, self.setting.round_s))
        if job.mode == "adaptive" and self.plan.ignores_requests:
            least = self.setting.applications[job.application].init_batch
            return alone._replace(num_gpu=1, batch_size=least)
        return alone

    def _seconds(self, run: SingleRun) -> float:
        if run not in self.seconds_of:
            self.seconds_of[run] = _run(self.setting, self.policy, *run)
        return self.seconds_of[run]


def _part_seconds(part: tuple[AdaptiveSetting, AdaptivePolicy, Sequence[SingleRun]]) -> list[float]:
    """Seconds of the runs of one part; the task of a worker."""
    setting, policy, runs = part
    return [_run(setting, policy, *run) for run in runs]


def _run(mixed: AdaptiveSetting, policy: AdaptivePolicy, job: AdaptiveJob, number: int, gpus: int) -> float:
    """Completion time of a job alone on `gpus` GPUs of one model, seconds; NaN if it cannot run there."""
    group = mixed.groups[number]
    if group.gpu_model not in mixed.applications[job.application].steps:
        return math.nan
    node_gpus = max(group.gpus__n)
    nodes = (gpus,) if gpus < node_gpus else (node_gpus,) * math.ceil(gpus / node_gpus)
    setting = replace(mixed, groups=(NodeGroup(group.gpu_model, nodes, tuple(range(len(nodes)))),))
    try:
        run = run_adaptive(table_setting(setting), setting, policy.begin(setting), [job])
    except (InputError, PolicyError):  # never measured there, or never served
        return math.nan
    return float(run.jobs["finish_s"][0]) - job.submit_s


def sizes_of(group: NodeGroup) -> list[int]:
    """GPUs that a part of a group can have: those of a part of a node, and of whole nodes."""
    node_gpus = max(group.gpus__n)
    return [*range(1, node_gpus), *(node_gpus * nodes for nodes in range(1, len(group.gpus__n) + 1))]


def finish_time_ratios(
    scenario: Scenario, result: Result, progress: Callable[[int], None] | None = None, workers: int = 1
) -> pl.DataFrame:
    """For each finished job: its fair part in GPUs, seconds in the shared run and alone, and their ratio `rho`.

    A ratio above 1 is unfair. `result` is that of the scenario; `progress` is called with the number of jobs done.
    Runs of single adaptive jobs are spread over `workers` processes, which changes no figure. For jobs of fixed size
    `share_gpus` is null, as their parts change while they run.
    """
    policy: Any = registry.policy_of(scenario.policy)
    if registry.engine_of(policy) != "adaptive":
        return _against_isolated(scenario, result, progress)
    prepared = prepared_adaptive(scenario, policy)
    runs = IsolatedRuns(prepared.setting, policy, prepared.plan)
    jobs = dict(zip(prepared.workload.table()["pod_id"].to_pylist(), prepared.jobs, strict=True))
    finished = result.jobs.select("pod_id", "contention", "jct_s").filter(pl.col("jct_s").is_not_null()).rows()
    fair = [(jobs[number], prepared.setting.gpus / contention) for number, contention, _ in finished]
    needed: dict[SingleRun, None] = {}
    ends: list[int] = []  # runs up to each job
    for one in fair:
        needed |= dict.fromkeys(runs.needed(*one))
        ends.append(len(needed))
    done = 0
    for runs_done in runs.play(needed, workers):
        while done < len(ends) and ends[done] <= runs_done:
            done += 1
            if progress is not None:
                progress(done)
    rows = [(number, share, jct_s, alone_s, jct_s / alone_s) for (number, _, jct_s), (_, share), alone_s in
            zip(finished, fair, (runs.seconds(*one) for one in fair), strict=True)]  # fmt: skip
    return pl.DataFrame(rows, SCHEMA, orient="row")


def saved_run_ratios(
    folder: Path, progress: Callable[[int], None] | None = None, workers: int = 1, *, allow_code: bool = False
) -> pl.DataFrame:
    """The ratios of the jobs of a saved run, whose inputs must be unchanged."""
    result = Result.load(folder)
    scenario = result.origin(str(folder), allow_code)
    if not result.jobs["jct_s"].count():
        raise ResultError(f"{folder}: found no finished jobs, expected some whose times alone can be compared")
    return finish_time_ratios(scenario, result, progress, workers)


def _against_isolated(scenario: Scenario, result: Result, progress: Callable[[int], None] | None) -> pl.DataFrame:
    """The ratios of jobs of fixed size, or of pods that all request whole GPUs."""
    fields = {name: getattr(scenario, name) for name in TAKEN_OVER}
    isolated = simulation.run(Scenario(**fields, policy="isolated", record="summary"), progress)
    return ratios_to_isolated(result.jobs, isolated.jobs)


def ratios_to_isolated(jobs: pl.DataFrame, isolated: pl.DataFrame) -> pl.DataFrame:
    """The ratios of finished jobs to the same jobs in a run under ``isolated``; null where that gave the job up."""
    alone = isolated.select("pod_id", pl.lit(None, pl.Float64).alias("share_gpus"), pl.col("jct_s").alias("alone_s"))
    done = jobs.select("pod_id", "jct_s").filter(pl.col("jct_s").is_not_null()).join(alone, on="pod_id")
    return done.with_columns((pl.col("jct_s") / pl.col("alone_s")).alias("rho")).select(*SCHEMA).sort("pod_id")


def fairness(ratios: pl.DataFrame) -> dict[str, float]:
    """Mean, median, 99th percentile and largest of the ratios, and the part of the jobs with one above 1."""
    rho = ratios["rho"].drop_nulls().drop_nans().to_numpy()
    if not len(rho):
        return dict.fromkeys(("rho_mean", "rho_p50", "rho_p99", "rho_max", "unfair_part"), math.nan)
    middle, most = (float(value) for value in np.percentile(rho, (50, 99)))
    return {
        "rho_mean": float(rho.mean()), "rho_p50": middle, "rho_p99": most, "rho_max": float(rho.max()),
        "unfair_part": float(np.mean(rho > 1.0)),
    }  # fmt: skip
