"""Emissions in the summary of every engine, in memory and in folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.engine.audit.metric_definitions import ENGINES
from fastsim.errors import ScenarioError
from fastsim.scenario.carbon import Carbon
from tests.engines import small_run


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """An intensity that changes every 30 s."""
    path = tmp_path / "grid.csv"
    rows = "".join(f"{30 * k},{100 + 50 * (k % 5)}\n" for k in range(200))
    path.write_text("since_s,g_per_kwh\n" + rows)
    return f"{path}?pue=1.5"


@pytest.fixture
def even(tmp_path: Path) -> str:
    """Rows whose intensities differ by next to nothing, so that power is added up over time."""
    path = tmp_path / "even.csv"
    path.write_text("since_s,g_per_kwh\n0,250\n40,250.00000000001\n")
    return str(path)


@pytest.mark.parametrize("engine", ENGINES)
def test_power_over_time_adds_up_to_the_energy(engine: str, even: str) -> None:
    row = small_run(engine, carbon=even).summary.row(0, named=True)
    assert row["co2_kg"] == pytest.approx(row["energy_kwh"] * 0.25, rel=1e-9)  # the same sum in another order


@pytest.mark.spread(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_audit_finds_the_same(engine: str, grid: str) -> None:
    result = small_run(engine, carbon=grid)
    audit = result.audit()
    assert result.summary["co2_kg"].item() > 0
    assert not [one for one in audit.differences if one.column == "co2_kg"]
    wrong = fs.Result({**result.frames, "summary": result.summary.with_columns(co2_kg=pl.lit(0.5))},
                      result.provenance, result.timing)  # fmt: skip
    hidden = [one for one in audit.unchecked if "co2_kg" in one[1]]
    assert hidden or [one.column for one in wrong.audit().differences if one.column == "co2_kg"] == ["co2_kg"]


def test_without_an_intensity_there_are_no_emissions() -> None:
    assert small_run("pods").summary["co2_kg"].to_list() == [None]


def test_a_folder_has_the_same(tmp_path: Path, grid: str) -> None:
    cluster, pods = "openb:20", "synth:openb?pods=30&seed=1"
    for carbon in (grid, 300.0):
        inner = fs.simulate(cluster, pods, queue="fifo", carbon=carbon)
        outer = fs.simulate(cluster, pods, queue="fifo", carbon=carbon, out=tmp_path / "run", overwrite=True)
        assert outer.summary.equals(inner.summary) and inner.summary["co2_kg"].item() > 0
        assert fs.Result.load(tmp_path / "run").summary["co2_kg"].item() == inner.summary["co2_kg"].item()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"record": "summary"}, "record: found 'summary'"), ({"sample_s": 60.0}, "sample_s: found 60")],
)
def test_power_over_time_has_to_be_kept(grid: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        fs.simulate(fs.Cluster.mix(t4=2), "synth:openb?pods=3&seed=1", carbon=grid, **options)
    fs.simulate(fs.Cluster.mix(t4=2), "synth:openb?pods=3&seed=1", carbon=300, **options)


def test_nodes_that_come_before_the_first_pod_emit_nothing_before_it() -> None:
    nodes = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=1).nodes
    late = nodes.set_column(nodes.schema.get_field_index("add_s"), "add_s", pa.array([None, 3.0], pa.float64()))
    pods = pl.DataFrame({"submit_s": [9.0], "num_gpu": [1], "duration_s": [10.0]})
    workload = fs.Workload.from_polars(pods, origin="keep")
    changing = Carbon(np.array([0.0, 12.0]), np.array([100.0, 300.0]))
    result = fs.simulate(fs.Cluster.from_arrow(late), workload, "best_fit", carbon=changing)
    energy_kwh = result.summary["energy_kwh"].item()
    assert result.timeline["event"][0] == "node" and result.summary["makespan_s"].item() == 10
    assert result.summary["co2_kg"].item() == pytest.approx(energy_kwh * (0.3 * 100 + 0.7 * 300) / 1000)
    assert not result.audit().differences
