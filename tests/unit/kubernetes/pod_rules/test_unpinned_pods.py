"""Pods that run are read as if they waited: all, those of an owner, or those with a label."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastsim as fs
from fastsim.errors import ScenarioError
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload.importers.kubernetes import NodesKept
from tests.objects import node, written
from tests.unit.kubernetes.test_arrival_order import running
from tests.unit.workload.importers.test_running_pods import places


def test_pods_that_run_may_be_placed_anew(tmp_path: Path) -> None:
    """Without their nodes, pods of a dump wait with all their rules, so policies can be compared on them."""
    owned = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}
    here = running("a", "n1", {"cpu": 6}, labels={"team": "x"}), running("b", "n2", {"cpu": 6}, meta=owned)
    now = f"kubernetes:{written(tmp_path / 'now.json', node('n1', amounts={'cpu': '16'}), node('n2'), *here)}"
    assert places(now, now) == {"default/a": "n1", "default/b": "n2"}
    anew = {"default/a": "n2", "default/b": "n1"}
    assert places(now, f"{now}?unpin=true") == places(f"{now}?empty=true", f"{now}?unpin=true") == anew
    options: list[tuple[str | bool, list[str]]] = [("team=x", ["a"]), ("ReplicaSet", ["b"]), (True, ["a", "b"])]
    for choice, waiting in options:
        rows = fs.Workload.from_kubernetes(now[11:], unpin=choice).table().to_pylist()
        assert [row["native_id"][-1] for row in rows if row.get("bound_node") is None] == waiting, choice
    for absent in ("team=y", "Job"):
        with pytest.raises(ScenarioError, match="of a pod that runs"):
            fs.Workload.from_kubernetes(now[11:], unpin=absent)


def test_a_pod_that_its_node_created_stays_there(tmp_path: Path) -> None:
    """A mirror pod stands for a static pod, which "is always bound to one Kubelet on a specific node"."""
    mirror = running("m", "n1", {"cpu": 1}, meta={"ownerReferences": [{"kind": "Node", "name": "n1"}]})
    read = Snapshot.read(written(tmp_path / "a.json", node("n1"), mirror, running("p", "n1", {})), unpin="true")
    assert [(row["native_id"], row["bound_node"]) for row in read.pod_rows()] == [
        ("default/m", "n1"), ("default/p", None),
    ]  # fmt: skip


@pytest.mark.parametrize("choice", ["true", "team=a"])
def test_a_pod_of_a_daemon_set_stays_on_its_node(tmp_path: Path, choice: str) -> None:
    """A DaemonSet has "a copy of a Pod" on each node, so that another node is none for it, whatever its affinity."""
    owned = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}], "labels": {"team": "a"}}
    agent = running("d-x", "n2", {"cpu": 1}, meta=owned)
    objects = node("n1"), node("n2"), agent, running("p", "n1", {}, meta={"labels": {"team": "a"}})
    read = Snapshot.read(written(tmp_path / "a.json", *objects), unpin=choice)
    assert [(row["native_id"], row["bound_node"]) for row in read.pod_rows()] == [
        ("default/d-x", "n2"), ("default/p", None),
    ]  # fmt: skip
    with pytest.raises(ScenarioError, match="of a pod that runs"):
        Snapshot.read(tmp_path / "a.json", unpin="DaemonSet")


def test_a_trace_says_that_its_pods_stay_on_their_nodes(tmp_path: Path) -> None:
    """Policies cannot be compared on such a trace; pods of DaemonSets and of nodes stay in any case."""
    owned = [{"ownerReferences": [{"kind": kind, "name": "d", "controller": True}]} for kind in ("DaemonSet", "Node")]
    agents = [running(f"d-{number}", "n1", {}, meta=meta) for number, meta in enumerate(owned)]
    path = written(tmp_path / "a.json", node("n1"), running("p", "n1", {}), running("q", "n1", {}), *agents)
    text = "pods of a trace stay on the nodes where they ran; with unpin=true the policy places them"
    with pytest.warns(NodesKept, match=f"{text}: 2, such as default/p$") as caught:
        workload = fs.Workload.from_kubernetes(path, read_as="trace")
    assert [warning.filename for warning in caught] == [__file__]
    assert workload.table()["pinned_node"].to_pylist() == ["n1"] * 4
    fs.Workload.from_kubernetes(path, read_as="trace", unpin=True)  # without a warning, as without a node:
    fs.Workload.from_kubernetes(written(tmp_path / "b.json", node("n1"), *agents), read_as="trace")
    fs.Workload.from_kubernetes(path)


def test_a_trace_keeps_the_rules_of_pods_in_place_of_their_nodes(tmp_path: Path) -> None:
    pinned = running("a", "n1", {}, nodeSelector={"zone": "q"})
    path = written(tmp_path / "a.json", node("n1", {"zone": "q"}), pinned)
    [row] = Snapshot.read(path, unpin="all").pod_rows("trace")
    assert (row["pinned_node"], row["constraints"]) == (None, [{"key": "zone", "op": "In", "values": ["q"]}])
