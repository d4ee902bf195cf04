"""Nodes that pods of Kubernetes may use: selectors, node affinity, tolerations as columns of pod tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import (
    ONE_OF,
    Conditions,
    Constraint,
    conjunction_text,
    constraint_fault,
    eligible,
    holds,
)  # fmt: skip
from fastsim.kubernetes.devices.device_resources import device_expressions
from fastsim.kubernetes.nodes import HOSTNAME, UNSCHEDULABLE, Taint, label_key
from fastsim.kubernetes.objects import mapping, sequence

SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = "nodeSelectorTerms"
MOST_WEIGHT = 100
"""Largest weight of a preference."""
OVER = ("Succeeded", "Failed")
"""Phases of pods that have ended."""
DAEMON_TOLERATES = (UNSCHEDULABLE, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Keys of taints that pods of a DaemonSet always tolerate."""

CHOOSING = ("nodeSelector", "affinity", "tolerations")
"""Fields of a pod's spec that say which nodes it may use."""
TOLERATED = "toleration:"
"""Beginning of the labels, which no node has, that carry the tolerations of pods in tables."""
TOLERATION = ("key", "operator", "value", "effect")
"""Parts of a toleration."""

Labels = Mapping[str, str]
"""Labels of a node, its `name` among them."""


@dataclass(frozen=True)
class Places:
    """The nodes of a cluster: labels of each, all taints, and the sets of device resources that nodes offer.

    ``taints`` keep pods away, ``avoided`` ones only make nodes worse; ``images`` are the labels that stand for images.
    """

    nodes: Sequence[Labels] = ()
    taints: Sequence[Taint] = ()
    devices: Sequence[frozenset[str]] = ()
    avoided: Sequence[Taint] = ()
    images: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> dict[str, Labels]:
        """Labels of the nodes by name."""
        return {labels["name"]: labels for labels in reversed(self.nodes)}


def device_constraints(devices: Collection[str], node: str | None, places: Places) -> list[Constraint]:
    """Node-label expressions for nodes with the devices of a pod; for a pod on `node` only those that hold there."""
    expressions = device_expressions([name for name in devices if name], places.devices)
    own = None if node is None else places.by_name.get(node, {"name": ""})
    return expressions if own is None else [item for item in expressions if holds(item, own)]


def choosing_parts(spec: Mapping[str, Any], where: str) -> tuple[object, ...]:
    """The parts of a pod's ``spec`` that ``constraints`` follow from."""
    affinity = mapping(spec, "affinity", where)
    return spec.get("nodeSelector"), affinity.get("nodeAffinity"), spec.get("tolerations")


def constraints(spec: Mapping[str, Any], where: str, places: Places) -> list[Constraint]:
    """Node-label expressions of a pod's selector, required affinity and tolerations."""
    return [*affinity_constraints(spec, where), *taint_constraints(spec, where, places)]


def affinity_constraints(spec: Mapping[str, Any], where: str) -> list[Constraint]:
    """Node-label expressions of a pod's selector and required affinity."""
    selector = mapping(spec, "nodeSelector", where)
    expressions = [Constraint(label_key(str(key)), "In", (str(value),)) for key, value in selector.items()]
    affinity = mapping(mapping(spec, "affinity", where), "nodeAffinity", where)
    terms = sequence(mapping(affinity, HARD, where), TERMS, where)
    return expressions + node_terms(terms, where)


def taint_constraints(spec: Mapping[str, Any], where: str, places: Places) -> list[Constraint]:
    """Node-label expressions against the taints that a pod does not tolerate."""
    return [Constraint(taint.label, "DoesNotExist") for taint in untolerated(spec, where, places.taints)]


def untolerated(spec: Mapping[str, Any], where: str, taints: Iterable[Taint]) -> list[Taint]:
    """Those of some taints that a pod does not tolerate."""
    tolerations = sequence(spec, "tolerations", where)
    return [taint for taint in taints if not any(tolerates(toleration, taint) for toleration in tolerations)]


def preference_weight(item: Mapping[str, Any], where: str) -> int:
    """The weight of a preference."""
    weight = item.get("weight")
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= MOST_WEIGHT:
        raise InputError(f"{where}: {SOFT}: weight", repr(weight), f"1 to {MOST_WEIGHT}")
    return weight


def toleration_mark(toleration: Mapping[str, Any]) -> dict[str, Any]:
    """A toleration as an expression of a pod table; it holds on every node, so only ``kept_away`` looks at it."""
    parts = [str(toleration.get(name) or "") for name in TOLERATION]
    return {"key": TOLERATED + json.dumps(parts), "op": "DoesNotExist", "values": []}


def marked_tolerations(expressions: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The tolerations among the expressions of a pod table; parts that are not said are left out."""
    marks = [str(item["key"]).removeprefix(TOLERATED) for item in expressions if item["key"].startswith(TOLERATED)]
    return [{name: part for name, part in zip(TOLERATION, json.loads(mark), strict=True) if part} for mark in marks]


def kept_away(taints: Iterable[Taint], expressions: Iterable[Mapping[str, Any]], kinds: Collection[str]) -> list[Taint]:
    """The taints that no toleration among a pod's expressions covers; ``kinds`` are keys that it tolerates, too."""
    tolerations = [*marked_tolerations(expressions), *({"key": key, "operator": "Exists"} for key in kinds)]
    return [taint for taint in taints if not any(tolerates(toleration, taint) for toleration in tolerations)]


def node_terms(terms: Sequence[Mapping[str, Any]], where: str) -> list[Constraint]:
    """Expressions that hold where one of some ``nodeSelectorTerms`` holds; without terms that is everywhere."""
    return _one_of([term_expressions(term, where) for term in terms])


def under(key: str, found: Sequence[Constraint]) -> list[Constraint]:
    """The expressions as one whose key says what they are about; none stay none."""
    if not found:
        return []
    values = found[0].values if found[0].op == ONE_OF else (conjunction_text(found),)
    return [Constraint(key, ONE_OF, values)]


def tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """Whether a toleration covers a taint; without a key it covers every key."""
    key, effect = str(toleration.get("key") or ""), str(toleration.get("effect") or "")
    if effect not in ("", taint.effect) or key not in ("", taint.key):
        return False
    operator = str(toleration.get("operator") or "Equal")
    return operator == "Exists" or (
        operator == "Equal" and bool(key) and str(toleration.get("value") or "") == taint.value
    )


def topology_label(key: str) -> str:
    """The label of nodes that a topology key means; every node is a host of its own."""
    return "name" if key == HOSTNAME else label_key(key)


def allowed(constraints: Iterable[Constraint], nodes: Sequence[Labels]) -> list[str]:
    """Names of the nodes on which the expressions hold."""
    conditions = Conditions(constraints=tuple(constraints))
    return [node["name"] for node in nodes if eligible(conditions, node)]


def _one_of(terms: list[list[Constraint]]) -> list[Constraint]:
    """Expressions that hold where one of the terms holds; an empty term holds nowhere."""
    nonempty = [term for term in terms if term]
    if not terms:
        return []
    if len(nonempty) == 1:
        return nonempty[0]
    return [Constraint(TERMS, ONE_OF, tuple(conjunction_text(term) for term in nonempty))]


def term_expressions(term: Mapping[str, Any], where: str) -> list[Constraint]:
    """The expressions of a term, which hold together; none of an empty term."""
    expressions = [expression(item, where, label_key) for item in sequence(term, "matchExpressions", where)]
    for item in sequence(term, "matchFields", where):
        if item.get("key") != "metadata.name":
            raise InputError(f"{where}: matchFields", repr(item.get("key")), "metadata.name")
        expressions.append(expression({**item, "key": "name"}, where, str))
    return expressions


def expression(item: Mapping[str, Any], where: str, key_of: Any) -> Constraint:
    """A selector's expression; `key_of` names the label of its key."""
    values = item.get("values")
    if values is not None and not isinstance(values, list):
        raise InputError(f"{where}: values", repr(values), "a list of texts")
    constraint = Constraint(
        key_of(str(item.get("key") or "")), str(item.get("operator") or ""), tuple(str(value) for value in values or ())
    )
    fault = constraint_fault({"key": constraint.key, "op": constraint.op, "values": list(constraint.values)})
    if fault is not None:
        raise InputError(f"{where}: node affinity", repr(dict(item)), fault)
    return constraint
