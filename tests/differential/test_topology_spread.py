"""Rules of spread beside a plain reading of the objects: which pod starts when, and on which nodes it may.

The plain reading is told the node of each start and repeats all else: at each instant pods are tried in the order of
the line until none starts; one starts where and when a node has room and every rule holds, and waits otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.objects import node, pod
from tests.timed_objects import CPUS, HOST, RACK, ZONE, Stay, cpu, played


def nodes_of(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Nodes in zones and racks, of which some have no label and some a taint."""
    bodies = []
    for number in range(count):
        labels = {ZONE: rng.choice("abc"), RACK: rng.choice("xy"), "disk": rng.choice(("ssd", "hdd"))}
        labels.pop(rng.choice((ZONE, RACK, "none", "none", "none", "none")), None)
        taints = [{"key": "only", "value": "gpu", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
        bodies.append(node(f"n{number}", labels=labels, spec={"taints": taints}))
    return bodies


def pods_of(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Pods of three apps; some with rules, selectors of nodes, tolerations; some that run, or that terminate."""
    bodies = []
    for number in range(count):
        labels = {"app": rng.choice("uvw"), "hash": rng.choice("12")}
        spec: dict[str, Any] = {}
        if rng.random() < 0.7:
            spec["topologySpreadConstraints"] = [_rule(rng, labels) for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.3:
            spec["nodeSelector"] = {"disk": "ssd"}
        if rng.random() < 0.4:
            spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
        body = pod(f"p{number:02}", {"cpu": f"{rng.choice((500, 1000, 3000))}m"}, labels=labels,
                   meta={"namespace": rng.choice(("one", "one", "two"))}, **spec)  # fmt: skip
        if number < count // 4:
            body["spec"]["nodeName"], body["status"] = f"n{rng.randrange(4)}", {"phase": "Running"}
            if rng.random() < 0.3:
                body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        bodies.append(body)
    return bodies


def _rule(rng: random.Random, labels: Mapping[str, str]) -> dict[str, Any]:
    app = {"matchLabels": {"app": rng.choice((labels["app"], labels["app"], "u"))}}
    either = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["u", "v"]}]}
    options: dict[str, tuple[Any, ...]] = {
        "minDomains": (None, None, 3, 4), "matchLabelKeys": (None, ["hash"], ["absent"]),
        "nodeAffinityPolicy": (None, "Honor", "Ignore"), "nodeTaintsPolicy": (None, "Honor", "Ignore"),
    }  # fmt: skip
    rule = {
        "maxSkew": rng.choice((1, 1, 2)), "topologyKey": rng.choice((ZONE, ZONE, RACK, HOST)),
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": rng.choice((app, app, either, {})),
    }  # fmt: skip
    return rule | {name: chosen for name, values in options.items() if (chosen := rng.choice(values)) is not None}


def passes(body: Mapping[str, Any], at: Mapping[str, Any], what: str) -> bool:
    """Whether a node has what the selector of a pod wants (affinity), or no taint that it does not tolerate."""
    if what == "affinity":
        return all(at["metadata"]["labels"].get(k) == v for k, v in body["spec"].get("nodeSelector", {}).items())
    return not at["spec"]["taints"] or bool(body["spec"].get("tolerations"))


def selected(rule: Mapping[str, Any], owner: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a rule counts a pod."""
    selector, labels = rule["labelSelector"], other["metadata"]["labels"]
    wanted = dict(selector.get("matchLabels", {}))
    wanted |= {k: owner["metadata"]["labels"][k] for k in rule.get("matchLabelKeys", ())
               if k in owner["metadata"]["labels"]}  # fmt: skip
    among = [item["values"] for item in selector.get("matchExpressions", ())]
    return (
        bool(wanted or among)
        and other["metadata"]["namespace"] == owner["metadata"]["namespace"]
        and "deletionTimestamp" not in other["metadata"]
        and all(labels.get(k) == v for k, v in wanted.items())
        and all(labels["app"] in values for values in among)
    )


def domain(rule: Mapping[str, Any], at: Mapping[str, Any]) -> str | None:
    """The domain of a node; None without the label."""
    key, metadata = rule["topologyKey"], at["metadata"]
    found: str | None = metadata["name"] if key == HOST else metadata["labels"].get(key)
    return found


def hosts(body: Mapping[str, Any], nodes: list[dict[str, Any]], there: list[Stay]) -> set[str]:
    """Names of the nodes on which a pod may start beside those that are there."""
    rules = body["spec"].get("topologySpreadConstraints", ())
    having = [at for at in nodes if all(domain(rule, at) is not None for rule in rules)]
    names = {at["metadata"]["name"] for at in having if passes(body, at, "affinity") and passes(body, at, "taints")}
    for rule in rules:
        counted = [
            at for at in having
            if (rule.get("nodeAffinityPolicy") == "Ignore" or passes(body, at, "affinity"))
            and (rule.get("nodeTaintsPolicy") != "Honor" or passes(body, at, "taints"))
        ]  # fmt: skip
        counts = {domain(rule, at): 0 for at in counted}
        for at in counted:
            counts[domain(rule, at)] += sum(
                stay.node == at["metadata"]["name"] and selected(rule, body, stay.body) for stay in there
            )
        least = min(counts.values(), default=0) if len(counts) >= rule.get("minDomains", 1) else 0
        own = selected(rule, body, body)
        names = {
            at["metadata"]["name"] for at in having if at["metadata"]["name"] in names
            and counts.get(domain(rule, at), 0) + own - least <= rule["maxSkew"]
        }  # fmt: skip
    used = {at["metadata"]["name"]: 0 for at in nodes}
    for stay in there:
        used[stay.node] += cpu(stay.body)
    return {name for name in names if used[name] + cpu(body) <= CPUS}


@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
@pytest.mark.parametrize("seed", range(12))
def test_pods_start_when_and_where_a_plain_reading_lets_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    nodes, bodies = nodes_of(rng, 8), pods_of(rng, 40)
    run = played(nodes, bodies, tmp_path / "a.json", rng, all_end=True)
    there: list[Stay] = []
    waiting: list[tuple[int, str]] = []
    for now in run.instants:
        there = [stay for stay in there if stay.end_s > now]
        waiting += [(number, name) for second, number, name in run.arrivals if second == now]
        tried = True
        while tried:
            tried = False
            for entry in list(waiting):
                row, body = run.starts.get(entry[0]), run.bodies[entry[1]]
                bound = body["spec"].get("nodeName")
                open_ = {bound} if bound else hosts(body, nodes, there)
                if not open_:
                    assert row is None or row["start_s"] > now, (seed, now, entry)
                    continue
                assert row is not None and row["start_s"] == now and row["node"] in open_, (seed, now, entry, open_)
                there.append(Stay(body, row["node"], row["end_s"]))
                waiting.remove(entry)
                tried = True
    assert {number for number, _ in waiting} == run.never_started
