"""Generated dumps of Kubernetes: the same bytes for a seed, pods that fit where they run, and pods that wait."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from fastsim.decisions.live_cluster import ClusterState
from fastsim.errors import ScenarioError
from fastsim.kubernetes.objects import manifests
from fastsim.workload.generators.kubernetes_dump import Dump, write_dump


@pytest.mark.parametrize("full", [False, True])
def test_a_seed_has_its_bytes_and_running_pods_fit(full: bool, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        write_dump(path, 16, 120, seed, full)
    one, same, other = (path.read_bytes() for path in paths)
    assert one == same != other and json.loads(one)["kind"] == "List"
    state = ClusterState(manifests(paths[0]), "now")
    assert len(state.positions) == 16 and len(state.bound_rows) > 32 and state.pods_beyond_capacity == 0


def test_a_dump_has_as_many_objects_as_it_was_asked_for() -> None:
    kinds = Counter(item["kind"] for item in Dump(8, 40).objects())
    assert kinds == {"Node": 8, "Pod": 40}
    owners = Counter(item["metadata"]["ownerReferences"][0]["kind"] for item in Dump(8, 400).objects()
                     if item["kind"] == "Pod")  # fmt: skip
    assert set(owners) == {"DaemonSet", "ReplicaSet", "StatefulSet", "Job"}


def test_some_pods_that_wait_ask_for_instances() -> None:
    pods = [item for item in Dump(200, 2000).objects() if item["kind"] == "Pod"]
    asked = [item for item in pods if "nvidia.com/mig-1g.10gb" in str(item["spec"]["containers"])]
    assert asked and not any(item["spec"].get("nodeName") for item in asked)


def test_only_json_is_written(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"found a name that ends in \.txt, expected \.json"):
        write_dump(tmp_path / "now.txt", 1, 1)
    assert list(tmp_path.iterdir()) == []
