"""Every recorded run again: the same node and devices for every pod, the same metrics after every pod."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import polars as pl
import pytest

from fastsim.engine.originals.differences import differences, original_from
from fastsim.engine.result import Result
from fastsim.workload import Workload
from tests.golden.fgd.fgd import (
    FGD,
    FRAGMENTS,
    METRICS,
    Inputs,
    arrivals,
    inputs,
    plan_of,
    reproducible,
    simulated,
    summaries,
)
from tests.reference.online.engine import simulate_reference
from tests.strategies import scenarios_per_run

RUNS = summaries()
EXACT = [name for name, summary in RUNS.items() if reproducible(summary)]
RANDOM = [name for name in RUNS if name not in EXACT]
PREFIX = scenarios_per_run(60)
"""Pods of each recorded run that the slow twin places again."""
PRINTED = 1e-3
"""Fragmentation is recorded with three decimals and summed over nodes in an unknown order."""

needs_data = pytest.mark.skipif(not RUNS, reason=f"reference data not found: {FGD}")


@pytest.fixture(scope="module", params=EXACT)
def name(request: pytest.FixtureRequest) -> str:
    """A recorded folder; all tests of one folder follow each other, so that it runs once."""
    return str(request.param)


@lru_cache(maxsize=1)
def run(name: str) -> Result:
    """Our run of a recorded folder."""
    summary = RUNS[name]
    return simulated(summary["policy"], summary["trace"], summary["seed"])


def given(name: str) -> Inputs:
    return inputs(RUNS[name]["trace"], RUNS[name]["seed"])


def node_indices(placements: pl.DataFrame, of: Inputs) -> list[int]:
    """The recordings' node number of every pod, -1 for one that failed."""
    node_idx = of.nodes["node_idx"].to_list()
    return [-1 if node is None else node_idx[node] for node in placements["node_id"]]


@needs_data
def test_every_pod_has_the_same_node_and_devices(name: str) -> None:
    recorded = pl.read_parquet(FGD / name / "placements.parquet").sort("seq")
    placements = run(name).placements
    assert placements["native_id"].to_list() == recorded["pod"].to_list()
    assert node_indices(placements, given(name)) == recorded["node_idx"].to_list()
    assert placements["node"].to_list() == recorded["node"].to_list()
    assert placements["gpu_ids"].to_list() == recorded["gpu_index"].to_list()


@needs_data
def test_the_same_pods_fail(name: str) -> None:
    result, summary = run(name), RUNS[name]
    recorded = pl.read_parquet(FGD / name / "placements.parquet").sort("seq")
    failed = result.jobs["state"] == "unplaced"
    assert failed.to_list() == (~recorded["placed"]).to_list()
    assert (len(failed), failed.sum()) == (summary["pods"], summary["failed"])
    assert result.summary["pods_unplaced"].item() == summary["failed"]


@needs_data
def test_every_metric_after_every_pod(name: str) -> None:
    recorded = pl.read_parquet(FGD / name / "metrics.parquet").sort("seq")
    rows = arrivals(run(name))
    assert rows["pod_id"].to_list() == recorded["seq"].to_list()
    for theirs, ours in METRICS.items():
        assert rows[ours].to_list() == recorded[theirs].to_list(), theirs
    for theirs, ours in {**dict(zip(FRAGMENTS, FRAGMENTS, strict=True)), "frag_gpu_milli": "frag_milli"}.items():
        assert (rows[ours] - recorded[theirs]).abs().max() <= PRINTED, theirs  # type: ignore[operator]


@needs_data
def test_the_twin_places_the_first_pods_the_same(name: str) -> None:
    recorded = pl.read_parquet(FGD / name / "placements.parquet").sort("seq").head(PREFIX)
    of = given(name)
    first = Workload.from_arrow(of.workload.table().slice(0, PREFIX))
    placements = simulate_reference(of.cluster, first, plan_of(RUNS[name]), of.typical, until_s=PREFIX).placements
    assert node_indices(placements, of) == recorded["node_idx"].to_list()
    assert placements["gpu_ids"].to_list() == recorded["gpu_index"].to_list()


@needs_data
@pytest.mark.parametrize("folder", RANDOM)
def test_random_runs_end_like_the_recorded_ones(folder: str) -> None:
    """The original's random choice is a race; the bar is a percentage point of the published mean."""
    summary, rows = RUNS[folder], arrivals(run(folder))
    capacity = int(given(folder).nodes["num_gpu"].sum()) * 1000
    within = rows.filter(pl.col("arrived_gpu_milli") <= capacity)
    published = pl.read_parquet(FGD / "published_discrete.parquet").filter(
        pl.col("trace") == summary["trace"], pl.col("policy") == summary["policy"]
    )
    for percent, row in ((100, within), (published["arrive_pct"].max(), rows)):
        mean = published.filter(pl.col("arrive_pct") == percent)["alloc_pct"].mean()
        assert 100 * row["gpu_milli_alloc"][-1] / capacity == pytest.approx(mean, abs=1.0)


@needs_data
def test_both_ways_to_the_same_inputs_agree() -> None:
    """Expanded inputs and those made from traces, orders and permutations are the same."""
    for trace, seed in _expanded():
        whole, made = Inputs(trace, seed), _from_orders(trace, seed)
        columns = ["seq", "native_id", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_models"]
        assert whole.pods.select(columns).rows() == made.pods.select(columns).rows()
        assert whole.nodes.sort("node").rows() == made.nodes.select(whole.nodes.columns).sort("node").rows()


def _expanded() -> Iterator[tuple[str, int]]:
    for folder in sorted(FGD.glob("inputs/*-seed*")):
        trace, _, seed = folder.name.rpartition("-seed")
        yield trace, int(seed)


def _from_orders(trace: str, seed: int) -> Inputs:
    from tests.golden.fgd import fgd

    of = Inputs(trace, seed)
    of.__dict__["pods"] = fgd._ordered_pods(of)
    of.__dict__["nodes"] = fgd._permuted_nodes(of)
    return of


@needs_data
def test_the_tables_of_the_original_read_as_ours(name: str, tmp_path: Path) -> None:
    recorded = pl.read_parquet(FGD / name / "metrics.parquet").sort("seq")
    used = ("used_nodes", "used_gpus", "used_gpu_milli", "arrived_gpu_milli")
    total = sum(pl.col(column) for column in FRAGMENTS)
    table = recorded.select(
        *used, origin_milli=pl.col("frag_gpu_milli").round(2),
        origin_ratio=(100 * pl.col("frag_gpu_milli") / total).round(2),
    )  # fmt: skip
    table.rename({column: f"{name}-{column}" for column in table.columns}).write_csv(tmp_path / "analysis.csv")
    rows = differences(run(name), original_from(f"fgd:{tmp_path / 'analysis.csv'}"), PRINTED)
    assert rows["equal"].all() and len(rows) == 1 + len(table.columns)
