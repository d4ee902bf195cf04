"""Every engine with every feature: played, refused with a reason, without effect and told so, or null.

The table ``fastsim/simulation/tables/features.csv`` says which; the first page and a guide show it.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.errors import FastsimError
from fastsim.simulation.run_warnings import OptionUnused
from tests.docs.pages import PAGES
from tests.engines import RUNS

TABLE = Path(fs.__file__).parent / "simulation/tables/features.csv"
IDEAL = {name: value for name, value in RUNS["shares"].items() if name != "round_s"} | {"ideal": True}
PLAYED: dict[str, dict[str, Any]] = {**RUNS, "ideal": IDEAL}
"""A small run of each engine; jobs of shares without rounds (the ideal) count as one."""
SPARSE = {"workload": "synth:gavel?jobs=8&rate_per_hour=0.2&seed=3"}
"""Jobs that a cluster keeps up with: others go on arriving until the jobs that count are done."""
MOST_REFUSED = 16
"""Cells of the five engines that are refused: a feature that reaches another engine lowers it."""
Feature = Callable[[dict[str, Any], Path], Any]


def rows() -> list[dict[str, str]]:
    """The table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def kept(run: dict[str, Any], folder: Path) -> fs.Result:
    """The run with a checkpoint each two arrivals, of which the last one stays."""
    return fs.simulate(**run, out=folder / "run", checkpoint_pods=2, keep_checkpoint=True)


def resumed(run: dict[str, Any], folder: Path) -> bool:
    """Whether the run from its last checkpoint is the run."""
    whole = kept(run, folder)
    return fs.resume(folder / "run", overwrite=True).jobs.equals(whole.jobs)


def forked(run: dict[str, Any], folder: Path) -> bool:
    """Whether a fork without a change has the jobs of the run."""
    whole = kept(run, folder)
    return fs.fork(folder / "run", folder / "fork").jobs.equals(whole.jobs)


def with_leaving_node(run: dict[str, Any]) -> fs.Cluster:
    """The cluster of the run, of which the last node leaves at 10⁹ s."""
    nodes = Cluster.from_text(run["cluster"]).nodes
    leaves = pa.array([*[None] * (len(nodes) - 1), 1e9], pa.float64())
    return fs.Cluster.from_arrow(nodes.set_column(nodes.schema.get_field_index("remove_s"), "remove_s", leaves))


def figure(run: dict[str, Any], name: str, **options: Any) -> Any:
    """A figure of the summary."""
    return fs.simulate(**run, **options).summary[name].item()


def rarer(run: dict[str, Any], _: Path) -> bool:
    """Whether the timeline has fewer rows with a time between them."""
    often, rare = (fs.simulate(**run, sample_s=step).timeline.height for step in (None, 1e6))
    return bool(0 < rare < often)


def priced(run: dict[str, Any], _: Path) -> bool:
    """Whether jobs cost something."""
    models = Cluster.from_text(run["cluster"]).nodes["gpu_model"].drop_null().unique().to_pylist()
    return bool(figure(run, "cost", prices=dict.fromkeys(models, 1.0)) > 0)


FEATURES: dict[str, Feature] = {
    "stop with a checkpoint and resume": resumed,
    "fork from a checkpoint": forked,
    "telemetry": lambda run, _: fs.simulate(**run, telemetry=600).telemetry.height > 0,
    "telemetry beside checkpoints": lambda run, folder: kept({**run, "telemetry": 600}, folder).telemetry.height > 0,
    "failures of nodes": lambda run, _: fs.simulate(**run, failures="mtbf=100000,mttr=1000").jobs.height > 0,
    "nodes that join or leave": lambda run, _: (
        fs.simulate(**{**run, "cluster": with_leaving_node(run)}).jobs.height > 0
    ),
    "explain": lambda run, _: fs.explain(fs.simulate(**run), [0]).height or None,
    "a timeline row each `sample_s`": rarer,
    "an end at `until_s`": lambda run, _: figure(run, "makespan_s", until_s=1.0) <= figure(run, "makespan_s"),
    "power": lambda run, _: figure(run, "mean_power_w"),
    "fragmentation": lambda run, _: figure(run, "mean_frag_milli"),
    "prices": priced,
    "carbon": lambda run, _: figure(run, "co2_kg", carbon=300.0),
    "fairness of tenants": lambda run, _: "tenant_jain" in fs.simulate(**run).summary.columns,
    "audit": lambda run, _: not fs.simulate(**run).audit().differences,
    "quotas of tenants": lambda run, _: fs.simulate(**run, quotas="*:gpu_milli=9000").jobs.height > 0,
    "`restart_s`": lambda run, _: fs.simulate(**run, restart_s=5.0).jobs.height > 0,
    "`window`": lambda run, _: fs.simulate(**(run | SPARSE), window="1:3").jobs.height > 0,
}
"""What plays a feature in a run of an engine, and is false or null where nothing comes of it."""


def test_every_feature_has_a_way_to_play_it() -> None:
    assert [row["feature"] for row in rows()] == list(FEATURES)
    assert set(rows()[0]) == {"feature", *PLAYED}


def test_few_cells_are_refused() -> None:
    assert sum(row[engine] == "refused" for row in rows() for engine in RUNS) <= MOST_REFUSED


CELLS = [(row["feature"], engine, row[engine]) for row in rows() for engine in PLAYED]


@pytest.mark.parametrize(("feature", "engine", "cell"), CELLS)
def test_every_cell_is_as_the_table_says(feature: str, engine: str, cell: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if cell == "refused":
            with pytest.raises(FastsimError, match="expected"):
                FEATURES[feature](PLAYED[engine], tmp_path)
            return
        found = FEATURES[feature](PLAYED[engine], tmp_path)
    unused = [str(one.message) for one in caught if issubclass(one.category, OptionUnused)]
    if cell == "null":
        assert found is None
    elif cell == "unused":
        assert unused
    else:
        assert cell == "yes" and found is not None and found is not False
        assert feature == "`restart_s`" or not unused  # no pod of this run stops


def shown() -> str:
    """The table as guides show it."""
    frame = pl.DataFrame(rows())
    lines = [frame.columns, ["---"] * len(frame.columns), *map(list, frame.rows())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


@pytest.mark.parametrize("page", ["rounds", "README"])
def test_pages_show_the_table(page: str) -> None:
    assert shown() in PAGES[page]
