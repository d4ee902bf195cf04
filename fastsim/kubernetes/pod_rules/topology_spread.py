"""Spread of Kubernetes' pods over topology domains, ``topologySpreadConstraints``, as columns of a pod table.

Rules that must hold (``DoNotSchedule``) count pods on nodes and pods that wait, as these are placed. A rule counts the
pods of its namespace that its selector selects, but not those that terminate, on nodes that have the labels of all
rules of the pod and pass the policies of the rule. A selector that selects every pod counts none, as in Kubernetes.
Rules of preference (``ScheduleAnyway``) are read in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import MOST_SPREAD, Constraint
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import Places, affinity_constraints, taint_constraints, topology_label
from fastsim.kubernetes.pod_rules.pod_affinity import selects, texts

SPREAD, STRICT, LOOSE = "topologySpreadConstraints", "DoNotSchedule", "ScheduleAnyway"
"""The field with rules of spread, the value of rules that must hold, and that of preferences."""
POLICIES = ("Honor", "Ignore")
"""Whether a rule leaves out nodes that the pod's affinity, or its tolerations, exclude."""


class Peer(NamedTuple):
    """Properties of a pod that rules of spread depend on."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    counted: bool


def spread_rules(pod: PodManifest, places: Places) -> list[dict[str, Any]]:
    """The rules of a pod that must hold, as a pod table has them."""
    strict = rules_with(pod, STRICT, places)
    if len(strict) > MOST_SPREAD:
        raise InputError(f"{pod.where}: {SPREAD}", f"{len(strict)} rules with {STRICT}", f"at most {MOST_SPREAD}")
    return strict


def rules_with(pod: PodManifest, standing: str, places: Places) -> list[dict[str, Any]]:
    """The rules of a pod with this ``whenUnsatisfiable``."""
    return [_rule(pod, rule, places) for rule in sequence(pod.spec, SPREAD, pod.where) if _standing(rule) == standing]


def label_constraints(rules: Iterable[Mapping[str, Any]]) -> list[Constraint]:
    """Expressions for nodes that have the labels of all rules."""
    return [Constraint(key, "Exists") for key in dict.fromkeys(rule["topology"] for rule in rules) if key != "name"]


def spread_notices(pod: PodManifest) -> list[str]:
    """Notices about a pod's rules of kinds that are not known, none of which are honoured."""
    unknown = {_standing(rule) for rule in sequence(pod.spec, SPREAD, pod.where)} - {STRICT, LOOSE}
    return [f"pods: {SPREAD} with {standing}" for standing in sorted(unknown)]


def peer_of(pod: PodManifest) -> Peer:
    """The properties of a pod that rules of spread depend on."""
    labels = tuple(sorted((str(key), str(value)) for key, value in pod.labels.items()))
    return Peer(pod.namespace, labels, not pod.terminating)


def with_sets(rows: Iterable[dict[str, Any]], further: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The rows of pods with the sets that each is in, of those that any row's rules, or `further` ones, count."""
    rows = list(rows)
    if any(row["near_sets"] for row in rows):
        rows = [row | {"spread_sets": [*row["near_sets"]] or None} for row in rows]
    sets = SpreadSets([*further, *(rule["pods"] for row in rows for rule in row["spread"] or ())])
    if not sets:
        return rows
    return [row | {"spread_sets": sorted({*row["near_sets"], *sets.of(row["peer"])}) or None} for row in rows]


class SpreadSets:
    """Sets of pods that rules of spread count; a set is found by the first label of its selector, if that names one."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_label: dict[tuple[str, Any], list[tuple[str, Any]]] = {}
        self._known: dict[Peer, list[str]] = {}
        for name in dict.fromkeys(names):
            namespace, selector = json.loads(name)
            label = next(iter((selector or {}).get("matchLabels", {}).items()), None)
            self._by_label.setdefault((namespace, label), []).append((name, selector))

    def __bool__(self) -> bool:
        return bool(self._by_label)

    def of(self, pod: PodManifest) -> list[str]:
        """Names of the sets that a pod is in."""
        peer = peer_of(pod)
        if peer not in self._known:
            labels = dict(peer.labels)
            items = [item for label in (None, *peer.labels) for item in self._by_label.get((peer.namespace, label), ())]
            self._known[peer] = sorted(
                name for name, selector in items if peer.counted and selector and selects(selector, labels, SPREAD)
            )
        return self._known[peer]


def _standing(rule: Mapping[str, Any]) -> str:
    return str(rule.get("whenUnsatisfiable") or STRICT)


def _rule(pod: PodManifest, rule: Mapping[str, Any], places: Places) -> dict[str, Any]:
    """One rule; the pod's own values of ``matchLabelKeys`` are part of the selector."""
    where = f"{pod.where}: {SPREAD}"
    key = str(rule.get("topologyKey") or "")
    if not key:
        raise InputError(f"{where}: topologyKey", repr(rule.get("topologyKey")), "a label of nodes")
    counted: list[Constraint] = []
    if _policy(rule, "nodeAffinityPolicy", "Honor", where):
        counted += affinity_constraints(pod.spec, pod.where)
    if _policy(rule, "nodeTaintsPolicy", "Ignore", where):
        counted += taint_constraints(pod.spec, pod.where, places)
    return {
        "pods": json.dumps([pod.namespace, _selector(pod, rule, where)], sort_keys=True, default=str),
        "topology": topology_label(key),
        "max_skew": _number(rule, "maxSkew", where),
        "min_domains": _number(rule, "minDomains", where) if rule.get("minDomains") is not None else 1,
        "counted": [{"key": item.key, "op": item.op, "values": list(item.values)} for item in counted],
    }


def _selector(pod: PodManifest, rule: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """The selector in one form; None if it selects no pod, or every pod."""
    stated = mapping(rule, "labelSelector", where)
    labels = {str(key): str(value) for key, value in mapping(stated, "matchLabels", where).items()}
    expressions = [dict(item) for item in sequence(stated, "matchExpressions", where)]
    for name in texts(rule, "matchLabelKeys", where):
        if name in pod.labels:
            expressions.append({"key": name, "operator": "In", "values": [str(pod.labels[name])]})
    selector: dict[str, Any] = {"matchLabels": labels} if labels else {}
    if expressions:
        selector["matchExpressions"] = expressions
    selects(selector, {}, where)  # InputError for an invalid selector
    return selector or None


def _policy(rule: Mapping[str, Any], name: str, missing: str, where: str) -> bool:
    """Whether a policy is ``Honor``: nodes that affinity, or tolerations, exclude do not count."""
    policy = missing if rule.get(name) is None else rule[name]
    if policy not in POLICIES:
        raise InputError(f"{where}: {name}", repr(policy), " or ".join(POLICIES))
    return bool(policy == POLICIES[0])


def _number(rule: Mapping[str, Any], name: str, where: str) -> int:
    number = rule.get(name)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**31:
        raise InputError(f"{where}: {name}", repr(number), "a whole number of 1 or more")
    return number
