"""Power, power saving and GRAR of the PWR paper's slides, averaged over all recorded seeds as its curves are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.experiments.reproduce.placement_figures import (
    GRID_STEP,
    averaged,
    grar,
    interpolated,
    power_saving_pct,
)
from tests.conftest import SHARED
from tests.golden.fgd.fgd import FGD, arrivals, inputs, plans, simulated

PUBLISHED = SHARED / "golden/published/fgd-pwr.csv"
CURVES = ("power_total", "power_cpu", "power_saving_vs_fgd", "grar")
MISREAD = 0.02
"""Part of the points that may lie elsewhere: they are read from pixels, also where one curve hides another."""


@cache
def points() -> dict[str, list[dict[str, Any]]]:
    """Printed points of recorded policies on recorded traces, by trace; ``policy`` as the recordings name it."""
    if not PUBLISHED.exists():
        return {}
    rows = pl.read_csv(PUBLISHED, infer_schema_length=None).filter(pl.col("metric").is_in(CURVES)).with_columns(
        pl.col("policy_original").str.replace_all("_", "").alias("policy"),
        pl.col("panel").str.split(" ").list.first().alias("trace"),
    )  # fmt: skip
    traces = {file.stem for file in FGD.glob("inputs/orders/*.parquet")}
    rows = rows.filter(pl.col("policy").is_in(list(plans())), pl.col("trace").is_in(list(traces)))
    return {str(trace): table.to_dicts() for (trace,), table in rows.group_by("trace", maintain_order=True)}


def seeds(trace: str) -> list[int]:
    orders = pl.read_parquet(FGD / f"inputs/orders/{trace}.parquet", columns=["seed"])
    return sorted(orders["seed"].unique().to_list())


def mean_curves(policy: str, trace: str) -> dict[str, np.ndarray]:
    """Power in watts and GRAR over demand, mean over the seeds."""
    return averaged([dict(_curves(policy, trace, seed)) for seed in seeds(trace)])


def _curves(policy: str, trace: str, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    rows = arrivals(simulated(policy, trace, seed))
    capacity = int(inputs(trace, seed).nodes["num_gpu"].sum()) * 1000
    x, cpu_w = rows["arrived_gpu_milli"].to_numpy(), rows["power_cpu_w"].to_numpy()
    yield "power_cpu", interpolated(x, cpu_w, capacity)[1]
    yield "power_total", interpolated(x, cpu_w + rows["power_gpu_w"].to_numpy(), capacity)[1]
    yield "grar", interpolated(x, grar(rows["gpu_milli_alloc"].to_numpy(), x), capacity)[1]


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"reference data not found: {PUBLISHED}")
@pytest.mark.long
@pytest.mark.parametrize("trace", points())
def test_points_of_the_slides(trace: str) -> None:
    printed = points()[trace]
    curves = {policy: mean_curves(policy, trace) for policy in {"FGD", *(row["policy"] for row in printed)}}
    reference_w = curves["FGD"]["power_total"]
    for ours in curves.values():
        ours["power_saving_vs_fgd"] = power_saving_pct(reference_w, ours["power_total"])
    elsewhere = []
    for row in printed:
        value = np.interp(row["x"] / GRID_STEP, np.arange(len(reference_w)), curves[row["policy"]][row["metric"]])
        if not abs(value - row["value"]) <= row["tolerance"]:
            elsewhere.append((row["policy"], row["metric"], row["x"], row["value"], float(value)))
    assert len(elsewhere) <= MISREAD * len(printed), elsewhere
