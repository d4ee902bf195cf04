"""Pods that run on a cluster already count for whatever is offered to it, and taints close nodes to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.experiments.capacity_plan import smallest_additions
from fastsim.kubernetes.snapshot import NotHonoured
from fastsim.workload.importers.running_pods import taints_of
from tests.objects import node, pod, written
from tests.unit.kubernetes.test_arrival_order import running

TAINTED = node("closed", spec={"taints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]})
CONTENT = [{"key": "dedicated", "operator": "Exists"}]


@pytest.fixture
def now(tmp_path: Path) -> str:
    """A cluster of two nodes, one of them tainted, with a pod on the other."""
    return f"kubernetes:{written(tmp_path / 'now.json', TAINTED, node('open'), running('r', 'open', {'cpu': 6}))}"


def places(cluster: Any, workload: Any, **options: Any) -> dict[str, str | None]:
    result = fs.simulate(cluster, workload, "best_fit", **options)
    return dict(result.placements.select("native_id", "node").rows())


def test_pods_of_another_file_meet_taints_and_what_runs(now: str, tmp_path: Path) -> None:
    pods = (pod("a", {"cpu": 4}), pod("b", {"cpu": 2}), pod("c", {"cpu": 4}, tolerations=CONTENT))
    more = f"kubernetes:{written(tmp_path / 'more.json', *pods)}"
    expected = {"default/r": "open", "default/a": None, "default/b": "open", "default/c": "closed"}
    assert places(now, more) == expected
    objects = fs.Cluster.from_kubernetes(now[11:]), fs.Workload.from_kubernetes(more[11:])
    assert places(*objects) == expected
    assert places(f"{now}?empty=true", more) == {"default/a": "open", "default/b": "open", "default/c": "closed"}


def test_the_same_pods_count_once(now: str) -> None:
    assert places(now, now) == {"default/r": "open"}
    assert places(fs.Cluster.from_kubernetes(now[11:]), fs.Workload.from_kubernetes(now[11:])) == {"default/r": "open"}


def test_a_table_of_the_same_pods_counts_them_once(now: str, tmp_path: Path) -> None:
    fs.Workload.from_kubernetes(now[11:]).write(tmp_path / "pods.parquet")
    assert places(now, str(tmp_path / "pods.parquet")) == {"default/r": "open"}


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_pods_of_any_kind_tolerate_nothing(now: str) -> None:
    assert taints_of(fs.Cluster.from_kubernetes(now[11:])) == ["taint:dedicated=infra:NoSchedule"]
    request = {"cpu_milli": 2000, "memory_mib": 1, "num_gpu": 0, "gpu_milli": 0, "duration_s": 5.0}
    frame = pl.DataFrame([{"pod_id": n, "submit_s": 7.0 + 10 * n} | request for n in range(2)])
    with pytest.warns(NotHonoured, match="taints close 1 of 2 nodes to pods that are not of Kubernetes"):
        result = fs.simulate(now, fs.Workload.from_arrow(frame), "best_fit")
    rows = result.jobs.join(result.placements.select("pod_id", "node"), on="pod_id").select("submit_s", "state", "node")
    assert rows.rows() == [(7, "running", "open"), (7, "finished", "open"), (17, "finished", "open")]
    assert result.jobs["pod_id"].to_list() == [-1, 0, 1]


def test_nobody_offered_leaves_who_runs(now: str) -> None:
    none = fs.Workload.from_arrow(fs.Workload.from_kubernetes(now[11:]).table().slice(0, 0))
    with pytest.warns(NotHonoured):
        assert places(now, none) == {"default/r": "open"}


def test_a_plan_counts_what_runs(now: str, tmp_path: Path) -> None:
    more = f"kubernetes:{written(tmp_path / 'more.json', pod('a', {'cpu': 8}), pod('b', {'cpu': 8}))}"
    spare = str(written(tmp_path / "spare.json", node("spare")))
    needed = [
        smallest_additions(fs.Scenario(cluster, more, "best_fit"), [spare], workers=1)["additions"].to_list()
        for cluster in (now, f"{now}?empty=true")
    ]
    assert needed == [[2], [1]]


@pytest.mark.filterwarnings("ignore::fastsim.kubernetes.snapshot.NotHonoured")
def test_amounts_are_in_the_unit_that_the_nodes_were_read_in(tmp_path: Path) -> None:
    """Of 16 times 50 MB pods that run have 15; 47.7 MiB are left, whatever unit other pods ask in."""
    nodes = node("n", amounts={"memory": "800M"})
    held = [running(f"r{number}", "n", {"memory": "50M"}) for number in range(15)]
    now = f"kubernetes:{written(tmp_path / 'now.json', nodes, *held)}"
    for amount, found in (("47Mi", "n"), ("48Mi", None), ("50M", "n"), ("51M", None)):
        more = f"kubernetes:{written(tmp_path / 'more.json', pod('a', {'memory': amount}))}"
        assert places(now, more)["default/a"] == found, amount
        assert len(places(f"{now}?empty=true", more)) == 1
