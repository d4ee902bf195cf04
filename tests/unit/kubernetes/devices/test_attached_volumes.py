"""Nodes attach as many volumes of a driver as their CSINode says; shared volumes, attachments, unbound claims."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.errors import InputError
from fastsim.experiments.capacity_plan import smallest_additions
from fastsim.kubernetes.devices.attached_volumes import SHARED
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload import Workload
from tests.objects import cluster_of, manifest, node, pod, workload_of, written

DISK = "disk.example.com"
RUNS = {"phase": "Running"}
CLASS: dict[str, Any] = {"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": DISK,
                         "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip


def csi_node(name: str, count: object = 1, driver: str = DISK) -> dict[str, Any]:
    drivers = [{"name": driver, "nodeID": name, "allocatable": {"count": count}}, {"name": "other.example.com"}]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
            "spec": {"drivers": drivers}}  # fmt: skip


def stored(*names: str, driver: str = DISK) -> list[dict[str, Any]]:
    """Claims and their volumes."""
    found: list[dict[str, Any]] = []
    for name in names:
        found.append({"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
                      "spec": {"volumeName": f"pv-{name}"}})  # fmt: skip
        found.append({"kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"},
                      "spec": {"csi": {"driver": driver, "volumeHandle": name}}})  # fmt: skip
    return found


def unbound(name: str) -> dict[str, Any]:
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"storageClassName": "fast"}}  # fmt: skip


def using(name: str, *claims: str, where: str = "", **more: Any) -> dict[str, Any]:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    placed: dict[str, Any] = {"nodeName": where, "status": RUNS} if where else {}
    return pod(name, {"cpu": 1}, volumes=volumes, **placed, **more)


def ephemeral(name: str, **more: Any) -> dict[str, Any]:
    return pod(name, {"cpu": 1}, volumes=[
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}], **more,
    )  # fmt: skip


def attachment(volume: str, where: str) -> dict[str, Any]:
    spec = {"attacher": DISK, "nodeName": where, "source": {"persistentVolumeName": f"pv-{volume}"}}
    return {"kind": "VolumeAttachment", "metadata": {"name": f"{volume}-{where}"}, "spec": spec}


def snapshot(*objects: dict[str, Any]) -> Snapshot:
    return Snapshot([manifest(item) for item in objects])


def places(read: Snapshot) -> dict[str, str | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fs.simulate(cluster_of(read), workload_of(read), "best_fit")
    rows = result.placements.select("native_id", "node").rows()
    return {name.removeprefix("default/"): node for name, node in rows}


ONE = [node("n1"), csi_node("n1")]
BOTH = [*ONE, node("n2")]


@pytest.mark.parametrize(
    ("objects", "where"),
    [
        ([*stored("a", "b"), using("r", "a", where="n1"), using("p", "b")], "n2"),
        ([*stored("a", "b"), using("r", "a", where="n1", labels={}), pod("p", {"cpu": 1})], "n1"),
        ([*stored("a"), *stored("b", driver="other.example.com"), using("r", "a", where="n1"), using("p", "b")], "n1"),
        ([*stored("a"), CLASS, unbound("b"), using("r", "a", where="n1"), using("p", "b")], "n2"),
        ([*stored("a"), CLASS, using("r", "a", where="n1"), ephemeral("p")], "n2"),
        ([CLASS, ephemeral("r", nodeName="n1", status=RUNS), *stored("b"), using("p", "b")], "n2"),
        ([*stored("a", "b"), attachment("a", "n1"), using("p", "b", labels={"x": "y"})], "n2"),
        ([*stored("a"), attachment("a", "n1"), using("p", "a")], "n1"),
        ([*stored("a", "b"), {**using("r", "a", where="n1"), "status": {"phase": "Succeeded"}}, using("p", "b")], "n1"),
        ([*stored("a", "b"), using("p", "a", "b")], "n2"),
    ],
    ids=["another volume", "no volume", "another driver", "an unbound claim", "a template", "a template that runs",
         "attached", "attached for this pod", "a pod that is over", "two at once"],
)  # fmt: skip
def test_a_node_with_one_place_for_volumes(objects: list[dict[str, Any]], where: str) -> None:
    read = snapshot(*BOTH, *objects)
    assert places(read)["p"] == where
    assert not [text for text in read.notices if "CSINode" in text or "VolumeAttachment" in text]


def test_a_volume_of_two_pods_on_a_node_counts_once_there() -> None:
    pair = [using(name, "a", where="n1") for name in ("r", "s")]
    read = snapshot(node("n1"), csi_node("n1", 2), *stored("a", "b", "c"), *pair, using("p", "b"), using("q", "c"))
    assert places(read) == {"r": "n1", "s": "n1", "p": "n1", "q": None} and not read.notices


def test_a_volume_that_pods_share_counts_for_each_of_those_that_wait() -> None:
    """Kubernetes places both on n1, where the volume is; here the second one finds no room, which is told."""
    read = snapshot(*ONE, *stored("a"), using("r", "a", where="n1"), using("p", "a"))
    assert places(read) == {"r": "n1", "p": None} and read.notices == {SHARED: 1}
    assert read.notices.lines == [f"{SHARED}: 1, such as default/p"]


def test_pods_beyond_a_limit_stay_where_they_run() -> None:
    read = snapshot(*BOTH, *stored("a", "b", "c"), using("r", "a", where="n1"), using("s", "b", where="n1"),
                    attachment("c", "n1"), using("p", "c"))  # fmt: skip
    assert places(read) == {"r": "n1", "s": "n1", "p": "n2"}


def test_limits_that_no_pod_meets_are_no_resources() -> None:
    assert cluster_of(snapshot(*ONE, pod("p"))).nodes["extra_resources"].null_count == 1


def test_words_are_those_of_kube_scheduler() -> None:
    read = snapshot(*ONE, node("n3", amounts={"cpu": "0"}), *stored("a", "b"), using("r", "a", where="n1"),
                    using("p", "b"))  # fmt: skip
    result = fs.simulate(cluster_of(read), workload_of(read), "best_fit")
    explanation = explained(result, [1])
    text = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) exceed max volume count."
    assert explanation.summary(explanation.decisions[0]) == text


def test_nodes_that_are_added_have_no_limit_unless_they_are_copies(tmp_path: Path) -> None:
    """Three volumes: one on n1 and two on nodes like it, or all of the other two on one node of another kind."""
    names = ("a", "b", "c")
    pods = [using(f"p{name}", name) for name in names]
    text = f"kubernetes:{written(tmp_path / 'a.json', *ONE, *stored(*names), *pods)}"
    plain = tmp_path / "node.json"
    plain.write_text(json.dumps(node("n9")))
    kinds = ["node:n1", "g2", str(plain)]
    table = smallest_additions({"cluster": text, "workload": text, "policy": "best_fit"}, kinds)
    assert table["additions"].to_list() == [2, 1, 1]


def test_pods_of_another_file_count(tmp_path: Path) -> None:
    there = written(tmp_path / "a.json", *BOTH, *stored("a"), using("r", "a", where="n1"))
    asked = written(tmp_path / "b.json", *stored("b"), using("p", "b"))
    result = fs.simulate(f"kubernetes:{there}", f"kubernetes:{asked}", "best_fit")
    assert dict(result.placements.select("native_id", "node").rows())["default/p"] == "n2"


def test_a_table_of_pods_runs_on_nodes_of_any_kind(tmp_path: Path) -> None:
    workload_of(snapshot(*ONE, *stored("a"), using("p", "a"))).write(tmp_path / "pods.parquet")
    workload = Workload.from_parquet(tmp_path / "pods.parquet")
    assert fs.simulate(fs.Cluster.mix(g2=1), workload, "best_fit").summary["pods_unplaced"][0] == 0


def test_pods_that_are_placed_anew_take_their_volumes_along(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", *ONE, *stored("a"), using("r", "a", where="n1"), attachment("a", "n1"))
    result = fs.simulate(f"kubernetes:{path}", f"kubernetes:{path}?unpin=true", "best_fit")
    assert result.placements["node"].to_list() == ["n1"]


@pytest.mark.parametrize("count", [-1, True, "3", 2**31])
def test_a_limit_is_a_whole_number(count: object) -> None:
    with pytest.raises(InputError, match=f"CSINode n1: spec: drivers: {DISK}: allocatable: count: found"):
        cluster_of(snapshot(node("n1"), csi_node("n1", count)))
