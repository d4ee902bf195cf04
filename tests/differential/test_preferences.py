"""Preferences of pods beside a plain reading of the objects and of kube-scheduler's formulas: which node each pod gets.

Pods arrive one after another and go or leave at once. The plain reading is told who has started where before, works
out the points of every node that can host the next pod, and takes the first with the most.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.kubernetes.snapshot import Snapshot
from tests.differential.test_pod_affinity import HARD, hosts, nodes_of, selects
from tests.objects import cluster_of, pod, workload_of, written
from tests.timed_objects import HOST, RACK, ZONE, Body, Stay, timed

SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHTS = (2, 3, 2, 2, 1)
MIB = 1 << 20
IMAGES = ("repo/a:1", "repo/b", "repo/c@sha256:00")

Points = dict[str, int]
"""Points by the name of a node."""


def nodes(rng: random.Random) -> list[dict[str, Any]]:
    """Nodes in zones and racks, some with taints to avoid and with images, whose sizes are equal everywhere."""
    bodies = nodes_of(rng, 8)
    for body in bodies:
        taints = [{"key": key, "effect": "PreferNoSchedule"} for key in "kl" if rng.random() < 0.4]
        images = [
            {"names": [name if ":" in name else f"{name}:latest"], "sizeBytes": (300 + 400 * number) * MIB + 7}
            for number, name in enumerate(IMAGES) if rng.random() < 0.6
        ]  # fmt: skip
        body["spec"] = {**body.get("spec", {}), "taints": taints}
        body["status"] = {**body["status"], "images": images}
    return bodies


def pods(rng: random.Random) -> list[dict[str, Any]]:
    """Pods of six templates, a few of which run."""
    kinds = [template(rng) for _ in range(6)]
    bodies = []
    for number in range(40):
        namespace, labels, spec = rng.choice(kinds)
        placed: dict[str, Any] = {"nodeName": f"n{number}"} if number < 5 else {}
        status = {"phase": "Running"} if placed else {}
        body = pod(f"p{number:02}", {"cpu": f"{rng.choice((500, 1000, 2000))}m"}, labels=labels, status=status,
                   meta={"namespace": namespace}, **spec, **placed)  # fmt: skip
        containers = [{**body["spec"]["containers"][0], "image": rng.choice(IMAGES)}]
        if rng.random() < 0.3:
            containers.append({"name": "d", "image": rng.choice(IMAGES)})
        bodies.append({**body, "spec": {**body["spec"], "containers": containers}})
    return bodies


def template(rng: random.Random) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Namespace, labels and spec of pods."""

    def some(made: Any) -> list[Any]:
        return [made() for _ in range(rng.choice((0, 0, 1, 2)))]

    def term() -> dict[str, Any]:
        further: dict[str, Any] = rng.choice(({}, {}, {"namespaces": ["two"]}, {"namespaceSelector": {}}))
        selector = rng.choice(({"matchLabels": {"app": rng.choice("uvw")}}, {}))
        return {"labelSelector": selector, "topologyKey": rng.choice((ZONE, RACK, HOST)), **further}

    def weighed() -> dict[str, Any]:
        return {"weight": rng.randint(1, 100), "podAffinityTerm": term()}

    def liking() -> dict[str, Any]:
        items = [{"key": rng.choice((ZONE, RACK)), "operator": "In", "values": [*rng.choice(("ab", "bx", "cy"))]}]
        return {"weight": rng.randint(1, 100), "preference": {"matchExpressions": items}}

    def rule() -> dict[str, Any]:
        return {"maxSkew": rng.randint(1, 3), "topologyKey": rng.choice((ZONE, RACK, HOST)),
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": rng.choice("uvw")}},
                **rng.choice(({}, {"nodeAffinityPolicy": "Ignore"}))}  # fmt: skip

    affinity: dict[str, Any] = {
        "nodeAffinity": {SOFT: some(liking)}, "podAntiAffinity": {SOFT: some(weighed)},
        "podAffinity": {SOFT: some(weighed), HARD: [term()] if rng.random() < 0.2 else []},
    }  # fmt: skip
    spec: dict[str, Any] = {"affinity": affinity, "topologySpreadConstraints": some(rule)}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "k", "operator": "Exists", **rng.choice(({}, {"effect": "NoSchedule"}))}]
    if rng.random() < 0.3:
        spec["nodeSelector"] = {ZONE: rng.choice("abc")}
    return rng.choice(("one", "one", "two")), {"app": rng.choice("uvw")}, spec


def labels_of(body: Body) -> Mapping[str, str]:
    """Labels of an object."""
    found: Mapping[str, str] = body["metadata"]["labels"]
    return found


def by_labels(body: Body, among: Mapping[str, Body]) -> Points:
    """Preferred node affinity."""
    raw = {
        name: sum(
            term["weight"] for term in body["spec"]["affinity"]["nodeAffinity"][SOFT]
            if all(labels_of(at).get(item["key"]) in item["values"] for item in term["preference"]["matchExpressions"])
        )
        for name, at in among.items()
    }  # fmt: skip
    most = max(raw.values())
    return {name: 100 * points // most if most else 0 for name, points in raw.items()}


def by_taints(body: Body, among: Mapping[str, Body]) -> Points:
    """Taints to avoid that are not tolerated."""
    fine = {one["key"] for one in body["spec"].get("tolerations", ()) if one.get("effect", "") != "NoSchedule"}
    raw = {name: sum(taint["key"] not in fine for taint in at["spec"]["taints"]) for name, at in among.items()}
    most = max(raw.values())
    return {name: 100 - (100 * count // most if most else 0) for name, count in raw.items()}


def by_spread(body: Body, among: Mapping[str, Body], every: Mapping[str, Body], there: Iterable[Stay]) -> Points:
    """Spread with ScheduleAnyway."""
    rules, selector = body["spec"]["topologySpreadConstraints"], body["spec"].get("nodeSelector", {})
    keys = [rule["topologyKey"] for rule in rules]
    counted = {name for name, at in every.items() if all(key in labels_of(at) for key in keys)}
    open_ = [name for name in among if name in counted]
    if not rules or not open_:
        return dict.fromkeys(among, 0)
    sums = dict.fromkeys(open_, 0.0)
    for rule in rules:
        key, policy = rule["topologyKey"], rule.get("nodeAffinityPolicy", "Honor")
        wanted = rule["labelSelector"]["matchLabels"]["app"]
        size = len({labels_of(every[name])[key] for name in open_})
        for name in open_:
            count = 0
            for stay in there:
                at = labels_of(every[stay.node])
                fits = all(at.get(label) == value for label, value in selector.items())
                inside = stay.node in counted and (policy == "Ignore" or fits or key == HOST)
                own = stay.body["metadata"]["namespace"] == body["metadata"]["namespace"]
                same = at.get(key) == labels_of(every[name])[key]
                count += inside and same and own and labels_of(stay.body)["app"] == wanted
            sums[name] += count * math.log(size + 2) + (rule["maxSkew"] - 1)
    raw = {name: math.floor(amount + 0.5) for name, amount in sums.items()}
    most, least = max(raw.values()), min(raw.values())
    found = {name: 100 if most == 0 else 100 * (most + least - points) // most for name, points in raw.items()}
    return {name: found.get(name, 0) for name in among}


def by_pods(body: Body, among: Mapping[str, Body], every: Mapping[str, Body], there: Iterable[Stay]) -> Points:
    """Affinity between pods, in both directions."""
    points: dict[tuple[str, str], int] = {}

    def add(term: Body, at: str, weight: int) -> None:
        value = labels_of(every[at]).get(term["topologyKey"])
        if value is not None:
            points[term["topologyKey"], value] = points.get((term["topologyKey"], value), 0) + weight

    for stay in there:
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for item in body["spec"]["affinity"][kind][SOFT]:
                if selects(item["podAffinityTerm"], body, stay.body):
                    add(item["podAffinityTerm"], stay.node, sign * item["weight"])
            for item in stay.body["spec"]["affinity"][kind][SOFT]:
                if selects(item["podAffinityTerm"], stay.body, body):
                    add(item["podAffinityTerm"], stay.node, sign * item["weight"])
        for term in stay.body["spec"]["affinity"]["podAffinity"][HARD]:
            if selects(term, stay.body, body):
                add(term, stay.node, 1)
    raw = {
        name: sum(points.get((key, labels_of(at)[key]), 0) for key in (ZONE, RACK, HOST) if key in labels_of(at))
        for name, at in among.items()
    }
    least, most = min(raw.values()), max(raw.values())
    return {n: int(100.0 * ((sum_ - least) / (most - least))) if most > least else 0 for n, sum_ in raw.items()}


def by_images(body: Body, among: Mapping[str, Body], every: Mapping[str, Body]) -> Points:
    """Images that nodes have."""
    sizes = {
        name: {image["names"][0]: image["sizeBytes"] for image in at["status"]["images"]} for name, at in every.items()
    }
    wanted = [one["image"] if ":" in one["image"] else f"{one['image']}:latest" for one in body["spec"]["containers"]]
    found = {}
    for name in among:
        total = 0
        for image in wanted:
            holders = sum(image in own for own in sizes.values())
            total += int(sizes[name].get(image, 0) * (holders / len(every)))
        most = 1000 * MIB * len(wanted)
        found[name] = 100 * (min(max(total, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB)
    return found


def best(body: Body, among: Mapping[str, Body], every: Mapping[str, Body], there: list[Stay]) -> str:
    """The first node with the most points."""
    parts = (by_labels(body, among), by_taints(body, among), by_spread(body, among, every, there),
             by_pods(body, among, every, there), by_images(body, among, every))  # fmt: skip
    totals = {n: sum(w * part[n] for w, part in zip(WEIGHTS, parts, strict=True)) for n in among}
    return max(totals, key=lambda name: totals[name])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(24))
def test_pods_go_where_a_plain_reading_of_the_formulas_says(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    every, bodies = {body["metadata"]["name"]: body for body in nodes(rng)}, pods(rng)
    snapshot = Snapshot.read(written(tmp_path / "a.json", *every.values(), *bodies))
    named = {f"{body['metadata']['namespace']}/{body['metadata']['name']}": body for body in bodies}
    workload = timed(workload_of(snapshot), rng, all_end=False)
    cluster = dataclasses.replace(cluster_of(snapshot), snapshot=None)
    result = fs.simulate(cluster, workload, "preferred")
    placed = {row["pod_id"]: row for row in result.placements.filter(pl.col("start_s").is_not_null()).to_dicts()}
    there: list[Stay] = []
    for row in workload.table().to_pylist():
        body, start = named[row["native_id"]], placed.get(row["pod_id"])
        there = [stay for stay in there if stay.end_s > row["submit_s"]]
        if row.get("bound_node") is not None:
            expected = row["bound_node"]
        else:
            selector = body["spec"].get("nodeSelector", {})
            fitting = {
                name: every[name] for name in hosts(body, every, there)
                if all(labels_of(every[name]).get(key) == value for key, value in selector.items())
            }  # fmt: skip
            expected = best(body, fitting, every, there) if fitting else None
        assert (None if start is None else start["node"]) == expected, (seed, row["native_id"])
        if start is not None:
            there.append(Stay(body, start["node"], math.inf if start["end_s"] is None else start["end_s"]))
