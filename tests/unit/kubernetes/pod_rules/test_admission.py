"""What admission adds to pods: the overhead, the node labels and the tolerations of a RuntimeClass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.kubernetes.pod_rules.admission import UNKNOWN_CLASS
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written

KATA = {
    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata",
    "overhead": {"podFixed": {"cpu": "1", "memory": "1Gi"}},
    "scheduling": {"nodeSelector": {"runtime": "kata"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
}  # fmt: skip
NODES = [node("plain"), node("kata", {"runtime": "kata"}, {"taints": [{"key": "kata", "effect": "NoSchedule"}]})]


def four(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]
    template = {"metadata": {}, "spec": {"runtimeClassName": "kata", "containers": containers, **spec}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 4, "template": template}}  # fmt: skip


def placed(path: Path, *objects: dict[str, Any]) -> tuple[dict[Any, int], Counter[str]]:
    snapshot = Snapshot.read(written(path / "a.json", *NODES, *objects))
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    return dict(result.placements.group_by("node").agg(pl.len()).rows()), snapshot.notices


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_a_runtime_class_adds_to_pods_of_templates(tmp_path: Path) -> None:
    """Admission sets the overhead of the class, and merges its nodeSelector and tolerations into the pod."""
    assert placed(tmp_path, KATA, four()) == ({"kata": 2, None: 2}, Counter())
    counts, notices = placed(tmp_path, four())
    assert (counts, notices) == ({"plain": 2, None: 2}, {UNKNOWN_CLASS: 4})
    new = [pod(f"p{number}", {"cpu": "3"}, runtimeClassName="kata") for number in range(3)]
    assert placed(tmp_path, KATA, *new)[0] == {"kata": 2, None: 1}


def test_admitted_pods_have_what_their_class_adds(tmp_path: Path) -> None:
    there = [pod(f"p{number}", {"cpu": "4"}, meta={"uid": f"{number}"}, runtimeClassName="kata") for number in range(2)]
    assert placed(tmp_path, KATA, *there) == ({"plain": 2}, Counter())
