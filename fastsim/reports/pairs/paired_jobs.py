"""Why one run is faster than another: completion times of the same jobs, pair by pair, and what they differ in.

Both runs serve the same workload, so each job is its own control: a difference is due to the two policies (common
random numbers). A difference is the first run's figure minus the second's, in seconds: negative where the first is
faster. The parts of a difference are those of :mod:`fastsim.reports.pairs.completion_parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.errors import InputError, ResultError, ScenarioError, suggestion
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.reports.charts.seed_intervals import half_width
from fastsim.reports.pairs.completion_parts import PARTS, completion_parts
from fastsim.reports.report import named_runs

if TYPE_CHECKING:
    import altair as alt

    from fastsim.engine.result import Result
    from fastsim.reports.report import Runs

GROUPS = {
    "size": "GPUs that the job asks for",
    "tenant": "tenant of the job",
    "hour": "hour of the day of its arrival, counted from second 0",
}
"""Groups of jobs in which differences are broken down."""
SIDES = ("a", "b")
"""The two runs of a pair."""
NAMES = "a list of two names, of run a and of run b"
LONGEST = 10
"""Jobs that a list of the longest ones has."""
HOUR_S, DAY_H = 3600.0, 24


@whole_process
@dataclass(frozen=True, repr=False, eq=False)
class PairedJobs:
    """Jobs that are done in both of two runs, with completion times and their parts.

    ``jobs`` has a row for each job of each pair of runs: ``pair``, ``pod_id``, ``native_id``, ``submit_s``, ``size``
    (GPUs), ``tenant``, ``hour``, ``jct_a``, ``jct_b``, ``difference``; then for each part its seconds in both runs
    (``waiting_a``, ``waiting_b``) and their difference (``waiting``). ``unpaired`` counts jobs that are done in one run
    only or in none.
    """

    names: tuple[str, str]
    jobs: pl.DataFrame
    unpaired: dict[str, int]

    def __repr__(self) -> str:
        return f"PairedJobs({self.names[0]} - {self.names[1]}: {len(self.jobs):,} jobs)"

    @property
    def pairs(self) -> int:
        """Pairs of runs, such as one for each seed."""
        return int(self.jobs["pair"].n_unique())

    @cached_property
    def parts(self) -> pl.DataFrame:
        """A row for the completion time (``jct``) and for each part of it.

        ``a`` and ``b`` are means over the jobs of both runs, ``difference`` is ``a - b``, and ``share_pct`` is the part
        of the whole difference. ``low`` and ``high`` are the 95 % interval over pairs of runs (Student's t), null with
        one pair: jobs of one run depend on each other, so they give no interval.
        """
        rows = []
        whole = _mean(self.jobs["difference"])
        for part in ("jct", *PARTS):
            column = "difference" if part == "jct" else part
            mean = _mean(self.jobs[column])
            low, high = self._interval(column)
            ours, theirs = (_mean(self.jobs[f"{part}_{run}"]) for run in SIDES)
            share = 100 * mean / whole if whole else None
            rows.append((part, ours, theirs, mean, low, high, share))
        names = ("part", "a", "b", "difference", "low", "high", "share_pct")
        kinds = {name: pl.String if name == "part" else pl.Float64 for name in names}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def by(self, group: str = "size") -> pl.DataFrame:
        """Mean differences of the jobs of each group; groups as in :data:`GROUPS`.

        ``total`` is the part of the whole difference that the group contributes, in seconds of the mean over all jobs:
        the totals of the groups add up to the whole difference.
        """
        if group not in GROUPS:
            raise ScenarioError("group", repr(group), f"one of {', '.join(GROUPS)}", suggestion(group, GROUPS))
        if self.jobs[group].null_count() == len(self.jobs):
            raise ResultError(f"paired_jobs: found no {group} of the jobs, expected a workload that has it")
        return self.jobs.group_by(group, maintain_order=True).agg(
            jobs=pl.len(), jct_a=pl.col("jct_a").mean(), jct_b=pl.col("jct_b").mean(),
            difference=pl.col("difference").mean(), total=pl.col("difference").sum() / len(self.jobs),
            **{part: pl.col(part).mean() for part in PARTS},
        ).sort(group, nulls_last=True)  # fmt: skip

    def longest(self, run: str = "a", count: int = LONGEST) -> pl.DataFrame:
        """The jobs with the longest completion times in run ``a`` or ``b``, the longest first."""
        if run not in SIDES:
            raise ScenarioError("run", repr(run), "a or b")
        return self.jobs.sort(f"jct_{run}", descending=True, maintain_order=True).head(count)

    def furthest(self, count: int = LONGEST) -> pl.DataFrame:
        """The jobs whose completion times differ most, the largest difference first."""
        far = self.jobs.sort(pl.col("difference").abs(), descending=True, maintain_order=True)
        return far.head(count)

    def plot(self, group: str = "size") -> alt.TopLevelMixin:
        """Mean differences of each group as bars, split into parts, beside the distribution of all differences."""
        from fastsim.reports.pairs.pair_charts import difference_chart

        return difference_chart(self.names, group, self.by(group), self.jobs["difference"])

    def _interval(self, column: str) -> tuple[float | None, float | None]:
        """The 95 % interval of the mean over pairs of runs."""
        means = self.jobs.group_by("pair", maintain_order=True).agg(pl.col(column).mean())[column].to_numpy()
        if len(means) < 2:
            return None, None
        mean, half = float(means.mean()), float(half_width(means))
        return mean - half, mean + half


@whole_process
def paired_jobs(a: Runs, b: Runs, names: Sequence[str] = ("a", "b")) -> PairedJobs:
    """The jobs of two runs, or of as many runs of each policy, such as one for each seed, pair by pair.

    ``a`` and ``b`` are results or folders of saved runs.
    """
    ours, theirs = (named_runs("paired_jobs", runs, None)[0] for runs in (a, b))
    if len(ours) != len(theirs):
        raise ScenarioError("paired_jobs", f"{len(ours)} and {len(theirs)} runs", "as many runs of one as of the other")
    named = tuple(map(str, elements("paired_jobs: names", names, NAMES)))
    if len(named) != len(SIDES):
        raise ScenarioError("paired_jobs: names", f"{len(named)} names", NAMES)
    both = (named[0], named[1])
    frames, unpaired = [], {"only in a": 0, "only in b": 0, "in neither": 0}
    for pair, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        frame, left_out = _pair(one, two, both)
        frames.append(frame.select(pl.lit(pair, pl.Int32).alias("pair"), pl.all()))
        unpaired = {name: unpaired[name] + left_out[name] for name in unpaired}
    jobs = pl.concat(frames)
    if jobs.is_empty():
        raise ResultError(
            f"paired_jobs: {both[0]} and {both[1]}: found no job that is done in both, expected one at least"
        )
    return PairedJobs(both, jobs, unpaired)


def _pair(one: Result, two: Result, names: tuple[str, str]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The jobs that are done in both runs, and the numbers of the others."""
    _refuse_other_workload(one, two, names)
    ours, theirs = (completion_parts(run.jobs, name) for run, name in zip((one, two), names, strict=True))
    columns = ("jct", *PARTS)
    both = ours.rename({name: f"{name}_a" for name in columns}).join(
        theirs.select("pod_id", **{f"{name}_b": name for name in columns}), on="pod_id", maintain_order="left"
    )
    both = both.with_columns(
        difference=pl.col("jct_a") - pl.col("jct_b"),
        **{part: pl.col(f"{part}_a") - pl.col(f"{part}_b") for part in PARTS},
    )
    hour = (pl.col("submit_s") / HOUR_S).floor().cast(pl.Int64) % DAY_H
    both = both.join(job_requests(one), on="pod_id", how="left", maintain_order="left").with_columns(hour=hour)
    sides = [f"{name}_{run}" for name in columns for run in SIDES]
    ordered = both.select(
        "pod_id", "native_id", "submit_s", "size", "tenant", "hour", "jct_a", "jct_b", "difference", *PARTS,
        *(name for name in sides if not name.startswith("jct")),
    )  # fmt: skip
    paired, jobs = len(both), one.jobs.height
    left_out = {"only in a": len(ours) - paired, "only in b": len(theirs) - paired}
    return ordered, {**left_out, "in neither": max(jobs - len(ours) - len(theirs) + paired, 0)}


def _refuse_other_workload(one: Result, two: Result, names: tuple[str, str]) -> None:
    """ResultError unless both runs have the same jobs with the same arrivals."""
    arrivals = [run.jobs.select("pod_id", "submit_s").sort("pod_id") for run in (one, two)]
    common = arrivals[0].join(arrivals[1], on="pod_id", suffix="_b")
    least = min(map(len, arrivals))
    same = len(common) == least and np.array_equal(common["submit_s"].to_numpy(), common["submit_s_b"].to_numpy())
    if not same:
        raise ResultError(
            f"paired_jobs: {names[0]} and {names[1]}: found other jobs, or jobs that arrive at other times, "
            "expected two runs of one workload and seed"
        )


def job_requests(run: Result) -> pl.DataFrame:
    """By ``pod_id``: GPUs asked for and tenant; null where neither the run's jobs nor its inputs tell."""
    jobs = run.jobs
    size = pl.col("num_gpu").cast(pl.Float64) if "num_gpu" in jobs.columns else pl.lit(None, pl.Float64)
    known = jobs.select("pod_id", size=size, tenant=pl.lit(None, pl.String))
    try:
        scenario = run.origin("paired_jobs", allow_code=True)  # its policy is never made
    except InputError:
        return known
    from fastsim.cluster.cluster import Cluster
    from fastsim.scenario.run_inputs import workload_from

    workload, _ = workload_from(scenario.workload, Cluster.from_text(scenario.cluster))
    table = pl.DataFrame(pl.from_arrow(workload.table()))
    tenant = pl.col("tenant").cast(pl.String) if "tenant" in table.columns else pl.lit(None, pl.String)
    return table.select("pod_id", size=pl.col("num_gpu") * pl.col("gpu_milli") / 1000, tenant=tenant)


def _mean(values: pl.Series) -> float:
    mean: Any = values.mean()
    return float(mean)
