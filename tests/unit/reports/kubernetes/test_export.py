"""Placements as Kubernetes objects: what is read again is what was placed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fastsim.cli.main import exit_code
from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.hardware.node_constraints import ONE_OF, Constraint, conjunction_text
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.pod_rules.node_affinity import toleration_mark
from fastsim.kubernetes.pod_rules.volumes import ABSENT
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.reports.kubernetes.export import bound_pods, node_objects, pod_object, saved_run, write_objects
from fastsim.simulation.simulate import simulate
from fastsim.workload import Workload
from tests.needs import needed
from tests.objects import cluster_of, workload_of
from tests.objects import node as plain
from tests.unit.decisions.test_kube_extender import node, pod

SAME = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_models", "extra_resources", "priority", "tenant",
        "native_id", "gpu_memory_mib")  # fmt: skip


def objects() -> list[dict[str, Any]]:
    """Nodes and pods of every kind."""
    tainted = node("n2", zone="b")
    tainted["spec"]["taints"] = [{"key": "team", "value": "a:b", "effect": "NoSchedule"}]
    tainted["status"]["allocatable"]["ephemeral-storage"] = "10Gi"
    tainted["status"]["allocatable"]["example.com/fpga"] = "2"
    large = pod("memory")
    large["metadata"]["annotations"] = {"alibabacloud.com/gpu-mem": "5000Mi", "alibabacloud.com/gpu-count": "1"}
    del large["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"]
    other = pod("other", tolerations=[{"operator": "Exists"}], nodeSelector={"zone": "b"}, priority=7)
    other["spec"]["containers"][0]["resources"]["requests"] |= {"example.com/fpga": "1", "ephemeral-storage": "1Gi"}
    model = pod("model", milli=250)
    model["metadata"]["annotations"]["alibabacloud.com/gpu-card-model"] = "T4|A10"
    return [node("n1"), tainted, pod("whole", 1), model, large, other]


def read(made: list[dict[str, Any]]) -> Snapshot:
    return Snapshot([Manifest(item["metadata"]["name"], item) for item in made])


def rows_of(workload: Workload) -> list[dict[str, Any]]:
    return [row for batch in workload.batches() for row in batch.to_pylist()]


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.RunWarning")
def test_there_and_back(tmp_path: Path) -> None:
    needed("yaml")
    first = read(objects())
    workload = workload_of(first, "trace")
    result = simulate(cluster_of(first), workload, "best_fit")
    assert not result.summary["pods_unplaced"][0]
    for name in ("a.yaml", "a.json"):
        assert write_objects([*node_objects(cluster_of(first)), *bound_pods(result, workload)], tmp_path / name) == 6
        again = Snapshot.read(tmp_path / name)
        found, expected = rows_of(workload_of(again, "trace")), rows_of(workload)
        assert [[row.get(key) for key in SAME] for row in found] == [[row.get(key) for key in SAME] for row in expected]
        assert [row["pinned_node"] for row in found] == result.placements.sort("pod_id")["node"].to_list()
        assert cluster_of(again).nodes.drop_columns(["labels"]) == cluster_of(first).nodes.drop_columns(["labels"])
        labels = [cluster_of(snapshot).nodes["labels"].to_pylist() for snapshot in (first, again)]
        for old, new in zip(*labels, strict=True):
            assert dict(old).items() <= dict(new).items()  # the export adds the memory of a device
        placed = simulate(cluster_of(again), workload_of(again), "best_fit")
        assert not placed.summary["pods_unplaced"][0]


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.DurationMissing")
def test_who_is_written() -> None:
    row: dict[str, Any] = {"cpu_milli": 1000, "memory_mib": 1, "num_gpu": 1, "gpu_milli": 1000}
    import pyarrow as pa

    rows = [{"pod_id": i, "submit_s": 100.0 * i, "duration_s": 150.0 if i < 2 else None, **row} for i in range(3)]
    workload = Workload.from_arrow(pa.Table.from_pylist(rows))
    result = simulate(Cluster.mix(t4=2), workload)
    choices: dict[str, dict[str, Any]] = {"end": {}, "at": {"at_s": 120.0}, "every": {"every": True}}
    names = {
        key: [item["metadata"]["name"] for item in bound_pods(result, workload, **options)]
        for key, options in choices.items()
    }
    assert names == {"end": ["pod-2"], "at": ["pod-0", "pod-1"], "every": ["pod-0", "pod-1", "pod-2"]}
    by_name = {item["metadata"]["name"]: item for item in bound_pods(result, workload, every=True)}
    assert by_name["pod-1"]["status"] == {"phase": "Succeeded"} and by_name["pod-2"]["status"] == {"phase": "Running"}
    lives = rows_of(workload_of(read([*node_objects(Cluster.mix(t4=2)), *by_name.values()]), "trace"))
    assert [(row["submit_s"], row["duration_s"]) for row in lives] == [(0, 150), (100, 150), (200, None)]
    with pytest.raises(ResultError, match="found no placements"):
        list(bound_pods(simulate(Cluster.mix(t4=2), workload, record="summary"), workload))


def test_names_that_kubernetes_does_not_allow() -> None:
    place = {"node": "n", "gpu_ids": [1, 0], "end_s": None, "reason": "running"}
    row = {"pod_id": 4, "submit_s": 0.5, "cpu_milli": 1, "memory_mib": 1, "num_gpu": 2, "gpu_milli": 1000}
    for native, expected in (("Job_1", ("default", "pod-4")), ("ns/a", ("ns", "a")), (None, ("default", "pod-4"))):
        metadata = pod_object({**row, "native_id": native}, place)["metadata"]
        assert (metadata["namespace"], metadata["name"]) == expected
        assert metadata["annotations"]["alibabacloud.com/gpu-index"] == "1-0"


def test_nodes_with_instances() -> None:
    cluster = Cluster.uniform(nodes=1, gpu="A100", gpus=1, mig="3g.40gb+2*1g.10gb")
    [node_object] = node_objects(cluster)
    assert node_object["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "2"
    assert "nvidia.com/gpu" not in node_object["status"]["allocatable"]


def test_divided_gpus_are_read_again_as_they_were() -> None:
    product = "nvidia.com/gpu.product"
    t4, whole = {product: "Tesla-T4"}, {"nvidia.com/gpu": "2"}
    turns = plain("turns", {**t4, "nvidia.com/gpu.replicas": "4"}, amounts={"nvidia.com/gpu": "8"})
    parts = plain("parts", {product: "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}, amounts={"nvidia.com/gpu": "14"})
    amd = plain("amd", {"amd.com/gpu.product-name": "MI210"}, amounts={"amd.com/gpu": "3"})
    for nodes in ([turns], [parts], [turns, plain("t4", t4, amounts=whole)], [parts, turns, amd]):
        first = cluster_of(read(nodes))
        assert cluster_of(read(list(node_objects(first)))).nodes.drop_columns(["labels"]) == first.nodes.drop_columns(
            ["labels"]
        )


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--cluster", "openb:2", "--workload", "synth:openb?pods=40", "--out", str(tmp_path / "a")]
    assert exit_code(run) == 0
    words = ["export", str(tmp_path / "a"), "-o", str(tmp_path / "a.json")]
    assert exit_code([*words, "--every", "--nodes"]) == 0
    items = json.loads((tmp_path / "a.json").read_text())["items"]
    placed = saved_run(tmp_path / "a")[0].placements.filter(saved_run(tmp_path / "a")[0].placements["node_id"] >= 0)
    assert len(items) == 2 + len(placed) and items[0]["kind"] == "Node"
    capsys.readouterr()
    assert exit_code([*words, "--every", "--at", "5"]) == 2 and "one of them" in capsys.readouterr().err
    with pytest.raises(ScenarioError, match=r"ends in \.txt"):
        write_objects([], tmp_path / "a.txt")
    workload = Workload.from_arrow(Workload.synth("openb", pods=3).table())
    simulate(Cluster.mix(t4=1), workload, out=tmp_path / "b")
    assert saved_run(tmp_path / "b")[2].checksum() == workload.checksum()
    (tmp_path / "b" / "workload.parquet").unlink()
    with pytest.raises(InputError, match="workload: found an object in memory"):
        saved_run(tmp_path / "b")


def test_pods_keep_their_instances() -> None:
    row = {
        "pod_id": 0,
        "submit_s": 0.0,
        "cpu_milli": 1000,
        "memory_mib": 1,
        "num_gpu": 0,
        "gpu_milli": 0,
        "mig": "1g.10gb",
    }
    workload = Workload.from_arrow(pa.Table.from_pylist([row]))
    result = simulate(Cluster.uniform(nodes=1, gpu="A100", gpus=1, mig="3g.40gb+2*1g.10gb"), workload)
    [bound] = bound_pods(result, workload)
    assert bound["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/mig-1g.10gb"] == "1"


def test_alternatives_and_tolerations_are_written_back() -> None:
    """What a pod table carries for other nodes comes back as the fields of Kubernetes."""
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists"}]
    two = [Constraint(zone, "Exists") for zone in ("x", "y")]
    expressions = [{"key": "t", "op": ONE_OF, "values": [conjunction_text([one]) for one in two]},
                   {"key": "name", "op": "NotIn", "values": ["n"]}, {"key": f"{ABSENT}c", "op": "Exists", "values": []},
                   *map(toleration_mark, tolerations)]  # fmt: skip
    row = {"pod_id": 1, "submit_s": 0.0, "cpu_milli": 0, "memory_mib": 0, "num_gpu": 0, "constraints": expressions}
    spec = pod_object(row, {"node": "m", "end_s": None, "reason": "running", "gpu_ids": []})["spec"]
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}], "matchFields": fields} for key in ("x", "y")]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (required["nodeSelectorTerms"], spec["tolerations"]) == (terms, tolerations)
