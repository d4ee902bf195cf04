"""The pods of every recorded list and seed, their order and the order of the nodes, drawn again from list and seed."""

from __future__ import annotations

import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.scenario import run_inputs
from fastsim.workload import Workload
from tests.conftest import SHARED
from tests.golden.fgd.fgd import FGD, inputs, raw_trace

LOAD = 1.3
LISTS = SHARED / "data/openb"
PODS, NODES = "openb_pod_list_", LISTS / "openb_node_list_gpu_node.parquet"
RECORDED = sorted(path.stem for path in FGD.glob("inputs/orders/*.parquet") if path.stem != "node_perm")
SEEDS = range(42, 52)

needs_data = pytest.mark.skipif(not RECORDED, reason=f"reference data not found: {FGD}")


def names(table: Cluster | Workload) -> list[str]:
    if isinstance(table, Cluster):
        return [str(name) for name in table.nodes["name"].to_pylist()]
    return [str(name) for name in table.table()["native_id"].to_pylist()]


@needs_data
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("trace", RECORDED)
def test_pods_and_nodes_are_drawn_as_recorded(trace: str, seed: int) -> None:
    recorded = inputs(trace, seed)
    rows = raw_trace(FGD, trace).select(
        pl.col("csv_row").cast(pl.Int64).alias("pod_id"), pl.lit(0.0).alias("submit_s"),
        pl.col("name").alias("native_id"),
        pl.col("cpu_milli", "memory_mib").cast(pl.Int64), pl.col("num_gpu", "gpu_milli").cast(pl.Int16),
    )  # fmt: skip
    nodes = recorded.nodes.sort("node_idx").select(
        pl.col("orig_name").alias("name"), "cpu_milli", (pl.col("memory_bytes") // 2**20).alias("memory_mib"),
        "num_gpu", "gpu_model",
    )  # fmt: skip
    cluster = Cluster(nodes.to_arrow())
    pods = Workload.from_arrow(rows.to_arrow()).shuffled(seed).tune(LOAD, cluster.total_gpu_milli, seed)
    assert names(pods) == recorded.pods["native_id"].to_list()
    assert names(cluster.shuffled(seed, after=pods)) == recorded.nodes["orig_name"].to_list()


@needs_data
@pytest.mark.parametrize("trace", [name for name in RECORDED if (LISTS / f"{PODS}{name}.parquet").exists()])
def test_texts_of_the_published_lists_are_the_recorded_run(trace: str) -> None:
    pods = f"openb:{LISTS}/{PODS}{trace}.parquet?tune={LOAD}&tune_seed=42"
    cluster, workload, _ = run_inputs.inputs_from(f"openb:{NODES}?shuffle=42", pods)
    recorded = inputs(trace, 42)
    assert names(workload) == recorded.pods["native_id"].to_list()
    assert names(cluster) == recorded.nodes["orig_name"].to_list()


@pytest.mark.skipif(not NODES.exists(), reason=f"trace not found: {LISTS}")
def test_a_seed_of_no_recorded_run_draws_as_many_pods_as_go() -> None:
    """The number is that of a program in Go which draws as the original does."""
    pods = f"openb:{LISTS}/{PODS}default.parquet?tune={LOAD}&tune_seed=7601"
    assert len(names(run_inputs.inputs_from(f"openb:{NODES}?shuffle=7601", pods)[1])) == 10_805
