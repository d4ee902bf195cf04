"""Rules between pods beside a plain reading of the objects: which pod starts when, and on which nodes it may.

The plain reading is told the node of each start and repeats all else: whenever a pod starts or ends, those that wait
are tried in their order until none starts; one starts where and when a node has room and every rule holds.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.importers import cluster_of
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload.importers.kubernetes import workload_of
from tests.objects import node, pod, written

ZONE, RACK, HOST = "topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
CPUS = 8000
"""Milli-CPU of a node."""

Body = Mapping[str, Any]


class Stay(NamedTuple):
    """A pod on a node until an instant; infinite if it stays."""

    body: Body
    node: str
    end_s: float


def nodes_of(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Nodes in zones and racks, of which some have no label."""
    bodies = []
    for number in range(count):
        labels = {ZONE: rng.choice("abc"), RACK: rng.choice("xy"), HOST: f"n{number}"}
        labels.pop(rng.choice((ZONE, RACK, "none", "none", "none", "none")), None)
        bodies.append(node(f"n{number}", labels=labels))
    return bodies


def pods_of(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Pods of three apps in two namespaces, some with rules; a few run."""
    kinds = [_kind(rng) for _ in range(6)]
    bodies = []
    for number in range(count):
        namespace, labels, affinity = rng.choice(kinds)
        running = number < count // 8
        placed: dict[str, Any] = {"nodeName": f"n{number}"} if running else {}
        status = {"phase": "Running"} if running else {}
        bodies.append(pod(f"p{number:02}", {"cpu": f"{rng.choice((500, 1000, 3000))}m"}, labels=labels, status=status,
                          meta={"namespace": namespace}, affinity=affinity, **placed))  # fmt: skip
    return bodies


def _kind(rng: random.Random) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Namespace, labels and affinity of pods of one template."""
    affinity: dict[str, Any] = {}
    if rng.random() < 0.5:
        affinity["podAntiAffinity"] = {HARD: [_term(rng) for _ in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.4:
        affinity["podAffinity"] = {HARD: [_term(rng) for _ in range(rng.choice((1, 1, 2)))]}
    return rng.choice(("one", "one", "two")), {"app": rng.choice("uvw")}, affinity


def _term(rng: random.Random) -> dict[str, Any]:
    either = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["u", "v"]}]}
    further: dict[str, Any] = rng.choice(({}, {}, {"namespaces": ["two"]}, {"namespaceSelector": {}}))
    return {
        "labelSelector": rng.choice(({"matchLabels": {"app": rng.choice("uvw")}}, either, {})),
        "topologyKey": rng.choice((ZONE, ZONE, RACK, HOST)), **further,
    }  # fmt: skip


def terms(body: Body, kind: str) -> list[Body]:
    """The terms of a pod."""
    found: list[Body] = body["spec"]["affinity"].get(kind, {}).get(HARD, [])
    return found


def selects(term: Body, owner: Body, other: Body) -> bool:
    """Whether a term of a pod selects another one."""
    selector, app = term["labelSelector"], other["metadata"]["labels"]["app"]
    inside = other["metadata"]["namespace"] in term.get("namespaces", [owner["metadata"]["namespace"]])
    if "namespaceSelector" in term:
        inside = True
    return (
        inside and app == selector.get("matchLabels", {}).get("app", app)
        and all(app in item["values"] for item in selector.get("matchExpressions", ()))
    )  # fmt: skip


def hosts(body: Body, nodes: Mapping[str, Body], there: list[Stay]) -> Iterator[str]:
    """Names of the nodes on which a pod may start beside those that are there."""

    def domain(term: Body, name: str) -> str | None:
        found: str | None = nodes[name]["metadata"]["labels"].get(term["topologyKey"])
        return found

    def together(term: Body, name: str, stay: Stay) -> bool:
        return domain(term, name) is not None and domain(term, name) == domain(term, stay.node)

    wanted = terms(body, "podAffinity")
    chosen = [stay for stay in there if all(selects(term, body, stay.body) for term in wanted)]
    fresh = all(domain(term, stay.node) is None for term in wanted for stay in chosen)
    first = fresh and all(selects(term, body, body) for term in wanted)
    for name in nodes:
        own = any(
            together(term, name, stay) and selects(term, body, stay.body)
            for term in terms(body, "podAntiAffinity") for stay in there
        )  # fmt: skip
        others = any(
            together(term, name, stay) and selects(term, stay.body, body)
            for stay in there for term in terms(stay.body, "podAntiAffinity")
        )  # fmt: skip
        near = all(
            domain(term, name) is not None and (first or any(together(term, name, stay) for stay in chosen))
            for term in wanted
        )  # fmt: skip
        used = sum(cpu(stay.body) for stay in there if stay.node == name)
        if near and not own and not others and used + cpu(body) <= CPUS:
            yield name


def cpu(body: Body) -> int:
    """Milli-CPU of a pod."""
    return int(body["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1])


def timed(workload: fs.Workload, rng: random.Random) -> fs.Workload:
    """The same pods, of which those that wait arrive one after another and end some time."""
    rows, clock = workload.table().to_pylist(), 0.0
    for row in rows:
        if row.get("bound_node") is None:
            clock += rng.random()
        row["submit_s"], row["duration_s"] = clock, rng.uniform(0.5, 8.0) if row.get("bound_node") is None else None
    fields = [field for field in workload.table().schema if field.name != "duration_s"]
    table = pa.Table.from_pylist(rows, pa.schema([*fields, pa.field("duration_s", pa.float64())]))
    made = fs.Workload.from_arrow(table)
    made.metadata |= workload.metadata
    return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(16))
def test_pods_start_when_and_where_a_plain_reading_lets_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    nodes, bodies = nodes_of(rng, 8), pods_of(rng, 40)
    snapshot = Snapshot.read(written(tmp_path / "a.json", *nodes, *bodies))
    named = {f"{body['metadata']['namespace']}/{body['metadata']['name']}": body for body in bodies}
    by_name = {at["metadata"]["name"]: at for at in nodes}
    workload = timed(workload_of(snapshot), rng)
    nodes_alone = dataclasses.replace(cluster_of(snapshot), snapshot=None)  # those that run are in the workload
    result = fs.simulate(cluster=nodes_alone, workload=workload, policy="best_fit", queue="fifo_skip")
    starts = {row["pod_id"]: row for row in result.placements.filter(pl.col("start_s").is_not_null()).to_dicts()}
    arrivals = [(row["submit_s"], row["pod_id"], row["native_id"], row.get("bound_node"))
                for row in workload.table().to_pylist()]  # fmt: skip
    ends = {row["end_s"] for row in starts.values() if row["end_s"] is not None}
    there: list[Stay] = []
    waiting: list[tuple[int, str]] = []

    def starts_now(entry: tuple[int, str], now: float) -> bool:
        row, body = starts.get(entry[0]), named[entry[1]]
        bound = body["spec"].get("nodeName")
        open_ = {bound} if bound else set(hosts(body, by_name, there))
        if open_:
            assert row is not None and row["start_s"] == now and row["node"] in open_, (seed, now, entry, open_)
            there.append(Stay(body, row["node"], float("inf") if row["end_s"] is None else row["end_s"]))
        return bool(open_)

    def walk(now: float) -> None:
        while started := [entry for entry in list(waiting) if starts_now(entry, now)]:
            waiting[:] = [entry for entry in waiting if entry not in started]

    for now in sorted({item[0] for item in arrivals} | ends):
        there = [stay for stay in there if stay.end_s > now]
        walk(now)
        for _, pod_id, name, _ in (item for item in arrivals if item[0] == now):
            if starts_now((pod_id, name), now):
                walk(now)
            else:
                waiting.append((pod_id, name))
        assert all(starts[pod_id]["start_s"] > now for pod_id, _ in waiting if pod_id in starts), (seed, now)
    assert {pod_id for pod_id, _ in waiting} == {item[1] for item in arrivals} - set(starts)
