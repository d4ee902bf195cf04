"""Why jobs in rounds ran and waited when they did: the stays and gaps of each job, and who had the GPUs meanwhile.

It is read off the tables of the run: what a policy computed to get there is not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.result import Result
from fastsim.errors import InputError
from fastsim.policies import registry
from fastsim.scenario.run_inputs import nodes_from
from fastsim.scenario.scenario import Scenario
from fastsim.simulation import simulate as simulation

SCHEMA: dict[str, Any] = {
    "pod_id": pl.Int64, "native_id": pl.String, "from_s": pl.Float64, "until_s": pl.Float64, "state": pl.String,
    "gpu_models": pl.List(pl.String), "nodes": pl.List(pl.String), "gpus": pl.Int64, "asks": pl.Int64,
    "free": pl.Int64, "jobs": pl.Int64, "taken_by": pl.List(pl.Int64), "why": pl.String,
}  # fmt: skip
"""Columns of :func:`job_spans`: ``free`` GPUs and ``jobs`` that hold others are those at the beginning of the span."""
NAMED = 5
"""Jobs that a reason names at most."""


@dataclass(frozen=True)
class JobExplanation:
    """The times in which some jobs ran or waited, as :func:`job_spans` has them."""

    spans: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """One row for every time of every job; columns as in ``SCHEMA``."""
        return self.spans


def plays_jobs(scenario: Scenario) -> bool:
    """Whether the policy of a scenario gives GPUs to jobs, in rounds or as a scheduler that reads metrics."""
    policy: Any = registry.policy_of(scenario.policy)
    return registry.engine_of(policy) != "pods"


def job_explanation(
    scenario: Scenario, saved: Result | None, names: Sequence[int | str], sample: int = 0
) -> JobExplanation:
    """The explanation of these jobs, or of ``sample`` of them; a scenario without a saved run is run."""
    result = saved or simulation.run(scenario)
    if sample:
        places = np.unique(np.linspace(0, max(result.jobs.height - 1, 0), min(sample, result.jobs.height)).round())
        names = result.jobs["pod_id"].gather(places.astype(np.int64)).to_list()
    return JobExplanation(job_spans(result, names))


@dataclass(frozen=True)
class _Span:
    """A time in which a job held the same GPUs, or none."""

    from_s: float
    until_s: float | None
    gpus: frozenset[tuple[int, int]]
    """Node and device of each GPU."""


def job_spans(result: Result, names: Sequence[int | str]) -> pl.DataFrame:
    """A row for each time in which one of these jobs ran on the same GPUs, or waited; columns as in ``SCHEMA``."""
    result.require("placements", "explain")
    scenario = result.origin("explain", allow_code=True)  # its policy is never made
    cluster = nodes_from(scenario.cluster, scenario.workload)
    jobs = selected_jobs(result.jobs, names)
    stays = _Stays(result.placements, cluster)
    rows = [row for job in jobs for row in _rows(job, stays)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def selected_jobs(jobs: pl.DataFrame, names: Sequence[int | str]) -> list[dict[str, Any]]:
    """The rows of the jobs with these ids (numbers) or names in the source (texts)."""
    chosen = []
    for name in names:
        rows = jobs.filter(pl.col("pod_id").cast(pl.String) == str(name))
        rows = jobs.filter(native_id=name) if rows.is_empty() and isinstance(name, str) else rows
        if rows.is_empty():
            raise InputError(f"pod {name!r}", "no such job in the run", "a pod_id or native_id of it")
        chosen += rows.to_dicts()
    return chosen


class _Stays:
    """The stays of all jobs, and the cluster that they are on."""

    def __init__(self, placements: pl.DataFrame, cluster: Cluster) -> None:
        held = placements.filter(pl.col("node_id").is_not_null()).explode("gpu_ids", empty_as_null=True)
        self.table = held.select("pod_id", "node_id", "gpu_ids", "start_s", "end_s").drop_nulls("gpu_ids")
        self.models = cluster.nodes["gpu_model"].to_pylist()
        self.nodes = cluster.nodes["name"].to_pylist()
        self.total = cluster.total_gpus

    def spans(self, job: dict[str, Any]) -> list[_Span]:
        """Stays and gaps of a job from its arrival to its end, or to the last instant that is known."""
        mine = self.table.filter(pod_id=job["pod_id"]).sort("start_s", "node_id", "gpu_ids")
        spans: list[_Span] = []
        at_s: float = job["submit_s"]
        for start_s in mine["start_s"].unique(maintain_order=True).to_list():
            rows = mine.filter(start_s=start_s)
            end_s: float | None = max(ends) if (ends := rows["end_s"].drop_nulls().to_list()) else None
            if start_s > at_s:
                spans.append(_Span(at_s, start_s, frozenset()))
            gpus = frozenset(rows.select("node_id", "gpu_ids").rows())
            if spans and spans[-1].gpus == gpus and spans[-1].until_s == start_s:
                spans[-1] = _Span(spans[-1].from_s, end_s, gpus)
            else:
                spans.append(_Span(start_s, end_s, gpus))
            at_s = start_s if end_s is None else end_s
        if job["end_s"] is None and (not spans or spans[-1].until_s is not None):
            spans.append(_Span(at_s, None, frozenset()))
        return spans

    def held_at(self, at_s: float, without: int) -> pl.DataFrame:
        """GPUs that other jobs hold just after this second."""
        ends = pl.col("end_s").is_null() | (pl.col("end_s") > at_s)
        return self.table.filter(pl.col("pod_id") != without, pl.col("start_s") <= at_s, ends)


def _rows(job: dict[str, Any], stays: _Stays) -> list[tuple[Any, ...]]:
    spans, rows = stays.spans(job), []
    for number, span in enumerate(spans):
        others = stays.held_at(span.from_s, job["pod_id"])
        free = stays.total - others.select("node_id", "gpu_ids").n_unique() - len(span.gpus)
        before = spans[number - 1].gpus if number else frozenset()
        taken = _taken_by(before - span.gpus, others)
        asks, nodes = job.get("num_gpu"), dict.fromkeys(node for node, _ in sorted(span.gpus))
        why = _started(job, span, free) if span.gpus else _waits(asks, free, others, taken, lost=bool(before))
        rows.append((
            job["pod_id"], job["native_id"], span.from_s, span.until_s, "runs" if span.gpus else "waits",
            list(dict.fromkeys(stays.models[node] for node in nodes)), [stays.nodes[node] for node in nodes],
            len(span.gpus), asks, free, others["pod_id"].n_unique(), taken, why,
        ))  # fmt: skip
    return rows


def _taken_by(lost: frozenset[tuple[int, int]], others: pl.DataFrame) -> list[int]:
    """The jobs that have these GPUs now."""
    gpus = zip(others["node_id"].to_list(), others["gpu_ids"].to_list(), strict=True)
    pairs = zip(others["pod_id"].to_list(), gpus, strict=True)
    return sorted({pod_id for pod_id, gpu in pairs if gpu in lost})


def _started(job: dict[str, Any], span: _Span, free: int) -> str:
    """The beginning and the end of a span with GPUs, in words."""
    end = "until they are taken away or changed for others"
    if span.until_s is None:
        end = "to the end of the run"
    elif span.until_s == job["end_s"]:
        end = "until it is done"
    return f"has {_counted(len(span.gpus), 'GPU')} {end}; free: {free:,}"


def _waits(asks: int | None, free: int, others: pl.DataFrame, taken: list[int], lost: bool) -> str:
    """The reason of a span without GPUs."""
    room = f"free: {free:,}, held by {_counted(others['pod_id'].n_unique(), 'job')}: {others.height:,}"
    if lost:
        return f"stopped: its GPUs go to {_jobs(taken) if taken else 'no other job'}; {room}"
    if asks is None:
        return f"has no GPU; {room}"
    if free >= asks:
        return f"asks for {_counted(asks, 'GPU')}, and the policy has given it none yet; {room}"
    return f"asks for {_counted(asks, 'GPU')}, more than are free; {room}"


def _jobs(ids: list[int]) -> str:
    listed = ", ".join(map(str, ids[:NAMED])) + (", …" if len(ids) > NAMED else "")
    return f"job {listed}" if len(ids) == 1 else f"jobs {listed}"


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
