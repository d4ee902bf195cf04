"""Columns of the explanation of a round, by engine: their types, and what they mean."""

from __future__ import annotations

from typing import Any

import polars as pl

MEANINGS: dict[str, tuple[Any, str]] = {
    "pod_id": (pl.Int64, "the job"),
    "native_id": (pl.String, "its name in the source"),
    "round": (pl.Int64, "number of the round, from 0"),
    "t_s": (pl.Float64, "beginning of the round, seconds"),
    "state": (pl.String, "`runs` or `waits`: the job in this round"),
    "place": (pl.Int64, "place in the line of the model, or in the order of all jobs, from 1; null if it is in none"),
    "turn": (pl.Int64, "place, from 1, in which the job was served; null if it was not"),
    "gpu_model": (pl.String, "GPU model of the row; where the row is a job, the one that it runs on"),
    "mate_id": (pl.Int64, "job with which it shares the GPUs; null for the job by itself"),
    "nodes": (pl.Int64, "nodes of the configuration, at least"),
    "share": (pl.Float64, "share of the time on the model, 0 to 1, by the last allocation"),
    "received_s": (pl.Float64, "seconds on the model since the last allocation, beside half a round to begin with"),
    "received": (pl.Float64, "the same over that of all jobs together"),
    "priority": (pl.Float64, "share over received; 1e9 times the share without any time"),
    "deficit_s": (pl.Float64, "seconds of its shares that it did not get by the last allocation"),
    "terms": (pl.List(pl.String), "terms of the order"),
    "key": (pl.List(pl.Float64), "their values as they are compared, smallest first: with a minus sign reversed"),
    "goodput": (pl.Float64, "estimated goodput; 1 is the least one (sia), or a fair share (pollux)"),
    "value": (pl.Float64, "what the choice adds to what the policy makes as large as it can; 0 for none"),
    "asks": (pl.Int64, "GPUs that it asks for; in adaptive rounds those of the configuration"),
    "cpu_milli": (pl.Float64, "milli-CPU that it has use for; 0 if it needs GPUs alone"),
    "memory_mib": (pl.Float64, "MiB that it has use for; 0 if it needs GPUs alone"),
    "free": (pl.Int64, "GPUs of a model that were free at its turn; in adaptive rounds those that no other job has"),
    "cpu_milli_free": (pl.Float64, "milli-CPU free then on that model's nodes, beside what those before it hold"),
    "memory_mib_free": (pl.Float64, "MiB free then, likewise"),
    "gpus": (pl.Int64, "GPUs that the row gives the job in this round; 0 if none"),
    "blocked_by": (pl.Int64, "job ahead of it that lets none pass; null if there is none"),
    "why": (pl.String, "why it runs there, or not, in one sentence"),
}  # fmt: skip
"""Type and meaning of each column."""
HEAD = ("pod_id", "native_id", "round", "t_s", "state")
COLUMNS: dict[str, tuple[str, ...]] = {
    "shares": (
        *HEAD, "place", "gpu_model", "mate_id", "share", "received_s", "received", "priority", "deficit_s", "asks",
        "free", "gpus", "why",
    ),
    "orders": (
        *HEAD, "place", "turn", "gpu_model", "terms", "key", "asks", "cpu_milli", "memory_mib", "free",
        "cpu_milli_free", "memory_mib_free", "gpus", "blocked_by", "why",
    ),
    "adaptive": (*HEAD, "gpu_model", "nodes", "goodput", "value", "asks", "free", "gpus", "why"),
}  # fmt: skip
"""Columns by engine. Rows are jobs and GPU models (shares), jobs (orders), jobs and configurations (adaptive).

``free`` is of the row's model; in ordered rounds, of the one that the job runs on, or else of the one with most free
GPUs of those it can use. A job without a turn has there what the jobs before it in the order leave it.
"""
SCHEMAS: dict[str, dict[str, Any]] = {
    engine: {name: MEANINGS[name][0] for name in names} for engine, names in COLUMNS.items()
}
"""Types of the columns by engine."""
RUNS, WAITS = "runs", "waits"


def counted(count: int, noun: str) -> str:
    """A number of things: ``1 GPU``, ``2 GPUs``."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
