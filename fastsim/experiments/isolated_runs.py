"""Finish-time fairness: each job's completion time over that with a fair part of the cluster of its own.

Jobs of fixed size have it from a run of all of them under the policy ``isolated``, which gives each job that is there
an equal part. An adaptive job's fair part is the cluster's GPUs over the jobs that were active in its life, on average.
Its time alone is found by runs of it alone on each GPU model, under the same policy, and averaged over models by their
GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePolicy, AdaptiveSetting, NodeGroup
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.engine.result import Result
from fastsim.errors import InputError, PolicyError
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import simulate as simulation
from fastsim.simulation.adaptive import prepared_adaptive, table_setting

Told = Callable[[int], None]
Run = tuple[AdaptiveJob, int, int]
"""A job that comes so far into a round, the group of nodes it is on, and its GPUs."""
SCHEMA = {"pod_id": pl.Int64, "share_gpus": pl.Float64, "jct_s": pl.Float64, "alone_s": pl.Float64, "rho": pl.Float64}
"""Columns of the ratios."""
TAKEN_OVER = ("cluster", "workload", "seed", "rates", "round_s", "window")
"""What the run under ``isolated`` has from the run that is compared with it."""
SHARES = 16
"""Parts into which runs are divided for each worker, so that workers end together."""


class Between(NamedTuple):
    """A time that lies between those of two sizes, GPUs: how far, and how many times as long."""

    low: int
    high: int
    part: float = 0.0
    times: float = 1.0


@dataclass
class IsolatedRuns:
    """Runs of single jobs, each made once; jobs that came as far into a round are alike."""

    setting: AdaptiveSetting
    policy: AdaptivePolicy
    known: dict[Run, float] = field(default_factory=dict)

    def seconds(self, job: AdaptiveJob, share_gpus: float) -> float:
        """Completion time of a job on so many GPUs of its own, over all models it can run on; NaN on none of them."""
        times = [self._on(job, number, share_gpus) for number in range(len(self.setting.groups))]
        weights = [group.gpus for group in self.setting.groups]
        some = [(time_s, weight) for time_s, weight in zip(times, weights, strict=True) if not math.isnan(time_s)]
        return sum(t * w for t, w in some) / sum(w for _, w in some) if some else math.nan

    def needed(self, job: AdaptiveJob, share_gpus: float) -> Iterator[Run]:
        """The runs behind that."""
        for number in range(len(self.setting.groups)):
            between = self._between(job, number, share_gpus)
            if between is not None:
                yield from ((self._alone(job), number, gpus) for gpus in between[:2])

    def play(self, runs: Iterable[Run], workers: int = 1) -> Iterator[int]:
        """Make those of the runs that nobody has made, in as many processes, and say again and again how many of them
        are done; results are the same on any number of workers.
        """
        from fastsim.experiments.executors.executor import executor

        missing = [run for run in dict.fromkeys(runs) if run not in self.known]
        size = max(1, len(missing) // (SHARES * workers))
        parts = [missing[start : start + size] for start in range(0, len(missing), size)]
        done = 0
        with executor(workers, len(parts)) as spread:
            found = spread.map(_played, ((self.setting, self.policy, part) for part in parts))
            for part, seconds in zip(parts, found, strict=True):
                self.known |= zip(part, seconds, strict=True)
                done += len(part)
                yield done

    def _on(self, job: AdaptiveJob, number: int, share_gpus: float) -> float:
        """On one model: between the two nearest sizes in a straight line, and longer the less there is of a GPU."""
        between = self._between(job, number, share_gpus)
        if between is None:
            return math.nan
        first, last = (self._seconds((self._alone(job), number, gpus)) for gpus in between[:2])
        return (first + (last - first) * between.part) * between.times

    def _between(self, job: AdaptiveJob, number: int, share_gpus: float) -> Between | None:
        group = self.setting.groups[number]
        if job.mode == "rigid" or getattr(self.policy, "held", False):  # so many GPUs for a part of the time
            fits = job.num_gpu <= group.gpus
            return Between(job.num_gpu, job.num_gpu, 0.0, max(job.num_gpu / share_gpus, 1.0)) if fits else None
        if share_gpus < 1:
            return Between(1, 1, 0.0, 1 / share_gpus)
        sizes = sizes_of(group)
        high = next((size for size in sizes if size >= share_gpus), sizes[-1])
        low = max(size for size in sizes if size <= min(share_gpus, high))
        return Between(low, high, 0.0 if low == high else (share_gpus - low) / (high - low))

    def _alone(self, job: AdaptiveJob) -> AdaptiveJob:
        return job._replace(submit_s=math.fmod(job.submit_s, self.setting.round_s))

    def _seconds(self, run: Run) -> float:
        if run not in self.known:
            self.known[run] = _run(self.setting, self.policy, *run)
        return self.known[run]


def _played(told: tuple[AdaptiveSetting, AdaptivePolicy, Sequence[Run]]) -> list[float]:
    """What a worker does."""
    setting, policy, runs = told
    return [_run(setting, policy, *run) for run in runs]


def _run(all_of_it: AdaptiveSetting, policy: AdaptivePolicy, job: AdaptiveJob, number: int, gpus: int) -> float:
    """Completion time of a job on so many GPUs of one model, seconds; NaN if it cannot run there."""
    group = all_of_it.groups[number]
    if group.gpu_model not in all_of_it.applications[job.application].steps:
        return math.nan
    whole = max(group.gpus__n)
    nodes = (gpus,) if gpus < whole else (whole,) * math.ceil(gpus / whole)
    setting = replace(all_of_it, groups=(NodeGroup(group.gpu_model, nodes, tuple(range(len(nodes)))),))
    try:
        run = run_adaptive(table_setting(setting), setting, policy.begin(setting), [job])
    except (InputError, PolicyError):  # never measured there, or never served
        return math.nan
    return float(run.jobs["finish_s"][0]) - job.submit_s


def sizes_of(group: NodeGroup) -> list[int]:
    """GPUs that a part of a group can have: those of a part of a node, and of whole nodes."""
    whole = max(group.gpus__n)
    return [*range(1, whole), *(whole * nodes for nodes in range(1, len(group.gpus__n) + 1))]


def finish_time_ratios(
    scenario: Scenario, result: Result, progress: Told | None = None, workers: int = 1
) -> pl.DataFrame:
    """For each job that has finished: its GPUs in a fair part, seconds together and alone, and their ratio `rho`.

    A ratio above 1 is unfair. `result` is that of the scenario; `progress` is told the number of jobs done. Runs of
    adaptive jobs alone are spread over `workers` processes, which changes no figure; the parts of other jobs change
    while they run, so that `share_gpus` is null.
    """
    policy: Any = registry.parse(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy
    if not getattr(policy, "adaptive", False):
        return _against_isolated(scenario, result, progress)
    made = prepared_adaptive(scenario, policy)
    runs = IsolatedRuns(made.setting, policy)
    told = result.jobs.select("pod_id", "contention", "jct_s").filter(pl.col("jct_s").is_not_null()).rows()
    fair = [(made.jobs[number], made.setting.gpus / contention) for number, contention, _ in told]
    needed: dict[Run, None] = {}
    ends: list[int] = []  # runs up to each job
    for one in fair:
        needed |= dict.fromkeys(runs.needed(*one))
        ends.append(len(needed))
    done = 0
    for played in runs.play(needed, workers):
        while done < len(ends) and ends[done] <= played:
            done += 1
            if progress is not None:
                progress(done)
    rows = [(number, share, jct_s, alone_s, jct_s / alone_s) for (number, _, jct_s), (_, share), alone_s in
            zip(told, fair, (runs.seconds(*one) for one in fair), strict=True)]  # fmt: skip
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _against_isolated(scenario: Scenario, result: Result, progress: Told | None) -> pl.DataFrame:
    """The ratios of jobs of fixed size; pods, too, if all of them ask for whole GPUs."""
    told = {name: getattr(scenario, name) for name in TAKEN_OVER}
    base = simulation.run(Scenario(**told, policy="isolated", record="summary"), progress).jobs
    alone = base.select("pod_id", pl.lit(None, pl.Float64).alias("share_gpus"), pl.col("jct_s").alias("alone_s"))
    done = result.jobs.select("pod_id", "jct_s").filter(pl.col("jct_s").is_not_null()).join(alone, on="pod_id")
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
