"""A dump of Kubernetes: its pods as rows, a run on it, which reads it once, and decisions on a cluster that changes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from bench.conftest import Timed
from fastsim.decisions.kube_extender import Extender
from fastsim.decisions.live_cluster import LiveSnapshot
from fastsim.decisions.watched_objects import DEVICE_PATHS, PATHS
from fastsim.kubernetes.objects import manifests
from fastsim.workload.generators.kubernetes_dump import write_dump
from tests.api_server import serving

NODES, PODS = 500, 10_000

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand pods, half of which run."""
    path = tmp_path_factory.mktemp("dump") / "now.json"
    write_dump(path, NODES, PODS)
    return path


def bench_rows_of_a_dump(timed: Timed, dump: Path) -> None:
    """Read the pods."""
    timed(lambda: fs.Workload.from_kubernetes(dump), items=PODS, budget=60)


def bench_run_on_a_dump(timed: Timed, dump: Path) -> None:
    """Read nodes and pods, and place those that wait."""
    text = f"kubernetes:{dump}"
    timed(lambda: fs.simulate(cluster=text, workload=text, policy="fgd", record="summary"), items=PODS, budget=78)


@pytest.mark.parametrize("nodes", [400, 1_000])
def bench_decisions_of_the_extender(
    timed: Timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, nodes: int
) -> None:
    """Filter and prioritize by names, a pod being bound before each: an API server is listed once and watched."""
    monkeypatch.setenv("no_proxy", "*")
    write_dump(tmp_path / "now.json", nodes // part, 5 * nodes // part)
    objects = [dict(item.body) for item in manifests(tmp_path / "now.json")]
    names = [item["metadata"]["name"] for item in objects if item["kind"] == "Node"]
    waiting = [item for item in objects if item["kind"] == "Pod" and not item["spec"].get("nodeName")]
    with serving(objects) as api, closing(LiveSnapshot(api.url)) as live:
        extender = Extender(live, "fgd")

        def decision() -> None:
            pod = waiting.pop()
            arguments = {"Pod": pod, "NodeNames": names}
            points = {item["Host"]: item["Score"] for item in extender.prioritize(arguments)}
            if left := extender.filter(arguments)["NodeNames"]:
                api.put(bound(pod, max(left, key=points.__getitem__)))

        decision()
        timed(decision, items=1, budget=40)
        assert len(api.lists) == len(PATHS) + len(DEVICE_PATHS)


def bound(pod: dict[str, Any], node: str) -> dict[str, Any]:
    """The pod on a node."""
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}
