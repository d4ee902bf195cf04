"""Pods of a running cluster: the order of objects does not matter, running pods come first."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.errors import ScenarioError
from fastsim.kubernetes.arrival_order import fitting
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written

T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
OLD, NEW = ({"creationTimestamp": f"2024-01-01T00:00:{second:02}Z"} for second in (0, 30))


def running(name: str, where: str, requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return pod(name, requests, status={"phase": "Running"}, nodeName=where, **more)


def snapshot(*objects: dict[str, Any]) -> Snapshot:
    return Snapshot([Manifest(item["metadata"]["name"], item) for item in objects])


def places(read: Snapshot, **options: Any) -> dict[str, str | None]:
    """By name of the pod, its node; None if it has none."""
    result = fs.simulate(cluster_of(read), workload_of(read), "best_fit", **options)
    return dict(result.placements.sort("native_id").select("native_id", "node").rows())


@pytest.mark.parametrize("queue", ["drop", "fifo", "priority", "fifo_skip"])
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.OptionUnused")  # of some of the cases
def test_running_pods_keep_their_nodes_in_any_order(queue: str) -> None:
    objects = [
        node("n"), pod("pend", {"cpu": 8}, meta=OLD), running("run", "n", {"cpu": 8}, meta=NEW),
    ]  # fmt: skip
    for order in itertools.permutations(objects):
        assert places(snapshot(*order), queue=queue) == {"default/run": "n", "default/pend": None}


def test_who_waits_is_taken_by_importance_then_age_then_name() -> None:
    pods = [pod("b", meta=OLD), pod("a", meta=OLD), pod("new", meta=NEW), pod("vip", meta=NEW, priority=5)]
    for order in itertools.permutations(pods):
        names = workload_of(snapshot(*order)).table()["native_id"].to_pylist()
        assert names == ["default/vip", "default/a", "default/b", "default/new"]


@pytest.mark.filterwarnings("error")
def test_no_warning_says_that_a_running_pod_stayed_unplaced() -> None:
    """A change of a node's labels or taints leaves its pods there."""
    tainted = node("n", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    assert places(snapshot(tainted, running("run", "n", {"cpu": 1}))) == {"default/run": "n"}


def test_who_is_over_is_gone_but_not_in_a_trace() -> None:
    done = {"phase": "Succeeded", "startTime": "2024-01-01T00:00:10Z", "containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2024-01-01T00:00:40Z"}}}]}  # fmt: skip
    over = pod("over", {"cpu": 8}, meta=OLD, status=done, nodeName="n")
    read = snapshot(node("n"), over, pod("pend", {"cpu": 8}, meta=NEW))
    assert places(read) == {"default/pend": "n"} and not read.notices
    times = workload_of(read, "trace").table().select(["native_id", "submit_s", "duration_s"]).to_pylist()
    assert [tuple(row.values()) for row in times] == [("default/over", 0, 30), ("default/pend", 30, None)]
    with pytest.raises(ScenarioError, match="kubernetes: as: found 'later', expected one of now, trace"):
        workload_of(read, "later")


def test_who_has_no_room_where_it_runs_is_left_out_and_told() -> None:
    read = snapshot(
        node("n"), running("old", "n", {"cpu": 6}, meta=OLD), running("new", "n", {"cpu": 6}, meta=NEW),
        running("lost", "gone", {"cpu": 1}), pod("pend", {"cpu": 2}),
    )  # fmt: skip
    assert places(read, queue="fifo") == {"default/old": "n", "default/pend": "n"}
    assert read.notices == {
        "pods: left out, because the nodes where they run have too little CPU for all of them": 1,
        "pods: left out, because they run on nodes that are not there": 1,
    }


def test_every_amount_counts() -> None:
    there = {"name": "n", "cpu_milli": 1000, "memory_mib": 10, "num_gpu": 1, "mig": None, "max_pods": 3,
             "extra_resources": [("example.com/fpga", 1)]}  # fmt: skip
    common = {"bound_node": "n", "cpu_milli": 1, "memory_mib": 1, "num_gpu": 0, "gpu_milli": 0, "extra_resources": None,
             "times": snapshot(pod("p")).rows_of(snapshot(pod("p")).objects)[0]["times"]}  # fmt: skip
    more: list[dict[str, Any]] = [
        {"memory_mib": 11}, {"num_gpu": 1, "gpu_milli": 1000}, {"num_gpu": 1, "gpu_milli": 1},
        {"extra_resources": [("example.com/fpga", 2)]}, {}, {}, {},
    ]  # fmt: skip
    notices: Counter[str] = Counter()
    rows = [common | one | {"native_id": f"p{number}"} for number, one in enumerate(more)]
    assert [row["native_id"] for row in fitting(rows, [there], notices)] == ["p1", "p4", "p5"]
    words = " ".join(sorted(notices))
    assert all(f"too little {what} for" in words for what in ("memory", "GPU", "example.com/fpga", "slots for pods"))


def test_texts_name_the_reading(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node("n"), pod("a", meta=OLD), pod("b", meta=NEW))
    times = [
        fs.simulate(f"kubernetes:{path}", f"kubernetes:{path}{tail}").jobs["submit_s"].to_list()
        for tail in ("", "?as=now", "?as=trace")
    ]
    assert times == [[0, 0], [0, 0], [0, 30]]


def test_a_rule_may_move_who_runs() -> None:
    first, second = (node(name, T4, None, {"nvidia.com/gpu": "2"}) for name in "ab")
    one: dict[str, Any] = {"cpu": 1, "nvidia.com/gpu": 1}
    held = running("p", "a", one), running("q", "b", one)
    read = snapshot(first, second, *held, pod("big", {"cpu": 1, "nvidia.com/gpu": 2}))
    expected: dict[str, str | None] = {"default/p": "a", "default/q": "b", "default/big": None}
    assert places(read, queue="fifo") == expected
    moved = fs.simulate(cluster_of(read), workload_of(read), "fgd", queue="fifo", deschedule=("frag_one_pod:1@10",))
    last = moved.placements.sort("attempt").unique("native_id", keep="last").sort("native_id")
    assert last.select("native_id", "node").rows() == [("default/big", "b"), ("default/p", "a"), ("default/q", "a")]


def test_devices_are_those_that_an_annotation_tells() -> None:
    held = running("r", "n", {"nvidia.com/gpu": 2}, annotations={"alibabacloud.com/gpu-index": "1-3"})
    odd = running("s", "n", {"nvidia.com/gpu": 1}, annotations={"alibabacloud.com/gpu-index": "0-2"})
    read = snapshot(node("n", T4, None, {"nvidia.com/gpu": "4"}), held, odd)
    result = fs.simulate(cluster_of(read), workload_of(read), "best_fit")
    assert result.placements.sort("native_id")["gpu_ids"].to_list() == [[1, 3], [0]]
    assert read.notices == {"pods: numbers of devices that do not match their requests": 1}
