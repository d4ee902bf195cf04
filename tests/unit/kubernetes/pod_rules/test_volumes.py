"""Pods stay on the nodes of their volumes; unknown volumes are counted."""

from __future__ import annotations

from typing import Any

import pytest

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.errors import InputError
from fastsim.kubernetes.pod_rules.volumes import UNBOUND, UNKNOWN
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, manifest, node, pod, workload_of


def claim(name: str = "data", volume: str = "v", namespace: str = "default") -> dict[str, Any]:
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace},
            "spec": {"volumeName": volume}}  # fmt: skip


def volume(*zones: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in zones]
    required = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}
    return {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": required}


def asking(name: str = "data", **more: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": name}}, {"name": "e"}], **more)


NODES = [node(name, {"zone": zone}) for name, zone in (("a", "x"), ("b", "y"), ("c", "z"))]


def constraints_of(*objects: dict[str, Any]) -> tuple[Any, dict[str, int]]:
    snapshot = Snapshot([manifest(item) for item in (*NODES, *objects)])
    return workload_of(snapshot).table().to_pylist()[0].get("constraints"), dict(snapshot.notices)


def test_a_pod_goes_where_its_volume_is() -> None:
    objects = [*NODES, claim(), volume("y"), asking()]
    snapshot = Snapshot([manifest(item) for item in objects])
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    assert result.placements["node"].to_list() == ["b"] and not snapshot.notices
    [alternatives] = constraints_of(claim(), volume("y", "z"), asking())[0]
    assert alternatives["op"] == "OneOf" and len(alternatives["values"]) == 2
    assert constraints_of(claim(), volume(), asking()) == (None, {})
    ephemeral = pod(volumes=[{"name": "x", "ephemeral": {"volumeClaimTemplate": {}}}])
    [own] = constraints_of(claim("p1-x"), volume("y"), ephemeral)[0]
    assert own == {"key": "persistentvolume nodes:v", "op": "OneOf", "values": ['[["zone", "In", ["y"]]]']}


@pytest.mark.parametrize(
    ("objects", "notices"),
    [
        ([asking()], {UNKNOWN: 1}),
        ([claim(), asking()], {UNKNOWN: 1}),
        ([claim(volume=""), asking()], {UNBOUND: 1}),
        ([asking(nodeName="a")], {}),
    ],
)
def test_unknown_volumes_are_counted(objects: list[dict[str, Any]], notices: dict[str, int]) -> None:
    assert constraints_of(*objects) == (None, notices)


def placed(*objects: dict[str, Any]) -> tuple[list[str | None], str]:
    """The nodes of the pods, and kube-scheduler's sentence about the last one; "" if it has a node."""
    snapshot = Snapshot([manifest(item) for item in (*NODES, *objects)])
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    nodes = result.placements.sort("pod_id")["node"].to_list()
    explanation = explained(result, [len(nodes) - 1])
    return nodes, "" if nodes[-1] else explanation.summary(explanation.decisions[0])


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_a_pod_without_its_claim_is_unschedulable() -> None:
    """ "persistentvolumeclaim "x" not found" is what kube-scheduler answers, whatever the nodes."""
    nodes, sentence = placed(claim("other"), volume("y"), asking())
    assert nodes == [None] and sentence == '0/3 nodes are available: persistentvolumeclaim "data" not found.'
    assert constraints_of(claim("other"), pod(volumes=[{"name": "x", "ephemeral": {"volumeClaimTemplate": {}}}])) == (
        None,
        {UNKNOWN: 1},
    )


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_one_pod_uses_a_claim_of_one_pod() -> None:
    """ReadWriteOncePod "ensures that only one pod across the whole cluster can read that PVC or write to it"."""
    alone = claim()
    alone["spec"]["accessModes"] = ["ReadWriteOncePod"]
    holder, second = asking(nodeName="b"), asking()
    holder["metadata"]["name"] = "holder"
    nodes, sentence = placed(alone, volume("y"), holder, second)
    text = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    text += "another pod"
    assert nodes == ["b", None] and sentence == f"0/3 nodes are available: 3 {text}."
    first, second = (asking(meta={"creationTimestamp": f"2026-01-0{day}T00:00:00Z"}) for day in (1, 2))
    first["metadata"]["name"] = "z"
    assert placed(alone, volume("y"), first, second)[0] == ["b", None]
    over = {**holder, "status": {"phase": "Succeeded"}}
    assert placed(alone, volume("y"), over, second)[0] == ["b"]


def test_access_modes_are_a_list() -> None:
    wrong = claim()
    wrong["spec"]["accessModes"] = 1.5
    with pytest.raises(InputError, match="accessModes: found"):
        constraints_of(wrong, asking())
