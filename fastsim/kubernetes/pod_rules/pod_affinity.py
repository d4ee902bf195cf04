"""Affinity and anti-affinity between pods of Kubernetes, as node expressions and groups of a pod table.

Pods on nodes limit where waiting pods may go: not into topology domains of pods with anti-affinity in either
direction, and only into domains of pods that affinity requires. Pods with anti-affinity to their own kind, node by
node, form a group. Where any other rule is about pods that wait, whose nodes are not known beforehand, it is one of the
column ``near``, for which a run counts the pods of a set in each domain. So it does for preferences. Names of sets are
texts in JSON that say which pods they have: those that any of some terms selects, those that all of them select, those
with one of some terms, those that prefer the pods of a term, or require them, by some weight.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import MOST_SPREAD, Conditions, Constraint, NearRule, Preference, eligible
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.nodes import HOSTNAME
from fastsim.kubernetes.objects import mapping, sequence
from fastsim.kubernetes.pod_rules.host_ports import PortRules
from fastsim.kubernetes.pod_rules.node_affinity import (
    HARD,
    OVER,
    SOFT,
    Labels,
    expression,
    preference_weight,
    topology_label,
)

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has, with its name."""
BESIDE, APART, KEPT_AWAY = "podAffinity:", "podAntiAffinity:", "podAntiAffinity of others:"
"""First values of three kinds of expressions, which no node has: a pod's affinity, its anti-affinity, and the
anti-affinity of pods on nodes to it."""
SELECTED, ALL, HOLDING = "selected by any of", "selected by all of", "with any of"
PREFERRING, REQUIRING = "preferring", "requiring"
SETS = (SELECTED, ALL, HOLDING, PREFERRING, REQUIRING)
"""How the terms in the name of a set select its pods."""
NOWHERE = Constraint("name", "In", (BESIDE,))
"""An expression that holds on no node."""


@dataclass(frozen=True)
class Kind:
    """Properties of a pod that rules between pods depend on; `where` names one pod of the kind."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    rules: str
    where: str = field(default="", compare=False)

    def terms(self, name: str, strength: str = HARD) -> list[Mapping[str, Any]]:
        """The terms of ``podAffinity`` or ``podAntiAffinity``; preferred ones have a weight beside."""
        affinity: Mapping[str, Any] = json.loads(self.rules) if self.rules else {}
        return sequence(mapping(affinity, name, self.where), strength, self.where)


class Term(NamedTuple):
    """One term of one kind of pods: selector, namespaces, and the label that defines topology domains."""

    selector: Mapping[str, Any] | None
    namespaces: tuple[str, ...]
    namespace_selector: Mapping[str, Any] | None
    topology: str
    where: str

    def selects(self, kind: Kind, namespaces: Mapping[str, Labels]) -> bool:
        """Whether the term selects pods of a kind, given the labels of namespaces."""
        if self.selector is None:
            return False
        inside = kind.namespace in self.namespaces
        if not inside and self.namespace_selector is not None:
            labels = {**namespaces.get(kind.namespace, {}), NAMESPACE_NAME: kind.namespace}
            inside = selects(self.namespace_selector, labels, self.where)
        return inside and selects(self.selector, dict(kind.labels), self.where)

    @property
    def label(self) -> tuple[str, str] | None:
        """A label that all selected pods have; None if the term names none."""
        first = next(iter(mapping(self.selector or {}, "matchLabels", self.where).items()), None)
        return None if first is None else (str(first[0]), str(first[1]))

    @property
    def group(self) -> str:
        """Name of the group of pods with this term of anti-affinity."""
        scope: Any = self.namespaces[0] if len(self.namespaces) == 1 else self.namespaces
        parts = [scope, self.selector, *([] if self.namespace_selector is None else [self.namespace_selector])]
        return json.dumps(parts, sort_keys=True, default=str)


class AffinityRules(NamedTuple):
    """Rules between pods for one kind: its group, and if it waits node expressions, notices and rules about pods near.

    ``sets`` are those of the pods of the kind that rules about pods near count.
    """

    group: str | None = None
    constraints: tuple[Constraint, ...] = ()
    notices: tuple[str, ...] = ()
    near: tuple[NearRule, ...] = ()
    sets: tuple[str, ...] = ()

    def columns(self, ports: PortRules) -> dict[str, Any]:
        """Rules about pods near, those of ports among them, and sets, as columns of a row."""
        near = [rule._asdict() for rule in (*self.near, *ports.near)] or None
        return {"spread_sets": None, "near": near, "near_sets": (*self.sets, *ports.sets)}


NO_RULES = AffinityRules()
"""What follows for a pod where there are no rules about it."""

TermsByLabel = dict[tuple[str, str] | None, list[tuple[Kind, Term]]]

Weighed = tuple[str, Term, int]
"""How a pod has a term, :data:`PREFERRING` or :data:`REQUIRING`; the term; points of nodes near the pods it selects."""


class Pods:
    """Pods on nodes, or waiting pods: number and nodes of each kind, and kinds by label."""

    def __init__(self) -> None:
        self.nodes: dict[Kind, set[str]] = {}
        self.count: Counter[Kind] = Counter()
        self._labelled: dict[tuple[str, str], list[Kind]] = {}

    def add(self, pod: PodManifest) -> None:
        """Add a pod."""
        kind = kind_of(pod)
        if kind not in self.count:
            for label in kind.labels:
                self._labelled.setdefault(label, []).append(kind)
        self.count[kind] += 1
        if pod.node:
            self.nodes.setdefault(kind, set()).add(pod.node)

    def candidates(self, term: Term) -> Iterable[Kind]:
        """A superset of the kinds that the term selects."""
        return self.count if term.label is None else self._labelled.get(term.label, ())


class Peers:
    """The pods of a cluster and the labels of its namespaces, for the rules between pods."""

    def __init__(
        self, pods: Iterable[PodManifest] = (), nodes: Iterable[Labels] = (),
        namespaces: Mapping[str, Labels] | None = None,
    ) -> None:  # fmt: skip
        self._unread, self._namespaces = pods, namespaces or {}
        self._nodes = {node["name"]: node for node in nodes}
        self._known: dict[Kind, AffinityRules] = {}
        self._groups: dict[Kind, str | None] = {}
        self._preferences: dict[Kind, tuple[Preference, ...]] = {}

    def rules(self, pod: PodManifest) -> AffinityRules:
        """The rules for this pod, its own and those of others about it; a pod on a node has its group and sets only."""
        ruled = _has_rules(pod)
        if not ruled and not self._ruled:
            return NO_RULES
        sets = self._sets
        if not ruled and not sets and (pod.node or not self._anti_terms):
            return NO_RULES
        kind = kind_of(pod)
        rules = AffinityRules(self._group(kind)) if pod.node else self._of_waiting(kind)
        return rules._replace(sets=sets.of(kind)) if sets else rules

    def preferences(self, pod: PodManifest) -> tuple[Preference, ...]:
        """The preferences of a pod that waits about other pods, its own and those of others about it."""
        if not _has_rules(pod) and not (self._ruled and self._weighed_terms):
            return ()
        kind = kind_of(pod)
        if kind not in self._preferences:
            self._preferences[kind] = tuple(self._preferred(kind))
        return self._preferences[kind]

    def _preferred(self, kind: Kind) -> Iterator[Preference]:
        for how, term, weight in _weighed(kind):
            if how == PREFERRING:
                yield Preference("near", weight, _name_of_set(SELECTED, [term.group]), topology_label(term.topology))
        others = {
            key: None
            for label in (None, *kind.labels) for key, term in self._weighed_terms.get(label, {}).items()
            if self._selects(term, kind)
        }  # fmt: skip
        for how, group, topology, weight in sorted(others):
            rule = "near" if how == PREFERRING else "required"
            yield Preference(rule, weight, _name_of_set(how, [group], topology, weight), topology_label(topology))

    @cached_property
    def _weighed_terms(self) -> dict[tuple[str, str] | None, dict[tuple[str, str, str, int], Term]]:
        """Terms that pods prefer, or require to be near, by a label of the pods that they select."""
        found: dict[tuple[str, str] | None, dict[tuple[str, str, str, int], Term]] = {}
        for kind in (kind for pods in self._split for kind in pods.count if kind.rules) if self._ruled else ():
            for how, term, weight in _sums(_weighed(kind)):
                found.setdefault(term.label, {})[how, term.group, term.topology, weight] = term
        return found

    def _of_waiting(self, kind: Kind) -> AffinityRules:
        rules = self._known.get(kind)
        if rules is None:
            rules = self._known[kind] = self._rules(kind)
        return rules

    @cached_property
    def _sets(self) -> NearSets:
        """Sets of pods that rules about pods near count."""
        if not any(not pod.node for pod in self._ruled):
            return NearSets((), {})
        rules = (self._of_waiting(kind) for kind in self._split[1].count)
        return self.sets_named(rule.pods for listed in rules for rule in listed.near)

    def sets_named(self, names: Iterable[str]) -> NearSets:
        """The sets of these names, among the pods of this cluster."""
        return NearSets(names, self._namespaces)

    @cached_property
    def _pods(self) -> list[PodManifest]:
        return list(self._unread)

    @cached_property
    def _ruled(self) -> list[PodManifest]:
        """The pods that have rules about other pods."""
        return [pod for pod in self._pods if "affinity" in pod.spec and _has_rules(pod)]

    @cached_property
    def _split(self) -> tuple[Pods, Pods]:
        """Pods that are on nodes, and pods that wait."""
        on_nodes, waiting = Pods(), Pods()
        for pod in self._pods:
            if pod.status.get("phase") not in OVER and (pod.node or not pod.is_held):
                (on_nodes if pod.node else waiting).add(pod)
        return on_nodes, waiting

    @cached_property
    def _anti_terms(self) -> TermsByLabel:
        """Anti-affinity terms of pods on nodes, by a label of the pods that they select."""
        return _by_label(self._split[0]) if any(pod.node for pod in self._ruled) else {}

    @cached_property
    def _waiting_terms(self) -> TermsByLabel:
        """Anti-affinity terms of pods that wait, by a label of the pods that they select."""
        return _by_label(self._split[1]) if any(not pod.node for pod in self._ruled) else {}

    def _rules(self, kind: Kind) -> AffinityRules:
        notices: list[str] = []
        near: list[NearRule] = []
        constraints = [*self._forbidden(kind, notices, near), *self._needed(kind, notices, near)]
        if len(near) > MOST_SPREAD:
            raise InputError(f"{kind.where}: affinity", f"{len(near)} rules about pods that wait", f"{MOST_SPREAD}")
        terms = [*_terms(kind, "podAntiAffinity"), *(term for _, term, _ in _weighed(kind))]
        if not self._namespaces and any(term.namespace_selector for term in terms):
            notices.append("pods: a namespaceSelector without objects of namespaces")
        return AffinityRules(self._group(kind), tuple(constraints), tuple(dict.fromkeys(notices)), tuple(near))

    def _forbidden(self, kind: Kind, notices: list[str], near: list[NearRule]) -> list[Constraint]:
        """Expressions against domains of pods with anti-affinity in either direction, unless both are of one group."""
        on_nodes, waiting = self._split
        away: dict[str, dict[str, set[str]]] = {APART: {}, KEPT_AWAY: {}}
        apart: dict[str, dict[str, None]] = {}
        kept_away: dict[str, dict[str, None]] = {}
        for term in _terms(kind, "podAntiAffinity"):
            selected = partial(self._apart, term, self._own(kind, term))
            for other in filter(selected, on_nodes.candidates(term)):
                self._add_domains(away[APART], term.topology, on_nodes.nodes[other], notices)
            if _others(kind, filter(selected, waiting.candidates(term)), waiting):
                apart.setdefault(term.topology, {})[term.group] = None
        for label in (None, *kind.labels):
            for other, term in self._anti_terms.get(label, ()):
                if self._apart(term, self._own(other, term), kind):
                    self._add_domains(away[KEPT_AWAY], term.topology, on_nodes.nodes[other], notices)
            for other, term in self._waiting_terms.get(label, ()):
                if other != kind and self._apart(term, self._own(other, term), kind):
                    kept_away.setdefault(term.topology, {})[term.group] = None
        for name, rule, groups in ((SELECTED, "apart", apart), (HOLDING, "kept_away", kept_away)):
            for topology, texts_ in groups.items():
                pods = _name_of_set(name, texts_, topology if name == HOLDING else "")
                near.append(NearRule(rule, pods, topology_label(topology)))
        return [
            Constraint(topology_label(topology), "NotIn", (rule, *sorted(values)))
            for rule, domains in away.items() for topology, values in domains.items()
        ]  # fmt: skip

    def _own(self, kind: Kind, term: Term) -> str | None:
        """The group of the kind, if this term forms it."""
        group = self._group(kind)
        return group if term.topology == HOSTNAME and term.group == group else None

    def _apart(self, term: Term, own: str | None, other: Kind) -> bool:
        """Whether a term selects the other kind, and not through the group that both share."""
        return self._selects(term, other) and (own is None or self._group(other) != own)

    def _needed(self, kind: Kind, notices: list[str], near: list[NearRule]) -> list[Constraint]:
        """Expressions for domains of the pods that affinity requires; the first of mutually required pods is free."""
        terms = _terms(kind, "podAffinity")
        if not terms:
            return []

        def selected(other: Kind) -> bool:
            return all(self._selects(term, other) for term in terms)

        on_nodes, waiting = self._split
        nodes = {node for other in filter(selected, on_nodes.candidates(terms[0])) for node in on_nodes.nodes[other]}
        domains: dict[str, set[str]] = {}
        for term in terms:
            self._add_domains(domains, term.topology, nodes, notices)
        own = selected(kind)
        others = filter(selected, waiting.candidates(terms[0]))
        if _others(kind, (other for other in others if not (domains and own and other == kind)), waiting):
            pods = _name_of_set(ALL, dict.fromkeys(term.group for term in terms))
            keys = dict.fromkeys(topology_label(term.topology) for term in terms)
            near += [NearRule("beside", pods, key) for key in keys]
            return []
        if not domains and own:
            keys = dict.fromkeys(term.topology for term in terms if term.topology != HOSTNAME)
            return [Constraint(topology_label(key), "Exists") for key in keys]
        beside = [
            Constraint(topology_label(topology), "In", (BESIDE, *sorted(values)))
            for topology, values in domains.items()
        ]
        return beside if len(domains) == len({term.topology for term in terms}) else [NOWHERE]

    def _group(self, kind: Kind) -> str | None:
        """The group of pods of which only one may be on a node; None if there is no such rule."""
        if kind not in self._groups:
            terms = _terms(kind, "podAntiAffinity")
            own = (term.group for term in terms if term.topology == HOSTNAME and self._selects(term, kind))
            self._groups[kind] = next(own, None)
        return self._groups[kind]

    def _selects(self, term: Term, kind: Kind) -> bool:
        return term.selects(kind, self._namespaces)

    def _add_domains(
        self, domains: dict[str, set[str]], topology: str, nodes: Iterable[str], notices: list[str]
    ) -> None:
        """Add the domains of nodes; a node without the label is in none."""
        for name in nodes:
            if topology != HOSTNAME and name not in self._nodes:
                notices.append("pods: rules about pods on nodes that are not among the objects")
                continue
            domain = name if topology == HOSTNAME else self._nodes[name].get(topology_label(topology))
            if domain is not None:
                domains.setdefault(topology, set()).add(domain)


def _has_rules(pod: PodManifest) -> bool:
    affinity = mapping(pod.spec, "affinity", pod.where)
    return bool(affinity.get("podAffinity") or affinity.get("podAntiAffinity"))


class NearSets:
    """Sets of pods that rules about pods near count, by their names; each is found by a label of its pods."""

    def __init__(self, names: Iterable[str], namespaces: Mapping[str, Labels]) -> None:
        self._namespaces, self._known = namespaces, dict[Kind, tuple[str, ...]]()
        self._selecting: dict[tuple[str, str] | None, list[tuple[str, tuple[Term, ...]]]] = {}
        self._holding: dict[tuple[str, str], list[str]] = {}
        self._weighing: dict[tuple[str, str, str, int], str] = {}
        for name in dict.fromkeys(names):
            how, groups, topology, *weight = json.loads(name)
            terms = tuple(map(_term_of, groups))
            if weight:
                self._weighing[how, groups[0], topology, weight[0]] = name
            elif how == HOLDING:
                for group in groups:
                    self._holding.setdefault((group, topology), []).append(name)
            elif how == ALL:
                self._selecting.setdefault(terms[0].label, []).append((name, terms))
            else:
                for term in terms:
                    self._selecting.setdefault(term.label, []).append((name, (term,)))

    def __bool__(self) -> bool:
        return bool(self._selecting or self._holding or self._weighing)

    def of(self, kind: Kind) -> tuple[str, ...]:
        """Names of the sets that pods of a kind are in."""
        if kind not in self._known:
            own = ((term.group, term.topology) for term in _terms(kind, "podAntiAffinity"))
            found = {name for term in own for name in self._holding.get(term, ())}
            for how, term, weight in _sums(_weighed(kind)) if self._weighing else ():
                name = self._weighing.get((how, term.group, term.topology, weight))
                found |= set() if name is None else {name}
            for label in (None, *kind.labels):
                found |= {
                    name for name, terms in self._selecting.get(label, ())
                    if all(term.selects(kind, self._namespaces) for term in terms)
                }  # fmt: skip
            self._known[kind] = tuple(sorted(found))
        return self._known[kind]


def is_near_set(name: str) -> bool:
    """Whether a name is that of such a set."""
    return name.startswith(tuple(json.dumps([how])[:-1] for how in SETS))


def _name_of_set(how: str, groups: Iterable[str], topology: str = "", *weight: int) -> str:
    return json.dumps([how, sorted(groups), topology, *weight])


def _term_of(group: str) -> Term:
    """The term of a name of a group, without a label of domains."""
    scope, selector, *further = json.loads(group)
    return Term(selector, (scope,) if isinstance(scope, str) else tuple(scope), further[0] if further else None, "", "")


def _by_label(pods: Pods) -> TermsByLabel:
    """Anti-affinity terms of pods, by a label of the pods that they select."""
    terms: TermsByLabel = {}
    for kind in pods.count:
        for term in _terms(kind, "podAntiAffinity"):
            terms.setdefault(term.label, []).append((kind, term))
    return terms


def kind_of(pod: PodManifest) -> Kind:
    """The kind of a pod."""
    affinity = mapping(pod.spec, "affinity", pod.where)
    rules = {name: affinity[name] for name in ("podAffinity", "podAntiAffinity") if affinity.get(name)}
    labels = tuple(sorted((str(key), str(value)) for key, value in pod.labels.items()))
    return Kind(pod.namespace, labels, json.dumps(rules, sort_keys=True, default=str) if rules else "", pod.where)


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any], where: str) -> bool:
    """Whether a label selector matches these labels; an empty one matches all of them."""
    wanted = mapping(selector, "matchLabels", where)
    if any(str(labels.get(key)) != str(value) for key, value in wanted.items()):
        return False
    texts = {"name": "", **{f"label:{key}": str(value) for key, value in labels.items()}}
    items = sequence(selector, "matchExpressions", where)
    expressions = tuple(expression(item, where, lambda key: f"label:{key}") for item in items)
    return eligible(Conditions(constraints=expressions), texts)


def _others(kind: Kind, others: Iterable[Kind], waiting: Pods) -> bool:
    """Whether a pod of these kinds waits, other than a single one of this kind."""
    return any(other != kind or waiting.count[other] > 1 for other in others)


def _terms(kind: Kind, name: str) -> list[Term]:
    return [_term(kind, term) for term in kind.terms(name)] if kind.rules else []


def _weighed(kind: Kind) -> Iterator[Weighed]:
    """Preferred terms with their weights, those of anti-affinity below 0; required terms of affinity count 1."""
    for name, sign in (("podAffinity", 1), ("podAntiAffinity", -1)) if kind.rules else ():
        for item in kind.terms(name, SOFT):
            weight = preference_weight(item, kind.where)
            yield PREFERRING, _term(kind, mapping(item, "podAffinityTerm", kind.where)), sign * weight
    for term in _terms(kind, "podAffinity"):
        yield REQUIRING, term, 1


def _sums(weighed: Iterable[Weighed]) -> Iterator[Weighed]:
    """The same with one weight for equal terms."""
    sums: Counter[tuple[str, str, str]] = Counter()
    terms: dict[tuple[str, str, str], Term] = {}
    for how, term, weight in weighed:
        key = how, term.group, term.topology
        sums[key] += weight
        terms[key] = term
    for key, weight in sums.items():
        if weight:
            yield key[0], terms[key], weight


def _term(kind: Kind, term: Mapping[str, Any]) -> Term:
    """A term, with its own pod's namespace and values of the labels it names filled in."""
    selector = None if term.get("labelSelector") is None else mapping(term, "labelSelector", kind.where)
    scope = None if term.get("namespaceSelector") is None else mapping(term, "namespaceSelector", kind.where)
    labels = dict(kind.labels)
    further = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in texts(term, name, kind.where) if key in labels
    ]  # fmt: skip
    if further and selector is not None:
        stated = sequence(selector, "matchExpressions", kind.where)
        selector = {**selector, "matchExpressions": [*stated, *(item for item in further if item not in stated)]}
    named = tuple(sorted(texts(term, "namespaces", kind.where)))
    return Term(
        selector, named or (() if scope is not None else (kind.namespace,)), scope,
        str(term.get("topologyKey") or ""), kind.where,
    )  # fmt: skip


def texts(term: Mapping[str, Any], name: str, where: str) -> list[str]:
    """A list of texts under a name; absent and null are empty."""
    value = term.get(name)
    if value is not None and not isinstance(value, list):
        raise InputError(f"{where}: {name}", repr(value), "a list of texts")
    return [str(text) for text in value or ()]
