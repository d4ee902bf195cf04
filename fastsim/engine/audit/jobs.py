"""The table of jobs, recomputed from stays and the workload."""

from __future__ import annotations

import polars as pl

from fastsim.engine.audit.inputs import LOST, Evidence
from fastsim.scenario.round_texts import prices_from

HOUR_S = 3600.0
NANOSECOND_S = 1e-9


def expected_jobs(run: Evidence) -> pl.DataFrame:
    """The recomputed row of each job, in the order of the table."""
    expected = run.jobs.select("pod_id", state=pl.col("state").cast(pl.String)).join(
        stays_by_job(run), on="pod_id", how="left", maintain_order="left"
    )
    requests = run.pods.drop("pod_id", "submit_s").rename({"request_s": "submit_s"})
    table = pl.concat([expected, requests], how="horizontal")
    done = pl.col("state") == "finished"
    given_up = pl.when(pl.col("state") == "unplaced").then("last_s")
    table = table.with_columns(
        attempts=pl.col("attempts").fill_null(0), gpu_hours=pl.col("gpu_s").fill_null(0.0) / HOUR_S,
        preemptions=pl.col("preemptions").fill_null(0), cost=pl.col("cost").fill_null(0.0), end_s=last_end(run),
    ).with_columns(
        restarts=(pl.col("attempts") - 1).clip(lower_bound=0), wait_s=pl.col("start_s") - pl.col("submit_s"),
        jct_s=pl.when(done).then(pl.col("end_s") - pl.col("submit_s")),
        paused_s=pl.coalesce("end_s", given_up, pl.lit(run.last_s)) - pl.col("start_s") - pl.col("held_s"),
    )  # fmt: skip
    return table.with_columns(ideal_s=ideal(run, table), state=states(run)).with_columns(
        slowdown=pl.when(pl.col("ideal_s") >= NANOSECOND_S).then(pl.col("jct_s") / pl.col("ideal_s"))
    )


def last_end(run: Evidence) -> pl.Expr:
    """End of the last stay of jobs that left with it; null for jobs that are active or were given up."""
    states = ("finished",) if run.in_rounds else ("finished", *LOST)
    return pl.when(pl.col("state").is_in(states)).then("last_s")


def ideal(run: Evidence, table: pl.DataFrame) -> pl.Series:
    """Seconds that jobs take alone: their ``duration_s``; null where the workload has work instead."""
    null = pl.lit(None, pl.Float64)
    lasts = pl.col("duration_s").fill_nan(None) if "duration_s" in table.columns else null
    by_work = pl.col("total_work").is_not_null() if "total_work" in table.columns else pl.lit(False)
    unknown = by_work if run.engine in ("shares", "orders") else pl.lit(run.engine == "adaptive")
    return table.with_columns(pl.when(~unknown).then(lasts).alias("ideal_s"))["ideal_s"]


def states(run: Evidence) -> pl.Expr:
    """State of a job by its last stay; jobs that were given up keep the state of the table."""
    if run.in_rounds:
        by_stay = pl.when(pl.col("last") == "finished").then(pl.lit("finished"))
        expected = by_stay.when(pl.col("last_s").is_infinite()).then(pl.lit("running")).otherwise(pl.lit("pending"))
        return pl.when(pl.col("state") == "unplaced").then("state").otherwise(expected)
    stopped = pl.col("last").is_in(["finished", "running"]).fill_null(False)
    return pl.when(stopped).then("last").otherwise("state")


def stays_by_job(run: Evidence) -> pl.DataFrame:
    """By job: first start, last end (infinite while it runs), stays, seconds on nodes and of GPUs, preemptions."""
    prices = fixed_prices(run) or {}
    closed = run.stays.with_columns(end_s=pl.col("end_s").clip(upper_bound=run.last_s), last_s=pl.col("end_s"))
    held = pl.col("gpu_ids").list.len() * pl.col("gpu_milli") if run.allocates_gpus_alone else pl.col("demand_milli")
    gpus = held * pl.col("share") / 1000
    whole = closed.with_columns(held_s=pl.col("end_s") - pl.col("start_s")).with_columns(gpu_s=pl.col("held_s") * gpus)
    price = [prices.get(run.nodes[node]["gpu_model"], 0.0) for node in whole["node_id"]]
    whole = whole.with_columns(cost=pl.col("gpu_s") / HOUR_S * pl.Series(price, dtype=pl.Float64))
    by_stay = whole.group_by("pod_id", "attempt", maintain_order=True).agg(
        pl.col("start_s").min(), pl.col("last_s").max(), pl.col("held_s").max(), pl.col("gpu_s", "cost").sum(),
        pl.col("reason").first(),
    )  # fmt: skip
    ordered = by_stay.sort("pod_id", "attempt")
    again_s = pl.col("start_s").shift(-1).over("pod_id")
    waits = (again_s > pl.col("last_s")).fill_null(True) if run.in_rounds else pl.lit(True)
    preempted = (pl.col("reason") == "preempted") & waits
    return ordered.with_columns(preempted=preempted).group_by("pod_id", maintain_order=True).agg(
        pl.col("start_s").min(), pl.col("last_s").max(), pl.col("held_s", "gpu_s", "cost").sum(),
        pl.len().cast(pl.Int64).alias("attempts"), pl.col("preempted").sum().cast(pl.Int64).alias("preemptions"),
        pl.col("reason").last().alias("last"),
    )  # fmt: skip


def fixed_prices(run: Evidence) -> dict[str, float] | None:
    """$/h of a GPU by its model; None if there are no prices, or if they change while jobs run."""
    models = sorted({node["gpu_model"] for node in run.nodes if node["gpu_model"]})
    prices = prices_from(run.scenario.prices, models)
    if prices is None or len(prices.since_s) > 1:
        return None
    return dict(zip(prices.gpu_models, prices.price__tg[0].tolist(), strict=True))
