"""Whole runs, from the objects in memory to the summary."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import fastsim as fs
from bench.conftest import LOAD, PODS, Timed
from fastsim.engine.online import run as engine
from fastsim.engine.online.memo_pool import MEMOS

POLICIES = {"best_fit": 3.6, "fgd": 4.5, "pwr": 3.6, "0.9*fgd + 0.1*pwr": 9.0}
"""Ratio to the calibration loop that each may not exceed: three times what was measured first."""
NEXT = {"fgd": 3.0, "0.9*fgd + 0.1*pwr": 9.0}
"""The same for a run that finds what an earlier one worked out."""


@pytest.mark.parametrize("policy", POLICIES)
def bench_run(policy: str, timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """One experiment of the FGD paper, nothing known from earlier runs; only the summary is kept."""
    count = offered.table().num_rows

    def cold() -> fs.Result:
        MEMOS.clear()
        return fs.simulate(cluster, offered, policy, typical=pods, seed=1, record="summary")

    result = timed(cold, items=count, budget=POLICIES[policy])
    assert result.summary["pods"].item() == count


@pytest.mark.parametrize("policy", NEXT)
def bench_next_seed(policy: str, timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """The same after a run of other pods in this process."""
    other = pods.shuffled(2).tune(LOAD, cluster.total_gpu_milli, seed=2)
    fs.simulate(cluster, other, policy, typical=pods, seed=2, record="summary")
    count = offered.table().num_rows
    timed(
        lambda: fs.simulate(cluster, offered, policy, typical=pods, seed=1, record="summary"),
        items=count, budget=NEXT[policy],
    )  # fmt: skip


@pytest.mark.parametrize("policy", ["fgd", "0.9*fgd + 0.1*pwr"])
def bench_scan(policy: str, timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """The plain look at every node for every pod, and how many times as fast the index is."""

    def run() -> fs.Result:
        return fs.simulate(cluster, offered, policy, typical=pods, seed=1)

    def scan() -> fs.Result:
        engine.SPELLING = "scan"
        try:
            return run()
        finally:
            engine.SPELLING = "index"

    found = timed(scan, items=offered.table().num_rows, rounds=1, than=run, least=8.0)
    assert found.placements.equals(run().placements)


def leave_cpu(nodes: Any, pod: Any) -> Any:
    """Points of a policy that a user wrote with numpy."""
    return nodes.cpu_free - pod.cpu_milli


def bench_users_scorer(timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """The same experiment with a policy in Python: one call for each pod."""
    count = offered.table().num_rows
    mine = fs.policies.PythonScorer(leave_cpu)
    timed(lambda: fs.simulate(cluster, offered, mine, typical=pods, seed=1, record="summary"), items=count, budget=13.0)


def bench_all_metrics(timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """The same with every row of every table kept and looked at."""
    count = offered.table().num_rows

    def tables() -> dict[str, pl.DataFrame]:
        return dict(fs.simulate(cluster, offered, "fgd", typical=pods, seed=1).frames)

    assert len(timed(tables, items=count, budget=4.5)["timeline"]) >= count


def bench_departures(timed: Timed, cluster: fs.Cluster, pods: fs.Workload) -> None:
    """Pods that come and go on a cluster that is seldom full."""
    result = timed(lambda: fs.simulate(cluster, pods, "fgd", seed=1, record="summary"), items=PODS, budget=4.5)
    assert result.summary["pods_finished"].item() > 0
