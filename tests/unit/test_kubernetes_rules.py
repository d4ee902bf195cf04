"""Which nodes pods of Kubernetes may use."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.conditions import Constraint
from fastsim.errors import InputError
from fastsim.kubernetes_nodes import Taint
from fastsim.workload.kubernetes_rules import HARD, HOSTNAME, SOFT, Places, constraints, spread, tolerates

NODES = ({"name": "a", "zone": "x", "gen": "7"}, {"name": "b", "zone": "y", "gen": "8"}, {"name": "c"})
GPU_ONLY = Taint("gpu", "yes", "NoSchedule")


def asked(spec: dict[str, Any], places: Places = Places()) -> tuple[list[Constraint], Counter[str]]:  # noqa: B008
    notices: Counter[str] = Counter()
    return constraints(spec, "p", places, notices), notices


def wanting(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {HARD: {"nodeSelectorTerms": list(terms)}}}}


ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
YOUNG = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["7"]}]}
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}


def test_selectors_and_one_term_are_expressions() -> None:
    found, _ = asked({"nodeSelector": {"disk": "ssd", "name": "n"}, **wanting(ZONE)})
    assert found == [("disk", "In", ("ssd",)), ("label:name", "In", ("n",)), ("zone", "In", ("x",))]


def test_alternatives_are_the_nodes_where_one_of_them_holds() -> None:
    assert asked(wanting(ZONE, NAMED), Places(NODES))[0] == [("name", "In", ("a", "c"))]
    assert asked(wanting(ZONE, YOUNG), Places(NODES))[0] == [("name", "In", ("a", "b"))]
    found, notices = asked(wanting(ZONE, NAMED))
    assert (found, sum(notices.values())) == ([], 1)


def test_taints_keep_away_who_does_not_tolerate_them() -> None:
    places = Places(NODES, (GPU_ONLY,))
    assert asked({}, places)[0] == [("taint:gpu=yes:NoSchedule", "DoesNotExist", ())]
    assert asked({"tolerations": [{"operator": "Exists"}]}, places)[0] == []


@pytest.mark.parametrize(
    ("toleration", "good"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"value": "yes"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], good: bool) -> None:
    assert tolerates(toleration, GPU_ONLY) is good


def apart(selector: dict[str, Any], topology: str = HOSTNAME) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {HARD: [{"labelSelector": selector, "topologyKey": topology}]}}}


def test_pods_that_keep_apart_from_their_own_are_a_group() -> None:
    notices: Counter[str] = Counter()
    labels = {"app": "web", "name": "w"}
    first = spread(apart({"matchLabels": {"app": "web"}}), labels, "ns", "p", notices)
    second = spread(apart({"matchLabels": {"app": "web"}}), {"app": "web"}, "ns", "q", notices)
    other = spread(apart({"matchLabels": {"app": "web"}}), {"app": "web"}, "else", "q", notices)
    assert first is not None and first == second and first != other and not notices
    named = {"matchExpressions": [{"key": "name", "operator": "In", "values": ["w"]}]}
    assert spread(apart(named), labels, "ns", "p", notices) is not None and not notices


def test_other_rules_about_pods_are_counted() -> None:
    notices: Counter[str] = Counter()
    assert spread(apart({"matchLabels": {"app": "db"}}), {"app": "web"}, "ns", "p", notices) is None
    assert spread(apart({}, "zone"), {}, "ns", "p", notices) is None
    assert (
        spread({"affinity": {"podAffinity": {HARD: []}, "podAntiAffinity": {SOFT: [{}]}}}, {}, "", "p", notices) is None
    )
    constraints({"affinity": {"nodeAffinity": {SOFT: [{}]}}}, "p", Places(), notices)
    assert sum(notices.values()) == 5


@pytest.mark.parametrize(
    "term",
    [
        {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["x"]}]},
        {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["new"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": "x"}]},
        {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["c"]}]},
    ],
)
def test_bad_expressions_are_named(term: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^p: "):
        asked(wanting(term))
