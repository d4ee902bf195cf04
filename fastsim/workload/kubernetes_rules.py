"""Which nodes pods of Kubernetes may use: selectors, affinity, tolerations, anti-affinity as columns of pod tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fastsim.conditions import Conditions, Constraint, constraint_fault, eligible
from fastsim.errors import InputError
from fastsim.kubernetes_nodes import UNSCHEDULABLE, Taint, label_key
from fastsim.manifests import mapping, sequence

HOSTNAME = "kubernetes.io/hostname"
"""Topology in which every node is a place of its own."""
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
DAEMON_TOLERATES = (UNSCHEDULABLE, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Keys of taints that pods of a DaemonSet tolerate without saying so."""

Labels = Mapping[str, str]
"""Labels of a node, its `name` among them."""


class Places(NamedTuple):
    """Where pods could go: the labels of every node, and every taint that some node has."""

    nodes: Sequence[Labels] = ()
    taints: Sequence[Taint] = ()


def constraints(spec: Mapping[str, Any], where: str, places: Places, notices: Counter[str]) -> list[Constraint]:
    """Node-label expressions that say what selector, required affinity and tolerations say."""
    selector = mapping(spec, "nodeSelector", where)
    found = [Constraint(label_key(str(key)), "In", (str(value),)) for key, value in selector.items()]
    affinity = mapping(mapping(spec, "affinity", where), "nodeAffinity", where)
    if affinity.get(SOFT):
        notices["pods: preferred node affinity"] += 1
    terms = sequence(mapping(affinity, HARD, where), "nodeSelectorTerms", where)
    found += _one_of([_term(term, where) for term in terms], places, notices)
    tolerations = sequence(spec, "tolerations", where)
    away = [taint for taint in places.taints if not any(tolerates(given, taint) for given in tolerations)]
    return found + [Constraint(taint.label, "DoesNotExist") for taint in away]


def tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """Whether a toleration lets a pod live with a taint; without a key it is content with every key."""
    key, effect = str(toleration.get("key") or ""), str(toleration.get("effect") or "")
    if effect not in ("", taint.effect) or key not in ("", taint.key):
        return False
    operator = str(toleration.get("operator") or "Equal")
    return operator == "Exists" or (
        operator == "Equal" and bool(key) and str(toleration.get("value") or "") == taint.value
    )


def spread(
    spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str, where: str, notices: Counter[str]
) -> str | None:
    """The group of pods of which only one may be on a node; None if there is no such rule.

    That is what required anti-affinity between nodes means for pods it selects themselves; any other rule about other
    pods is counted as not honoured.
    """
    affinity = mapping(spec, "affinity", where)
    apart = mapping(affinity, "podAntiAffinity", where)
    if mapping(affinity, "podAffinity", where):
        notices["pods: affinity to other pods"] += 1
    if apart.get(SOFT):
        notices["pods: preferred anti-affinity"] += 1
    own = None
    for term in sequence(apart, HARD, where):
        selector = mapping(term, "labelSelector", where)
        if own is None and term.get("topologyKey") == HOSTNAME and _selects(selector, labels, where):
            own = json.dumps([namespace, selector], sort_keys=True, default=str)
        else:
            notices["pods: anti-affinity other than among the pods of one group on a node"] += 1
    return own


def allowed(found: Iterable[Constraint], nodes: Sequence[Labels]) -> list[str]:
    """Names of the nodes on which the expressions hold."""
    asked = Conditions(constraints=tuple(found))
    return [node["name"] for node in nodes if eligible(asked, node)]


def _one_of(terms: list[list[Constraint]], places: Places, notices: Counter[str]) -> list[Constraint]:
    """Expressions that hold where one of the terms holds; an empty term holds nowhere."""
    good = [term for term in terms if term]
    if not terms:
        return []
    if len(good) == 1:
        return good[0]
    if not places.nodes:
        notices["pods: alternatives of node affinity, of which nodes are needed to choose"] += 1
        return []
    names = sorted({name for term in good for name in allowed(term, places.nodes)})
    return [Constraint("name", "In", tuple(names or ("",)))]


def _term(term: Mapping[str, Any], where: str) -> list[Constraint]:
    found = [_expression(item, where, label_key) for item in sequence(term, "matchExpressions", where)]
    for item in sequence(term, "matchFields", where):
        if item.get("key") != "metadata.name":
            raise InputError(f"{where}: matchFields", repr(item.get("key")), "metadata.name")
        found.append(_expression({**item, "key": "name"}, where, str))
    return found


def _expression(item: Mapping[str, Any], where: str, key_of: Any) -> Constraint:
    values = item.get("values")
    if values is not None and not isinstance(values, list):
        raise InputError(f"{where}: values", repr(values), "a list of texts")
    found = Constraint(
        key_of(str(item.get("key") or "")), str(item.get("operator") or ""), tuple(str(value) for value in values or ())
    )
    fault = constraint_fault({"key": found.key, "op": found.op, "values": list(found.values)})
    if fault is not None:
        raise InputError(f"{where}: node affinity", repr(dict(item)), fault)
    return found


def _selects(selector: Mapping[str, Any], labels: Mapping[str, Any], where: str) -> bool:
    """Whether a label selector matches these labels; an empty one matches all of them."""
    wanted = mapping(selector, "matchLabels", where)
    if any(str(labels.get(key)) != str(value) for key, value in wanted.items()):
        return False
    found = {"name": "", **{f"label:{key}": str(value) for key, value in labels.items()}}
    items = sequence(selector, "matchExpressions", where)
    asked = tuple(_expression(item, where, lambda key: f"label:{key}") for item in items)
    return eligible(Conditions(constraints=asked), found)
