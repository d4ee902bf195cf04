"""Emissions of a run: the power of its timeline, or its energy where the intensity never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from fastsim.engine.result import FolderFrames, Result, write_table
from fastsim.engine.tables import LazyFrames
from fastsim.errors import ScenarioError
from fastsim.scenario.carbon import Carbon, carbon_from
from fastsim.scenario.scenario import Scenario

KEPT = ("timeline", "all")
"""Records with the timeline of which power over time is read."""


def refuse_unrecorded(scenario: Scenario) -> None:
    """ScenarioError for an intensity that changes, where the run would keep no power over time."""
    carbon = carbon_from(scenario.carbon)
    if carbon is None or not carbon.changes:
        return
    why = "power over time, because the carbon intensity changes"
    if scenario.record not in KEPT:
        raise ScenarioError("record", repr(scenario.record), f"one of {', '.join(KEPT)}: {why}")
    if scenario.sample_s is not None:
        raise ScenarioError("sample_s", scenario.sample_s, f"nothing: {why}")
    if scenario.ideal:
        raise ScenarioError("ideal", scenario.ideal, f"false: {why}")


def with_emissions(result: Result, carbon: Carbon | None, folder: Path | None = None) -> Result:
    """The result with ``co2_kg`` in its summary, which is written again if it is in ``folder`` already."""
    energy_kwh = result.summary["energy_kwh"].item()
    if carbon is None or energy_kwh is None:
        return result
    co2_kg = _over_time(result, carbon) if carbon.changes else carbon.co2_kg(energy_kwh)
    summary = result.summary.with_columns(co2_kg=pl.lit(co2_kg, pl.Float64))
    if folder is not None and isinstance(result.frames, FolderFrames):
        write_table(folder / "summary.parquet", "summary", summary)
        return replace(result, frames=FolderFrames(folder))
    return replace(result, frames=_with_summary(result.frames, summary))


def _with_summary(frames: Mapping[str, pl.DataFrame], summary: pl.DataFrame) -> LazyFrames:
    """The same tables with another summary; tables that were not made yet are made on first use."""
    others = {name: partial(frames.__getitem__, name) for name in frames if name != "summary"}
    return LazyFrames({"summary": summary}, others)


def _over_time(result: Result, carbon: Carbon) -> float:
    """Emissions of the timeline from the first arrival on, as energy is counted; a row holds until the next one."""
    power_w = pl.col("power_cpu_w") + pl.col("power_gpu_w")
    rows = result.scan("timeline").select("t_s", power_w=power_w, before=pl.col("event") == "node").collect()
    rows = rows.filter((~pl.col("before")).cum_max())  # nodes may come and go before any pod arrives
    edges = rows["t_s"].to_numpy()
    return carbon.co2_kg_over(edges, rows["power_w"].to_numpy()[:-1]) if len(edges) else float(np.nan)
