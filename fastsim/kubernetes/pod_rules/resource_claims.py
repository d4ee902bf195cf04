"""ResourceClaims of Kubernetes' pods, for Dynamic Resource Allocation: what pods take, hold and wait for.

A waiting pod takes amounts of the further resources that stand for devices, see ``devices.device_demands``. A pod on a
node holds the devices that its claims have there; devices of an allocated claim that no pod on a node uses are taken,
too. A pod with an allocated claim may use only the nodes of that allocation, and takes nothing for it. Of several
waiting pods that share a claim without devices the first in line takes them; the others fit nowhere, because they must
follow it to its node, which is not known beforehand. A pod whose claim is not among the objects, or cannot be honoured,
fits nowhere; the label of such an expression is on no node, and says why.

Of devices that share counters, or are asked for in bundles, a pod on a node holds what those before it left of what the
node offers; where it ends before them during a run, all of that is free again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import Any, NamedTuple

from fastsim.hardware.node_constraints import Constraint
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.devices.device_allocation import Devices, FreeDevices, Pick
from fastsim.kubernetes.devices.device_demands import Asked, DeviceResources, Supply
from fastsim.kubernetes.devices.device_requests import (
    CLASS,
    Alternative,
    ClaimSpec,
    Classes,
    UnknownRequest,
    claim_spec,
    of_resource,
)  # fmt: skip
from fastsim.kubernetes.devices.device_resources import allocatable, is_device
from fastsim.kubernetes.devices.exact_allocation import ExactAllocation
from fastsim.kubernetes.devices.published_gpus import gpu_columns, gpus_of
from fastsim.kubernetes.devices.resource_slices import SLICE, TAINT_RULE, Identity, published
from fastsim.kubernetes.nodes import label_key
from fastsim.kubernetes.objects import Manifest, counted_about, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import node_terms, under
from fastsim.kubernetes.pod_rules.pod_affinity import NOWHERE
from fastsim.kubernetes.quantity import quantity
from fastsim.kubernetes.requests import pod_amounts

CLAIM, TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
KINDS = (CLAIM, TEMPLATE, CLASS, SLICE, TAINT_RULE)
"""Kinds of Dynamic Resource Allocation."""
REFUSED = "resourceclaim:"
"""Beginning of labels that no node has, because a claim is not there, or cannot be honoured; the reason follows."""
AVAILABLE, ALLOCATABLE = "allocation: nodeSelector", "allocation: devices"
"""Keys of expressions about nodes where the devices of an allocated claim are available, or those asked for are."""
CANNOT = "cannot allocate all claims"
"""kube-scheduler's text for nodes whose devices do not suffice."""
MOST_USERS = 256
"""Most pods for which a claim can be reserved."""
UNKNOWN_DEVICES = "pods: on nodes with claims whose devices are not known, for which any devices count"
CHOICE = "pods: claims whose devices others can use, too, of which as many fit as the best choice of devices allows"
PARTLY = "pods: claims whose devices overlap in part with those of others, of which fewer may fit than in Kubernetes"
UNEQUAL = "pods: claims with alternatives, of which one counts on each node, with the largest number of devices of any"

Key = tuple[str, str]
"""Namespace and name."""
Amounts = Mapping[str, Fraction]


class Claimed(NamedTuple):
    """What a pod has by its claims: further resources, whole GPUs and the numbers of those it holds, expressions."""

    extra: tuple[tuple[str, int], ...] = ()
    gpus: int = 0
    bound_gpus: tuple[int, ...] | None = None
    constraints: tuple[Constraint, ...] = ()

    def beside(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of a request with what the pod has by its claims."""
        if not self.extra and not self.gpus:
            return dict(request)
        extra = Counter(dict(request["extra_resources"] or ())) + Counter(dict(self.extra))
        columns: dict[str, Any] = {"extra_resources": sorted(extra.items()) or None}
        if self.gpus:
            columns |= {"num_gpu": request["num_gpu"] + self.gpus, "gpu_milli": 1000, "gpu_memory_mib": None}
        return {**request, **columns}

    def numbers(self, count: int) -> list[int] | None:
        """Numbers of the GPUs that the pod holds, if they are all of its GPUs."""
        return list(self.bound_gpus) if self.bound_gpus is not None and len(self.bound_gpus) == count else None


class Needs(NamedTuple):
    """Claims of a waiting pod: what it takes, expressions about nodes, why it fits nowhere, claims without devices."""

    asked: tuple[Asked, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    refusals: tuple[str, ...] = ()
    specs: tuple[ClaimSpec, ...] = ()


class ClaimedDevices:
    """Devices, claims and templates among some objects, whatever pods use them."""

    def __init__(self, objects: Sequence[Manifest], notices: Counter[str]) -> None:
        of_kind: dict[str, list[Manifest]] = defaultdict(list)
        for item in objects:
            of_kind[item.kind].append(item)
        self.present, self.placed = any(of_kind[kind] for kind in KINDS), bool(of_kind["Node"])
        self.claims = {_key(item): item for item in of_kind[CLAIM]}
        self.templates = {_key(item): item for item in of_kind[TEMPLATE]}
        self._nodes = {item.name: item for item in of_kind["Node"]} if self.present else {}
        labels = [{**{label_key(str(key)): str(value) for key, value in item.part("metadata", "labels").items()},
                   "name": name} for name, item in self._nodes.items()]  # fmt: skip
        found = published(of_kind[SLICE], of_kind[TAINT_RULE], labels, notices)
        places = self._places(of_kind["Pod"])
        devices = [device._replace(node=places.get(device.identity, device.node)) for device in found.devices]
        self.supply = Supply(found._replace(devices=tuple(devices)), Classes(of_kind[CLASS]))
        self._specs: dict[tuple[str, Key], ClaimSpec | UnknownRequest] = {}
        self.plugins = {name: self._plugin_amounts(name) for name in self.supply.classes.resources}
        self.resources = dict(self._standing())

    def concerns(self, pod: Manifest) -> bool:
        """Whether a pod has claims, or asks for resources that stand for devices."""
        return has_claims(pod) or bool(self.resources.keys() & pod_amounts(pod.part("spec"), pod.where).keys())

    def held(self, key: Key) -> list[Identity]:
        """The devices that an allocated claim has, without those of administrative access."""
        item = self.claims[key]
        results = sequence(item.part("status", "allocation", "devices"), "results", item.where)
        return [
            (str(one.get("driver")), str(one.get("pool")), str(one.get("device")))
            for one in results if not one.get("adminAccess")
        ]  # fmt: skip

    def is_allocated(self, key: Key) -> bool:
        """Whether a claim has devices."""
        return key in self.claims and self.claims[key].part("status").get("allocation") is not None

    def names(self, node: str) -> frozenset[str]:
        """Resources of device plugins that a node's devices stand for."""
        own = {device.identity for device in self.supply.nodes.get(node, ())}
        return frozenset(
            name for name, devices in self.resources.items() if is_device(name) and not own.isdisjoint(devices)
        )

    def spec(self, item: Manifest) -> ClaimSpec:
        """The requests of a claim, or of a template's claim; UnknownRequest if it cannot be honoured."""
        place = (item.kind, _key(item))
        if place not in self._specs:
            try:
                path = ("spec", "spec") if item.kind == TEMPLATE else ("spec",)
                self._specs[place] = claim_spec(item.part(*path), item.where)
            except UnknownRequest as error:
                self._specs[place] = error
        found = self._specs[place]
        if isinstance(found, UnknownRequest):
            raise found
        return found

    def free(self) -> dict[str, FreeDevices]:
        """All devices by node."""
        return {node: self.supply.free(node) for node in self.supply.nodes}

    def take(self, free: Mapping[str, FreeDevices], devices: Iterable[Identity]) -> list[str]:
        """Take devices, and name their nodes."""
        nodes = []
        for identity in devices:
            device = self.supply.of.get(identity)
            if device is not None:
                free[device.node].take(device)
                nodes.append(device.node)
        return list(dict.fromkeys(nodes))

    def _plugin_amounts(self, resource: str) -> dict[str, int]:
        """Amounts of a resource by node, where device plugins offer it."""
        amounts = {name: allocatable(item).get(resource) for name, item in self._nodes.items()}
        counted = {name: ceil(quantity(value)) for name, value in amounts.items() if value is not None}
        return {name: amount for name, amount in counted.items() if amount}

    def _standing(self) -> Iterator[tuple[str, Devices]]:
        """Resources of pods that stand for devices of a class, and the devices on nodes without a plugin's."""
        for resource, device_class in self.supply.classes.resources.items():
            try:
                devices = self.supply.meant(Alternative(device_class))
            except UnknownRequest:
                continue
            own = frozenset(one for one in devices if self.supply.of[one].node not in self.plugins[resource])
            if own or not self.plugins[resource]:
                yield resource, own

    def _places(self, pods: Iterable[Manifest]) -> dict[Identity, str]:
        """The nodes where devices of claims are in use."""
        bound = {_key(item): str(item.part("spec").get("nodeName") or "") for item in pods} if self.claims else {}
        found = {}
        for key, item in self.claims.items():
            users = [bound.get((key[0], name)) for name in reserved_for(item)]
            node = next((name for name in users if name in self._nodes), None)
            found.update({identity: node for identity in self.held(key) if node})
        return found


class ResourceClaims:
    """Claims of the pods of a cluster; ``users`` are the pods, those on nodes first, the next in line before others.

    ``gpus`` are the numbers of GPUs of device plugins by node. ``momentary``: one pod waits, and it has devices now or
    never, so that the nodes that have them are looked up, and it takes no amounts but GPUs.
    """

    def __init__(
        self, devices: ClaimedDevices, users: Iterable[PodManifest] = (),
        gpus: Mapping[str, int] = MappingProxyType({}), momentary: bool = False,
    ) -> None:  # fmt: skip
        self.devices, self._gpus, self._momentary = devices, gpus, momentary
        self._users: dict[Key, list[Key]] = defaultdict(list)
        listed = list(users)
        for pod in listed:
            for key in self._claims_of(pod):
                self._users[key].append((pod.namespace, pod.name))
        needs = [self._needs(pod, pod_amounts(pod.spec, pod.where)) for pod in listed]
        self._further = DeviceResources(devices.supply, [one for need in needs for one in need.asked])
        self._held: dict[Key, Claimed] = {}
        self._offered: dict[str, dict[str, int]] = {}
        self._hold([pod for pod in listed if pod.spec.get("nodeName")])

    def on_nodes(self, rows: Sequence[dict[str, Any]], notices: Counter[str]) -> list[dict[str, Any]]:
        """Rows of nodes with their GPUs, the further resources that stand for devices, and labels about devices."""
        found = []
        for row in rows:
            counted_about(notices, row["name"])
            found.append(self._on_node(row, notices))
        counted_about(notices, "")
        return found

    def remaining(self, amounts: Amounts) -> dict[str, Fraction]:
        """Amounts of a pod without those that devices of classes stand for, but for GPUs."""
        return {name: n for name, n in amounts.items() if is_device(name) or name not in self.devices.resources}

    def claimed(self, pod: PodManifest, amounts: Amounts, notices: Counter[str]) -> Claimed:
        """What a pod has by its claims and by resources that stand for devices."""
        if not (pod.spec.get("resourceClaims") or self.devices.resources.keys() & amounts.keys()):
            return Claimed()
        if pod.spec.get("nodeName"):
            return self._running(pod, amounts, notices)
        needs = self._needs(pod, amounts)
        if self._momentary and needs.specs and not needs.refusals:
            try:
                return self._at_once(needs, amounts)
            except UnknownRequest as error:
                needs = Needs(refusals=(str(error),))
        if not all(map(self._further.knows, needs.asked)):
            needs = Needs(refusals=("claims of a pod that is not among the objects",))
        # Pods without nodes may meet their claims, classes and devices beside the nodes of other objects.
        for text in needs.refusals if self.devices.placed else ():
            notices[f"pods: fit nowhere because of their claims: {text}"] += 1
        found = self._taken(needs, amounts)
        refused = [Constraint(f"{REFUSED}{text}", "Exists") for text in needs.refusals[:1]]
        expressions = [*refused, *needs.constraints]
        for asked in needs.asked:
            expressions += self._further.constraints(asked)
            inside, partly = self._further.overlaps(asked)
            notices.update([CHOICE] * inside + [PARTLY] * partly + [UNEQUAL] * asked.unequal)
        return found._replace(constraints=tuple(dict.fromkeys(expressions)))

    def _at_once(self, needs: Needs, amounts: Amounts) -> Claimed:
        """What a pod has that takes its devices now."""
        names = tuple(self._exact.nodes(needs.specs))
        devices = under(ALLOCATABLE, [Constraint("name", "In", names) if names else NOWHERE])
        gpus = sum(one.gpus for one in needs.asked if not one.unequal) - self._counted_gpus(amounts)
        return Claimed((), max(gpus, 0), constraints=tuple(dict.fromkeys([*needs.constraints, *devices])))

    def _taken(self, needs: Needs, amounts: Amounts) -> Claimed:
        """Further resources and GPUs of claims without devices; GPUs among the pod's amounts are left out."""
        extra: Counter[str] = Counter()
        for asked in needs.asked:
            extra.update(self._further.taken(asked))
        return Claimed(tuple(extra.items()), sum(one.gpus for one in needs.asked) - self._counted_gpus(amounts))

    def _counted_gpus(self, amounts: Amounts) -> int:
        """Whole GPUs among a pod's amounts that stand for devices, which its row has already."""
        names = [name for name in self.devices.resources if is_device(name) and amounts.get(name)]
        return sum(self._of_resource(name, amounts[name]).gpus for name in names)

    def _on_node(self, row: dict[str, Any], notices: Counter[str]) -> dict[str, Any]:
        own = self.devices.supply.nodes.get(row["name"], [])
        offered = self._offered.get(row["name"], {})
        extra = {**dict(row["extra_resources"] or ()), **{name: amount for name, amount in offered.items() if amount}}
        labels = sorted([*row["labels"], *self._further.labels(row["name"])])
        columns = {"labels": labels, "extra_resources": sorted(extra.items()) or None}
        return {**row, **gpu_columns(row, own, notices), **columns}

    def _running(self, pod: PodManifest, amounts: Amounts, notices: Counter[str]) -> Claimed:
        """What a pod on a node holds; without known devices it is what it would take."""
        known = self._held.get((pod.namespace, pod.name))
        if known is not None:
            return known._replace(gpus=max(known.gpus - self._counted_gpus(amounts), 0))
        resources = [name for name in self.devices.resources if amounts.get(name)]
        if pod.spec.get("resourceClaims") or any(pod.node not in self.devices.plugins[name] for name in resources):
            notices[UNKNOWN_DEVICES] += 1
        return self._taken(self._needs(pod, amounts), amounts)

    def _needs(self, pod: PodManifest, amounts: Amounts) -> Needs:
        """The claims of a pod, and the resources that stand for devices."""
        asked: list[Asked] = []
        expressions: list[Constraint] = []
        refusals: list[str] = []
        specs: list[ClaimSpec] = []
        for entry in sequence(pod.spec, "resourceClaims", pod.where):
            try:
                spec, nodes = self._claim(pod, entry)
                asked.append(self._asked(spec))
            except UnknownRequest as error:
                refusals.append(str(error))
                continue
            specs.append(spec)
            expressions += nodes
        resources = [name for name in self.devices.resources if amounts.get(name)]
        for name in resources:
            asked.append(self._of_resource(name, amounts[name]))
            specs.append(of_resource(self.devices.supply.classes.resources[name], ceil(amounts[name])))
        offered = any(self.devices.plugins[name] for name in resources)
        own = () if offered else tuple(spec for spec in specs if spec.requests)
        return Needs(tuple(asked), tuple(expressions), tuple(refusals), own)

    def _asked(self, spec: ClaimSpec) -> Asked:
        """The demands of a claim; none that is counted where the devices themselves are looked up."""
        try:
            return self.devices.supply.asked(spec)
        except UnknownRequest:
            if not self._momentary:
                raise
            return Asked()

    def _of_resource(self, name: str, amount: Fraction) -> Asked:
        """The demands of a request for a resource on the devices that it stands for."""
        supply, count = self.devices.supply, ceil(amount)
        plain = supply.asked(of_resource(supply.classes.resources[name], count))
        if not self.devices.plugins[name]:
            return plain
        pick = Pick(self.devices.resources[name], name)
        supply.labels.setdefault(pick, name)
        return plain._replace(amounts=((pick, count),))

    def _claim(self, pod: PodManifest, entry: Mapping[str, Any]) -> tuple[ClaimSpec, list[Constraint]]:
        """What one claim asks for, or expressions about nodes if it has its devices; UnknownRequest without a way."""
        name, template = _names(pod, entry)
        if not name and not template:
            return ClaimSpec(), []
        key = (pod.namespace, name)
        item = self.devices.claims.get(key)
        if item is None:
            body = self.devices.templates.get((pod.namespace, template))
            if body is None:
                raise UnknownRequest(f'resourceclaim "{name or template}" not found')
            return self.devices.spec(body), []
        if item.part("metadata").get("deletionTimestamp"):
            raise UnknownRequest(f'resourceclaim "{name}" is being deleted')
        reserved = reserved_for(item)
        if len(reserved) >= MOST_USERS and pod.name not in reserved:
            raise UnknownRequest(f'resourceclaim "{name}" is reserved for {MOST_USERS} pods')
        if self.devices.is_allocated(key):
            return ClaimSpec(), _available(item)
        if self._users.get(key, [(pod.namespace, pod.name)])[0] != (pod.namespace, pod.name):
            raise UnknownRequest(f'resourceclaim "{name}" is shared, and its devices are not chosen yet')
        return self.devices.spec(item), []

    def _claims_of(self, pod: PodManifest) -> Iterator[Key]:
        """The claims of a pod that are among the objects, that for its resources among them."""
        names = [_names(pod, entry)[0] for entry in sequence(pod.spec, "resourceClaims", pod.where)]
        own = mapping(pod.status, "extendedResourceClaimStatus", pod.where).get("resourceClaimName")
        for name in (*names, str(own or "")):
            if (pod.namespace, name) in self.devices.claims:
                yield pod.namespace, name

    def _hold(self, running: Sequence[PodManifest]) -> None:
        """Give pods on nodes their devices, and count what is left and what each of them holds."""
        holders: dict[Key, list[Identity]] = {}
        seen: set[Key] = set()
        for pod in running:
            claims = [key for key in self._claims_of(pod) if self.devices.is_allocated(key)]
            if claims:
                own = [identity for key in claims if key not in seen for identity in self.devices.held(key)]
                holders[pod.namespace, pod.name] = own
                seen.update(claims)
        free = self.devices.free()
        self._exact = ExactAllocation(self.devices.supply, free)
        for key in self.devices.claims.keys() - seen:
            if self.devices.is_allocated(key):
                self.devices.take(free, self.devices.held(key))
        left = {node: self._further.offered(rest) for node, rest in free.items()}
        self._offered = {node: dict(amounts) for node, amounts in left.items()}
        for name, own in holders.items():
            self._held[name] = self._holding(free, left, own)
        for demanded, resource in self._further.names.items():
            plugins = self.devices.plugins.get(demanded.resource, {}) if isinstance(demanded, Pick) else {}
            for node, amount in plugins.items():
                self._offered.setdefault(node, {})[resource] = amount

    def _holding(
        self, free: Mapping[str, FreeDevices], left: Mapping[str, dict[str, int]], own: Sequence[Identity]
    ) -> Claimed:
        """What a pod holds: the amounts that nodes can offer no more once its devices are taken, and its GPUs."""
        extra: Counter[str] = Counter()
        for node in self.devices.take(free, own):
            now = self._further.offered(free[node])
            for resource, amount in left[node].items():
                extra[resource] += max(amount - now[resource], 0)
                left[node][resource] = min(amount, now[resource])
        devices = [self.devices.supply.of[identity] for identity in own if identity in self.devices.supply.of]
        gpus = [device for device in devices if device.is_gpu]
        numbers = []
        for device in gpus:
            row = {"num_gpu": self._gpus.get(device.node, 0)}
            listed = gpus_of(row, self.devices.supply.nodes[device.node])
            numbers += [number for number, one in enumerate(listed) if one.identity == device.identity]
        known = tuple(sorted(numbers)) if gpus and len(numbers) == len(gpus) else None
        return Claimed(tuple((+extra).items()), len(gpus), known)


NO_CLAIMS = ResourceClaims(ClaimedDevices((), Counter()))
"""Claims where there are no objects of Dynamic Resource Allocation; a pod with a claim fits nowhere."""


def has_claims(pod: Manifest) -> bool:
    """Whether a pod has claims for devices, its own or one for its resources."""
    return bool(pod.part("spec").get("resourceClaims") or pod.part("status", "extendedResourceClaimStatus"))


def refusal_text(key: str) -> str | None:
    """kube-scheduler's text for a label of ``REFUSED``, or why a claim cannot be honoured; None for another label."""
    if not key.startswith(REFUSED):
        return None
    text = key.removeprefix(REFUSED)
    return text if text.startswith("resourceclaim ") else f"resourceclaim cannot be honoured: {text}"


def _available(item: Manifest) -> list[Constraint]:
    """Expressions about nodes where the devices of an allocated claim are available; none if that is everywhere."""
    terms = sequence(item.part("status", "allocation", "nodeSelector"), "nodeSelectorTerms", item.where)
    return under(AVAILABLE, node_terms(terms, item.where))


def _names(pod: PodManifest, entry: Mapping[str, Any]) -> tuple[str, str]:
    """The names of a pod's claim and of its template; both are empty if no claim is needed."""
    if entry.get("resourceClaimName"):
        return str(entry["resourceClaimName"]), ""
    template = str(entry.get("resourceClaimTemplateName") or "")
    for status in sequence(pod.status, "resourceClaimStatuses", pod.where):
        if status.get("name") == entry.get("name"):
            name = str(status.get("resourceClaimName") or "")
            return name, template if name else ""
    return "", template or str(entry.get("name") or "?")


def reserved_for(item: Manifest) -> list[str]:
    """Names of the pods that a claim is reserved for."""
    listed = sequence(item.part("status"), "reservedFor", item.where)
    return [str(one.get("name")) for one in listed if one.get("resource") == "pods"]


def _key(item: Manifest) -> Key:
    return str(item.part("metadata").get("namespace") or "default"), item.name
