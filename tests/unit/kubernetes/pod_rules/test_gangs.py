"""Pods that name a group start together, in every dialect; pods of incomplete groups are left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cluster.importers import cluster_of
from fastsim.errors import InputError
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload.importers.kubernetes import workload_of
from tests.objects import node, pod, written

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


def test_more_pods_than_the_least_are_placed_one_by_one(tmp_path: Path) -> None:
    members = pods(4, labels=COSCHEDULED)
    members[0]["metadata"]["creationTimestamp"] = "2024-01-01T00:00:09Z"
    for late in members[1:]:
        late["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    more = {"pods: beyond the least number of their gang, placed one by one, also while it waits": 1}
    assert read(tmp_path, group(3), *members) == ([3, 3, 3, None], more)
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
    more = {"pods: beyond the least number of their gang, placed one by one, also while it waits": 1}
    assert read(tmp_path, job) == ([2, 2, None], more)


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
