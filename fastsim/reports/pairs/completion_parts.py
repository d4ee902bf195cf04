"""The parts of a job's completion time: waiting, paused, restarting, redoing lost work, working.

============= =======================================================================================================
``waiting``    from the arrival to the first start
``paused``     without a node between the first start and the end
``restarting`` on a node, in the delay of a restart
``redoing``    on a node, doing work again that a stop threw away
``working``    on a node, at work that counts; a slower GPU, fewer GPUs or a shared GPU make it longer
============= =======================================================================================================

All parts are seconds. They add up to the completion time of the job.
"""

from __future__ import annotations

import polars as pl

from fastsim.errors import ResultError

PARTS = ("waiting", "paused", "restarting", "redoing", "working")
"""Parts of a completion time, in the order in which a job meets them."""


def completion_parts(jobs: pl.DataFrame, name: str = "run") -> pl.DataFrame:
    """``pod_id``, ``native_id``, ``submit_s``, ``jct`` and the parts (seconds) of each finished job of a run."""
    if jobs.is_empty():
        raise ResultError(f"{name}: found no jobs, expected a run that recorded them (record='placements' or 'all')")
    done = jobs.filter(pl.col("jct_s").is_not_null())
    held = pl.col("jct_s") - pl.col("wait_s") - pl.col("paused_s")
    redoing = pl.col("lost_work_s")
    parts = done.select(
        "pod_id", "native_id", "submit_s", jct="jct_s", waiting="wait_s", paused="paused_s",
        restarting=_restarting(jobs, held), redoing=redoing, held=held,
    )  # fmt: skip
    working = pl.col("held") - pl.col("restarting") - pl.col("redoing")
    return parts.with_columns(working=working).drop("held")


def _restarting(jobs: pl.DataFrame, held: pl.Expr) -> pl.Expr:
    """Seconds of restart delays, by the table of each engine.

    Jobs in rounds have them as a column. Containers of monitored GPUs restart without a delay on the GPU. Pods work at
    one speed, so the time on a node beyond work and lost work is delay.
    """
    if "restart_delay_s" in jobs.columns:
        return pl.col("restart_delay_s")
    if "admitted" in jobs.columns:
        return pl.lit(0.0)
    delay = (held - pl.col("ideal_s") - pl.col("lost_work_s")).clip(lower_bound=0.0)
    return pl.when((pl.col("restarts") > 0) & pl.col("ideal_s").is_not_null()).then(delay).otherwise(0.0)
