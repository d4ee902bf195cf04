"""Pods that are on nodes when they arrive: they start there without a decision, and stay unless a rule moves them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError, InputError

NODES = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=2, cpu_milli=8000, memory_mib=8000)
FIRST, SECOND = NODES.nodes["name"].to_pylist()
ASKED: dict[str, Any] = {
    "submit_s": 0.0, "duration_s": None, "cpu_milli": 1000, "memory_mib": 1, "num_gpu": 1, "gpu_milli": 500,
    "bound_node": None, "bound_gpus": None,
}  # fmt: skip
KINDS: dict[Any, Any] = {"pod_id": pl.Int64, "num_gpu": pl.Int16, "gpu_milli": pl.Int16, "duration_s": pl.Float64,
         "bound_node": pl.String, "bound_gpus": pl.List(pl.Int16)}  # fmt: skip


def pods(*rows: dict[str, Any]) -> fs.Workload:
    frame = pl.DataFrame([ASKED | {"pod_id": number} | row for number, row in enumerate(rows)])
    return fs.Workload.from_arrow(frame.cast(KINDS))


def places(workload: fs.Workload, **options: Any) -> list[tuple[Any, ...]]:
    result = fs.simulate(NODES, workload, "best_fit", **options)
    return result.placements.select("node", "gpu_ids", "reason").rows()


@pytest.mark.parametrize("options", [{}, {"queue": "fifo"}, {"queue": "drf"}, {"quotas": {"": {"gpu_milli": 100}}}])
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.OptionUnused")  # of some of the cases
def test_they_start_where_they_are_whatever_the_policy_would_do(options: dict[str, Any]) -> None:
    there = pods({"bound_node": SECOND, "bound_gpus": [1]}, {"bound_node": SECOND}, {"bound_node": FIRST})
    assert places(there, **options) == [(SECOND, [1], "running"), (SECOND, [1], "running"), (FIRST, [0], "running")]


@pytest.mark.parametrize("queue", ["drop", "fifo"])
@pytest.mark.parametrize(("more", "reason"), [
    ({"cpu_milli": 7500}, "no_cpu"), ({"bound_gpus": [0], "gpu_milli": 600}, "no_gpu"),
    ({"memory_mib": 8000}, "no_memory"),
])  # fmt: skip
def test_who_has_no_room_leaves_at_once(queue: str, more: dict[str, Any], reason: str) -> None:
    first = {"bound_node": FIRST, "bound_gpus": [0]}
    found = places(pods(first, {"bound_node": FIRST, **more}, {}), queue=queue)
    assert found[0] == (FIRST, [0], "running") and (None, [], reason) in found and len(found) == 3
    assert [row[2] for row in found].count("running") == 2


def test_devices_without_memory_are_no_room() -> None:
    small = fs.Cluster.mix([(1, {"name": "n", "cpu_milli": 8000, "memory_mib": 8, "num_gpu": 2, "gpu_model": "T4",
                                 "gpu_memory_mib": 100})])  # fmt: skip
    name = small.nodes["name"][0].as_py()
    rows = [{"bound_node": name, "bound_gpus": [0], "gpu_milli": 1, "gpu_memory_mib": 60}] * 2
    rows += [{"bound_node": name, "gpu_milli": 1, "gpu_memory_mib": 60}]
    result = fs.simulate(small, pods(*rows), "best_fit")
    found = result.placements.sort("pod_id").select("gpu_ids", "reason").rows()
    assert found == [([0], "running"), ([], "no_gpu"), ([1], "running")]


def test_labels_do_not_matter_until_somebody_moves_them() -> None:
    rows = [{"bound_node": FIRST, "constraints": [{"key": "name", "op": "In", "values": [SECOND]}]}]
    assert places(pods(*rows)) == [(FIRST, [0], "running")]


def test_a_rule_may_move_them() -> None:
    rows = [{"bound_node": FIRST, "bound_gpus": [0], "priority": 0, "cpu_milli": 5000}]
    rows += [{"submit_s": 1.0, "priority": 9, "constraints": [{"key": "name", "op": "In", "values": [FIRST]}],
              "cpu_milli": 5000}]  # fmt: skip
    found = places(pods(*[{"constraints": None} | row for row in rows]), queue="priority", preempt="priority")
    assert found == [(FIRST, [0], "preempted"), (SECOND, [0], "running"), (FIRST, [0], "running")]


@pytest.mark.parametrize(("row", "words"), [
    ({"bound_gpus": [0]}, "bound_gpus: found .* without a bound_node"),
    ({"bound_node": FIRST, "bound_gpus": [0, 0]}, r"expected num_gpu \(1\) different numbers below 64"),
    ({"bound_node": FIRST, "bound_gpus": [64]}, "bound_gpus"),
    ({"bound_node": "gone"}, "workload: pod 0: bound_node: found 'gone', expected a node of the cluster"),
])  # fmt: skip
def test_what_cannot_be_is_refused(row: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        places(pods(row))


@pytest.mark.parametrize("policy", ["las", "max_min_fairness", "exclusive"])
def test_other_engines_begin_with_empty_nodes(policy: str) -> None:
    there = pods({"bound_node": FIRST, "gpu_milli": 1000, "duration_s": 5.0})
    with pytest.raises(FastsimError, match="bound_node"):
        fs.simulate(NODES, there, policy)


def test_agents_begin_with_empty_nodes() -> None:
    from fastsim.decisions.agents.environment import SchedulingEnv

    with pytest.raises(FastsimError, match="pods that run already"):
        SchedulingEnv(NODES, pods({"bound_node": FIRST}))
