"""Rules between pods: affinity and anti-affinity to running pods, and rules that are only counted."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint, NearRule
from fastsim.kubernetes.controllers import pods
from fastsim.kubernetes.nodes import HOSTNAME
from fastsim.kubernetes.pod_rules.node_affinity import HARD, Places
from fastsim.kubernetes.pod_rules.pod_affinity import (
    APART,
    BESIDE,
    KEPT_AWAY,
    NOWHERE,
    AffinityRules,
    Kind,
    Peers,
    selects,
)
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, manifest, node, pod, workload_of

ZONE = "topology.kubernetes.io/zone"
NODES = ({"name": "a", ZONE: "x"}, {"name": "b", ZONE: "x"}, {"name": "c", ZONE: "y"}, {"name": "d"})
WEB, DB = {"app": "web"}, {"app": "db"}


def term(labels: dict[str, str] | None, topology: str = HOSTNAME, **more: Any) -> dict[str, Any]:
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {**selector, "topologyKey": topology, **more}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {HARD: list(terms)}}}


def beside(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {HARD: list(terms)}}}


def runs(name: str, where: str, labels: dict[str, str], namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return pod(name, labels=labels, meta={"namespace": namespace}, nodeName=where, **spec)


def rules(waiting: dict[str, Any], *others: dict[str, Any], namespaces: Any = None) -> AffinityRules:
    """The rules for a waiting pod among others."""
    listed = list(pods([manifest(item) for item in (waiting, *others)], Places(), Counter()))
    return Peers(listed, NODES, namespaces).rules(listed[0])


def away(*names: str, key: str = "name", rule: str = APART) -> AffinityRules:
    return AffinityRules(constraints=(Constraint(key, "NotIn", (rule, *names)),))


def test_a_pod_stays_away_from_pods_that_run() -> None:
    db = [runs("d1", "a", DB), runs("d2", "c", DB), runs("e", "b", DB, "else"), runs("w", "d", WEB)]
    assert rules(pod(labels=WEB, **apart(term(DB))), *db) == away("a", "c")
    assert rules(pod(labels=WEB, **apart(term(DB, ZONE))), db[0]) == away("x", key=ZONE)
    assert rules(pod(labels=WEB, **apart(term(None))), *db) == AffinityRules()  # no selector selects nothing
    over = pod("d", labels=DB, nodeName="a", status={"phase": "Succeeded"})
    assert rules(pod(labels=WEB, **apart(term(DB))), over) == AffinityRules()


def test_pods_that_run_keep_others_away() -> None:
    keeper = runs("k", "a", DB, **apart(term(WEB)))
    assert rules(pod(labels=WEB), keeper) == away("a", rule=KEPT_AWAY)
    assert rules(pod(labels=DB), keeper) == AffinityRules()
    assert rules(pod(labels=WEB, meta={"namespace": "else"}), keeper) == AffinityRules()
    assert rules(pod(labels=WEB), runs("k", "c", DB, **apart(term(WEB, ZONE)))) == away("y", key=ZONE, rule=KEPT_AWAY)
    assert (
        rules(pod(labels=WEB), runs("k", "d", DB, **apart(term(WEB, ZONE)))) == AffinityRules()
    )  # a node without a zone


def test_namespaces() -> None:
    other = runs("d", "a", DB, "else")
    scopes: list[dict[str, Any]] = [{"namespaces": ["else"]}, {"namespaceSelector": {}}]
    for reach in scopes:
        assert rules(pod(labels=WEB, **apart(term(DB, **reach))), other) == away("a")
    scope: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "t"}}}
    waiting = pod(labels=WEB, **apart(term(DB, **scope)))
    assert rules(waiting, other, namespaces={"else": {"team": "t"}}) == away("a")
    assert rules(waiting, other, namespaces={"else": {"team": "u"}}) == AffinityRules()
    assert rules(waiting, other).notices == ("pods: a namespaceSelector without objects of namespaces",)
    named: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "else"}}}
    assert rules(pod(labels=WEB, **apart(term(DB, **named))), other, namespaces={"x": {}}) == away("a")


def test_label_keys_take_the_values_of_the_pod() -> None:
    one, two = runs("d1", "a", {**DB, "v": "1"}), runs("d2", "b", {**DB, "v": "2"})
    labels = {**WEB, "v": "1"}
    assert rules(pod(labels=labels, **apart(term(DB, matchLabelKeys=["v"]))), one, two) == away("a")
    assert rules(pod(labels=labels, **apart(term(DB, mismatchLabelKeys=["v"]))), one, two) == away("b")


def test_a_pod_goes_beside_pods_that_run() -> None:
    waiting = pod(labels=WEB, **beside(term(DB)))
    assert rules(waiting, runs("d1", "a", DB), runs("d2", "c", DB)).constraints == (
        Constraint("name", "In", (BESIDE, "a", "c")),
    )
    in_zone = pod(labels=WEB, **beside(term(DB, ZONE)))
    assert rules(in_zone, runs("d1", "b", DB)).constraints == (Constraint(ZONE, "In", (BESIDE, "x")),)
    assert rules(in_zone, runs("d1", "d", DB)).constraints == (NOWHERE,)
    assert rules(waiting, runs("w", "a", WEB)) == AffinityRules(constraints=(NOWHERE,))
    both = pod(labels=WEB, **beside(term(DB), term({"tier": "1"}, ZONE)))  # one pod must match all terms
    assert rules(both, runs("d", "a", DB), runs("t", "c", {"tier": "1"})).constraints == (NOWHERE,)


def test_the_first_of_pods_that_need_each_other_may_go_anywhere() -> None:
    waiting = pod(labels=WEB, **beside(term(WEB)))
    assert rules(waiting) == AffinityRules()
    assert rules(pod(labels=WEB, **beside(term(WEB, ZONE)))) == AffinityRules(constraints=(Constraint(ZONE, "Exists"),))
    in_zone = pod(labels=WEB, **beside(term(WEB, ZONE)))  # one that runs outside all zones is not in its way
    assert rules(in_zone, runs("w", "d", WEB)).constraints == (Constraint(ZONE, "Exists"),)
    second = {**waiting, "metadata": {**waiting["metadata"], "name": "p2"}}
    own = "selected by all of", ['["default", {"matchLabels": {"app": "web"}}]'], ""
    assert rules(waiting, second) == counted(("beside", own, "name"), own)
    assert rules(waiting, second, runs("w", "a", WEB)) == AffinityRules(
        constraints=(Constraint("name", "In", (BESIDE, "a")),)
    )


def counted(rule: tuple[str, Any, str], *sets: Any) -> AffinityRules:
    """One rule about pods near, and the sets of the pod."""
    kind, pods, topology = rule
    return AffinityRules(near=(NearRule(kind, json.dumps(pods), topology),), sets=tuple(map(json.dumps, sets)))


def test_rules_among_pods_that_wait_count_pods_near() -> None:
    web, db = (json.dumps(["default", {"matchLabels": labels}]) for labels in (WEB, DB))
    some, all_, holding = "selected by any of", "selected by all of", "with any of"
    far = pod(labels=WEB, **apart(term(DB)))
    mine, of_others = (some, [db], ""), (holding, [db], HOSTNAME)
    assert rules(far, pod("d", labels=DB)) == counted(("apart", mine, "name"), of_others)
    assert rules(pod("d", labels=DB), far) == counted(("kept_away", of_others, "name"), mine)
    assert rules(pod(labels=WEB, **apart(term(WEB, ZONE)))) == AffinityRules()  # alone
    own = some, [web], ""
    found = rules(pod(labels=WEB, **apart(term(WEB, ZONE))), pod("q", labels=WEB))
    assert found.near == (NearRule("apart", json.dumps(own), ZONE),) and json.dumps(own) in found.sets
    assert rules(pod(labels=WEB, **beside(term(DB))), pod("d", labels=DB)) == counted(
        ("beside", (all_, [db], ""), "name")
    )
    running = rules(pod("r", labels=DB, nodeName="a"), pod(labels=WEB, **beside(term(DB))), pod("d", labels=DB))
    assert running.sets == (json.dumps((all_, [db], "")),) and running.near == ()


def test_pods_that_keep_apart_from_their_own_are_a_group() -> None:
    own, named = apart(term(WEB)), {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    first, second = pod(labels=WEB, **own), pod("q", labels={**WEB, "more": "x"}, **own)
    group_rules = rules(first, second)
    assert group_rules.group is not None and group_rules == rules(second, first) == AffinityRules(group_rules.group)
    assert rules(pod(labels=WEB, meta={"namespace": "else"}, **own)).group not in (None, group_rules.group)
    assert rules(pod(labels=WEB, **apart({"labelSelector": named, "topologyKey": HOSTNAME}))).group is not None
    # One of the group that runs is seen by the group itself, one without the rule is not.
    assert rules(first, runs("r", "a", WEB, **own)) == AffinityRules(group_rules.group)
    assert rules(first, runs("r", "a", WEB)) == away("a")._replace(group=group_rules.group)
    assert [rule[::2] for rule in rules(first, pod("q", labels=WEB)).near] == [("apart", "name")]


def test_placements_follow_the_rules() -> None:
    zones = [node(name, {ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
    objects = [
        *zones, runs("db", "a", DB, **apart(term({"app": "batch"}, ZONE))), pod("batch", labels={"app": "batch"}),
        pod("web", labels=WEB, **beside(term(DB, ZONE))), pod("far", labels={"app": "far"}, **apart(term(DB))),
    ]  # fmt: skip
    snapshot = Snapshot([manifest(item) for item in objects])
    workload = workload_of(snapshot)
    names = workload.table()["native_id"].to_pylist()
    placed = fs.simulate(cluster_of(snapshot), workload, "best_fit").placements.sort("pod_id")["node"].to_list()
    node_of = dict(zip(names, placed, strict=True))
    assert node_of["default/batch"] == "c" and node_of["default/web"] in ("a", "b") and node_of["default/far"] != "a"
    assert not snapshot.notices


def test_selectors_and_bad_expressions() -> None:
    assert selects({}, {}, "p") and not selects({"matchLabels": WEB}, DB, "p")
    assert Kind("n", (), "", "here") == Kind("n", (), "", "there")
    near = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}
    faults: list[dict[str, Any]] = [
        {"labelSelector": near}, {"labelSelector": {"matchLabels": "x"}}, {"namespaces": "x"}, {"matchLabelKeys": 3},
    ]  # fmt: skip
    for bad in faults:
        with pytest.raises(InputError, match="Pod p1: "):
            rules(pod(**apart({**term(WEB), **bad})))


def test_pods_on_nodes_that_are_not_known() -> None:
    there = runs("d", "gone", DB)
    assert rules(pod(labels=WEB, **apart(term(DB))), there) == away("gone")
    text = "pods: rules about pods on nodes that are not among the objects"
    assert rules(pod(labels=WEB, **apart(term(DB, ZONE))), there) == AffinityRules(notices=(text,))


def test_a_pod_on_a_node_has_its_group_only() -> None:
    own = runs("w", "a", WEB, **apart(term(WEB), term(DB)))
    group_rules = rules(own, runs("d", "b", DB), pod("q", labels=WEB))
    assert group_rules.group is not None and group_rules == AffinityRules(group_rules.group)
