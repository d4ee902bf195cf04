"""What must hold for every run: nothing is lost, nothing is used twice, queues keep their promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.policies.registry import placing
from fastsim.workload import Workload
from tests.reference.online.engine import ReferenceEngine
from tests.reference.online.nodes import WHOLE
from tests.strategies import Scenario, scenarios, scenarios_per_run

Rows = list[dict[str, Any]]
some = settings(max_examples=scenarios_per_run(40))
"""Random runs for each property; the differential tests add hundreds of the same kind."""


def run(scenario: Scenario, **changes: Any) -> Result:
    s = replace(scenario, **changes)
    options = OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s)
    return run_online(s.cluster, s.workload, s.plan, s.typical, options)


def intervals(scenario: Scenario, result: Result) -> Rows:
    """Every interval a pod held a node, with what it asked for."""
    pods = {row["pod_id"]: row for row in scenario.workload.table().to_pylist()}
    return [row | pods[row["pod_id"]] for row in result.placements.rows(named=True) if row["node_id"] is not None]


def holding(held: Rows, t_s: float) -> Rows:
    """The intervals that go on after the instant ``t_s``."""
    return [row for row in held if row["start_s"] <= t_s and (row["end_s"] is None or row["end_s"] > t_s)]


def fullest(held: Rows) -> Iterator[tuple[int, Rows]]:
    """Every node whenever something started there, with what it then held: it is never fuller in between."""
    by_node: dict[int, Rows] = {}
    for row in held:
        by_node.setdefault(row["node_id"], []).append(row)
    for position, rows in by_node.items():
        for t_s in {row["start_s"] for row in rows}:
            yield position, holding(rows, t_s)


@some
@given(scenarios())
def test_no_node_and_no_device_is_ever_over_allocated(scenario: Scenario) -> None:
    nodes = scenario.cluster.nodes.to_pylist()
    for position, here in fullest(intervals(scenario, run(scenario))):
        node = nodes[position]
        assert sum(row["cpu_milli"] for row in here) <= node["cpu_milli"]
        assert sum(row["memory_mib"] for row in here) <= node["memory_mib"]
        assert node["max_pods"] is None or len(here) <= node["max_pods"]
        devices = [0] * node["num_gpu"]
        for row in here:
            for index in row["gpu_ids"]:
                devices[index] += row["gpu_milli"]
        assert max(devices, default=0) <= WHOLE


@some
@given(scenarios())
def test_pods_get_what_they_asked_for_while_the_node_is_there(scenario: Scenario) -> None:
    nodes = scenario.cluster.nodes.to_pylist()
    for row in intervals(scenario, run(scenario)):
        node = nodes[row["node_id"]]
        assert len(set(row["gpu_ids"])) == row["num_gpu"]
        if row["num_gpu"] and row.get("gpu_models"):
            assert node["gpu_model"] in row["gpu_models"]
        assert (node["add_s"] or 0) <= row["start_s"]
        if node["remove_s"] is not None:
            assert row["end_s"] is None or row["end_s"] <= node["remove_s"]


@some
@given(scenarios())
def test_allocation_in_the_timeline_is_the_sum_of_the_placements(scenario: Scenario) -> None:
    scenario = replace(scenario, sample_s=None)
    result = run(scenario)
    held = intervals(scenario, result)
    for before, after in pairwise(result.timeline.rows(named=True)):
        if before["t_s"] < after["t_s"] or after["event"] == "end":
            now = holding(held, before["t_s"])
            assert before["pods_running"] == len(now)
            assert before["cpu_milli_alloc"] == sum(row["cpu_milli"] for row in now)
            assert before["memory_mib_alloc"] == sum(row["memory_mib"] for row in now)
            assert before["gpu_milli_alloc"] == sum(row["gpu_milli"] * row["num_gpu"] for row in now)
            assert before["active_gpus"] == len({(row["node_id"], g) for row in now for g in row["gpu_ids"]})


@some
@given(scenarios())
def test_every_pod_is_accounted_for_once(scenario: Scenario) -> None:
    result = run(scenario)
    last = result.timeline.row(-1, named=True)
    states = result.jobs["state"].to_list()
    kinds = {
        "running": "running",
        "pending": "pending",
        "finished": "finished",
        "unplaced": "unplaced",
        "lost": "node_lost",
    }
    assert {name: last[f"pods_{name}"] for name in kinds} == {name: states.count(kinds[name]) for name in kinds}
    assert result.jobs["pod_id"].to_list() == result.placements["pod_id"].to_list()
    arrived = [
        row["pod_id"]
        for row in scenario.workload.table().to_pylist()
        if scenario.until_s is None or row["submit_s"] <= scenario.until_s
    ]
    assert result.jobs["pod_id"].to_list() == arrived


@some
@given(scenarios())
def test_fragmentation_classes_add_up_to_the_free_devices(scenario: Scenario) -> None:
    rows = run(scenario).timeline
    names = ["q1_lack_both", "q2_lack_gpu", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access"]
    for row in rows.rows(named=True):
        free = row["gpu_milli_capacity"] - row["gpu_milli_alloc"] if scenario.typical.kept else 0
        assert sum(row[name] for name in names) + row["q3_satisfied"] == pytest.approx(free)
        assert row["frag_milli"] == pytest.approx(sum(row[name] for name in names))
        assert row["power_w"] == pytest.approx(row["power_cpu_w"] + row["power_gpu_w"])


@some
@given(scenarios(), st.sampled_from((2, 10, 1000)))
def test_only_the_ratio_of_weights_matters(scenario: Scenario, factor: int) -> None:
    heavier = tuple(replace(term, weight=term.weight * factor) for term in scenario.plan.terms)
    assert run(scenario).placements.equals(run(scenario, plan=replace(scenario.plan, terms=heavier)).placements)


@some
@given(scenarios())
def test_decimal_weights_are_exact(scenario: Scenario) -> None:
    decimal, whole = (
        placing(text).plan(scenario.cluster, scenario.workload) for text in ("0.9*fgd + 0.1*pwr", "900*fgd + 100*pwr")
    )
    assert run(scenario, plan=decimal).placements.equals(run(scenario, plan=whole).placements)


@some
@given(scenarios(queues=("fifo",)))
def test_fifo_never_overtakes_and_its_head_blocks(scenario: Scenario) -> None:
    waited = run(scenario).jobs.filter(pl.col("reason") != "too_large")["start_s"].to_list()
    started = [start for start in waited if start is not None]
    assert waited[: len(started)] == started == sorted(started)


@some
@given(scenarios(queues=("priority",)))
def test_priority_never_serves_a_less_important_pod_first(scenario: Scenario) -> None:
    priorities = {row["pod_id"]: row.get("priority") or 0 for row in scenario.workload.table().to_pylist()}
    jobs = run(scenario).jobs.filter(pl.col("reason") != "too_large").rows(named=True)
    never = float("inf")
    for place, one in enumerate(jobs):
        for other in jobs[place + 1 :]:
            first, second = sorted((one, other), key=lambda job: -priorities[job["pod_id"]])
            starts = [never if job["start_s"] is None else job["start_s"] for job in (first, second)]
            waiting = starts[1] < never and first["submit_s"] < starts[1]
            assert not waiting or starts[0] <= starts[1]


@some
@given(scenarios(departures=False, churn=False, queues=("drop",), horizon=False))
def test_later_pods_never_change_earlier_placements(scenario: Scenario) -> None:
    table = scenario.workload.table()
    some = len(table) // 2
    whole = run(scenario).placements
    part = run(scenario, workload=Workload.from_arrow(table.slice(0, some))).placements
    assert part.equals(whole.head(some))


@some
@given(scenarios(horizon=False))
def test_more_nodes_never_make_a_pod_too_large(scenario: Scenario) -> None:
    nodes = scenario.cluster.nodes.to_pylist()
    rows = [(1, {name: value for name, value in row.items() if name != "node_id"}) for row in nodes]
    more = Cluster.mix(
        [*rows, *[(1, row | {"name": row["name"] + "-again"}) for _, row in rows]], catalog=scenario.cluster.catalog
    )
    assert _too_large(run(scenario)) == _too_large(run(scenario, cluster=more))
    less = Cluster.mix(rows[:1], catalog=scenario.cluster.catalog)
    assert _too_large(run(scenario)) <= _too_large(run(scenario, cluster=less))


def _too_large(result: Result) -> set[int]:
    return set(result.jobs.filter(pl.col("reason") == "too_large")["pod_id"])


@some
@given(scenarios())
def test_samples_show_what_events_made_of_the_cluster(scenario: Scenario) -> None:
    """A sample comes after node changes, departures and retries of its instant, before arrivals."""
    events = run(scenario, sample_s=None).timeline.rows(named=True)
    samples = run(scenario, sample_s=1.5).timeline.filter(pl.col("event") == "sample").rows(named=True)
    same = (
        "pods_running",
        "pods_pending",
        "gpu_milli_alloc",
        "frag_milli",
        "power_w",
        "arrived_gpu_milli",
        "active_nodes",
    )
    for sample in samples:
        before = [
            row
            for row in events
            if row["t_s"] < sample["t_s"]
            or (row["t_s"] == sample["t_s"] and row["event"] in ("node", "departure", "retry"))
        ]
        if before and _settled(before[-1], events, sample["t_s"]):
            assert {name: sample[name] for name in same} == {name: before[-1][name] for name in same}


def _settled(row: dict[str, Any], events: Rows, t_s: float) -> bool:
    """Whether nothing that arrived at the sample's own instant has already left a row before it."""
    place = events.index(row)
    return all(other["t_s"] != t_s or other["event"] != "arrival" for other in events[:place])


@some
@given(scenarios())
def test_the_same_seed_gives_the_same_run(scenario: Scenario) -> None:
    one, other = run(scenario), run(scenario)
    for table in ("summary", "timeline", "placements", "jobs"):
        assert getattr(one, table).equals(getattr(other, table))


@some
@given(scenarios())
def test_the_twin_conserves_every_resource_after_every_event(scenario: Scenario) -> None:
    s = scenario
    engine = ReferenceEngine(s.cluster, s.workload, s.plan, s.typical, s.seed, s.sample_s)
    while engine.step(float("inf")):
        for position, node in enumerate(engine.nodes):
            here = [pod for pod in engine.running.values() if pod.node == position]
            if node is None:
                assert here == []
                continue
            assert node.cpu_free + sum(pod.request.cpu_milli for pod in here) == node.shape.cpu_milli
            assert node.memory_free + sum(pod.request.memory_mib for pod in here) == node.shape.memory_mib
            for index, free in enumerate(node.gpu_free):
                assert free + sum(pod.request.gpu_milli for pod in here if index in pod.devices) == WHOLE
            assert node.pods == len(here)
            assert sum(count for _, count in node.tags) == sum(pod.request.num_gpu > 0 for pod in here)
        assert engine.tally.running == len(engine.running)
        assert engine.tally.pending == len(engine.line)
