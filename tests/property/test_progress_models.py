"""Every family of policies with every model of progress: played to the end, or refused with what the jobs lack.

The table ``fastsim/simulation/tables/progress.csv`` says which; a guide shows it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError
from fastsim.policies import registry
from fastsim.simulation.engines.choice import engine_named
from fastsim.simulation.simulate import checked_policy
from tests.docs.pages import PAGES

TABLE = Path(fs.__file__).parent / "simulation/tables/progress.csv"
T4 = "uniform?nodes=8&gpu=T4&gpus=8"
PODS = fs.Workload.from_polars(pl.DataFrame([
    {"submit_s": 60.0 * k, "num_gpu": 1 + k % 2, "gpu_milli": 1000 if k % 2 else 500, "duration_s": 900.0}
    for k in range(4)
]))  # fmt: skip
WHOLE = fs.Workload.from_polars(pl.DataFrame([
    {"submit_s": 60.0 * k, "num_gpu": 1 + k % 2, "cpu_milli": 2000, "memory_mib": 4096, "duration_s": 900.0}
    for k in range(4)
]))  # fmt: skip
MODELS: dict[str, tuple[Any, Any]] = {
    "pods": (T4, PODS),
    "whole-GPU pods": (T4, WHOLE),
    "rates": ("gavel:4:4:4", "synth:gavel?jobs=6&rate_per_hour=2&seed=3"),
    "sensitivities": ("synergy:4", "synth:synergy?jobs=6&seed=1"),
    "applications": ("sia:6:2:3", "synth:sia?jobs=5&seed=1"),
    "profiles": ("uniform?nodes=2&gpu=T4&gpus=2", "synth:detectors?jobs=4"),
}
"""A cluster and a workload of each model of progress."""


def rows() -> list[dict[str, str]]:
    """The table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


CELLS = [(row["policy"], model, row[model]) for row in rows() for model in MODELS]


def test_the_table_has_every_model_and_every_engine() -> None:
    assert {*rows()[0]} == {"policy", *MODELS}
    engines = {registry.engine_of(registry.parse(row["policy"])) for row in rows()}
    assert engines == {"pods", "shares", "orders", "adaptive", "monitored"}


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")
@pytest.mark.parametrize(("policy", "model", "cell"), CELLS)
def test_every_cell_is_as_the_table_says(policy: str, model: str, cell: str) -> None:
    cluster, workload = MODELS[model]
    scenario = fs.Scenario(cluster, workload, policy)
    if cell == "yes":
        assert fs.simulate(cluster, workload, policy).jobs["state"].eq("finished").all()
        return
    if cell == "one GPU":  # jobs are looked at as they arrive
        with pytest.raises(FastsimError, match=r"expected (jobs on )?1"):
            fs.simulate(cluster, workload, policy)
        return
    with pytest.raises(FastsimError, match="expected") as refused:
        engine_named(registry.engine_of(registry.parse(policy))).prepared(scenario, checked_policy(scenario))
    assert "GPU model: found" not in str(refused.value)


def shown() -> str:
    """The table as guides show it."""
    frame = pl.DataFrame(rows())
    lines = [frame.columns, ["---"] * len(frame.columns), *([f"`{name}`", *cells] for name, *cells in frame.rows())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def test_the_guide_shows_the_table() -> None:
    assert shown() in PAGES["rounds"]
