"""One score of one pod class on every node, each through one call from Python (some 0.1 µs of the time)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import fastsim as fs
from bench.conftest import Timed
from fastsim.engine.online.kernel_columns import ModelIds, node_columns, plan_columns, typical_columns
from fastsim.engine.online.plan import DIMS, KERNELS, NORMS, OnlinePlan
from fastsim_ext.select.scan import Selector
from fastsim_ext.state.node_table import NodeTable, TypicalTable
from fastsim_ext.state.pod_table import WorkTable

NAMES = ("best_fit", "gpu_packing", "gpu_clustering", "simon", "fgd", "pwr")
CASES = [(name, "merge", "max") for name in NAMES] + [("dot_product", dim, "max") for dim in DIMS]
BUDGETS = {"fgd": 0.09}
"""Ratio a kernel may not exceed, if it is not the usual one."""
USUAL = 0.025


@pytest.fixture(scope="module")
def tables(cluster: fs.Cluster, pods: fs.Workload) -> tuple[NodeTable, Selector]:
    """Nodes used by half at random, and one class: a pod that requests half a GPU."""
    ids = ModelIds(cluster.nodes["gpu_model"].to_pylist())
    typical = fs.TypicalPods.of(pods)
    nodes = NodeTable(node_columns(cluster, ids), TypicalTable(typical_columns(typical, ids)))
    random = Random(42)
    for n, row in enumerate(cluster.nodes.to_pylist()):
        free = [random.choice((0, 250, 500, 1000)) for _ in range(row["num_gpu"])]
        nodes.load(n, row["cpu_milli"] // 2, row["memory_mib"] // 2, free, {})
    work = WorkTable()
    work.add_class(4_000, 8_192, 1, 500, 0)
    return nodes, Selector(nodes, work, plan_columns(OnlinePlan(()), nodes.count), 0, None)


@pytest.mark.parametrize(("kernel", "dim", "norm"), CASES)
def bench_raw_score(kernel: str, dim: str, norm: str, timed: Timed, tables: tuple[NodeTable, Selector]) -> None:
    """Raw points of all nodes."""
    nodes, select = tables
    numbers = (KERNELS.index(kernel), DIMS.index(dim), NORMS.index(norm))

    def all_nodes() -> list[Any]:
        return [select.raw(*numbers, n, 0) for n in range(nodes.count)]

    assert len(timed(all_nodes, items=nodes.count, budget=BUDGETS.get(kernel, USUAL), rounds=30)) == nodes.count
