"""Result tables of a run in rounds: the columns of every run, and those of rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.rounds.arrival_ids import ArrivalIds
from fastsim.engine.rounds.job_metrics import counted, round_figures
from fastsim.engine.rounds.node_metrics import node_of_gpu
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.summary import Waits, summary_frame
from fastsim.engine.tables import REASONS, ROW, STATES, FrameMakers, timeline_frame
from fastsim.engine.totals.job_totals import JobTotals, job_columns, known, slowdowns

if TYPE_CHECKING:
    from fastsim.workload import Workload

Array = Any


def makers(
    run: RoundOutcome, cluster: Cluster, typical_count: int, workload: Workload,
    jobs_of: Callable[[Any], pl.DataFrame] | None = None,
) -> FrameMakers:  # fmt: skip
    """Functions that make the tables, by name; ``typical_count`` is the total count of the typical pods."""
    ids, table = ArrivalIds(workload), jobs_of or jobs
    return {
        "timeline": lambda: ids.named(timeline(run, typical_count)),
        "placements": lambda: ids.named(placements(run, cluster)),
        "jobs": lambda: ids.named(table(run)),
        "stages": lambda: pl.DataFrame(schema={"stage": pl.String}),
    }


def timeline(run: RoundOutcome, typical_count: int) -> pl.DataFrame:
    """A row for every sample."""
    frame = timeline_frame(run.rows, typical_count)
    return frame.with_columns(**run.timeline_columns())


def jobs(run: RoundOutcome) -> pl.DataFrame:
    """One row for every job that arrived: start, end, work, cost and state."""
    rows, oracle = run.jobs, run.setting.oracle
    state, reason = _ends_of_jobs(rows)
    started, jct = ~np.isnan(rows["first_s"]), rows["finish_s"] - rows["submit_s"]
    frame = pl.DataFrame({
        "pod_id": rows["id"], "native_id": pl.Series([None] * len(rows), dtype=pl.String),
        "submit_s": rows["submit_s"], "start_s": rows["first_s"], "end_s": rows["finish_s"],
        "wait_s": rows["first_s"] - rows["submit_s"], "jct_s": jct,
        "state": pl.Series(state, dtype=pl.Enum(STATES)), "reason": pl.Series(reason, dtype=pl.Enum(REASONS)),
        "attempts": (rows["restarts"] + started).astype(np.int16), "preemptions": rows["preemptions"].astype(np.int16),
        "lost_work_s": np.zeros(len(rows)),
        **job_columns(rows["restarts"], paused_s(run, rows), rows["gpu_s"], ideal_s(run, rows), jct),
        "restart_delay_s": rows["delayed_s"],
        "workload": [oracle.kinds[kind][0] for kind in rows["kind"].tolist()],
        "num_gpu": rows["num_gpu"].astype(np.int32), "weight": rows["weight"],
        "rounds": rows["rounds"], "total_work": rows["total"], "work_done": rows["run"],
        "cost": pl.Series(rows["cost"] if run.priced else np.full(len(rows), np.nan), nan_to_null=True),
        "deadline_s": np.where(np.isinf(rows["deadline_s"]), np.nan, rows["deadline_s"]),
    }).with_columns(
        pl.col("start_s", "end_s", "wait_s", "jct_s", "deadline_s").fill_nan(None)
    )  # fmt: skip
    late = pl.col("end_s").fill_null(float("inf")) > pl.col("deadline_s")
    return frame.with_columns((~late).alias("deadline_met"))


def _ends_of_jobs(rows: Array) -> tuple[Array, Array]:
    """State of each job, and its reason."""
    unfinished = np.where(rows["ended"] == 1, "unplaced", np.where(rows["holds"] == 1, "running", "pending"))
    state = np.where(np.isnan(rows["finish_s"]), unfinished, "finished")
    return state, np.where(state == "unplaced", "no_gpu", state)


def paused_s(run: RoundOutcome, rows: Array) -> Array:
    """Seconds without GPUs after the first start; NaN for a job that never started."""
    waits = np.isnan(rows["finish_s"]) & (rows["ended"] == 0) & (rows["holds"] == 0)
    since = np.where(waits, run.makespan_s - rows["left_s"], 0.0)
    return np.where(np.isnan(rows["first_s"]), np.nan, rows["paused_s"] + since)


def ideal_s(run: RoundOutcome, rows: Array) -> Array:
    """Seconds that each job would take alone on the reference model of the rates."""
    return rows["total"] / run.setting.reference__k[rows["kind"]]


def placements(run: RoundOutcome, cluster: Cluster) -> pl.DataFrame:
    """One row for each job, node and unbroken stay on the same GPUs; ``mate_id`` shares them."""
    tasks = run.tasks
    order = np.lexsort((tasks["round"], tasks["mate_id"], tasks["id"]))
    tasks, round_end_s = tasks[order], _round_ends(run)[order]
    stay = np.cumsum(tasks["held"] >= 0) - 1
    begins = np.flatnonzero(tasks["held"] >= 0)
    ends = np.append(begins[1:], len(tasks)) - 1 if len(begins) else begins
    gpus = _spread(tasks[begins], run, node_of_gpu(cluster, run.setting.gpu_models))
    singles = pl.DataFrame({
        "stay": np.arange(len(begins)), "pod_id": tasks["id"][begins], "mate_id": tasks["mate_id"][begins],
        "start_s": tasks["t"][begins], "end_s": np.minimum(round_end_s[ends], run.makespan_s),
        "rounds": np.bincount(stay),
    })  # fmt: skip
    mates = singles.filter(pl.col("mate_id") >= 0).select(
        "stay", pl.col("mate_id").alias("pod_id"), pl.col("pod_id").alias("mate_id"), *singles.columns[3:]
    )
    stays = pl.concat([singles, mates]).join(gpus, on="stay", how="inner")
    return _described(stays, run, cluster)


def _round_ends(run: RoundOutcome) -> Array:
    """End of the round of each task, seconds: jobs that are not complete hold their GPUs until then."""
    if run.even:
        return run.tasks["t"] + run.options.round_s
    number: Array = run.tasks["round"]
    end_s = np.full(int(number.max()) + 1 if len(number) else 0, -np.inf)
    np.maximum.at(end_s, number, run.tasks["finish_s"])
    return end_s[number]


def _spread(first: Array, run: RoundOutcome, nodes: Array) -> pl.DataFrame:
    """The GPUs of each stay, by node; GPUs are numbered within their node."""
    count = first["num_gpu"].astype(np.int64)
    stay = np.repeat(np.arange(len(first)), count)
    inside = np.arange(len(stay)) - np.repeat(np.cumsum(count) - count, count)
    gpu: Array = run.held[np.repeat(first["held"], count) + inside]
    start = _first_of(nodes)
    frame = pl.DataFrame({"stay": stay, "node_id": nodes[gpu].astype(np.int64), "gpu": gpu - start[gpu]})
    return frame.group_by("stay", "node_id", maintain_order=True).agg(
        pl.col("gpu").cast(pl.Int16).sort().alias("gpu_ids")
    )


def _first_of(nodes: Array) -> Any:
    """For every GPU the number of the first one on its node; a node's GPUs have consecutive numbers."""
    starts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
    return np.repeat(starts, np.diff(np.append(starts, len(nodes))))


def _described(stays: pl.DataFrame, run: RoundOutcome, cluster: Cluster) -> pl.DataFrame:
    """The table: the last stay of a job that completes within a round ends at its completion."""
    end_s, reason = pl.Series(run.jobs["finish_s"], nan_to_null=True), pl.Series(_last_reasons(run.jobs))
    names = pl.Series(cluster.nodes["name"].to_pylist(), dtype=pl.String)
    stays = stays.with_columns(
        end_s.gather(stays["pod_id"]).alias("done_s"), reason.gather(stays["pod_id"]).alias("last_reason"),
        names.gather(stays["node_id"]).alias("node"), pl.lit(None, pl.String).alias("native_id"),
    ).sort("start_s", "pod_id", "node_id")  # fmt: skip
    last = pl.col("start_s") == pl.col("start_s").max().over("pod_id")
    number = pl.col("start_s").rank("dense").over("pod_id") - 1
    return stays.select(
        "pod_id", "native_id", number.cast(pl.Int16).alias("attempt"), "node_id", "node", "gpu_ids", "start_s",
        pl.when(last).then(pl.min_horizontal("end_s", "done_s")).otherwise("end_s").alias("end_s"),
        pl.when(last).then("last_reason").otherwise(pl.lit("preempted")).cast(pl.Enum(REASONS)).alias("reason"),
        pl.col("mate_id").replace(-1, None), "rounds",
    )  # fmt: skip


def _last_reasons(rows: Array) -> Array:
    """Why the last stay of each job ended."""
    left = np.where(rows["ended"] == 1, "evicted", np.where(rows["holds"] == 1, "running", "preempted"))
    return np.where(np.isnan(rows["finish_s"]), left, "finished")


def summary(run: RoundOutcome, typical_count: int, slo_compare_absolute: bool = False) -> pl.DataFrame:
    """The summary: columns of every run, and those of rounds."""
    assert run.metrics is not None
    now, before, areas = run.metrics.state()
    final, at_capacity = np.frombuffer(now, ROW)[0], np.frombuffer(before, ROW)[0]
    waits = _waits(run)
    held_s = areas["gpu_milli_alloc"] / 1000
    frame = summary_frame(
        final=final,
        at_capacity=at_capacity,
        areas=areas,
        seconds=run.span_s,
        typical_counts=(typical_count, typical_count),
        waits=waits,
        totals=_totals(run, held_s),
    )
    waits.close()
    extra = {**_round_figures(run, slo_compare_absolute), **run.kind_figures()}
    return frame.with_columns(
        **{name: pl.lit(value, pl.Int64 if isinstance(value, int) else pl.Float64) for name, value in extra.items()}
    )


def _waits(run: RoundOutcome) -> Waits:
    """Waiting and completion times of the jobs that count; work lost to preemption is part of the restarts."""
    measured, waits = counted(run), Waits()
    waits.wait.add(known(measured["first_s"] - measured["submit_s"]))
    waits.jct.add(known(measured["finish_s"] - measured["submit_s"]))
    if run.wasted_gpu_s is not None:
        waits.preemptions = int(measured["preemptions"].sum())
    return waits


def _totals(run: RoundOutcome, gpu_s: float) -> JobTotals:
    """Totals; of a run without rounds only those that follow from jobs alone."""
    rows, cost = counted(run), float(run.jobs["cost"].sum()) if run.priced else None
    done = ~np.isnan(rows["finish_s"])
    ratios = slowdowns(rows["finish_s"] - rows["submit_s"], ideal_s(run, rows))
    if run.wasted_gpu_s is None:
        return JobTotals.of_jobs(slowdown=ratios, cost=cost)
    paused = np.where(done, paused_s(run, rows), np.nan)
    return JobTotals.of_jobs(
        restarts=rows["restarts"], paused_s=paused, slowdown=ratios, gpu_s=gpu_s, wasted_gpu_s=run.wasted_gpu_s,
        cost=cost, tenant_gpu_s=_by_tenant(run.jobs),
    )  # fmt: skip


def _by_tenant(rows: Array) -> Array | None:
    """GPU seconds of each tenant that had a job; None if no job has a tenant."""
    code, of_one = np.unique(rows["tenant"][rows["tenant"] >= 0], return_inverse=True)
    if not len(code):
        return None
    return np.bincount(of_one, weights=rows["gpu_s"][rows["tenant"] >= 0], minlength=len(code))


def unmeasured(summary: pl.DataFrame, run: RoundOutcome) -> pl.DataFrame:
    """The summary of a run without measured nodes: counts of jobs, and null for columns about nodes."""
    first = summary.columns.index("wait_mean_s")
    states = jobs(run)["state"].cast(pl.String)
    count = {
        "pods": len(states), "pods_running": (states == "running").sum(), "pods_pending": (states == "pending").sum(),
        "pods_finished": (states == "finished").sum(), "pods_unplaced": (states == "unplaced").sum(), "pods_lost": 0,
    }  # fmt: skip
    return summary.with_columns(
        pl.lit(count.get(name)).cast(summary.schema[name]).alias(name) for name in summary.columns[:first]
    )


def _round_figures(run: RoundOutcome, slo_compare_absolute: bool) -> dict[str, Any]:
    """Columns of the summary that only runs in rounds have; times in seconds, cost in $."""
    figures = round_figures(run, slo_compare_absolute=slo_compare_absolute)
    extended = figures.lease_extension_share
    return {
        "jobs_counted": len(counted(run)), "utilization_pct": 100 * figures.utilization,
        **{f"utilization_{model}_pct": 100 * share for model, share in figures.utilization_by_model.items()},
        **{f"jct_mean_weight_{weight:g}_s": span for weight, span in _several(figures.jct_mean_by_weight_s)},
        "slo_violations": figures.slo_violations,
        "lease_extension_pct": None if np.isnan(extended) else 100 * extended,
        "rounds": figures.rounds, "policy_calls": figures.calls, "max_active_jobs": run.max_active,
    }  # fmt: skip


def _several(by_weight: dict[float, float]) -> list[tuple[float, float | None]]:
    """Means by weight, where there are several weights."""
    known = [(weight, None if np.isnan(span) else span) for weight, span in by_weight.items()]
    return known if len(known) > 1 else []
