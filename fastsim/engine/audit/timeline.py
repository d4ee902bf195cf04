"""The recomputed timeline: nodes and jobs at every instant, from stays and jobs alone.

Rows of one instant have its changes one by one, while stays only show the state after all of them; so the last row of
an instant is compared.
"""

from __future__ import annotations

import polars as pl

from fastsim.engine.audit.inputs import LOST, Evidence
from fastsim.engine.audit.nodes import CLASSES, QUANTITIES

COUNTS = ("pods_running", "pods_pending", "pods_finished", "pods_unplaced", "pods_lost", "arrived_cpu_milli",
          "arrived_gpu_milli")  # fmt: skip
"""Columns of the timeline that follow from jobs."""
NODE_COLUMNS = (
    "active_nodes", "active_node_gpus", "active_gpus", "cpu_milli_alloc", "memory_mib_alloc", "gpu_milli_alloc",
    "cpu_milli_capacity", "gpu_milli_capacity", *CLASSES, "frag_milli", "power_cpu_w", "power_gpu_w", "power_w",
)  # fmt: skip
"""Columns of the timeline that follow from nodes."""


def state_by_time(run: Evidence, nodes: pl.DataFrame) -> pl.DataFrame:
    """``t_s`` and every recomputed column of the timeline, after each instant at which one of them changes."""
    jobs = counts(run)
    instants = pl.concat([nodes.select("t_s"), jobs.select("t_s")]).unique().sort("t_s")
    joined = instants.join_asof(nodes, on="t_s").join_asof(jobs, on="t_s")
    return joined.with_columns(pl.col(*QUANTITIES, *COUNTS).fill_null(0)).with_columns(derived_columns(run))


def derived_columns(run: Evidence) -> list[pl.Expr]:
    """Columns of the timeline in its units, from the integers that are summed over nodes."""
    typical_count = max(sum(run.typical.count), 1)
    classes = [pl.col(name) / typical_count for name in CLASSES]
    wasted = pl.sum_horizontal(name for name in CLASSES if name != "q3_satisfied") / typical_count
    cpu, gpu = pl.col("power_cpu_mw"), pl.col("power_gpu_mw")
    return [*classes, wasted.alias("frag_milli"), (cpu / 1000).alias("power_cpu_w"), (gpu / 1000).alias("power_gpu_w"),
            ((cpu + gpu) / 1000).alias("power_w")]  # fmt: skip


def counts(run: Evidence) -> pl.DataFrame:
    """``t_s`` and ``COUNTS`` after each instant at which a job arrives, starts, stops or ends."""
    arrivals = run.pods.select(
        t_s="submit_s", arrived=1, arrived_cpu_milli="cpu_milli", arrived_gpu_milli="demand_milli",
    )  # fmt: skip
    parts = [arrivals, *running(run), *(ended(run, name, states) for name, states in ENDS.items())]
    names = ("arrived", "pods_running", *ENDS, "arrived_cpu_milli", "arrived_gpu_milli")
    changes = pl.concat([part.cast({"t_s": pl.Float64}) for part in parts], how="diagonal_relaxed")
    summed = (
        changes.group_by("t_s", maintain_order=True).agg(pl.col(names).cast(pl.Int64).fill_null(0).sum()).sort("t_s")
    )
    left = sum((pl.col(name) for name in ENDS), pl.col("pods_running"))
    return summed.with_columns(pl.col(names).cum_sum()).with_columns(pods_pending=pl.col("arrived") - left)


ENDS = {"pods_finished": ("finished",), "pods_unplaced": ("unplaced",), "pods_lost": LOST}
"""Counts of jobs that have ended, by their states."""


def running(run: Evidence) -> list[pl.DataFrame]:
    """Changes of the number of running jobs, +1 at a start and -1 at an end; a stay on several nodes is one."""
    stays = run.stays.select("pod_id", "attempt", "start_s", "end_s").unique()
    return [
        stays.select(t_s="start_s", pods_running=1),
        stays.filter(pl.col("end_s").is_finite()).select(t_s="end_s", pods_running=-1),
    ]


def ended(run: Evidence, name: str, states: tuple[str, ...]) -> pl.DataFrame:
    """Changes of the number of ended jobs: +1 at the end of the last stay, or at arrival without a stay."""
    last = run.stays.group_by("pod_id", maintain_order=True).agg(pl.col("end_s").max().alias("left_s"))
    jobs = run.jobs.filter(pl.col("state").cast(pl.String).is_in(states)).join(last, on="pod_id", how="left")
    return jobs.select(pl.coalesce("left_s", "submit_s").alias("t_s"), pl.lit(1).alias(name))


def last_rows(run: Evidence) -> pl.DataFrame:
    """The last row of every instant, with its number; samples before other changes of their instant are left out."""
    last = run.timeline.with_row_index("row").group_by("t_s", maintain_order=True).last().sort("t_s")
    if run.allocates_gpus_alone and run.scenario.sample_s is None:
        return last
    after = run.stays["end_s"] if run.in_rounds else run.pods["submit_s"]
    return last.filter(~((pl.col("event").cast(pl.String) == "sample") & pl.col("t_s").is_in(after.implode())))


def expected_rows(run: Evidence, nodes: pl.DataFrame) -> pl.DataFrame:
    """The recomputed values of the last rows of all instants."""
    expected = state_by_time(run, nodes).with_columns(pl.col("t_s").set_sorted())
    return last_rows(run).select("row", "t_s").join_asof(expected, on="t_s")


def integral(expected: pl.DataFrame, column: str, first_s: float, last_s: float) -> float:
    """The integral of a column from first_s to last_s: its unit times seconds."""
    lengths = expected.select(
        length=pl.col("t_s").shift(-1, fill_value=last_s).clip(first_s, last_s) - pl.col("t_s").clip(first_s, last_s),
        value=pl.col(column).cast(pl.Float64),
    )  # fmt: skip
    return float((lengths["length"] * lengths["value"]).sum())
