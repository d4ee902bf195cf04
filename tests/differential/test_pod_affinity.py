"""Rules between pods, and ports, beside a plain reading of the objects: which pod starts when, and where it may.

The plain reading is told the node of each start and repeats all else: whenever a pod starts or ends, those that wait
are tried in their order until none starts; one starts where and when a node has room and every rule holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.objects import node, pod
from tests.timed_objects import CPUS, HOST, RACK, ZONE, Body, Stay, cpu, played

HARD = "requiredDuringSchedulingIgnoredDuringExecution"


PORTS = [
    {"hostPort": number, **({"hostIP": address} if address else {}), "protocol": protocol}
    for number in (80, 81) for address in ("", "0.0.0.0", "10.0.0.1", "10.0.0.2") for protocol in ("TCP", "UDP")
]  # fmt: skip


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
        namespace, labels, affinity, ports = rng.choice(kinds)
        running = number < count // 8
        placed: dict[str, Any] = {"nodeName": f"n{number}"} if running else {}
        status = {"phase": "Running"} if running else {}
        bodies.append(pod(f"p{number:02}", {"cpu": f"{rng.choice((500, 1000, 3000))}m"}, labels=labels, status=status,
                          meta={"namespace": namespace}, affinity=affinity, **placed))  # fmt: skip
        bodies[-1]["spec"]["containers"][0]["ports"] = ports
    return bodies


def _kind(rng: random.Random) -> tuple[str, dict[str, str], dict[str, Any], list[dict[str, Any]]]:
    """Namespace, labels, affinity and ports of pods of one template."""
    affinity: dict[str, Any] = {}
    if rng.random() < 0.5:
        affinity["podAntiAffinity"] = {HARD: [_term(rng) for _ in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.4:
        affinity["podAffinity"] = {HARD: [_term(rng) for _ in range(rng.choice((1, 1, 2)))]}
    ports = rng.sample(PORTS, rng.choice((1, 1, 2))) if rng.random() < 0.4 else []
    return rng.choice(("one", "one", "two")), {"app": rng.choice("uvw")}, affinity, ports


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


def clash(body: Body, other: Body) -> bool:
    """Whether two pods take the same port of an address that both have."""

    def taken(one: Body) -> list[tuple[Any, Any, str]]:
        ports = one["spec"]["containers"][0].get("ports", [])
        return [(port["hostPort"], port["protocol"], port.get("hostIP", "0.0.0.0")) for port in ports]

    return any(
        mine[:2] == theirs[:2] and (mine[2] == theirs[2] or "0.0.0.0" in (mine[2], theirs[2]))
        for mine in taken(body) for theirs in taken(other)
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
        beside = [stay.body for stay in there if stay.node == name]
        fits = sum(map(cpu, beside)) + cpu(body) <= CPUS and not any(clash(body, other) for other in beside)
        if near and not own and not others and fits:
            yield name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(16))
def test_pods_start_when_and_where_a_plain_reading_lets_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    nodes, bodies = nodes_of(rng, 8), pods_of(rng, 40)
    run = played(nodes, bodies, tmp_path / "a.json", rng, all_end=False)
    by_name = {at["metadata"]["name"]: at for at in nodes}
    there: list[Stay] = []
    waiting: list[tuple[int, str]] = []

    def starts_now(entry: tuple[int, str], now: float) -> bool:
        row, body = run.starts.get(entry[0]), run.bodies[entry[1]]
        bound = body["spec"].get("nodeName")
        open_ = {bound} if bound else set(hosts(body, by_name, there))
        if open_:
            assert row is not None and row["start_s"] == now and row["node"] in open_, (seed, now, entry, open_)
            there.append(Stay(body, row["node"], float("inf") if row["end_s"] is None else row["end_s"]))
        return bool(open_)

    def walk(now: float) -> None:
        while started := [entry for entry in list(waiting) if starts_now(entry, now)]:
            waiting[:] = [entry for entry in waiting if entry not in started]

    for now in run.instants:
        there = [stay for stay in there if stay.end_s > now]
        walk(now)
        for _, number, name in (item for item in run.arrivals if item[0] == now):
            if starts_now((number, name), now):
                walk(now)
            else:
                waiting.append((number, name))
        assert all(run.starts[number]["start_s"] > now for number, _ in waiting if number in run.starts), (seed, now)
    assert {number for number, _ in waiting} == run.never_started
