"""Clusters and workloads from Kubernetes objects, and warnings about what is not honoured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.object_cache import OBJECTS
from fastsim.kubernetes import pods
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.snapshot import NotHonoured, Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written

SHARED_GPUS = {
    "alibabacloud.com/gpu-count": "2",
    "alibabacloud.com/gpu-mem": "32560Mi",
    "cpu": 64,
    "memory": "256000Mi",
}
"""A node as the example clusters of simulators for shared GPUs have them."""
MILLI_GPUS = {"alibabacloud.com/gpu-count": "4", "alibabacloud.com/gpu-milli": "4000", "cpu": 64, "memory": "256000Mi"}
V100 = {"alibabacloud.com/gpu-card-model": "V100"}


def test_a_cluster_of_shared_gpus(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node("a", V100, amounts=SHARED_GPUS), node("b", V100, amounts=MILLI_GPUS))
    cluster = cluster_of(Snapshot.read(path))
    columns = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_model", "gpu_memory_mib", "max_pods"]
    assert cluster.nodes.select(columns).to_pylist() == [
        dict(zip(columns, ("a", 64_000, 256_000, 2, "V100", 16280, 110), strict=True)),
        dict(zip(columns, ("b", 64_000, 256_000, 4, "V100", None, 110), strict=True)),
    ]
    assert cluster.watts["gpu_peak_w"].to_pylist() == [300, 300]
    cluster.to_parquet(tmp_path / "nodes.parquet")
    assert fs.Cluster.from_parquet(tmp_path / "nodes.parquet").checksum() == cluster.checksum()


def test_memory_limits_the_pods_of_a_device(tmp_path: Path) -> None:
    annotations = {"alibabacloud.com/gpu-mem": "5000Mi", "alibabacloud.com/gpu-count": "1"}
    pods = [pod(f"p{i}", {"cpu": 1}, annotations=annotations) for i in range(7)]
    path = written(tmp_path / "a.json", node("a", V100, amounts=SHARED_GPUS), *pods)
    result = fs.simulate(cluster_of(Snapshot.read(path)), workload_of(Snapshot.read(path)), "best_fit")
    placed = result.placements.filter(pl.col("node_id").is_not_null())["gpu_ids"].explode()
    # 15,000 of 16,280 MiB on each, so the seventh stays out.
    assert sorted(placed.to_list()) == [0, 0, 0, 1, 1, 1] and len(result.placements) == 7


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_taints_selectors_and_limits_are_honoured(tmp_path: Path) -> None:
    tainted = node("a", {"zone": "x"}, {"taints": [{"key": "k", "effect": "NoSchedule"}]})
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "kubernetes.io/hostname"}]}}  # fmt: skip
    meta = [{"creationTimestamp": f"2024-01-01T00:00:{second:02}Z"} for second in range(5)]
    pods = [
        pod("free", {"cpu": 1}, meta=meta[0]),
        pod("zone", {"cpu": 1}, meta=meta[1], nodeSelector={"zone": "x"}),
        pod("strong", {"cpu": 1}, meta=meta[2], nodeSelector={"zone": "x"}, tolerations=[{"operator": "Exists"}]),
        pod("one", {"cpu": 1}, labels={"app": "w"}, affinity=apart, meta=meta[3]),
        pod("two", {"cpu": 1}, labels={"app": "w"}, affinity=apart, meta=meta[4]),
    ]
    path = written(tmp_path / "a.json", tainted, node("b"), *pods)
    snapshot = Snapshot.read(path)
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    names = dict(enumerate(["free", "zone", "strong", "one", "two"]))
    nodes = {names[row["pod_id"]]: row["node_id"] for row in result.placements.iter_rows(named=True)}
    assert nodes == {"free": 1, "strong": 0, "one": 1, "zone": None, "two": None}


def test_warnings_about_what_is_not_honoured(tmp_path: Path) -> None:
    service = {"kind": "NodePool", "metadata": {"name": "s"}}
    spread = [{"whenUnsatisfiable": "Sometimes"}]
    path = written(tmp_path / "a.json", node(), service, service, pod(topologySpreadConstraints=spread))
    with pytest.warns(NotHonoured) as caught:
        workload = fs.Workload.from_kubernetes(path)
    assert [str(item.message).removeprefix(f"{path}: ") for item in caught] == [
        "objects of kind NodePool: 2, such as s",
        "pods: topologySpreadConstraints with Sometimes: 1, such as default/p1",
    ]  # fmt: skip
    assert caught[0].filename == __file__
    assert json.loads(workload.metadata["fastsim.params"])["not_honoured"] == {
        "objects of kind NodePool": 2, "pods: topologySpreadConstraints with Sometimes": 1,
    }  # fmt: skip


def test_one_odd_node_leaves_the_others(tmp_path: Path) -> None:
    """A node that just registered offers nothing; one whose instances are shared offers turns on them."""
    turns: dict[str, object] = {"nvidia.com/mig-1g.10gb.shared": "2"}
    path = written(tmp_path / "a.json", {**node("new"), "status": {}}, node("old", amounts=turns),
                   *(pod(f"p{number}", turns) for number in (1, 2)), pod("idle"))  # fmt: skip
    result = fs.simulate(cluster_of(Snapshot.read(path)), workload_of(Snapshot.read(path)), "best_fit")
    assert sorted(result.placements["node_id"].to_list(), key=str) == [1, 1, None]


def versioned(body: dict[str, Any], version: str, **spec: Any) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": version}, "spec": {**body["spec"], **spec}}


def test_an_object_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    """Names are unique in a namespace; a change of an object gives it a higher ``resourceVersion``."""
    new, old = (written(tmp_path / f"{name}.json", versioned(node(), version), versioned(pod(), version, **spec))
                for name, version, spec in (("a", "1002", {"nodeName": "n1"}), ("b", "999", {})))  # fmt: skip
    with pytest.warns(NotHonoured, match="earlier copies of others, which are ignored: 2"):
        workload = fs.Workload.from_kubernetes(tmp_path)
    assert workload.table()["bound_node"].to_pylist() == ["n1"]
    assert len(cluster_of(Snapshot.read(new, old)).nodes) == 1
    unversioned = written(tmp_path / "c.json", pod(), pod(requests={"cpu": "2"}), pod(meta={"namespace": "b"}))
    rows = Snapshot.read(unversioned).pod_rows()
    assert sorted((row["native_id"], row["cpu_milli"]) for row in rows) == [("b/p1", 0), ("default/p1", 2000)]


def test_pods_that_wait_and_are_deleted_are_no_candidates(tmp_path: Path) -> None:
    """kube-scheduler passes over pods with a deletionTimestamp; pods on nodes hold their places until they are gone."""
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    path = written(tmp_path / "a.json", node(), pod("a", meta=deleted), pod("b", meta=deleted, nodeName="n1"), pod("c"))
    rows = Snapshot.read(path).pod_rows()
    assert [(row["native_id"], row["bound_node"]) for row in rows] == [("default/b", "n1"), ("default/c", None)]


def test_workloads_of_a_cluster_bring_no_pods_of_their_own(tmp_path: Path) -> None:
    """Beside another workload only what runs on the cluster counts, and a workload asked for adds what it lacks."""

    def web(count: int) -> dict[str, Any]:
        spec = {"replicas": count, "template": {"metadata": {}, "spec": {"containers": []}}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    owned = {"labels": {"pod-template-hash": "5d59d67564"}}
    there = written(tmp_path / "now.json", node(), web(3), pod("web-5d59d67564-a", meta=owned, nodeName="n1"),
                    pod("web-5d59d67564-b", meta=owned))  # fmt: skip
    asked = written(tmp_path / "more.json", web(4), pod("one"))
    both = Snapshot.read(asked).beside(Snapshot.read(there)).pod_rows()
    names = ["web-5d59d67564-a", "one", "web-1", "web-2", "web-3"]
    assert [row["native_id"] for row in both] == [f"default/{name}" for name in names]


def test_pods_meet_nodes_of_other_files(tmp_path: Path) -> None:
    nodes = written(tmp_path / "n.json", node(spec={"unschedulable": True}))
    pods = written(tmp_path / "p.json", pod())
    assert "constraints" not in fs.Workload.from_kubernetes(pods).columns
    assert "constraints" in fs.Workload.from_kubernetes(pods, nodes).columns


@pytest.mark.parametrize("ask", [cluster_of, workload_of])
def test_nothing_to_import(tmp_path: Path, ask: Any) -> None:
    with pytest.raises(InputError, match=r"no (nodes|pods)"):
        ask(Snapshot.read(written(tmp_path / "a.json", {"kind": "NodePool", "metadata": {"name": "s"}})))


def test_bad_options_and_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node(), pod(requests={"nvidia.com/gpu": 100_000}))
    with pytest.raises(ScenarioError, match="one of GiB, MiB"):
        Snapshot.read(path, memory_unit="GB")
    with pytest.raises(InputError, match=r"nvidia\.com/gpu: found 100000"):
        workload_of(Snapshot.read(path))
    twice = written(tmp_path / "b.json", node(), node())
    with pytest.raises(InputError, match=r"item 2: Node n1: name: found 'n1', expected a unique name"):
        cluster_of(Snapshot.read(twice))


def test_within_a_run_the_same_files_are_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node("n"), pod("p", preemptionPolicy="Never", futureField=1))
    with OBJECTS.during_run():
        cluster, workload = Snapshot.read(path), Snapshot.read(path)
        assert workload.objects is cluster.objects
        assert Snapshot.read(path, memory_unit="MiB").objects is not cluster.objects
        workload.pod_rows()
        assert list(workload.notices) == ["pods: spec.futureField"] and not cluster.notices
        assert cluster.node_rows == workload.node_rows and cluster.checksum == workload.checksum
    assert Snapshot.read(path).objects is not cluster.objects


def test_a_run_reads_each_pod_of_one_dump_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = node("n"), pod("runs", nodeName="n"), pod("waits")
    path, copy = written(tmp_path / "a.json", *objects), written(tmp_path / "b.json", *objects)
    rows, plain = list[str](), pods.pod_row

    def counted(read: PodManifest, *rest: Any) -> dict[str, Any] | None:
        rows.append(read.name)
        return plain(read, *rest)

    monkeypatch.setattr(pods, "pod_row", counted)
    results = [fs.simulate(cluster=f"kubernetes:{path}", workload=f"kubernetes:{other}") for other in (path, copy)]
    assert rows[:2] == ["runs", "waits"] and len(rows) == 4  # the copy has the same objects
    assert results[0].placements.equals(results[1].placements)


def test_objects_without_a_part_in_scheduling_are_harmless(tmp_path: Path) -> None:
    kinds = [{"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "events.k8s.io/v1", "kind": "Event"},
             {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}]  # fmt: skip
    other = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "web"}}
    assert not Snapshot.read(written(tmp_path / "a.json", node(), *kinds)).notices
    found = Snapshot.read(written(tmp_path / "a.json", node(), *kinds, other)).notices
    assert found.lines == ["objects of kind Service: 1, such as web"]


def test_pods_that_a_replica_set_lacks_are_told_with_its_name(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    owner = [{"kind": "ReplicaSet", "name": "web", "controller": True}]
    there = [{**pod(f"web-{n}"), "metadata": {"name": f"web-{n}", "ownerReferences": owner}} for n in "abc"]
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
            "spec": {"replicas": 5, "template": template}}  # fmt: skip
    snapshot = Snapshot.read(written(tmp_path / "a.json", node(), body, *there))
    assert len(snapshot.pod_rows()) == 5
    assert snapshot.notices.lines == [
        "workloads: pods that are not there yet, beside others of their workloads: 2, such as ReplicaSet default/web"
    ]


IN_GROUP = {"scheduling.x-k8s.io/pod-group": "g"}
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 3},
}
ABOUT = {"name": "w", "podGroup": "x"}
WORKLOAD = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "v"}, "spec": {}}
KUEUE = {"kueue.x-k8s.io/pod-group-name": "g"}


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([GROUP, pod("a", labels=IN_GROUP), pod("b", labels=IN_GROUP)],
         "2 pods left out, because their gang is not complete and no other pods"),
        ([pod("a", {}, {"kueue.x-k8s.io/pod-group-total-count": "2"}, KUEUE)],
         "1 pod left out, because their gang is not complete and no other pods"),
        ([{**WORKLOAD, "spec": {"podGroups": [{"name": "y", "policy": {}}]}}, pod("a", workloadRef=ABOUT)],
         "1 pod left out, because the Workload or PodGroup of their gang is not there and no other pods"),
        ([pod("a", meta=GONE)], "1 pod that is being deleted and no pods that ask"),
        ([pod("a", status={"phase": "Succeeded"})], "1 pod that is over and no pods that ask"),
        ([pod("a", schedulingGates=[{"name": "g"}])], "1 gated pod, 1 object of kind Node and no pods that ask"),
        ([pod("a", nodeName="m", status={"phase": "Running"})],
         "1 pod left out, because they run on nodes that are not there and no other pods"),
    ],
)  # fmt: skip
def test_objects_without_candidates_are_refused_with_the_reason(
    objects: list[dict[str, Any]], text: str, tmp_path: Path
) -> None:
    """A pod that waits is not over: what a refusal says of pods is why each has no part."""
    snapshot = Snapshot.read(written(tmp_path / "a.json", node("n"), *objects))
    with pytest.raises(InputError, match=f"{text}.*, expected objects of kind Pod"):
        snapshot.pod_rows()
