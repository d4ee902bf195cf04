"""Finish-time fairness of adaptive jobs: each job's completion time over that with a fair part of the cluster alone.

A job's fair part is the cluster's GPUs over the jobs that were active in its life, on average. Its time alone is found
by runs of it alone on each GPU model, under the same policy, and averaged over models by their GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from fastsim.adaptive_plan import AdaptiveJob, AdaptivePolicy, AdaptiveSetting, NodeGroup
from fastsim.adaptive_run import run_adaptive
from fastsim.adaptive_simulation import prepared_adaptive, setting_told
from fastsim.errors import InputError, PolicyError, ScenarioError
from fastsim.policies import registry
from fastsim.result import Result
from fastsim.spec import Scenario

Told = Callable[[int], None]


@dataclass
class IsolatedRuns:
    """Runs of single jobs, each made once; jobs that came as far into a round are alike."""

    setting: AdaptiveSetting
    policy: AdaptivePolicy
    known: dict[tuple[AdaptiveJob, int, int], float] = field(default_factory=dict)

    def seconds(self, job: AdaptiveJob, share_gpus: float) -> float:
        """Completion time of a job on so many GPUs of its own, over all models it can run on; NaN on none of them."""
        alone = job._replace(submit_s=math.fmod(job.submit_s, self.setting.round_s))
        times = [self._on(alone, number, share_gpus) for number in range(len(self.setting.groups))]
        weights = [group.gpus for group in self.setting.groups]
        some = [(time_s, weight) for time_s, weight in zip(times, weights, strict=True) if not math.isnan(time_s)]
        return sum(t * w for t, w in some) / sum(w for _, w in some) if some else math.nan

    def _on(self, job: AdaptiveJob, number: int, share_gpus: float) -> float:
        """On one model: between the two nearest sizes in a straight line, and longer the less there is of a GPU."""
        group = self.setting.groups[number]
        if job.mode == "rigid" or getattr(self.policy, "held", False):  # so many GPUs for a part of the time
            if job.num_gpu > group.gpus:
                return math.nan
            return self._seconds(job, number, job.num_gpu) * max(job.num_gpu / share_gpus, 1.0)
        if share_gpus < 1:
            return self._seconds(job, number, 1) / share_gpus
        sizes = sizes_of(group)
        high = next((size for size in sizes if size >= share_gpus), sizes[-1])
        low = max(size for size in sizes if size <= min(share_gpus, high))
        first, last = self._seconds(job, number, low), self._seconds(job, number, high)
        return first if low == high else first + (last - first) * (share_gpus - low) / (high - low)

    def _seconds(self, job: AdaptiveJob, number: int, gpus: int) -> float:
        key = job, number, gpus
        if key not in self.known:
            self.known[key] = self._run(job, number, gpus)
        return self.known[key]

    def _run(self, job: AdaptiveJob, number: int, gpus: int) -> float:
        group = self.setting.groups[number]
        if group.gpu_model not in self.setting.applications[job.application].steps:
            return math.nan
        whole = max(group.gpus__n)
        nodes = (gpus,) if gpus < whole else (whole,) * math.ceil(gpus / whole)
        setting = replace(self.setting, groups=(NodeGroup(group.gpu_model, nodes, tuple(range(len(nodes)))),))
        try:
            run = run_adaptive(setting_told(setting), setting, self.policy.begin(setting), [job])
        except (InputError, PolicyError):  # never measured there, or never served
            return math.nan
        return float(run.jobs["finish_s"][0]) - job.submit_s


def sizes_of(group: NodeGroup) -> list[int]:
    """GPUs that a part of a group can have: those of a part of a node, and of whole nodes."""
    whole = max(group.gpus__n)
    return [*range(1, whole), *(whole * nodes for nodes in range(1, len(group.gpus__n) + 1))]


def finish_time_ratios(scenario: Scenario, result: Result, progress: Told | None = None) -> pl.DataFrame:
    """For each job that has finished: its GPUs in a fair part, seconds together and alone, and their ratio `rho`.

    A ratio above 1 is unfair. `result` is that of the scenario; `progress` is told the number of jobs done.
    """
    policy: Any = registry.parse(scenario.policy) if isinstance(scenario.policy, str) else scenario.policy
    if not getattr(policy, "adaptive", False):
        raise ScenarioError("policy", repr(str(scenario.policy)), "a policy for adaptive jobs, such as sia")
    made = prepared_adaptive(scenario, policy)
    runs, rows = IsolatedRuns(made.setting, policy), []
    told = result.jobs.select("pod_id", "contention", "jct_s").filter(pl.col("jct_s").is_not_null())
    for done, (number, contention, jct_s) in enumerate(told.iter_rows(), 1):
        share_gpus = made.setting.gpus / contention
        alone_s = runs.seconds(made.jobs[number], share_gpus)
        rows.append((number, share_gpus, jct_s, alone_s, jct_s / alone_s))
        if progress is not None:
            progress(done)
    schema = {"pod_id": pl.Int64, "share_gpus": pl.Float64, "jct_s": pl.Float64, "alone_s": pl.Float64,
              "rho": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema, orient="row")


def fairness(ratios: pl.DataFrame) -> dict[str, float]:
    """The worst ratio, and the part of the jobs with one above 1."""
    rho = ratios["rho"].drop_nans().to_numpy()
    if not len(rho):
        return {"rho_max": math.nan, "unfair_part": math.nan}
    return {"rho_max": float(rho.max()), "unfair_part": float(np.mean(rho > 1.0))}
