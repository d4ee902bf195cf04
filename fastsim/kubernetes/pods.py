"""Pods of Kubernetes as rows of a pod table: requests, constraints, and times of arrival, start and end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import Constraint, Preference
from fastsim.kubernetes.controllers import QUEUE, PodManifest
from fastsim.kubernetes.devices.attached_volumes import AttachedVolumes
from fastsim.kubernetes.devices.gpu_groups import GROUP as GPU_GROUP
from fastsim.kubernetes.devices.gpu_groups import groups_of
from fastsim.kubernetes.devices.hami import CHOICES, Board, allocated, allowed_nodes
from fastsim.kubernetes.objects import mapping, sequence
from fastsim.kubernetes.pod_rules.disruption_budgets import PreemptionBudgets
from fastsim.kubernetes.pod_rules.gangs import ANNOTATIONS as GANG_ANNOTATIONS
from fastsim.kubernetes.pod_rules.gangs import LABELS as GANG_LABELS
from fastsim.kubernetes.pod_rules.gangs import TOTALS, gang_of
from fastsim.kubernetes.pod_rules.host_ports import NO_PORTS, HostPorts, PortRules, ports_of
from fastsim.kubernetes.pod_rules.kept_parts import MOST, KeptParts
from fastsim.kubernetes.pod_rules.node_affinity import (
    CHOOSING,
    OVER,
    Places,
    choosing_parts,
    constraints,
    device_constraints,
)  # fmt: skip
from fastsim.kubernetes.pod_rules.pod_affinity import AffinityRules, Peers
from fastsim.kubernetes.pod_rules.preferences import image_labels, preference_columns
from fastsim.kubernetes.pod_rules.priorities import Priorities
from fastsim.kubernetes.pod_rules.resource_claims import NO_CLAIMS, ResourceClaims
from fastsim.kubernetes.pod_rules.topology_spread import SPREAD, label_constraints, spread_notices, spread_rules
from fastsim.kubernetes.pod_rules.volumes import Volumes
from fastsim.kubernetes.requests import (
    REQUESTING,
    Amounts,
    Surroundings,
    pod_amounts,
    request_columns,
    requested_devices,
    requesting_parts,
    states_shares,
)  # fmt: skip
from fastsim.kubernetes.workloads.gang_workloads import KUEUE_QUEUE

HELD = ("alibabacloud.com/gpu-index", "ALIYUN_COM_GPU_MEM_IDX")
"""Annotations with the numbers of the devices that a pod holds, such as ``0-1``."""
CREATED, DELETED = "alibabacloud.com/creation-time", "alibabacloud.com/deletion-time"
"""Annotations with the times of arrival and end of a trace's pod."""
QUEUE_LABELS = ("kai.scheduler/queue", "runai/queue", KUEUE_QUEUE)
"""Labels that name the tenant; without one, and without a queue of Volcano, the namespace is the tenant."""
NOMINATED = "nominatedNodeName"
"""Status of a waiting pod that names the node where pods of less priority were evicted for it."""
HONOURED = (
    "affinity", "containers", "hostNetwork", "initContainers", "nodeName", "nodeSelector", "overhead",
    "preemptionPolicy", "priority", "priorityClassName", "resourceClaims", "resources", "runtimeClassName",
    "schedulingGates", "schedulingGroup", "tolerations", "topologySpreadConstraints", "volumes", "workloadRef",
)  # fmt: skip
"""Fields of a pod's spec that are read."""
HARMLESS = (
    "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "ephemeralContainers", "evictionResponders", "hostAliases", "hostIPC", "hostPID", "hostUsers", "hostname",
    "hostnameOverride", "imagePullSecrets", "os", "readinessGates", "restartPolicy", "schedulerName",
    "securityContext", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace",
    "subdomain", "terminationGracePeriodSeconds",
)  # fmt: skip
"""Fields without influence on a pod's request or on its nodes."""
_KNOWN = frozenset((*HONOURED, *HARMLESS))
SHARED = frozenset((
    "preemptionPolicy", "priority", "priorityClassName", "runtimeClassName", "schedulingGroup", SPREAD, "workloadRef",
))  # fmt: skip
"""Fields of a pod's spec that a template depends on; requests, rules and own expressions follow from others."""
SPEC_PARTS = (*REQUESTING, *CHOOSING, "hostNetwork")
"""Fields of a pod's spec that its request, its own expressions and its ports follow from."""
TELLING = (*GANG_ANNOTATIONS, *TOTALS, QUEUE, *CHOICES)
"""Annotations that a template depends on."""
TELLING_LABELS = frozenset((*GANG_LABELS, *TOTALS, *QUEUE_LABELS))
"""Labels that a template depends on; requests, which may depend on others, are looked at by themselves."""


class PodTimes(NamedTuple):
    """Unix seconds of a pod's arrival, start and end; None if unknown."""

    created: float | None = None
    started: float | None = None
    ended: float | None = None


class Facts(NamedTuple):
    """Facts about the cluster that the row of a pod depends on."""

    places: Places
    surroundings: Surroundings
    priorities: Priorities
    peers: Peers
    volumes: Volumes
    ports: HostPorts
    kept: KeptParts
    templates: Templates
    boards_of: Mapping[str, Sequence[Board]] = MappingProxyType({})
    budgets: PreemptionBudgets = PreemptionBudgets()
    claims: ResourceClaims = NO_CLAIMS
    attached: AttachedVolumes = AttachedVolumes({})


def pod_row(pod: PodManifest, facts: Facts, notices: Counter[str]) -> dict[str, Any] | None:
    """The pod as columns of a pod table, its times under `times`; None if it is gated, deleted, or ended unseen."""
    times, phase = pod_times(pod), str(pod.status.get("phase") or "")
    if _is_left_out(pod, times, phase, notices):
        return None
    template = facts.templates.of(pod, facts, notices)
    row, bound = template.columns.copy(), _optional(pod.spec, "nodeName") or None
    claimed = facts.claims.claimed(pod, template.request.amounts, notices)
    if claimed.extra or claimed.gpus:
        row |= claimed.beside(template.request.columns)
    if volumes := facts.attached.taken(pod, notices):
        row["extra_resources"] = sorted([*(row["extra_resources"] or ()), *volumes])
    further = [] if pod.node else _further_expressions(pod, facts, notices)
    if further or claimed.constraints or template.by_node:
        row["constraints"] = _constraints(pod, template, further, claimed.constraints, facts)
    row["times"], row["owner"], row["peer"] = times, pod.owner, pod
    row["budgets"] = [{"name": name, "least": least} for name, least in facts.budgets.of(pod)] or None
    row["qos"], row["orig_status"] = _optional(pod.status, "qosClass"), phase or None
    row["pinned_node"], row["bound_node"] = None if bound else pod.node, bound
    row["bound_gpus"] = claimed.numbers(row["num_gpu"]) or held_devices(
        pod, row["num_gpu"], notices, facts.boards_of.get(bound or "", ())
    )
    row["native_id"] = f"{pod.namespace}/{pod.name}"
    return row


class Template(NamedTuple):
    """Parts of a row that several pods share: columns, the request, and node expressions by what they follow from.

    ``own`` are the expressions of the pods' selectors, affinity and tolerations.
    ``by_node`` says that expressions depend on the node that a pod runs on.
    ``first`` is the first of the pods. Its parts stay with it, so that no other object gets their ids.
    """

    columns: dict[str, Any]
    request: RequestedParts
    own: list[Constraint]
    about_others: list[Constraint]
    spread: list[Constraint]
    by_node: bool
    first: PodManifest


class PeerRules(NamedTuple):
    """What follows for a pod from other pods: affinity, ports, and preferences of a pod that waits."""

    affinity: AffinityRules
    ports: PortRules
    preferences: tuple[Preference, ...]


class SpecParts(NamedTuple):
    """What follows from a pod's spec alone: request, node expressions, whether it takes ports; notices; the pod."""

    request: RequestedParts
    own: list[Constraint]
    takes_ports: bool
    notices: Counter[str]
    first: PodManifest


class Templates:
    """Templates of the pods of a cluster, with the notices of making them."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Template, Counter[str]]] = {}
        self._met: set[int] = set()
        self._parts: dict[tuple[int, ...], SpecParts] = {}

    def of(self, pod: PodManifest, facts: Facts, notices: Counter[str]) -> Template:
        """The template of a pod; it is kept when a second pod has the same."""
        parts = self._spec_parts(pod, facts)
        if parts.notices:
            notices.update(parts.notices)
        rules = _rules(pod, parts, facts)
        key = id(parts.request), id(parts.own), rules, *_template_key(pod, facts.places)
        known = self._known.get(key)
        if known is None:
            number = hash(key)
            if number not in self._met:
                self._met.add(number)
                return _template_of(pod, parts, rules, facts, notices)
            noticed: Counter[str] = Counter()
            known = self._known[key] = _template_of(pod, parts, rules, facts, noticed), noticed
        if known[1]:
            notices.update(known[1])
        return known[0]

    def _spec_parts(self, pod: PodManifest, facts: Facts) -> SpecParts:
        """The parts of a pod, those of an earlier one if it has the very same lists and mappings."""
        if states_shares(pod.labels, pod.annotations):
            return _spec_parts(pod, facts)
        get = pod.spec.get
        ids = tuple([id(get(name)) for name in SPEC_PARTS])
        parts = self._parts.get(ids)
        if parts is None:
            parts = _spec_parts(pod, facts)
            if len(self._parts) < MOST:
                self._parts[ids] = parts
        return parts


def _spec_parts(pod: PodManifest, facts: Facts) -> SpecParts:
    notices: Counter[str] = Counter()
    request = _kept_request(pod, facts, notices)
    return SpecParts(request, _own_expressions(pod, facts), bool(ports_of(pod)), notices, pod)


def _rules(pod: PodManifest, parts: SpecParts, facts: Facts) -> PeerRules:
    """What follows for a pod from others."""
    wanted = () if pod.node else facts.peers.preferences(pod)
    return PeerRules(facts.peers.rules(pod), facts.ports.rules(pod) if parts.takes_ports else NO_PORTS, wanted)


def _template_key(pod: PodManifest, places: Places) -> list[object]:
    """What a template depends on besides a pod's request, own expressions and rules.

    Lists and mappings count by their ids: equal parts of pods are one object.
    """
    spec, labels, annotations = pod.spec, pod.labels, pod.annotations
    key: list[object] = [
        pod.namespace, pod.together, None if pod.together is None else pod.owner,
        pod.node is None, bool(spec.get("nodeName")),
        () if annotations.keys().isdisjoint(TELLING) else tuple(repr(annotations.get(name)) for name in TELLING),
        id(labels) if SPREAD in spec else tuple([
            (name, repr(labels[name])) for name in labels if name in TELLING_LABELS or str(name).startswith(GPU_GROUP)
        ]),
    ]  # fmt: skip
    for name in spec:
        if name in SHARED:
            value = spec[name]
            kind = type(value)
            key += name, value if kind is str else (value,) if kind is int else id(value) if value else kind
        elif name not in _KNOWN:
            key.append(name)
    if places.images:
        key.append(tuple(image_labels(spec, pod.where)))
    return key


def _template_of(pod: PodManifest, parts: SpecParts, rules: PeerRules, facts: Facts, notices: Counter[str]) -> Template:
    for name in pod.spec:
        if name not in _KNOWN:
            notices[f"pods: spec.{name}"] += 1
    spread = spread_rules(pod, facts.places)
    about_others = [] if pod.node else _expressions_about_others(pod, facts, rules, notices)
    group = rules.affinity.group if rules.affinity.group is not None else rules.ports.group
    columns = {
        **parts.request.columns,
        "gang": gang_of(pod),
        "gang_size": None,
        "after_gang": None,
        "priority": facts.priorities.of(pod, notices),
        "preempts": None if facts.priorities.preempts(pod) else False,
        "tenant": _tenant(pod),
        "group": group,
        "max_per_node": None if group is None else 1,
        "spread": spread or None,
        **rules.affinity.columns(rules.ports),
        **preference_columns(pod, facts.places, rules.preferences, facts.kept),
        "gpu_groups": groups_of(pod.labels),
        "tolerations": sequence(pod.spec, "tolerations", pod.where),
    }
    by_node = bool(pod.node) and _has_devices(parts.request, facts)
    template = Template(columns, parts.request, parts.own, about_others, label_constraints(spread), by_node, pod)
    columns["constraints"] = None if by_node else _constraints(pod, template, (), (), facts)
    return template


def _has_devices(request: RequestedParts, facts: Facts) -> bool:
    """Whether the devices of a request, or those of the nodes, lead to node expressions."""
    return bool(request.columns["num_gpu"] or facts.surroundings.instance)


def _constraints(
    pod: PodManifest, template: Template, further: Sequence[Constraint], claimed: Sequence[Constraint], facts: Facts
) -> list[dict[str, Any]] | None:
    """Node expressions of a pod: those of its template, with ``further`` ones of its own and those of its claims."""
    # A pod that was given its node by its controller has no choice; a bound one has if it has to move.
    own = [] if pod.node and not pod.spec.get("nodeName") else template.own
    expressions = [*own, *template.about_others, *further, *template.spread, *claimed]
    if _has_devices(template.request, facts):
        expressions += device_constraints(template.request.devices, pod.node, facts.places)
    return facts.kept.same(tuple(expressions), partial(_items, expressions))


def _is_left_out(pod: PodManifest, times: PodTimes, phase: str, notices: Counter[str]) -> bool:
    """Whether a pod has no row; why is counted in `notices`, unless kube-scheduler passes over it as well."""
    if pod.terminating and not pod.node and phase not in OVER:
        return True
    if not pod.node and pod.is_held:
        notices["pods: left out, because scheduling gates hold them"] += 1
        return True
    if phase in OVER and (times.started is None or times.ended is None):
        notices["pods: left out, because they are over and their times are unknown"] += 1
        return True
    return False


class RequestedParts(NamedTuple):
    """The request of a pod as columns, the resources that its node must offer, and its amounts."""

    columns: dict[str, Any]
    devices: list[str]
    amounts: Amounts


def _kept_request(pod: PodManifest, facts: Facts, notices: Counter[str]) -> RequestedParts:
    parts = partial(requesting_parts, pod.spec, pod.labels, pod.annotations, pod.where)
    whole = () if states_shares(pod.labels, pod.annotations) else [pod.spec.get(name) for name in REQUESTING]
    return facts.kept.of("request", parts, partial(_request, pod, facts), notices, whole)


def _request(pod: PodManifest, facts: Facts, notices: Counter[str]) -> RequestedParts:
    amounts = pod_amounts(pod.spec, pod.where)
    plain = facts.claims.remaining(amounts)
    columns = request_columns(
        amounts=plain,
        labels=pod.labels,
        annotations=pod.annotations,
        where=pod.where,
        surroundings=facts.surroundings,
        notices=notices,
    )
    return RequestedParts(columns, requested_devices(amounts, pod.labels, pod.annotations), amounts)


def _items(expressions: Sequence[Constraint]) -> list[dict[str, Any]] | None:
    """Expressions as a pod table has them."""
    return [{"key": c.key, "op": c.op, "values": list(c.values)} for c in expressions] or None


def _own_expressions(pod: PodManifest, facts: Facts) -> list[Constraint]:
    """Node expressions of a pod's selector, affinity and tolerations."""

    def own(_: Counter[str]) -> list[Constraint]:
        return constraints(pod.spec, pod.where, facts.places)

    parts = partial(choosing_parts, pod.spec, pod.where)
    return facts.kept.of("nodes", parts, own, whole=[pod.spec.get(name) for name in CHOOSING])


def _expressions_about_others(
    pod: PodManifest, facts: Facts, rules: PeerRules, notices: Counter[str]
) -> list[Constraint]:  # fmt: skip
    """Node expressions of a waiting pod that follow from its boards and from rules about other pods."""
    notices.update([*rules.affinity.notices, *spread_notices(pod)])
    boards: list[Constraint] = []
    choice = allowed_nodes(pod.annotations, facts.boards_of)
    if choice is not None:
        boards.append(Constraint("name", "In", tuple(sorted(choice.nodes) or ("",))))
        notices.update(["pods: boards of chosen types or names, of which any on their nodes count"] * choice.partial)
    return [*boards, *rules.affinity.constraints, *rules.ports.constraints]


def _further_expressions(pod: PodManifest, facts: Facts, notices: Counter[str]) -> list[Constraint]:
    """Node expressions of a waiting pod that follow from its volumes."""
    return facts.volumes.constraints(pod, notices) if pod.spec.get("volumes") else []


def held_devices(pod: PodManifest, count: int, notices: Counter[str], boards: Sequence[Board] = ()) -> list[int] | None:
    """Numbers of a running pod's devices, from an annotation; None without one, and for waiting pods."""
    if not pod.annotations:
        return None
    numbers = next((str(pod.annotations[name]) for name in HELD if pod.annotations.get(name)), None)
    listed = allocated(pod.annotations, boards)
    if (numbers is None and listed is None) or not count:
        return None
    if not pod.spec.get("nodeName"):
        notices["pods: devices chosen beforehand (gpu-index)"] += 1
        return None
    parts = [str(number) for number in listed or ()] if numbers is None else numbers.replace(",", "-").split("-")
    gpus = sorted({int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 3})
    if not len(gpus) == len(parts) == count:
        notices["pods: numbers of devices that do not match their requests"] += 1
        return None
    return gpus


def as_trace(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a pod that arrives at its own time and may then use only the node it ran on."""
    if row["bound_node"] is None:
        return row
    free = {"bound_node": None, "bound_gpus": None, "constraints": None, "spread": None, "near": None}
    return row | free | {"pinned_node": row["bound_node"]}


def pod_times(pod: PodManifest) -> PodTimes:
    """Times of a pod's arrival, start and end from its annotations, its status and its containers."""
    created = unix_s(pod.annotations.get(CREATED) or pod.created, f"{pod.where}: creation time")
    ended = unix_s(pod.annotations.get(DELETED), f"{pod.where}: {DELETED}")
    started = unix_s(pod.status.get("startTime"), f"{pod.where}: status: startTime")
    if ended is None and pod.status.get("phase") in OVER:
        ends = list(_container_ends(pod))
        ended = max((end for end in ends if end is not None), default=None) if None not in ends else None
    if ended is not None and started is None and DELETED in pod.annotations:
        started = created
    if started is not None and ended is not None and ended < started:
        raise InputError(f"{pod.where}: end", f"{ended - started:g} s after the start", "0 s or more")
    return PodTimes(created if created is not None else started, started, ended)


def unix_s(value: object, where: str) -> float | None:
    """Seconds of a time in UTC: a date such as 2024-01-01T00:00:00Z, or seconds; None stays None."""
    if value is None:
        return None
    text = str(value)
    if not text[4:5] == text[7:8] == "-":  # a number has no such signs, and a date is not to be tried as one
        with suppress(ValueError):
            return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(where, repr(value), "a time such as 2024-01-01T00:00:00Z, or seconds") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _container_ends(pod: PodManifest) -> Iterable[float | None]:
    """End of each container, Unix seconds; None where it is unknown."""
    for status in sequence(pod.status, "containerStatuses", pod.where):
        state = mapping(mapping(status, "state", pod.where), "terminated", pod.where)
        yield unix_s(state.get("finishedAt"), f"{pod.where}: finishedAt")


def _tenant(pod: PodManifest) -> str:
    queues = [pod.labels.get(key) for key in QUEUE_LABELS] + [pod.annotations.get(QUEUE)]
    return next((str(queue) for queue in queues if queue), pod.namespace)


def _optional(parent: Mapping[str, Any], key: str) -> str | None:
    return None if parent.get(key) is None else str(parent[key])
