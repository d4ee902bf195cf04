"""The objects of a Kubernetes cluster: output of ``kubectl get nodes,pods -o json``, YAML, KAI snapshots.

>>> from fastsim.kubernetes.snapshot import Snapshot
>>> Snapshot.read("no-such-folder")
Traceback (most recent call last):
...
fastsim.errors.InputError: no-such-folder: found no such file or folder, expected Kubernetes objects (YAML or JSON)
"""

from __future__ import annotations

import copy
import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.limits.garbage import uncollected
from fastsim.foundation.object_cache import OBJECTS
from fastsim.hardware.node_constraints import IMAGE
from fastsim.kubernetes.devices.device_resources import GPU, SHARED, labelled
from fastsim.kubernetes.devices.gpu_slots import WHOLE, Slots, common_division, gives_one_slot
from fastsim.kubernetes.devices.hami import boards
from fastsim.kubernetes.devices.node_devices import MEMORY_UNITS, offered
from fastsim.kubernetes.memory_step import MemoryStep, memory_step
from fastsim.kubernetes.nodes import IN_BYTES, MEMORY, NodeFacts, node_row, offer_parts, taints
from fastsim.kubernetes.objects import Manifest, Notices, manifests
from fastsim.kubernetes.pod_rules.gangs import states_gangs
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts, content_of
from fastsim.kubernetes.workloads.gang_workloads import is_gang_kind
from fastsim.kubernetes.workloads.owners import is_workload

if TYPE_CHECKING:
    from fastsim.kubernetes.controllers import PodManifest, WrittenPods

Known = TypeVar("Known")

READ = ("Node", "Pod", "PriorityClass", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet",
        "Job", "CronJob", "PodGroup", "Namespace", "LimitRange", "ResourceQuota", "PersistentVolume", "CSINode",
        "PersistentVolumeClaim", "RuntimeClass", "ResourceSlice", "DeviceClass", "ResourceClaim", "VolumeAttachment",
        "ResourceClaimTemplate", "DeviceTaintRule", "PodDisruptionBudget", "StorageClass", "ClusterQueue",
        "LocalQueue")  # fmt: skip
"""Kinds that are read; others are counted in the notices."""

WITHOUT_PART = (
    "APIService", "CSIDriver", "ClusterRole", "ClusterRoleBinding", "ComponentStatus", "ConfigMap",
    "ControllerRevision", "CustomResourceDefinition", "EndpointSlice", "Endpoints", "Event",
    "HorizontalPodAutoscaler", "IPAddress", "Ingress", "IngressClass", "Lease", "MutatingWebhookConfiguration",
    "NetworkPolicy", "NodeMetrics", "PodMetrics", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount",
    "ServiceCIDR", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
)  # fmt: skip
"""Kinds of Kubernetes' own that have no part in where a pod may go."""
READINGS = ("now", "trace")
"""Two readings of a snapshot's pods: a cluster as it is now, or a trace of pods with their own times."""


class NotHonoured(UserWarning):
    """Warning: something in the objects has no counterpart in fastsim; the text has its number."""


class _Shared(cached_property[Known]):
    """A property that is worked out once for all readings of the same objects."""

    if not TYPE_CHECKING:

        def __get__(self, instance: Snapshot, owner: type[Snapshot] | None = None) -> Known:
            return super().__get__(instance if instance is None or instance.first is None else instance.first, owner)


class Snapshot:
    """The objects of a cluster, sorted by kind and name; `notices` counts what is in them and not honoured.

    Objects of `one_source` have their nodes and pods read together; those of several may be read apart.
    ``memory_unit`` is the unit of ``aliyun.com/gpu-mem``, GiB or MiB: a flag of the plugin, which no object shows.
    ``unpin`` names pods that run and are read as if they waited, see `pod_rules.unpinned_pods`.
    """

    momentary = False
    """Whether one pod waits, which has the devices of its claims at this moment or never."""

    def __init__(
        self, objects: Sequence[Manifest], name: str = "kubernetes", memory_unit: str = "GiB", one_source: bool = True,
        unpin: str = "",
    ) -> None:  # fmt: skip
        if memory_unit not in MEMORY_UNITS:
            raise ScenarioError("kubernetes: memory_unit", repr(memory_unit), f"one of {', '.join(MEMORY_UNITS)}")
        self.objects, self.name, self.memory_unit = _newest(objects), name, memory_unit
        repeated, self.unpin = len(objects) - len(self.objects), unpin
        if unpin:
            from fastsim.kubernetes.pod_rules.unpinned_pods import unpinned

            self.objects = unpinned(self.objects, unpin)
        self.one_source = one_source
        self.first: Snapshot | None = None  # the first reading of the same objects, if this is a further one
        self.sources: tuple[str, ...] = ()  # SHA-256 of the texts that hold these objects and no others
        self.nodes_of: Snapshot | None = None  # the snapshot that the nodes were read with, if it is another one
        self.notices = Notices()
        if repeated:
            self.notices["objects: earlier copies of others, which are ignored"] = repeated
        for kind, items in self._by_kind.items():
            for item in () if kind in READ else items:
                if not (is_gang_kind(item) or states_gangs(item) or has_no_part(item)):
                    self.notices.about = item.name
                    self.notices[f"objects of kind {kind}"] += 1
        self.notices.about = ""
        self._kept = KeptParts()
        self._written: WrittenPods | None = None
        self._node_notices = Notices()

    @classmethod
    def read(cls, *paths: str | os.PathLike[str], memory_unit: str = "GiB", unpin: str = "") -> Snapshot:
        """The objects of files and folders: YAML, JSON or a KAI snapshot (ZIP).

        Within a run, cluster and workload of the same files are read once: the second has the objects of the first.
        """
        read = partial(cls._read, paths, memory_unit, unpin)
        key = "snapshot", cls, tuple(map(str, paths)), memory_unit, unpin
        return OBJECTS.cached(key, read).reread()

    @classmethod
    @uncollected()
    def _read(cls, paths: Sequence[str | os.PathLike[str]], memory_unit: str, unpin: str) -> Snapshot:
        digests: list[str] = []
        objects = [item for path in paths for item in manifests(path, digests)]
        read = cls(objects, ", ".join(map(str, paths)), memory_unit, len(paths) == 1, unpin)
        read.sources = () if unpin else tuple(sorted(digests))
        return read

    def reread(self) -> Snapshot:
        """The same objects, and what is known of them already, with notices of their own."""
        again = copy.copy(self)
        again.first, again.notices = self, Notices(self.notices)
        return again

    def has_objects_of(self, other: Snapshot) -> bool:
        """Whether both have the same objects, read in the same way."""
        if self.first is other.first is not None:
            return True
        read, other_read = ((one.memory_unit, one.one_source, one.nodes_of is None) for one in (self, other))
        return read == other_read and self.checksum == other.checksum

    def pod_rows(self, read_as: str = "now") -> list[dict[str, Any]]:
        """Rows of the pods as they are now: running pods on their nodes, then waiting ones, all at second 0.

        ``read_as="trace"``: pods arrive and end at their own times; seconds count from the first, and pods of unknown
        times arrive then.
        """
        from fastsim.kubernetes.arrival_order import current_rows, queue_key
        from fastsim.kubernetes.pod_rules.gangs import least_members, with_gangs
        from fastsim.kubernetes.pod_rules.namespace_limits import quota_notices
        from fastsim.kubernetes.pods import as_trace

        if read_as not in READINGS:
            raise ScenarioError("kubernetes: as", repr(read_as), f"one of {', '.join(READINGS)}")
        for text, number in quota_notices(self.of_kind).items():
            self.notices[text] = number
        now = read_as == "now"
        with uncollected():
            rows = self.rows_of(self.objects, present=now)
            rows = with_gangs(rows, least_members(self._others), self.notices, queue_key if now else None)
            rows = current_rows(rows, self.node_rows, self.notices) if now else [as_trace(row) for row in rows]
        if not rows:
            from fastsim.kubernetes.controllers import without_pods

            found = without_pods(self.objects, self.notices)
            raise InputError(self.name, found, "objects of kind Pod, or workloads that have pods")
        return rows

    def beside(self, other: Snapshot) -> Snapshot:
        """The pods of this snapshot on the nodes of another one, together with its running pods."""
        freed = [item for kind in ("Pod", "ResourceClaim") for item in self.of_kind(kind)] if self.unpin else []
        own = set(map(_identity, freed))
        remaining = [
            item for item in other.objects
            if _identity(item) not in own and (is_running(item) or not _has_pods(item))
        ]  # fmt: skip
        known = {_identity(item) for item in remaining}
        added = [item for item in self.objects if item.kind != "Node" and _identity(item) not in known]
        joint = Snapshot([*remaining, *added], self.name, self.memory_unit)
        joint.notices, joint.nodes_of = Notices(), other
        return joint

    def without_pods(self) -> Snapshot:
        """The same objects without pods, claims that have devices, and volumes that are attached."""
        kept = [item for item in self.objects if item.kind != "Pod" and not _has_devices(item)]
        bare = Snapshot(kept, self.name, self.memory_unit)
        bare.nodes_of = self
        return bare

    def running(self) -> list[dict[str, Any]]:
        """Rows of the running pods, for ``pods_of_rows``."""
        from fastsim.kubernetes.arrival_order import current_rows

        return current_rows(self.rows_of([i for i in self.objects if is_running(i)]), self.node_rows, self.notices)

    def rows_of(self, objects: Sequence[Manifest], present: bool = False) -> list[dict[str, Any]]:
        """Rows of the pods among these objects, on this snapshot's nodes, for ``pods_of_rows``.

        ``present``: pods that have ended add no notices.
        """
        from fastsim.kubernetes.arrival_order import is_over
        from fastsim.kubernetes.controllers import pods
        from fastsim.kubernetes.devices.gpu_groups import on_shared_devices
        from fastsim.kubernetes.pods import pod_row

        rows, facts = [], self._facts
        if objects is self.objects:
            self.notices.update(self._pods[1])
            listed: Iterable[PodManifest] = self._pods[0]
        else:
            listed = pods(objects, self._places, self.notices, self._written)
        for pod in listed:
            gone = present and is_over(pod)
            self.notices.about = f"{pod.namespace}/{pod.name}"
            rows.append(pod_row(pod, facts, Counter() if gone else self.notices))
        self.notices.about = ""
        devices = {row["name"]: row["num_gpu"] for row in self.node_rows}
        return on_shared_devices((row for row in rows if row is not None), devices)

    def in_sets(self, rows: Sequence[dict[str, Any]], names: Iterable[str]) -> list[dict[str, Any]]:
        """The rows with those of some sets that they are in, which rules about pods near of others count."""
        from fastsim.kubernetes.pod_rules.host_ports import PortSets, is_port_set, ports_of
        from fastsim.kubernetes.pod_rules.pod_affinity import kind_of

        named = list(names)
        sets, ports = self._facts.peers.sets_named(n for n in named if not is_port_set(n)), PortSets(named)
        return [
            row | {"near_sets": (*row["near_sets"], *sets.of(kind_of(row["peer"])), *ports.of(ports_of(row["peer"])))}
            for row in rows
        ]

    def in_preference_sets(self, rows: Sequence[dict[str, Any]], names: Iterable[str]) -> list[dict[str, Any]]:
        """The rows with the sets that each is in, of those that any row's preferences, or these others, count."""
        from fastsim.kubernetes.pod_rules.pod_affinity import is_near_set, kind_of
        from fastsim.kubernetes.pod_rules.topology_spread import SpreadSets

        rules = [one for row in rows for one in row["preferences"] or () if one["pods"]]
        counted = dict.fromkeys([*names, *(one["pods"] for one in rules)])
        near = self._facts.peers.sets_named(filter(is_near_set, counted))
        spread = SpreadSets(name for name in counted if not is_near_set(name))
        if not near and not spread:
            return list(rows)
        return [
            row | {"preference_sets": [*near.of(kind_of(row["peer"])), *spread.of(row["peer"])] or None} for row in rows
        ]

    def warn(self, depth: int = 1, nodes: bool = True) -> None:
        """Issue one warning for each notice, `depth` functions up; ``nodes`` includes those about nodes."""
        for line in self.notices.lines:
            if nodes or not line.startswith("nodes: "):
                warnings.warn(f"{self.name}: {line}", NotHonoured, stacklevel=depth + 1)

    @cached_property
    def node_rows(self) -> list[dict[str, Any]]:
        """Rows of the nodes, by name."""
        rows = self._node_rows
        self.notices.update(self._node_notices)
        return rows

    @_Shared
    def _node_rows(self) -> list[dict[str, Any]]:
        claimed = self._claims.on_nodes(self._plain_rows, self._node_notices)
        rows: list[dict[str, Any]] = self._attached.on_nodes(claimed)
        return rows

    @_Shared
    def _attached(self) -> Any:
        """Volumes that nodes attach for the pods, if any node limits them."""
        from fastsim.kubernetes.devices.attached_volumes import LIMITS, AttachedVolumes

        return AttachedVolumes(self._by_kind, self._pods[0] if self.of_kind(LIMITS) else ())

    @_Shared
    def _plain_rows(self) -> list[dict[str, Any]]:
        """Rows of the nodes without what their devices are to claims."""
        notices, rows = self._node_notices, []
        facts = NodeFacts(self.memory_unit, self._divided, self._steps, self._wanted_images)
        for node in self.of_kind("Node"):
            notices.about = node.name
            rows.append(node_row(node, facts, notices, self._kept))
        notices.about = ""
        for row, more in zip(rows, labelled(self._offered), strict=True):
            row["labels"] = sorted([*row["labels"], *((label, "") for label in more)])
        return rows

    @cached_property
    def _by_kind(self) -> dict[str, list[Manifest]]:
        kinds: dict[str, list[Manifest]] = {}
        for item in self.objects:
            kinds.setdefault(item.kind, []).append(item)
        return kinds

    @cached_property
    def _others(self) -> list[Manifest]:
        """The objects that are no pods."""
        return [item for kind, items in self._by_kind.items() if kind != "Pod" for item in items]

    @_Shared
    def _pods(self) -> tuple[list[PodManifest], Counter[str]]:
        """Every pod of the objects, and the notices of listing them."""
        from fastsim.kubernetes.controllers import pods

        notices = Notices()
        return list(pods(self.objects, self._places, notices, self._written)), notices

    @_Shared
    def _divided(self) -> Mapping[str, Slots]:
        return common_division(self.of_kind("Node"))

    @_Shared
    def _offered(self) -> list[frozenset[str]]:
        return [
            self._kept.of("devices", partial(offer_parts, node), partial(_offered_by, node))
            | self._claimed_devices.names(node.name)
            for node in self.of_kind("Node")
        ]

    @property
    def has_claims(self) -> bool:
        """Whether pods take devices by Dynamic Resource Allocation, or volumes that nodes limit."""
        return bool(self._claimed_devices.present or self._attached.drivers)

    def asks_for_devices(self, pod: Manifest) -> bool:
        """Whether a pod has claims for devices that are there, or asks for resources that stand for them."""
        return bool(self._claimed_devices.present and self._claimed_devices.concerns(pod))

    @_Shared
    def _claimed_devices(self) -> Any:
        from fastsim.kubernetes.pod_rules.resource_claims import KINDS, ClaimedDevices

        items = self.objects if any(self.of_kind(kind) for kind in KINDS) else self._others
        return ClaimedDevices(items, self._node_notices)

    @_Shared
    def _claims(self) -> Any:
        """Claims of the pods, of which only those that ask for devices are looked at."""
        from fastsim.kubernetes.arrival_order import in_line
        from fastsim.kubernetes.pod_rules.priorities import priorities_of
        from fastsim.kubernetes.pod_rules.resource_claims import ResourceClaims

        if not self._claimed_devices.present:
            return ResourceClaims(self._claimed_devices)
        users = in_line(self._pods[0], priorities_of(self.of_kind("PriorityClass")))
        gpus = {row["name"]: row["num_gpu"] for row in self._plain_rows}
        return ResourceClaims(self._claimed_devices, users, gpus, self.momentary)

    @_Shared
    def _places(self) -> Any:
        from fastsim.kubernetes.pod_rules.node_affinity import Places

        labels = [{**dict(row["labels"]), "name": row["name"]} for row in self._plain_rows]
        every = dict.fromkeys(taint for node in self.of_kind("Node") for taint in taints(node))
        closing, avoided = [one for one in every if one.keeps_away], [one for one in every if not one.keeps_away]
        known = frozenset(key for own in labels for key in own if key.startswith(IMAGE))
        return Places(labels, closing, list(dict.fromkeys(self._offered)), avoided, known)

    @_Shared
    def _wanted_images(self) -> frozenset[str]:
        """Labels that stand for the images of pods without nodes, if any node says which it has."""
        from fastsim.kubernetes.pod_rules.preferences import wanted_images

        known = any(node.part("status").get("images") for node in self.of_kind("Node"))
        return wanted_images(self.objects) if known else frozenset()

    @_Shared
    def _surroundings(self) -> Any:
        from fastsim.kubernetes.requests import Surroundings

        gpus = [row["gpu_memory_mib"] for row in self.node_rows if row["num_gpu"]]
        largest = max(gpus) if gpus and None not in gpus else None
        turns, instance = self._divided.get(GPU, WHOLE)
        models = dict.fromkeys(row["gpu_model"] for row in self.node_rows if row["gpu_model"])
        shared = self._divided.get(SHARED, WHOLE).replicas
        one_slot = any(map(gives_one_slot, self.of_kind("Node")))
        return Surroundings(largest, turns, self.memory_unit, shared, instance, tuple(models),
                            len(set(gpus)) > 1, self._steps, one_slot)  # fmt: skip

    @_Shared
    def _steps(self) -> dict[str, MemoryStep]:
        """Memory steps by resource; less than a MiB only with one source, whose nodes and pods are read together."""
        from fastsim.kubernetes.controllers import distinct_amounts

        if self.nodes_of is not None:
            return self.nodes_of._steps
        requests = distinct_amounts(self.objects, self._kept) if self.one_source and self.of_kind("Node") else ()
        amounts_of: dict[str, set[Fraction]] = {}
        for name, amount in (entry for request in requests for entry in request.items()):
            if name == MEMORY or name.startswith(IN_BYTES):
                amounts_of.setdefault(name, set()).add(amount)
        steps = {name: memory_step(amounts) for name, amounts in amounts_of.items()}
        self._node_notices.update({f"nodes: {name}: {step.notice}": 1 for name, step in steps.items() if step.notice})
        return steps

    @_Shared
    def _facts(self) -> Any:
        """Facts about the cluster that rows of pods depend on."""
        from fastsim.kubernetes.arrival_order import in_line
        from fastsim.kubernetes.pod_rules.disruption_budgets import PreemptionBudgets
        from fastsim.kubernetes.pod_rules.host_ports import HostPorts
        from fastsim.kubernetes.pod_rules.pod_affinity import Peers
        from fastsim.kubernetes.pod_rules.priorities import priorities_of
        from fastsim.kubernetes.pod_rules.volumes import STORED, Volumes
        from fastsim.kubernetes.pods import Facts, Templates

        namespaces = {item.name: item.part("metadata", "labels") for item in self.of_kind("Namespace")}
        listed, _ = self._pods
        peers = Peers(listed, self._places.nodes, namespaces)
        priorities = priorities_of(self.of_kind("PriorityClass"))
        users = in_line(listed, priorities)
        claims, stored, classes = map(self.of_kind, STORED)
        volumes = Volumes(claims, stored, classes, users, self._places.nodes)
        ports = HostPorts(listed, lambda pod: peers.rules(pod).group)
        boards_of = {item.name: boards(item) for item in self.of_kind("Node")}
        budgets = PreemptionBudgets(self._others, listed)
        return Facts(
            places=self._places, surroundings=self._surroundings, priorities=priorities, peers=peers, volumes=volumes,
            ports=ports, kept=self._kept, templates=Templates(), boards_of=boards_of, budgets=budgets,
            claims=self._claims, attached=self._attached,
        )  # fmt: skip

    @_Shared
    def checksum(self) -> str:
        """SHA-256 of the texts that the objects were read from, in whatever order, or of the objects themselves."""
        digest = hashlib.sha256(" ".join(self.sources).encode())
        for item in () if self.sources else self.objects:
            digest.update(content_of(item.body))
        return digest.hexdigest()

    def of_kind(self, kind: str) -> list[Manifest]:
        """The objects of one kind."""
        return self._by_kind.get(kind, [])


def has_no_part(item: Manifest) -> bool:
    """Whether an object has no part in where a pod may go; objects of others may have the names of such kinds."""
    group = _group(item)
    return item.kind in WITHOUT_PART and ("." not in group or group.endswith(".k8s.io"))


def _offered_by(node: Manifest, _: Counter[str]) -> frozenset[str]:
    return offered(node)


def is_running(item: Manifest) -> bool:
    """Whether an object is a pod that has a node and has not ended."""
    from fastsim.kubernetes.pod_rules.node_affinity import OVER

    bound = item.kind == "Pod" and item.part("spec").get("nodeName")
    return bool(bound) and item.part("status").get("phase") not in OVER


def _newest(objects: Sequence[Manifest]) -> list[Manifest]:
    """The objects without copies: of several with one name the highest ``resourceVersion`` counts, or the last read.

    Without versions, only pods and workloads are taken for copies.
    """
    newest: dict[object, tuple[tuple[str, str, str], int, Manifest]] = {}
    for number, item in enumerate(objects):
        metadata = item.part("metadata")
        identity, version = _identity_in(item.kind, metadata), _version(metadata)
        copied = identity[2] and (version >= 0 or _has_pods(item))
        key = (_group(item), *identity) if copied else number
        other = newest.get(key)
        if other is None or version >= other[1]:
            newest[key] = identity, version, item
    return [item for *_, item in sorted(newest.values(), key=itemgetter(0))]


def _version(metadata: Mapping[str, Any]) -> int:
    text = str(metadata.get("resourceVersion") or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 40 else -1


def _group(item: Manifest) -> str:
    """The group of an object's API, "" for that of Kubernetes itself."""
    return str(item.body.get("apiVersion") or "").rpartition("/")[0]


def _has_devices(item: Manifest) -> bool:
    claimed = item.kind == "ResourceClaim" and item.part("status").get("allocation") is not None
    return claimed or item.kind == "VolumeAttachment"


def _has_pods(item: Manifest) -> bool:
    return item.kind == "Pod" or is_workload(item)


def _identity(item: Manifest) -> tuple[str, str, str]:
    return _identity_in(item.kind, item.part("metadata"))


def _identity_in(kind: str, metadata: Mapping[str, Any]) -> tuple[str, str, str]:
    return kind, str(metadata.get("namespace") or "default"), str(metadata.get("name") or "")
