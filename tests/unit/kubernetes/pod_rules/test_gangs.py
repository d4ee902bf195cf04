"""Pods that name a group start together, in every dialect; pods of incomplete groups are left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written

GROUP = {"scheduling.k8s.io/group-name": "g"}
COSCHEDULED = {"scheduling.x-k8s.io/pod-group": "g"}
DIALECTS: list[dict[str, Any]] = [
    {"annotations": GROUP}, {"labels": COSCHEDULED}, {"annotations": {"pod-group-name": "g"}},
    {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}, "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"}},
]  # fmt: skip


def group(least: object, name: str = "g", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name, **meta},
            "spec": {"minMember": least}}  # fmt: skip


def pods(count: int, cpu: int = 4, **more: Any) -> list[dict[str, Any]]:
    return [pod(f"p{number}", {"cpu": cpu}, **more) for number in range(count)]


def read(path: Path, *objects: dict[str, Any]) -> tuple[list[int | None], Counter[str]]:
    """The `gang_size` of each pod, and the notices."""
    snapshot = Snapshot.read(written(path / "a.json", *objects))
    frame = pl.DataFrame(workload_of(snapshot).table())
    return frame["gang_size"].to_list() if "gang_size" in frame.columns else [None] * len(frame), snapshot.notices


@pytest.mark.parametrize("words", DIALECTS)
def test_all_of_a_group_start_or_none_does(tmp_path: Path, words: dict[str, Any]) -> None:
    path = written(tmp_path / "a.json", node(), group(3), *pods(3, **words))  # 12 CPUs requested, 8 there
    snapshot = Snapshot.read(path)
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    assert (result.summary["pods_unplaced"][0], snapshot.notices) == (3, Counter())
    assert result.placements["reason"].cast(pl.String).to_list() == ["gang_too_large"] * 3
    snapshot = Snapshot.read(written(tmp_path / "a.json", node("n1"), node("n2"), group(3), *pods(3, **words)))
    assert fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit").summary["pods_unplaced"][0] == 0


def test_the_size_comes_from_the_pods_or_is_all_of_them(tmp_path: Path) -> None:
    assert read(tmp_path, *pods(3, **DIALECTS[3])) == ([3, 3, 3], Counter())
    unknown = {"pods: of a gang of unknown size, which is all that are there": 2}
    assert read(tmp_path, *pods(2, annotations=GROUP)) == ([2, 2], unknown)
    others = [group(2, namespace="else"), *pods(2, annotations=GROUP)]
    assert read(tmp_path, *others) == ([2, 2], unknown)


def test_more_pods_than_the_least_start_after_their_gang(tmp_path: Path) -> None:
    members = pods(4, labels=COSCHEDULED)
    members[0]["metadata"]["creationTimestamp"] = "2024-01-01T00:00:09Z"
    for late in members[1:]:
        late["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    assert read(tmp_path, group(3), *members) == ([3, 3, 3, None], Counter())
    table = workload_of(Snapshot.read(tmp_path / "a.json")).table()
    assert table["after_gang"].to_pylist() == [None, None, None, True] and len(set(table["job_id"].to_pylist())) == 1
    assert read(tmp_path, group(1), *members) == ([None] * 4, Counter())
    assert read(tmp_path, group(None), *members) == ([None] * 4, Counter())


def test_pods_that_run_count_as_started(tmp_path: Path) -> None:
    running = pod("r", {"cpu": 1}, annotations=GROUP, nodeName="n1", status={"phase": "Running"})
    assert read(tmp_path, group(3), running, *pods(2, annotations=GROUP)) == ([None, 2, 2], Counter())
    assert read(tmp_path, group(2), running, *pods(1, annotations=GROUP)) == ([None, None], Counter())
    ended = {"alibabacloud.com/creation-time": "0", "alibabacloud.com/deletion-time": "9"}
    failed = pod("f", annotations={**GROUP, **ended}, nodeName="n1", status={"phase": "Failed"})
    assert read(tmp_path, group(3), running, failed, *pods(2, annotations=GROUP))[0] == [None, 2, 2]


def test_a_group_that_is_not_complete_is_left_out(tmp_path: Path) -> None:
    running = pod("r", {"cpu": 1}, annotations=GROUP, nodeName="n1")
    sizes, notices = read(tmp_path, group(4), running, *pods(2, annotations=GROUP), pod("other"))
    assert (sizes, notices) == ([None, None], {"pods: left out, because their gang is not complete": 2})


def test_the_pods_of_a_job_of_volcano_are_a_gang(tmp_path: Path) -> None:
    task = {"name": "w", "replicas": 3, "template": {"spec": {"containers": []}}}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"},
           "spec": {"minAvailable": 2, "tasks": [task]}}  # fmt: skip
    assert read(tmp_path, job) == ([2, 2, None], Counter())


def test_the_queue_of_a_pod_is_its_tenant(tmp_path: Path) -> None:
    queued = pod("a", annotations={"volcano.sh/queue-name": "q"})
    workload = workload_of(Snapshot.read(written(tmp_path / "a.json", queued, pod("b"))))
    assert pl.DataFrame(workload.table())["tenant"].to_list() == ["q", "default"]


@pytest.mark.parametrize("least", ["many", True, -1])
def test_bad_sizes_are_named(tmp_path: Path, least: object) -> None:
    with pytest.raises(InputError, match="PodGroup g: spec: minMember: found"):
        read(tmp_path, group(least), pod())


def test_pods_of_different_requests_start_together_or_none_does(tmp_path: Path) -> None:
    members = [pod("head", {"cpu": 1}, GROUP), pod("worker", {"cpu": 6, "memory": "1Gi"}, GROUP)]
    text = f"kubernetes:{written(tmp_path / 'a.json', node(), group(2), *members)}"
    assert fs.simulate(text, text, "best_fit").summary["pods_unplaced"][0] == 0
    running = pod("r", {"cpu": 2}, nodeName="n1", status={"phase": "Running"})
    text = f"kubernetes:{written(tmp_path / 'b.json', node(), group(2), *members, running)}"
    found = dict(fs.simulate(text, text, "best_fit").placements.select("native_id", "reason").rows())
    assert found == {"default/r": "running", "default/head": "gang", "default/worker": "no_cpu"}


OWN = "scheduling.k8s.io/v1alpha1"


def workload(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": OWN, "kind": "Workload", "metadata": {"name": "w"}, "spec": {"podGroups": list(groups)}}


def of_workload(count: int, name: str = "w", key: str = "", first: int = 0) -> list[dict[str, Any]]:
    reference = {"name": name, "podGroup": "workers"} | ({"podGroupReplicaKey": key} if key else {})
    return [pod(f"{key or 'p'}{number}", {"cpu": 1}, workloadRef=reference) for number in range(first, first + count)]


def test_a_workload_says_how_many_pods_of_its_groups_start_together(tmp_path: Path) -> None:
    gang = workload({"name": "workers", "policy": {"gang": {"minCount": 2}}})
    assert read(tmp_path, gang, *of_workload(3)) == ([2, 2, None], Counter())
    assert read(tmp_path, gang, *of_workload(1), pod("o")) == (
        [None],
        {"pods: left out, because their gang is not complete": 1},
    )
    basic = workload({"name": "workers", "policy": {"basic": {}}})
    assert read(tmp_path, basic, *of_workload(3)) == ([None] * 3, Counter())


def test_each_key_of_replicas_is_a_group_of_its_own(tmp_path: Path) -> None:
    gang = workload({"name": "workers", "policy": {"gang": {"minCount": 2}}})
    pods = [*of_workload(2, key="a"), *of_workload(1, key="b"), pod("other")]
    assert read(tmp_path, gang, *pods) == ([2, 2, None], {"pods: left out, because their gang is not complete": 1})


def test_pods_wait_for_the_object_of_their_group(tmp_path: Path) -> None:
    gone = {"pods: left out, because the Workload or PodGroup of their gang is not there": 2}
    gang = workload({"name": "drivers", "policy": {"gang": {"minCount": 1}}})
    assert read(tmp_path, gang, *of_workload(2), pod("other")) == ([None], gone)
    unknown = {"pods: of a gang of unknown size, which is all that are there": 2}
    assert read(tmp_path, *of_workload(2)) == ([2, 2], unknown)


def test_a_group_of_kubernetes_itself_has_a_policy(tmp_path: Path) -> None:
    own = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
    members = [pod(f"p{number}", schedulingGroup={"podGroupName": "g"}) for number in range(3)]
    gang = own | {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    assert read(tmp_path, gang, *members) == ([2, 2, None], Counter())
    assert read(tmp_path, own | {"spec": {"schedulingPolicy": {"basic": {}}}}, *members) == ([None] * 3, Counter())
    assert read(tmp_path, own | {"spec": {"schedulingPolicy": {"gang": {}}}}, *members)[0] == [3] * 3


def test_a_workload_of_kueue_is_another_kind(tmp_path: Path) -> None:
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"}}
    assert read(tmp_path, kueue, pod())[1] == {"objects of kind Workload": 1}
