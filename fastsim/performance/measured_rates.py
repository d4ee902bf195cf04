"""Rates of jobs from measurements: steps that were counted and the seconds that they took.

Columns of the CSV: workload, gpu_model, steps, seconds and maybe num_gpu (1) and colocated_workload, which shared every
GPU. Of several measurements of the same the steps and the seconds are added up.
"""

from __future__ import annotations

import os

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.performance.rate_table import RATE_SCHEMA, rate_table

COLUMNS = {
    "workload": pa.string(), "gpu_model": pa.string(), "num_gpu": pa.int32(), "colocated_workload": pa.string(),
    "steps": pa.float64(), "seconds": pa.float64(),
}  # fmt: skip
NEEDED = ("workload", "gpu_model", "steps", "seconds")
KEYS = ("workload", "gpu_model", "num_gpu", "colocated_workload")


def measured_rates(path: str | os.PathLike[str]) -> pa.Table:
    """The rates of one CSV (plain or .gz) in canonical order; see `rate_table.RATE_SCHEMA`."""
    rows = pl.DataFrame(read_csv(path, COLUMNS, NEEDED))
    for name, expected, good in (
        ("steps", "0 or more", pl.col("steps") >= 0), ("seconds", "above 0", pl.col("seconds") > 0),
    ):  # fmt: skip
        wrong = rows.select((~(good & pl.col(name).is_finite()).fill_null(False)).arg_true()).to_series()
        if len(wrong):
            row = int(wrong[0])
            raise InputError(f"{path}:{csv_line(path, row)}: {name}", rows[name][row], expected)
    missing = {"num_gpu": pl.lit(1, pl.Int32), "colocated_workload": pl.lit(None, pl.String)}
    rows = rows.with_columns(**{name: value for name, value in missing.items() if name not in rows.columns})
    rows = rows.with_columns(pl.col("num_gpu").fill_null(1), pl.col("colocated_workload").replace("", None))
    sums = rows.group_by(KEYS, maintain_order=True).agg(pl.col("steps").sum(), pl.col("seconds").sum())
    rates = _with_mates(sums.with_columns(steps_per_s=pl.col("steps") / pl.col("seconds")))
    columns = {
        name: rates[name].to_list() if name in rates.columns else [None] * len(rates) for name in RATE_SCHEMA.names
    }
    return rate_table(columns)


def _with_mates(rates: pl.DataFrame) -> pl.DataFrame:
    """Each pair with the rate of the other job, which has a row of its own."""
    other = rates.select(
        pl.col("colocated_workload").alias("workload"), "gpu_model", "num_gpu",
        pl.col("workload").alias("colocated_workload"), pl.col("steps_per_s").alias("colocated_steps_per_s"),
    )  # fmt: skip
    return rates.join(other, on=KEYS, how="left", maintain_order="left")
