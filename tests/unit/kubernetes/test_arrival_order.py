"""Pods of a running cluster: the order of objects does not matter, running pods come first."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.decisions.explain import explained
from fastsim.errors import ScenarioError
from fastsim.kubernetes.arrival_order import NO_ROOM, fitting
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


def after_one_pass(read: Snapshot) -> dict[str, str | None]:
    """As ``places``; neither pods that fit nowhere nor unused priorities are told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return places(read)


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


def nominated(name: str, requests: dict[str, Any], where: str = "n1", **more: Any) -> dict[str, Any]:
    return pod(name, requests, status={"phase": "Pending", "nominatedNodeName": where}, **more)


TWO = [node("n1"), node("n2")]


def test_a_nominated_pod_takes_its_node_before_older_pods_of_its_priority() -> None:
    first, nom = pod("first", {"cpu": 8}, meta=OLD, priority=5), nominated("nom", {"cpu": 8}, meta=NEW, priority=5)
    read = snapshot(*TWO, first, nom)
    assert after_one_pass(read) == {"default/first": "n2", "default/nom": "n1"} and not read.notices
    assert after_one_pass(snapshot(*TWO, {**first, "spec": {**first["spec"], "priority": 4}}, nom)) == {
        "default/first": "n2", "default/nom": "n1"}  # fmt: skip


def test_pods_of_higher_priority_may_take_the_room() -> None:
    """Which node the first pod takes is for the policy to say, so that the second is kept to none."""
    high = pod("high", {"cpu": 8}, meta=OLD, priority=9)
    read = snapshot(*TWO, high, nominated("nom", {"cpu": 8}, meta=NEW, priority=5))
    assert after_one_pass(read) == {"default/high": "n1", "default/nom": "n2"}
    assert read.notices == {NO_ROOM: 1}
    elsewhere = pod("high", {"cpu": 8}, meta=OLD, priority=9, nodeSelector={"kubernetes.io/hostname": "n2"})
    nodes = [node(name, {"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    read = snapshot(*nodes, elsewhere, nominated("nom", {"cpu": 8}, meta=NEW, priority=5))
    assert after_one_pass(read) == {"default/high": "n2", "default/nom": "n1"} and not read.notices


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_room_is_kept_while_evicted_pods_end() -> None:
    """4 of 8 CPUs are free on n1, where a pod is being deleted for one that needs all of them."""
    leaving = running("leaving", "n1", {"cpu": 4}, meta={**OLD, "deletionTimestamp": "2024-01-01T00:01:00Z"})
    big = nominated("big", {"cpu": 8}, meta=NEW, priority=5)
    small = [pod(name, {"cpu": 4}, meta=OLD, priority=value) for name, value in (("low", 1), ("equal", 5), ("high", 6))]
    free = pod("free", {"memory": "1Gi"}, meta=OLD)
    for one, where in zip(small, (None, None, "n1"), strict=True):
        read = snapshot(node("n1"), leaving, big, one, free)
        assert after_one_pass(read) == {
            "default/leaving": "n1", "default/big": None, f"default/{one['metadata']['name']}": where,
            "default/free": "n1",
        }  # fmt: skip
        assert not read.notices
        if where is None:
            result = fs.simulate(cluster_of(read), workload_of(read), "best_fit", queue="priority")
            pod_id = result.jobs.filter(pl.col("native_id") == f"default/{one['metadata']['name']}")["pod_id"][0]
            explanation = explained(result, [pod_id])
            words = explanation.summary(explanation.decisions[0])
            assert words == "0/1 nodes are available: 1 node(s) kept room for a nominated pod."


def test_another_node_that_has_room_is_taken() -> None:
    leaving = running("leaving", "n1", {"cpu": 4}, meta=OLD)
    read = snapshot(*TWO, leaving, nominated("big", {"cpu": 8}, priority=5), pod("low", {"cpu": 4}))
    assert after_one_pass(read) == {"default/leaving": "n1", "default/big": "n2", "default/low": "n1"}
    assert not read.notices


def test_two_nominated_pods_share_their_node() -> None:
    pair = [nominated(name, {"cpu": 4}, meta=NEW) for name in "ab"]
    read = snapshot(*TWO, pod("old", {"cpu": 4}, meta=OLD), *pair)
    assert after_one_pass(read) == {"default/a": "n1", "default/b": "n1", "default/old": "n2"}


@pytest.mark.parametrize(
    ("more", "where", "notices"),
    [
        ({}, "gone", {}),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "labelSelector": {},
                                         "whenUnsatisfiable": "DoNotSchedule"}]}, "n1", {NO_ROOM: 1}),
    ],
)  # fmt: skip
def test_other_nominated_pods_are_in_line_as_all(more: Any, where: str, notices: dict[str, int]) -> None:
    nodes = [node(name, {"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    read = snapshot(*nodes, pod("first", {"cpu": 8}, meta=OLD), nominated("nom", {"cpu": 8}, where, meta=NEW, **more))
    assert after_one_pass(read) == {"default/first": "n1", "default/nom": "n2"} and read.notices == notices


def test_parts_of_devices_are_not_added_up() -> None:
    """Half of each of two devices is free, which is not a whole one."""
    board = node("n1", T4, amounts={"nvidia.com/gpu": "2"})
    halves = [running(name, "n1", {}, annotations={"gpu-fraction": "0.5", "alibabacloud.com/gpu-index": str(number)})
              for number, name in enumerate("ab")]  # fmt: skip
    read = snapshot(board, node("n2", T4, amounts={"nvidia.com/gpu": "1"}), *halves,
                    nominated("nom", {"nvidia.com/gpu": 1}))  # fmt: skip
    assert after_one_pass(read)["default/nom"] == "n2" and read.notices == {NO_ROOM: 1}


def test_pods_that_are_placed_anew_are_not_nominated(tmp_path: Path) -> None:
    held = pod("p", {"cpu": 1}, status={"phase": "Running", "nominatedNodeName": "n1"}, nodeName="n1")
    path = written(tmp_path / "a.json", *TWO, held)
    assert Snapshot.read(path, unpin="true").pod_rows()[0]["pinned_node"] is None
