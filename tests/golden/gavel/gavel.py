"""The recorded runs of the Gavel simulator: rates, jobs and settings as ours. Nothing here names a run."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl

from fastsim.performance.oracle import Oracle
from fastsim.workload import Workload
from fastsim.workload.generators.gavel_jobs import JobRecipe, gavel_seconds
from tests.conftest import SHARED

GAVEL = SHARED / "golden/gavel"


@cache
def oracle(name: str = "simulation_throughputs") -> Oracle:
    """The rates of a throughput file."""
    return Oracle.from_json(GAVEL / "oracle" / f"{name}.json")


def settings() -> pl.DataFrame:
    """One row per recorded run: scenario (`name`), policy, parameters and outcome."""
    return pl.read_csv(GAVEL / "sim/summary.csv", infer_schema_length=None)


def scenarios() -> pl.DataFrame:
    """One row per recorded scenario: its parameters; of outcomes only the first policy's."""
    return settings().unique("name", keep="first", maintain_order=True)


def recorded_jobs(scenario: str) -> pl.DataFrame:
    """The jobs of a scenario as they were recorded, under the names of our columns, in order of their ids."""
    rows = pl.read_parquet(GAVEL / "traces" / f"{scenario}.parquet").sort("job_id")
    return rows.select(
        pl.col("job_id").alias("pod_id"), pl.col("arrival").alias("submit_s"), pl.col("job_type").alias("workload"),
        pl.col("scale_factor").cast(pl.Int16).alias("num_gpu"), "total_steps", pl.col("duration").alias("duration_s"),
        pl.col("priority_weight").alias("weight"), pl.col("SLO").cast(pl.Float64).alias("slo"),
    ).rename({"total_steps": "total_work"})  # fmt: skip


def jobs(scenario: str) -> Workload:
    """The recorded jobs of a scenario as a workload."""
    nothing = [pl.lit(0, pl.Int64).alias(name) for name in ("cpu_milli", "memory_mib")]
    rows = recorded_jobs(scenario).with_columns(*nothing, pl.lit(1000, pl.Int16).alias("gpu_milli"))
    return Workload.from_arrow(rows.to_arrow(), name=scenario)


def recipe(setting: dict[str, Any]) -> JobRecipe:
    """How the jobs of a scenario were drawn: by its row of `scenarios`, and what only the jobs themselves tell."""
    rows = recorded_jobs(setting["name"])
    lasting = rows["duration_s"]
    warm = setting["lam"] > 0 and rows["submit_s"][1] == 0
    gpus = tuple(int(count) for count in reversed(setting["cluster"].split(":")))
    return JobRecipe(
        oracle(), setting["seed"], setting["lam"], setting["multi_gpu"], setting["multi_priority"],
        slos=rows["slo"].null_count() == 0, durations=lasting[0] if lasting.n_unique() == 1 else gavel_seconds,
        present_gpus=gpus if warm else (),
    )  # fmt: skip
