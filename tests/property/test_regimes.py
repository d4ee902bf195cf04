"""What must hold for every run with rules: nothing is used twice, gangs stay together, quotas and promises are kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import QUEUES
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.hardware.mig import gpu_milli
from fastsim.hardware.node_constraints import conditions_of, eligible, further, node_labels
from fastsim.scenario.run_rules import NO_RULES
from fastsim.workload import Workload
from tests.property.test_runs import Rows, fullest, holding, intervals
from tests.reference.online.engine import ARRIVAL, ReferenceEngine
from tests.reference.online.nodes import WHOLE
from tests.reference.online.waiting_line import reserved_for
from tests.strategies import Scenario, ruled, scenarios_per_run

some = settings(max_examples=scenarios_per_run(40), suppress_health_check=list(HealthCheck))
LINES = tuple(queue for queue in QUEUES if queue != "drop")


def run(scenario: Scenario) -> Result:
    s = scenario
    options = OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s, rules=s.rules)
    return run_online(s.cluster, s.workload, s.plan, s.typical, options)


def instants(held: Rows) -> list[float]:
    return sorted({row["start_s"] for row in held})


def summed(rows: Rows) -> Counter[str]:
    """All amounts of the further resources of some pods or nodes, instances of partitioned GPUs among them."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums.update(dict(further(row.get("extra_resources"), row.get("mig"))))
    return sums


def gpu_asked(row: dict[str, Any]) -> int:
    """Milli-GPU of a pod, instances of partitioned GPUs included."""
    amounts = further(row.get("extra_resources"), row.get("mig"))
    return int(row["num_gpu"] * row["gpu_milli"]) + gpu_milli(amounts)


@some
@given(ruled())
def test_no_resource_of_any_kind_is_ever_over_allocated(scenario: Scenario) -> None:
    nodes = [row | {"mig": None} for row in scenario.cluster.offered.to_pylist()]
    for position, here in fullest(intervals(scenario, run(scenario))):
        node = nodes[position]
        assert sum(row["cpu_milli"] for row in here) <= node["cpu_milli"]
        assert sum(row["memory_mib"] for row in here) <= node["memory_mib"]
        assert node["max_pods"] is None or len(here) <= node["max_pods"]
        assert summed(here) <= summed([node])
        for device in range(node["num_gpu"]):
            on = [row for row in here if device in row["gpu_ids"]]
            assert sum(row["gpu_milli"] for row in on) <= WHOLE
            memory = sum(row.get("gpu_memory_mib") or 0 for row in on)
            assert node["gpu_memory_mib"] is None or memory <= node["gpu_memory_mib"]


@some
@given(ruled())
def test_pods_run_where_they_may(scenario: Scenario) -> None:
    nodes = [node_labels(node) for node in scenario.cluster.nodes.to_pylist()]
    limited: dict[tuple[int, object], Rows] = {}
    for row in intervals(scenario, run(scenario)):
        asked = conditions_of(row)
        assert eligible(asked, nodes[row["node_id"]])
        limited.setdefault((row["node_id"], asked.group), []).append(row)
    for (_, group), rows in limited.items():
        for row in rows:
            most = conditions_of(row).max_per_node
            if most is not None:
                before = [other for other in holding(rows, row["start_s"]) if other["start_s"] < row["start_s"]]
                assert len(before) < most, group


@some
@given(ruled(queues=("drop", "fifo", "fifo_skip", "priority_skip", "drf")))
def test_members_of_a_gang_start_together_every_time(scenario: Scenario) -> None:
    table = scenario.workload.table().to_pylist()
    result = run(scenario)
    first = dict(zip(result.jobs["pod_id"], result.jobs["start_s"], strict=True))
    gangs: dict[tuple[int, int], list[list[int]]] = {}
    for row in table:
        if (row.get("gang_size") or 1) > 1 and row["pod_id"] in first:
            lists = gangs.setdefault((row["job_id"], row["gang_size"]), [])
            if not lists or len(lists[-1]) == row["gang_size"]:
                lists.append([])
            lists[-1].append(row["pod_id"])
    for (_, size), complete in gangs.items():
        for members in complete:
            starts = {first[pod] for pod in members}
            assert len(starts) == 1 and (len(members) == size or starts == {None})


@some
@given(ruled())
def test_quotas_are_never_exceeded(scenario: Scenario) -> None:
    held = intervals(scenario, run(scenario))
    for t_s in instants(held):
        now = holding(held, t_s)
        for tenant in {row.get("tenant") for row in now}:
            mine = [row for row in now if row.get("tenant") == tenant]
            amounts = (sum(row["cpu_milli"] for row in mine), sum(row["memory_mib"] for row in mine),
                       sum(gpu_asked(row) for row in mine))  # fmt: skip
            assert all(amount <= most for amount, most in zip(amounts, scenario.rules.limits(tenant), strict=True))


@some
@given(ruled(queues=LINES))
def test_time_on_nodes_is_work_plus_lost_work_plus_restarts(scenario: Scenario) -> None:
    durations = {row["pod_id"]: row.get("duration_s") for row in scenario.workload.table().to_pylist()}
    result = run(scenario)
    stays = result.placements.filter(pl.col("node_id").is_not_null()).with_columns(
        span=pl.col("end_s") - pl.col("start_s")
    )
    for job in result.jobs.filter(pl.col("state") == "finished").rows(named=True):
        spans = stays.filter(pl.col("pod_id") == job["pod_id"]).sort("attempt")["span"].to_list()
        restarts = sum(min(span, scenario.rules.restart_s) for span in spans[1:])
        # Times are differences of sums of a dozen numbers up to about 100, so they are off by some 1e-13.
        assert sum(spans) == pytest.approx(durations[job["pod_id"]] + job["lost_work_s"] + restarts, abs=1e-9)
        assert job["attempts"] == len(spans)


@some
@given(ruled())
def test_gpu_hours_are_those_of_the_stays_and_pauses_are_between_them(scenario: Scenario) -> None:
    by_row = {row["pod_id"]: gpu_asked(row) / 1000 for row in scenario.workload.table().to_pylist()}
    result = run(scenario)
    end_s = result.timeline["t_s"].max() if len(result.timeline) else 0.0
    stays = result.placements.filter(pl.col("node_id").is_not_null()).with_columns(
        span=pl.col("end_s").fill_null(end_s) - pl.col("start_s")
    )
    for job in result.jobs.rows(named=True):
        held_s = sum(stays.filter(pl.col("pod_id") == job["pod_id"])["span"].to_list())
        assert job["gpu_hours"] * 3600 == pytest.approx(held_s * by_row[job["pod_id"]], abs=1e-9)
        if job["start_s"] is not None:
            over_s = job["end_s"] if job["end_s"] is not None and job["state"] != "pending" else end_s
            assert job["paused_s"] == pytest.approx(over_s - job["start_s"] - held_s, abs=1e-9)
    assert result.summary["gpu_hours"].item() == pytest.approx(result.jobs["gpu_hours"].sum(), abs=1e-9)
    assert (result.summary["restarts"].item() or 0) == result.jobs["restarts"].sum()


@some
@given(ruled(queues=("easy",), crowded=True))
def test_the_first_in_an_easy_line_starts_no_later_than_it_was_promised(scenario: Scenario) -> None:
    """Estimates are exact here, all pods end, and no node goes."""
    rows = [row | {"est_duration_s": None, "duration_s": row["duration_s"] or 4.0}
            for row in scenario.workload.table().to_pylist()]  # fmt: skip
    workload = Workload.from_arrow(pa.Table.from_pylist(rows, scenario.workload.schema))
    s = replace(scenario, workload=workload, rules=NO_RULES, until_s=None)
    engine = ReferenceEngine(s.cluster, s.workload, s.plan, s.typical, s.seed, None)
    promised: dict[int, float] = {}
    while engine.step(float("inf")):
        if engine.line and not engine.freed:
            place = reserved_for(engine, engine.line[0])
            if place is not None:
                promised.setdefault(engine.line[0].lead.pod_id, place.start_s)
    jobs = run(s).jobs
    starts = dict(zip(jobs["pod_id"], jobs["start_s"], strict=True))
    assert all(starts[pod] is not None and starts[pod] <= t_s for pod, t_s in promised.items())


@some
@given(ruled(queues=("fifo",), crowded=True))
def test_a_strict_line_keeps_the_order_inside_every_tenant(scenario: Scenario) -> None:
    s = replace(scenario, rules=replace(NO_RULES, quotas=scenario.rules.quotas))
    table = {row["pod_id"]: row for row in s.workload.table().to_pylist()}
    if any((row.get("gang_size") or 1) > 1 for row in table.values()):
        return
    waits = pl.col("start_s").is_not_null() | (pl.col("reason") == "pending")  # others can never run and are set aside
    jobs = run(s).jobs.filter(waits).rows(named=True)
    for tenant in {row.get("tenant") for row in table.values()}:
        starts = [job["start_s"] for job in jobs if table[job["pod_id"]].get("tenant") == tenant]
        started = [start for start in starts if start is not None]
        assert starts[: len(started)] == started == sorted(started)


@some
@given(ruled(), st.integers(0, 3))
def test_the_same_seed_gives_the_same_failures(scenario: Scenario, seed: int) -> None:
    one, other = (run(replace(scenario, seed=seed)) for _ in range(2))
    assert one.timeline.equals(other.timeline) and one.summary.equals(other.summary)


def amounts_after(engine: ReferenceEngine) -> dict[str | None, list[int]]:
    """What the running pods of each tenant hold in sum, recomputed."""
    sums: dict[str | None, list[Any]] = {}
    for pod in engine.running.values():
        held = sums.setdefault(pod.tenant, [0, 0, 0])
        request = pod.request
        held[0] += request.cpu_milli
        held[1] += request.memory_mib
        held[2] += request.num_gpu * request.gpu_milli + gpu_milli(request.conditions.extra_resources)
    return sums


@some
@given(ruled())
def test_the_twin_keeps_its_books_after_every_event(scenario: Scenario) -> None:
    s = scenario
    engine = ReferenceEngine(s.cluster, s.workload, s.plan, s.typical, s.seed, s.sample_s, None, s.rules)
    while engine.step(float("inf") if s.until_s is None else s.until_s):
        used = {tenant: list(held) for tenant, held in engine.tenants.used.items() if any(held)}
        assert used == {tenant: held for tenant, held in amounts_after(engine).items() if any(held)}
        assert engine.tally.running == len(engine.running)
        known = engine.pods[: len(engine.pods) - sum(event.kind == ARRIVAL for event in engine.events)]
        assert engine.tally.pending == sum(pod.reason == "pending" for pod in known)
