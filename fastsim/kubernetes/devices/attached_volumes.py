"""Volumes that nodes attach, as further resources: of each CSI driver at most as many as the node's CSINode says.

On a node count the distinct volumes of its pods, and those attached there (VolumeAttachment) that none of its pods and
no pod that waits has. A claim without a volume, or a template of one, counts as a volume that its StorageClass's
provisioner makes. Nodes without a limit do not state the driver's resource, ``volumes:DRIVER``.

Of several pods on a node the first has a volume that they share; if another of them moves, it takes no room for it. A
pod that waits takes all of its volumes, also where others have them: fewer may fit than in Kubernetes, which is named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import VOLUMES
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.pod_rules.volumes import STORED

LIMITS, ATTACHMENT = "CSINode", "VolumeAttachment"
CLAIM, VOLUME, CLASS = STORED
SHARED = "pods: volumes that other pods use, too, which count once for each pod that waits, so that fewer may fit"
MOST = 2**31 - 1
"""Largest limit."""

Volume = tuple[str, str]
"""Driver and handle."""
Key = tuple[str, str]
"""Namespace and name."""


class AttachedVolumes:
    """Limits among some objects, and volumes of their pods; ``drivers`` are those of such volumes that have limits."""

    def __init__(self, kinds: Mapping[str, Sequence[Manifest]], pods: Iterable[PodManifest] = ()) -> None:
        self._limits = _limits(kinds.get(LIMITS, ()))
        self._limited = {driver for limits in self._limits.values() for driver in limits}
        items = [item for kind in STORED for item in kinds.get(kind, ())] if self._limited else []
        self._objects = {(item.kind, _namespace(item), item.name): item for item in items}
        self._users: dict[Volume, set[Key]] = defaultdict(set)
        self._holders: dict[str, dict[Volume, Key]] = defaultdict(dict)
        waiting: set[Volume] = set()
        for pod in sorted(pods if self._limited else (), key=_key):
            if pod.status.get("phase") in OVER or (not pod.node and (pod.terminating or pod.is_held)):
                continue
            for volume in self._of(pod):
                self._users[volume].add(_key(pod))
                if pod.node:
                    self._holders[pod.node].setdefault(volume, _key(pod))
                else:
                    waiting.add(volume)
        self.drivers = {driver for driver, _ in self._users}
        self._attached: dict[str, set[Volume]] = defaultdict(set)
        for item in kinds.get(ATTACHMENT, ()) if self.drivers else ():
            attached = self._stored(item.part("spec", "source").get("persistentVolumeName"))
            if attached and attached not in waiting:
                self._attached[str(item.part("spec").get("nodeName"))].add(attached)

    def on_nodes(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of nodes with the numbers of volumes that their pods may have."""
        return [self._on_node(row) for row in rows] if self.drivers else rows

    def taken(self, pod: PodManifest, notices: Counter[str]) -> list[tuple[str, int]]:
        """What a pod takes of the further resources; one that waits and shares a volume is counted in `notices`."""
        if not (self.drivers and pod.spec.get("volumes")):
            return []
        volumes = self._of(pod)
        if pod.node:
            holders = self._holders.get(pod.node, {})
            volumes = {one for one in volumes if holders.get(one) == _key(pod)}
        elif any(self._users.get(one, set()) - {_key(pod)} for one in volumes):
            notices[SHARED] += 1
        return sorted(Counter(VOLUMES + driver for driver, _ in volumes if driver in self.drivers).items())

    def _on_node(self, row: dict[str, Any]) -> dict[str, Any]:
        here = self._holders.get(row["name"], {})
        held = Counter(driver for driver, _ in here)
        others = Counter(driver for driver, _ in self._attached.get(row["name"], set()).difference(here))
        limits = self._limits.get(row["name"], {})
        # Pods that run beyond a limit stay.
        left = [(VOLUMES + driver, max(limit - others[driver], held[driver]))
                for driver, limit in limits.items() if driver in self.drivers]  # fmt: skip
        return {**row, "extra_resources": sorted([*(row["extra_resources"] or ()), *left]) or None}

    def _of(self, pod: PodManifest) -> set[Volume]:
        """The pod's volumes of drivers that some node limits."""
        found = set()
        for stated in sequence(pod.spec, "volumes", pod.where):
            name = mapping(stated, "persistentVolumeClaim", pod.where).get("claimName")
            template = mapping(stated, "ephemeral", pod.where)
            if name or template:
                name = str(name or f"{pod.name}-{stated.get('name')}")
                claim = self._objects.get((CLAIM, pod.namespace, name))
                made = mapping(mapping(template, "volumeClaimTemplate", pod.where), "spec", pod.where)
                found.add(self._claimed(f"claim {pod.namespace}/{name}", claim.part("spec") if claim else made))
        return {one for one in found if one and one[0] in self._limited}

    def _claimed(self, handle: str, spec: Mapping[str, Any]) -> Volume | None:
        """The volume of a claim; ``handle`` stands for one that is still to be made."""
        if (VOLUME, "default", str(spec.get("volumeName"))) in self._objects:
            return self._stored(spec["volumeName"])
        made_by = self._objects.get((CLASS, "default", str(spec.get("storageClassName"))))
        return (str(made_by.body.get("provisioner")), handle) if made_by else None

    def _stored(self, name: object) -> Volume | None:
        """Driver and handle of a PersistentVolume; None of one that is not there, or that no CSI driver has."""
        volume = self._objects.get((VOLUME, "default", str(name)))
        csi = volume.part("spec", "csi") if volume else {}
        return (str(csi["driver"]), str(csi.get("volumeHandle"))) if csi.get("driver") else None


def _limits(listed: Iterable[Manifest]) -> dict[str, dict[str, int]]:
    """Most volumes by node and driver; a driver without a number has no limit."""
    limits: dict[str, dict[str, int]] = defaultdict(dict)
    for item in listed:
        for driver in sequence(item.part("spec"), "drivers", item.where):
            count, name = mapping(driver, "allocatable", item.where).get("count"), str(driver.get("name"))
            if count is None:
                continue
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST:
                place = f"{item.where}: spec: drivers: {name}: allocatable: count"
                raise InputError(place, repr(count), f"a whole number, 0 to {MOST:,}")
            limits[item.name][name] = count
    return limits


def _key(pod: PodManifest) -> Key:
    return pod.namespace, pod.name


def _namespace(item: Manifest) -> str:
    return str(item.part("metadata").get("namespace") or "default")
