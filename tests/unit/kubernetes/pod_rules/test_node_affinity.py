"""Nodes that pods of Kubernetes may use."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.nodes import Taint
from fastsim.kubernetes.pod_rules.node_affinity import (
    HARD,
    Places,
    allowed,
    constraints,
    kept_away,
    marked_tolerations,
    tolerates,
    toleration_mark,
)  # fmt: skip

NODES = ({"name": "a", "zone": "x", "gen": "7"}, {"name": "b", "zone": "y", "gen": "8"}, {"name": "c"})
GPU_ONLY = Taint("gpu", "yes", "NoSchedule")


def constraints_of(spec: dict[str, Any], places: Places = Places()) -> list[Constraint]:  # noqa: B008
    return constraints(spec, "p", places)


def wanting(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {HARD: {"nodeSelectorTerms": list(terms)}}}}


ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
YOUNG = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["7"]}]}
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}


def test_selectors_and_one_term_are_expressions() -> None:
    expressions = constraints_of({"nodeSelector": {"disk": "ssd", "name": "n"}, **wanting(ZONE)})
    assert expressions == [("disk", "In", ("ssd",)), ("label:name", "In", ("n",)), ("zone", "In", ("x",))]


def test_alternatives_hold_on_the_nodes_where_one_of_them_does() -> None:
    """Pods can go to nodes where "one of the specified nodeSelectorTerms" is satisfied."""
    for terms, names in (((ZONE, NAMED), ["a", "c"]), ((ZONE, YOUNG), ["a", "b"]), ((ZONE, {}), ["a"])):
        assert allowed(constraints_of(wanting(*terms)), NODES) == names


def test_tolerations_stand_in_tables() -> None:
    tolerations: list[dict[str, Any]] = [
        {"key": "gpu", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3},
    ]  # fmt: skip
    marks = [toleration_mark(one) for one in tolerations]
    assert allowed([Constraint(mark["key"], mark["op"]) for mark in marks], NODES) == ["a", "b", "c"]
    assert marked_tolerations(marks) == [tolerations[0], {"operator": "Exists", "effect": "NoExecute"}]
    taints = [GPU_ONLY, Taint("cpu", "", "NoSchedule"), Taint("cpu", "", "NoExecute")]
    assert kept_away(taints, marks, ()) == [taints[1]]
    assert kept_away(taints, [], ("cpu",)) == [GPU_ONLY]
    assert all(Taint.of_label(taint.label) == taint for taint in taints)


def test_taints_keep_away_who_does_not_tolerate_them() -> None:
    places = Places(NODES, (GPU_ONLY,))
    assert constraints_of({}, places) == [("taint:gpu=yes:NoSchedule", "DoesNotExist", ())]
    assert constraints_of({"tolerations": [{"operator": "Exists"}]}, places) == []


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
        constraints_of(wanting(term))
