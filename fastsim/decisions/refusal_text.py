"""Why nodes cannot host a pod, in words: one node in full, all nodes in the form of kube-scheduler's message.

>>> print(sentence({"Insufficient cpu": 2, "node(s) had untolerated taint(s)": 1}, 3))
0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastsim.hardware import mig
from fastsim.hardware.node_constraints import (
    ONE_OF,
    VOLUMES,
    Conditions,
    Constraint,
    conjunction,
    holds,
    node_labels,
    unstated,
)
from fastsim.kubernetes.devices.device_demands import DEVICES
from fastsim.kubernetes.devices.device_resources import GPU, LACKING, OFFERED
from fastsim.kubernetes.nodes import IN_BYTES, TAINT, UNSCHEDULABLE
from fastsim.kubernetes.pod_rules.host_ports import TAKEN
from fastsim.kubernetes.pod_rules.pod_affinity import APART, BESIDE, KEPT_AWAY
from fastsim.kubernetes.pod_rules.resource_claims import ALLOCATABLE, AVAILABLE, CANNOT, refusal_text
from fastsim.kubernetes.pod_rules.volumes import (
    ABSENT,
    IMMEDIATE,
    NO_VOLUME,
    OF_VOLUME,
    OF_ZONE,
    UNBOUND_TEXT,
    claim_text,
)
from fastsim.kubernetes.pods import NOMINATED

SUMMED = {
    "absent": "node(s) were not there", "no_gpu_memory": "Insufficient GPU memory",
    "no_cpu": "Insufficient cpu", "no_memory": "Insufficient memory", "no_pod_slot": "Too many pods",
    "no_gpu_model": "node(s) had no GPU of the models asked for",
    "spread": "node(s) didn't match pod topology spread constraints",
    "pod_limit": "node(s) didn't match pod anti-affinity rules",
    "reserved": "node(s) were in the way of a pod ahead in the line",
    "over_quota": "node(s) had room, but the tenant is over its quota",
    "gang": "node(s) had room, but another pod of the gang has none",
    "gang_too_large": "node(s) had room, but not all together for the gang",
    "beside_gang": "node(s) had room, but not beside the other pods of the gang",
}  # fmt: skip
"""Texts of failed checks in the message about all nodes."""
NO_CLAIM = ("persistentvolumeclaim ", UNBOUND_TEXT, 'resourceclaim "', "resourceclaim cannot")
"""Beginnings of texts about a claim that is not there, or cannot be honoured."""
TOO_MANY_VOLUMES = "node(s) exceed max volume count"
"""kube-scheduler's text for nodes that cannot attach the volumes of the pod."""
NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
"""kube-scheduler's text for nodes where another pod has a port of the pod."""
BETWEEN_PODS = {
    BESIDE: ("no pod that it must be beside is there", "node(s) didn't match pod affinity rules"),
    APART: ("a pod that it keeps away from is there", "node(s) didn't match pod anti-affinity rules"),
    KEPT_AWAY: ("a pod there keeps it away", "node(s) didn't satisfy existing pods anti-affinity rules"),
    "ports": ("a pod there has a host port of its own", NO_PORTS),
}
"""Texts about rules between pods: about one node, and in the message about all nodes."""
CORDON = f"{TAINT}{UNSCHEDULABLE}="
MISSING_LABEL = " (missing required label)"
"""End of the text about a node without the label of a rule of spread."""


def mismatch(conditions: Conditions, row: Mapping[str, Any]) -> str:
    """The label, taint or name of a node that excludes the pod; ``row`` is that of a node table."""
    labels = node_labels(row)
    if conditions.pinned_node is not None and conditions.pinned_node != labels["name"]:
        return f"the pod belongs on {conditions.pinned_node}"
    broken = _failed(conditions, labels)
    if broken is None:
        return "its labels or name do not match"
    if (device := device_name(broken)) is not None:
        return f"it does not offer {device}"
    if broken.key.startswith(TAINT):
        return f"its taint {broken.key.removeprefix(TAINT)} is not tolerated"
    if (ports := ports_text(*broken.values[:1])) is not None:
        return ports
    if broken.key.startswith((OF_VOLUME, OF_ZONE)):
        return f"its volume is elsewhere: {expression(broken)}"
    if (claim := claim_text(broken.key) or refusal_text(broken.key)) is not None:
        return claim
    if broken.key == ALLOCATABLE:
        return CANNOT
    if broken.key == NOMINATED:
        return "room there is kept for a nominated pod"
    if broken.key == AVAILABLE:
        return f"the devices of its claim are elsewhere: {expression(broken)}"
    if broken.op == ONE_OF:
        return f"none of its alternatives holds: {expression(broken)}"
    if (rule := _between_pods(broken)) is not None:
        return rule[0]
    label = labels.get(broken.key)
    has = f"no label {broken.key}" if label is None else f"{broken.key} is {label!r}"
    return f"{has}, needs {expression(broken)}"


def device_name(constraint: Constraint) -> str | None:
    """The resource of devices that an expression is about; None if it is about something else."""
    beginning = next((start for start in (OFFERED, LACKING) if constraint.key.startswith(start)), None)
    return None if beginning is None else constraint.key.removeprefix(beginning)


def ports_text(name: str = "") -> str | None:
    """Text about the taken ports that a group or the first value of an expression names; None if it names none."""
    ports = name.removeprefix(TAKEN).split(",") if name.startswith(TAKEN) else []
    return f"a pod there has a host port of {', '.join(ports)}" if ports else None


def expression(constraint: Constraint) -> str:
    """A node-label expression as text: ``zone In [a, b]``."""
    if constraint.op == ONE_OF:
        return " or ".join(" and ".join(map(expression, conjunction(text))) for text in constraint.values)
    return f"{constraint.key} {constraint.op}" + (f" [{', '.join(constraint.values)}]" if constraint.values else "")


def lacking(conditions: Conditions, row: Mapping[str, Any], found: int, needed: int) -> str:
    """The further resource that a node lacks: the first by name of which it has no more than ``found``."""
    available = dict(row.get("extra_resources") or ())
    short = [
        name
        for name, amount in sorted(conditions.extra_resources)
        if amount == needed and available.get(name, unstated(name)) >= found
    ]
    without = [
        name for name, amount in sorted(conditions.extra_resources)
        if amount and name not in available and not unstated(name)
    ]  # fmt: skip
    return next(iter(short if needed else without), "a further resource")


def lack_text(conditions: Conditions, row: Mapping[str, Any], found: int, needed: int) -> str:
    """Free and needed amount of the further resource that a node lacks."""
    name = lacking(conditions, row, found, needed)
    if name.startswith(DEVICES):
        return f"{CANNOT}: {found:,} {name} free, needs {needed or dict(conditions.extra_resources).get(name, 0):,}"
    unit = " MiB of" if name.startswith(IN_BYTES) else ""
    amount = needed or dict(conditions.extra_resources).get(name, 0)
    return f"{found:,}{unit} {name} free, needs {amount:,}"


def insufficient(name: str) -> str:
    """kube-scheduler's text for a further resource that a node has too little of."""
    if name.startswith(DEVICES):
        return CANNOT
    if name.startswith(VOLUMES):
        return TOO_MANY_VOLUMES
    return f"Insufficient {mig.DOMAIN if name.startswith(mig.PREFIX) else ''}{name}"


def summed(check: str, conditions: Conditions, row: Mapping[str, Any], found: int, needed: int) -> str:
    """kube-scheduler's text for a node that fails a check."""
    if check == "no_extra":
        return insufficient(lacking(conditions, row, found, needed))
    if check == "pod_limit" and ports_text(conditions.group or ""):
        return NO_PORTS
    if check == "no_gpu" and _has_claims(conditions):
        return CANNOT
    if check == "pod_affinity":
        return near_text(found)[1]
    if check == "no_gpu":
        asked = (device_name(constraint) for constraint in conditions.constraints)
        return f"Insufficient {next((name for name in asked if name), GPU)}"
    if check != "no_match":
        return SUMMED[check]
    labels = node_labels(row)
    if conditions.pinned_node is not None and conditions.pinned_node != labels["name"]:
        return "node(s) didn't match the requested node name"
    broken = _failed(conditions, labels)
    if broken is not None and (device := device_name(broken)) is not None:
        return f"Insufficient {device}"
    if broken is not None and ports_text(*broken.values[:1]):
        return NO_PORTS
    if broken is not None and (rule := _between_pods(broken)) is not None:
        return rule[1]
    if broken is not None and _for_spread(broken, conditions):
        return f"{SUMMED['spread']}{MISSING_LABEL}"
    if broken is not None and (claim := claim_text(broken.key) or refusal_text(broken.key)) is not None:
        return claim
    if broken is not None and broken.key == ALLOCATABLE:
        return CANNOT
    if broken is not None and broken.key == AVAILABLE:
        return "resourceclaim not available on the node"
    if broken is not None and broken.key == NOMINATED:
        return "node(s) kept room for a nominated pod"
    if broken is None or not broken.key.startswith(TAINT):
        return "node(s) didn't match Pod's node affinity/selector"
    cordoned = broken.key.startswith(CORDON)
    return "node(s) were unschedulable" if cordoned else "node(s) had untolerated taint(s)"


def _has_claims(conditions: Conditions) -> bool:
    """Whether the pod has its devices by claims."""
    names = (name for name, _ in conditions.extra_resources)
    return any(name.startswith(DEVICES) for name in names) or any(
        constraint.key == ALLOCATABLE for constraint in conditions.constraints
    )


def order_of_labels(conditions: Conditions, row: Mapping[str, Any]) -> int:
    """The place in kube-scheduler's order of the first check of labels that excludes the pod."""
    broken = _failed(conditions, node_labels(row))
    return LABELLED if broken is None else _order(broken, conditions)


def near_text(rule: int) -> tuple[str, str]:
    """The texts about a rule of ``NEAR_RULES``, counted from 1: about one node, and in the message about all nodes."""
    return list(BETWEEN_PODS.values())[rule - 1]


def _between_pods(constraint: Constraint) -> tuple[str, str] | None:
    """The texts about a rule between pods; None for another expression."""
    return BETWEEN_PODS.get(constraint.values[0]) if constraint.values else None


def _for_spread(broken: Constraint, conditions: Conditions) -> bool:
    """Whether an expression is there for a rule of spread alone, whose label the node must have."""
    labels = [Constraint(rule.topology, "Exists") for rule in conditions.spread]
    return broken in labels and conditions.constraints.count(broken) == 1


def sentence(counts: Mapping[str, int], nodes: int) -> str:
    """All nodes in one sentence: number of nodes by reason, sorted as texts like kube-scheduler's: 10 before 2."""
    # A claim that is not there concerns the pod, not a number of nodes.
    reasons = sorted(text if text.startswith(NO_CLAIM) else f"{count} {text}" for text, count in counts.items())
    return f"0/{nodes} nodes are available: {', '.join(reasons)}."


CLAIM, CORDONED, TAINTED, LABELLED, PORTS, CLAIM_IN_USE, VOLUME, ZONE, SPREAD = range(9)
"""The order of kube-scheduler's checks of labels; amounts come after ``PORTS``, rules between pods last."""
CLAIMS = SPREAD + len(BETWEEN_PODS)
"""The last place before that of claims for devices."""


def _order(constraint: Constraint, conditions: Conditions) -> int:
    """The place of an expression's check in kube-scheduler's order; rules of spread and between pods are the last."""
    if constraint.key.startswith(TAINT):
        return CORDONED if constraint.key.startswith(CORDON) else TAINTED
    if constraint.key in (ALLOCATABLE, AVAILABLE):
        return CLAIMS + (1 if constraint.key == ALLOCATABLE else 2)
    if refusal_text(constraint.key) is not None:
        return CLAIM
    if constraint.key.startswith((OF_VOLUME, NO_VOLUME)):
        return VOLUME
    if constraint.key.startswith(OF_ZONE):
        return ZONE
    if claim_text(constraint.key) is not None:
        return CLAIM if constraint.key.startswith((ABSENT, IMMEDIATE)) else CLAIM_IN_USE
    if ports_text(*constraint.values[:1]) is not None:
        return PORTS
    if _for_spread(constraint, conditions):
        return SPREAD
    rule = _between_pods(constraint)
    return LABELLED if rule is None else SPREAD + 1 + list(BETWEEN_PODS.values()).index(rule)


def _failed(conditions: Conditions, labels: Mapping[str, str]) -> Constraint | None:
    """The expression that does not hold and whose check comes first."""
    broken = [constraint for constraint in conditions.constraints if not holds(constraint, labels)]
    return min(broken, key=lambda constraint: _order(constraint, conditions), default=None)
