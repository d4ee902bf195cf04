"""Conditions of a pod on its node besides CPU, memory and devices: labels, a name, device memory, further resources.

Node-label expressions are those of Kubernetes' node affinity: all of them must hold; ``In`` and ``Gt`` need the label,
``NotIn`` and ``DoesNotExist`` hold without it. The label ``name`` is the node's name. Alternatives hold if all
expressions of one of them do.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fastsim.foundation.nested_text import json_value
from fastsim.hardware import mig

MAX_GPUS = 64
"""Most devices on one node."""

MOST_SPREAD = 8
"""Most rules of spread of one pod, and most rules about pods near."""

BESIDE = "beside"
"""The rule about pods near that wants a domain with a pod of the set; the others want a domain without."""

NEAR_RULES = (BESIDE, "apart", "kept_away", "ports")
"""Rules about pods near, in the order of the checks.

The last two mean the same as ``apart``: by a rule of others, and because of ports of the node that both take.
"""

WRITTEN_PREFERENCES = ("labels", "taint", "spread", "near")
"""Kinds of preferences that are written as such."""
PREFERENCES = (*WRITTEN_PREFERENCES, "required", "image")
"""Kinds of preferences; the last two follow from required affinity of other pods, and from images."""
IMAGE = "image:"
"""Beginning of the labels of nodes that have an image; the value is its size, bytes."""

VOLUMES = "volumes:"
"""Beginning of the names of further resources that count volumes of a driver on a node."""
WITHOUT_LIMIT = 1 << 40
"""Amount of such a resource on nodes that do not state it."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
"""Comparisons of a node's label with the values of a constraint."""


ONE_OF = "OneOf"
"""Operator of alternatives: each value is a list of expressions that hold together, see `conjunction_text`."""


def unstated(name: str) -> int:
    """The amount of a further resource on a node that does not state it: none, but of volumes any number."""
    return WITHOUT_LIMIT if name.startswith(VOLUMES) else 0


class Constraint(NamedTuple):
    """One node-label expression: key, operator of :data:`OPERATORS` or :data:`ONE_OF`, values."""

    key: str
    op: str
    values: tuple[str, ...] = ()


class SpreadRule(NamedTuple):
    """One rule of spread: set of pods, label that defines domains, most pods more than in the domain with the fewest.

    While fewer than ``min_domains`` domains are there, the fewest is 0. ``counted`` are expressions of nodes whose pods
    and domains count.
    """

    pods: str
    topology: str
    max_skew: int
    min_domains: int = 1
    counted: tuple[Constraint, ...] = ()


class NearRule(NamedTuple):
    """A rule of :data:`NEAR_RULES` about the pods of a set in a domain of a label.

    ``beside``: on nodes of domains that hold one; a pod of the set itself may be the first, in any domain. ``apart``:
    on nodes of domains that hold none, or without the label.
    """

    rule: str
    pods: str
    topology: str


class Preference(NamedTuple):
    """One thing that makes a node better or worse for a pod, of a kind of :data:`PREFERENCES`.

    ``labels``: `weight` for nodes where all expressions of `nodes` hold. ``taint``: such nodes are avoided. ``near``
    and ``required``: `weight` for each pod of a set, `pods`, in the node's domain of the label `topology`; a negative
    one is for staying away. ``spread``: few pods of the set in the node's domain, of the nodes where `nodes` hold;
    differences below `max_skew` count less. ``image``: `weight` containers have the image of the label `topology`.
    """

    rule: str
    weight: int = 1
    pods: str = ""
    topology: str = ""
    max_skew: int = 1
    nodes: tuple[Constraint, ...] = ()


class Conditions(NamedTuple):
    """Further requests of one pod: MiB of memory on each device, amounts of named resources, which nodes may host it.

    ``max_per_node`` counts the pods of ``group`` on a node, this one included; both are None without a limit.
    ``spread_sets`` are the sets that the pod is in, for rules of ``spread`` and ``near``, its own and those of others.
    ``budgets`` are names of disruption budgets and how many pods of each are to keep running. ``preferences`` forbid no
    node; ``preference_sets`` are the sets that the pod is in, for preferences of others and its own.
    """

    gpu_memory_mib: int = 0
    extra_resources: tuple[tuple[str, int], ...] = ()
    pinned_node: str | None = None
    constraints: tuple[Constraint, ...] = ()
    group: str | None = None
    max_per_node: int | None = None
    spread: tuple[SpreadRule, ...] = ()
    spread_sets: tuple[str, ...] = ()
    budgets: tuple[tuple[str, int], ...] = ()
    near: tuple[NearRule, ...] = ()
    preferences: tuple[Preference, ...] = ()
    preference_sets: tuple[str, ...] = ()

    @property
    def without_preferences(self) -> Conditions:
        """What must hold."""
        return self._replace(preferences=(), preference_sets=())


NONE = Conditions()
"""The conditions of a pod without further requests."""
COLUMNS = (
    "gpu_memory_mib", "extra_resources", "mig", "pinned_node", "constraints", "group", "max_per_node", "spread",
    "spread_sets", "budgets", "near", "preferences", "preference_sets",
)  # fmt: skip
"""The pod columns that conditions are made of."""


def conditions_of(row: Mapping[str, Any]) -> Conditions:
    """The conditions in a row of a pod table; amounts of zero are dropped."""
    limit = row.get("max_per_node") if row.get("group") is not None else None
    return Conditions(
        gpu_memory_mib=(row.get("gpu_memory_mib") or 0) if row["num_gpu"] else 0,
        extra_resources=further(row.get("extra_resources"), row.get("mig")),
        pinned_node=row.get("pinned_node"),
        constraints=_expressions(row.get("constraints")),
        group=row["group"] if limit is not None else None,
        max_per_node=limit,
        spread=tuple(
            SpreadRule(item["pods"], item["topology"], item["max_skew"], item["min_domains"] or 1,
                   _expressions(item["counted"]))
            for item in row.get("spread") or ()
        ),
        spread_sets=tuple(sorted(row.get("spread_sets") or ())),
        budgets=tuple(sorted((item["name"], item["least"]) for item in row.get("budgets") or ())),
        near=tuple(sorted(
            (NearRule(item["rule"], item["pods"], item["topology"]) for item in row.get("near") or ()),
            key=lambda rule: (NEAR_RULES.index(rule.rule), rule),
        )),
        preferences=tuple(map(_preference, row.get("preferences") or ())),
        preference_sets=tuple(sorted(row.get("preference_sets") or ())),
    )  # fmt: skip


def _preference(item: Mapping[str, Any]) -> Preference:
    """A preference as a pod table has it; what is null is as by default."""
    stated = {name: value for name, value in item.items() if value is not None and name != "nodes"}
    return Preference(**stated, nodes=_expressions(item["nodes"]))


def _expressions(items: Any) -> tuple[Constraint, ...]:
    return tuple(Constraint(item["key"], item["op"], tuple(item["values"] or ())) for item in items or ())


def domains(rule: SpreadRule, keys: Iterable[str], nodes: Iterable[Mapping[str, str]]) -> list[str | None]:
    """The domain of each node, from its labels; None if it lacks one of some keys or is not counted."""
    counted, wanted = Conditions(constraints=rule.counted), tuple(keys)
    return [
        labels[rule.topology] if all(key in labels for key in wanted) and eligible(counted, labels) else None
        for labels in nodes
    ]


def further(amounts: Any, instances: str | None) -> tuple[tuple[str, int], ...]:
    """Amounts of resources and a text of MIG instances as one list by name; instances go by their short names."""
    sums: Counter[str] = Counter()
    for name, amount in [*(amounts or ()), *(mig.request(instances) if instances else ())]:
        sums[mig.resource_name(name)] += amount
    return tuple(sorted((name, amount) for name, amount in sums.items() if amount))


def node_labels(row: Mapping[str, Any]) -> dict[str, str]:
    """The labels in a row of a node table, its name among them."""
    return {**dict(row.get("labels") or ()), "name": row["name"]}


def eligible(conditions: Conditions, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels may host the pod, room aside."""
    if conditions.pinned_node is not None and conditions.pinned_node != labels["name"]:
        return False
    return all(holds(constraint, labels) for constraint in conditions.constraints)


def conjunction_text(constraints: Iterable[Constraint]) -> str:
    """Expressions that hold together as one text: lists of key, operator and values in JSON."""
    return json.dumps([[one.key, one.op, list(one.values)] for one in constraints])


@lru_cache(4096)
def conjunction(text: str) -> tuple[Constraint, ...]:
    """The expressions in such a text."""
    return tuple(Constraint(key, op, tuple(values)) for key, op, values in json.loads(text))


def holds(constraint: Constraint, labels: Mapping[str, str]) -> bool:
    """Whether one expression is true of a node's labels."""
    if constraint.op == ONE_OF:
        return any(all(holds(one, labels) for one in conjunction(text)) for text in constraint.values)
    return _is_met(constraint, labels.get(constraint.key))


def _is_met(constraint: Constraint, label: str | None) -> bool:
    if constraint.op == "Exists":
        return label is not None
    if constraint.op == "DoesNotExist":
        return label is None
    if constraint.op == "NotIn":
        return label is None or label not in constraint.values
    if label is None:
        return False
    if constraint.op == "In":
        return label in constraint.values
    number, bound = whole_number(label), whole_number(constraint.values[0])
    if number is None or bound is None:
        return False
    return number > bound if constraint.op == "Gt" else number < bound


def whole_number(text: str) -> int | None:
    """The integer a text spells; None if it spells none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def constraint_fault(constraint: Mapping[str, Any]) -> str | None:
    """The expected form of an invalid constraint; None if it is valid."""
    if not constraint["key"]:
        return "a key"
    if constraint["op"] not in (*OPERATORS, ONE_OF):
        return f"an operator of {', '.join(OPERATORS)}"
    values = constraint["values"] or []
    if any(value is None for value in values):
        return "values that are texts"
    if constraint["op"] == ONE_OF:
        return next((fault for fault in map(_alternative_fault, values) if fault), None)
    if constraint["op"] in ("In", "NotIn") and not values:
        return f"one value or more for {constraint['op']}"
    if constraint["op"] in ("Gt", "Lt") and (len(values) != 1 or whole_number(values[0]) is None):
        return f"one whole number for {constraint['op']}"
    return None


def _alternative_fault(text: str) -> str | None:
    """The expected form of an invalid alternative; None if it is valid."""
    expected = f"for {ONE_OF} lists of key, operator of {', '.join(OPERATORS)}, and values, as JSON"
    try:
        listed = [(key, op, [*values]) for key, op, values in json_value(text)]
    except (ValueError, TypeError):
        return expected
    fine = all(isinstance(one, str) for key, op, values in listed for one in (key, op, *values))
    if not fine or any(op not in OPERATORS for _, op, _ in listed):
        return expected
    faults = (constraint_fault({"key": key, "op": op, "values": values}) for key, op, values in listed)
    return next((fault for fault in faults if fault), None)
