"""Whole runs: every pod offered to every node, nothing precomputed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import fastsim as fs
from bench.conftest import PODS, Timed

POLICIES = {"best_fit": 36.0, "fgd": 290.0, "pwr": 37.0, "0.9*fgd + 0.1*pwr": 230.0}
"""Ratio to the calibration loop that each may not exceed: three times what was measured first."""


@pytest.mark.parametrize("policy", POLICIES)
def bench_run(policy: str, timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """One experiment of the FGD paper; only the summary is kept."""
    count = offered.table().num_rows
    result = timed(
        lambda: fs.simulate(cluster, offered, policy, typical=pods, seed=1, record="summary"),
        items=count, budget=POLICIES[policy],
    )  # fmt: skip
    assert result.summary["pods"].item() == count


def leave_cpu(nodes: Any, pod: Any) -> Any:
    """Points of a policy that a user wrote with numpy."""
    return nodes.cpu_free - pod.cpu_milli


def bench_users_scorer(timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """The same experiment with a policy in Python: one call for each pod."""
    count = offered.table().num_rows
    mine = fs.policies.PythonScorer(leave_cpu)
    timed(lambda: fs.simulate(cluster, offered, mine, typical=pods, seed=1, record="summary"), items=count, budget=33.0)


def bench_all_metrics(timed: Timed, cluster: fs.Cluster, pods: fs.Workload, offered: fs.Workload) -> None:
    """The same with every row of every table kept and looked at."""
    count = offered.table().num_rows

    def tables() -> dict[str, pl.DataFrame]:
        return dict(fs.simulate(cluster, offered, "fgd", typical=pods, seed=1).frames)

    assert len(timed(tables, items=count, budget=310.0)["timeline"]) >= count


def bench_departures(timed: Timed, cluster: fs.Cluster, pods: fs.Workload) -> None:
    """Pods that come and go on a cluster that is seldom full."""
    result = timed(lambda: fs.simulate(cluster, pods, "fgd", seed=1, record="summary"), items=PODS, budget=480.0)
    assert result.summary["pods_finished"].item() > 0
