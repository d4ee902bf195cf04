"""Objects that a run was made of come out as they went in: nodes unchanged, pods with a node and devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastsim.cli.main import exit_code
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written
from tests.strategies import scenarios_per_run

SLICED = {
    "nvidia.com/gpu.product": "A100-SXM4-80GB-SHARED",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.count": "2",
}
CHANGED = ("preferences", "pinned_node", "constraints", "orig_status")
"""Columns of a pod that a node changes."""


def items(path: Path) -> dict[str, dict[str, Any]]:
    """Objects of a file by kind and name."""
    found = json.loads(path.read_text())["items"]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in found}


def exported(folder: Path, *objects: dict[str, Any], more: tuple[str, ...] = (), query: str = "?as=trace") -> Path:
    """The objects after a run: nodes and pods of a file, written to another one."""
    path = written(folder / "in.json", *objects)
    texts = ["--cluster", f"kubernetes:{path}", "--workload", f"kubernetes:{path}{query}", "--policy", "best_fit"]
    assert exit_code(["run", *texts, "--out", str(folder / "run"), "--force"]) == 0
    assert exit_code(["export", str(folder / "run"), "-o", str(folder / "out.json"), "--nodes", *more]) == 0
    return folder / "out.json"


def rows(path: Path, kind: str) -> list[dict[str, Any]]:
    """Rows of the nodes or the pods in a file, by name."""
    snapshot = Snapshot.read(path)
    table = cluster_of(snapshot).nodes if kind == "Node" else workload_of(snapshot, "trace").table()
    key = "name" if kind == "Node" else "native_id"
    return sorted(table.to_pylist(), key=lambda row: str(row[key]))


def test_nodes_are_written_as_they_were(tmp_path: Path) -> None:
    shared = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2", "ephemeral-storage": "1500k"}
    nodes = [
        node("sliced", SLICED, {"unschedulable": True, "podCIDR": "10.0.0.0/24"}, {"nvidia.com/gpu": "8"}),
        node("shared", amounts=shared, spec={"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}),
    ]
    nodes[0]["metadata"]["annotations"] = {"note": "kept"}
    nodes[0]["status"]["capacity"] = {**nodes[0]["status"]["capacity"], "cpu": "9"}
    found = items(exported(tmp_path, *nodes, pod("a")))
    assert found["Node/sliced"] == nodes[0] and found["Node/shared"] == nodes[1]


def test_a_pod_gets_a_node_and_devices_and_nothing_else(tmp_path: Path) -> None:
    gpus = node("n1", {"nvidia.com/gpu.product": "Tesla-T4"}, amounts={"nvidia.com/gpu": "2"})
    waits = {"phase": "Pending", "qosClass": "Burstable"}
    asking = pod("a", {"cpu": "100m", "nvidia.com/gpu": 1}, {"note": "kept"}, {"app": "x"}, waits, priority=5)
    asking["metadata"]["uid"] = "u"
    there = pod("there", {"cpu": 1}, nodeName="n1", status={"phase": "Running", "hostIP": "10.0.0.1"})
    found = items(exported(tmp_path, gpus, there, asking))
    written_pod = found["Pod/a"]
    assert written_pod["spec"] == {**asking["spec"], "nodeName": "n1"}
    [number] = [written_pod["metadata"]["annotations"].pop("alibabacloud.com/gpu-index")]
    assert number in ("0", "1") and written_pod["metadata"] == asking["metadata"]
    assert written_pod["status"] == {"phase": "Running", "qosClass": "Burstable"}
    assert found["Pod/there"] == {"apiVersion": "v1", **there}


def test_pods_of_templates_are_what_those_say(tmp_path: Path) -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    deployment = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2, "template": template}}
    written_pod = items(exported(tmp_path, node(), deployment))["Pod/d-1"]
    assert written_pod["spec"] == {**template["spec"], "nodeName": "n1"}
    assert written_pod["metadata"] == {"name": "d-1", "namespace": "default", "labels": {"app": "x"}}


def test_times_of_the_run_take_the_place_of_others(tmp_path: Path) -> None:
    over = {"phase": "Succeeded", "startTime": "2024-01-01T00:01:00Z", "containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2024-01-01T00:01:30Z"}}}]}  # fmt: skip
    pods = [pod("a", status=over, meta={"creationTimestamp": "2024-01-01T00:00:00Z"}),
            pod("b", meta={"creationTimestamp": "2024-01-01T00:00:10Z"})]  # fmt: skip
    found = {row["native_id"]: row for row in rows(exported(tmp_path, node(), *pods, more=("--every",)), "Pod")}
    assert [(row["submit_s"], row["duration_s"]) for row in found.values()] == [(0, 30), (10, None)]
    kept = items(exported(tmp_path, node(), *pods))
    assert "Pod/a" not in kept and kept["Pod/b"]["metadata"]["creationTimestamp"] == "2024-01-01T00:00:10Z"


def test_other_runs_have_no_originals(tmp_path: Path) -> None:
    path = written(tmp_path / "in.json", pod("a", {"cpu": 1}, labels={"app": "x"}))
    run = ["run", "--cluster", "openb:2", "--workload", f"kubernetes:{path}", "--out", str(tmp_path / "run")]
    assert exit_code(run) == 0
    assert exit_code(["export", str(tmp_path / "run"), "-o", str(tmp_path / "out.json"), "--nodes"]) == 0
    found = items(tmp_path / "out.json")
    assert found["Pod/a"]["metadata"]["labels"] == {"app": "x"} and len(found) == 3


LABELS = st.dictionaries(st.sampled_from(["zone", "name", "app"]), st.sampled_from(["x", "y"]))
TAINTS = st.lists(
    st.fixed_dictionaries({
        "key": st.sampled_from(["k", "l"]), "value": st.sampled_from(["", "v"]),
        "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    }), max_size=2, unique_by=str,
)  # fmt: skip
DEVICES = st.sampled_from([
    ({}, {}), (SLICED, {"nvidia.com/gpu": "8"}), ({}, {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}),
    ({"nvidia.com/gpu.product": "Tesla-T4"}, {"nvidia.com/gpu": "4"}), ({}, {"alibabacloud.com/gpu-count": "2"}),
])  # fmt: skip
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage"]), st.sampled_from(["0", "0.1", "1500m"]), max_size=3
)
SPECS = st.fixed_dictionaries({}, optional={
    "priority": st.integers(-5, 5), "tolerations": st.just([{"operator": "Exists"}]),
    "overhead": st.just({"cpu": "10m"}), "nodeSelector": st.just({"zone": "x"}),
})  # fmt: skip
SHARES = st.sampled_from([
    {}, {"alibabacloud.com/gpu-milli": "300", "alibabacloud.com/gpu-count": "1"}, {"gpu-fraction": "0.25"},
    {"pod-group-name": "g"}, {"volcano.sh/queue-name": "q"},
])  # fmt: skip


@st.composite
def clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Nodes and pods of every kind, among them a node that all pods match."""
    found = [node("all", {"zone": "x"}, amounts={"ephemeral-storage": "1Gi"})]
    for number in range(draw(st.integers(0, 3))):
        labels, amounts = draw(DEVICES)
        marks = {"taints": draw(TAINTS), "unschedulable": draw(st.booleans())}
        found.append(node(f"n{number}", {**draw(LABELS), **labels}, marks, amounts))
    for number in range(draw(st.integers(1, 5))):
        spec: dict[str, Any] = {**draw(SPECS), **({"nodeName": "all"} if draw(st.booleans()) else {})}
        requests: dict[str, object] = {**draw(AMOUNTS)}
        found.append(pod(f"p{number}", requests, {**draw(SHARES)}, draw(LABELS), **spec))
    return found


@settings(
    max_examples=scenarios_per_run(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(objects=clusters())
@pytest.mark.filterwarnings("ignore")
def test_what_is_read_again_is_the_same(tmp_path: Path, objects: list[dict[str, Any]]) -> None:
    before = tmp_path / "in.json"
    after = exported(tmp_path, *objects)
    assert rows(after, "Node") == rows(before, "Node")
    placed = {f"default/{name[4:]}" for name in items(after) if name.startswith("Pod/")}
    if not placed:
        return

    def same(path: Path) -> list[dict[str, Any]]:
        skipped = (*CHANGED, "pod_id", "job_id", "gang_size")
        found = [row for row in rows(path, "Pod") if row["native_id"] in placed]
        return [{key: value for key, value in row.items() if key not in skipped and value is not None} for row in found]

    assert same(after) == same(before)


def test_an_export_reads_the_files_of_the_run(tmp_path: Path) -> None:
    written(tmp_path / "n+1 %.json", node("first"))
    nodes = f"{tmp_path}/n+1 %25.json"
    out = exported(tmp_path, node("second"), pod("a"), query=f"?as=trace&nodes={nodes}")
    assert [row["name"] for row in rows(out, "Node")] == ["second"]
