"""Volumes that nodes attach, as further resources: of each CSI driver at most as many as the node's CSINode says.

On a node count the distinct volumes of its pods, and those that are attached there (VolumeAttachment) without being
used by any of its pods or by a pod that waits. The volume of a claim is that of its PersistentVolume. A claim without
one counts as a volume of its own, which the provisioner of its StorageClass makes, and so does a volume of a template.
Nodes without a limit of a driver do not state its resource, ``volumes:DRIVER``, and have as many as pods ask for.

A pod on a node takes the volumes there that no pod before it takes. A pod that waits takes all of its volumes, also on
a node where another pod has them: of pods that share a volume fewer may fit than in Kubernetes, never more. That is
named. If a pod moves that shares a volume with another pod on its node, this volume takes no room on the next node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastsim.errors import InputError
from fastsim.hardware.node_constraints import VOLUMES
from fastsim.kubernetes.controllers import PodManifest
from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.pod_rules.volumes import STORED

LIMITS, ATTACHMENT = "CSINode", "VolumeAttachment"
"""Kinds of objects: volumes that a node may have, and one that it has."""
CLAIM, VOLUME, CLASS = STORED
SHARED = "pods: volumes that other pods use, too, which count once for each pod that waits, so that fewer may fit"
MOST = 2**31 - 1
"""Largest number that the field of a limit can have."""

Volume = tuple[str, str]
"""Driver and handle of a volume, or of a claim without one."""
Key = tuple[str, str]
"""Namespace and name of a pod or a claim."""


class AttachedVolumes:
    """Limits of volumes among some objects, and volumes of their pods; only drivers of such volumes count."""

    def __init__(self, kinds: Mapping[str, Sequence[Manifest]], pods: Iterable[PodManifest] = ()) -> None:
        self._limits = _limits(kinds.get(LIMITS, ()))
        self._limited = {driver for limits in self._limits.values() for driver in limits}
        items = [item for kind in STORED for item in kinds.get(kind, ())] if self._limited else []
        self._objects = {(item.kind, _namespace(item), item.name): item for item in items}
        self._users: dict[Volume, set[Key]] = defaultdict(set)
        self._holders: dict[str, dict[Volume, Key]] = defaultdict(dict)
        self._waiting: set[Volume] = set()
        for pod in sorted(pods if self._limited else (), key=_key):
            if pod.status.get("phase") in OVER or (not pod.node and (pod.terminating or pod.is_held)):
                continue
            for volume in self._of(pod):
                self._users[volume].add(_key(pod))
                if pod.node:
                    self._holders[pod.node].setdefault(volume, _key(pod))
                else:
                    self._waiting.add(volume)
        self.drivers = {driver for driver, _ in self._users}
        self._attached: dict[str, set[Volume]] = defaultdict(set)
        for node, volume in self._attachments(kinds.get(ATTACHMENT, ()) if self.drivers else ()):
            self._attached[node].add(volume)

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
        elif any(self._users[one] - {_key(pod)} for one in volumes if one in self._users):
            notices[SHARED] += 1
        return sorted(Counter(VOLUMES + driver for driver, _ in volumes if driver in self.drivers).items())

    def _on_node(self, row: dict[str, Any]) -> dict[str, Any]:
        here, name = self._holders.get(row["name"], {}), row["name"]
        held = Counter(driver for driver, _ in here)
        others = Counter(driver for driver, _ in self._attached.get(name, set()).difference(here))
        limits = {driver: limit for driver, limit in self._limits.get(name, {}).items() if driver in self.drivers}
        left = {VOLUMES + driver: max(limit - others[driver], held[driver]) for driver, limit in limits.items()}
        return {**row, "extra_resources": sorted([*(row["extra_resources"] or ()), *left.items()])} if left else row

    def _of(self, pod: PodManifest) -> set[Volume]:
        """The pod's volumes of drivers that some node limits."""
        found = {self._volume(pod, one) for one in sequence(pod.spec, "volumes", pod.where)}
        return {one for one in found if one is not None and one[0] in self._limited}

    def _volume(self, pod: PodManifest, stated: Mapping[str, Any]) -> Volume | None:
        """The volume of one claim, or of one template; None of anything else."""
        name = mapping(stated, "persistentVolumeClaim", pod.where).get("claimName")
        template = mapping(stated, "ephemeral", pod.where)
        if not name and not template:
            return None
        name = str(name or f"{pod.name}-{stated.get('name')}")
        claim = self._objects.get((CLAIM, pod.namespace, name))
        spec = mapping(mapping(template, "volumeClaimTemplate", pod.where), "spec", pod.where)
        return self._by_claim(f"{pod.namespace}/{name}", spec if claim is None else claim.part("spec"))

    def _by_claim(self, key: str, spec: Mapping[str, Any]) -> Volume | None:
        volume = self._objects.get((VOLUME, "default", str(spec.get("volumeName"))))
        if volume is not None:
            return _of_volume(volume)
        made_by = self._objects.get((CLASS, "default", str(spec.get("storageClassName"))))
        return None if made_by is None else (str(made_by.body.get("provisioner")), f"claim {key}")

    def _attachments(self, listed: Iterable[Manifest]) -> Iterator[tuple[str, Volume]]:
        """Nodes and the volumes attached there, without those that pods which wait take along."""
        for item in listed:
            name = item.part("spec", "source").get("persistentVolumeName")
            volume = self._objects.get((VOLUME, "default", str(name)))
            attached = None if volume is None else _of_volume(volume)
            if attached is not None and attached not in self._waiting:
                yield str(item.part("spec").get("nodeName")), attached


def _limits(listed: Iterable[Manifest]) -> dict[str, dict[str, int]]:
    """Most volumes by node and driver; a driver without a number has no limit."""
    limits: dict[str, dict[str, int]] = {}
    for item in listed:
        for driver in sequence(item.part("spec"), "drivers", item.where):
            count = mapping(driver, "allocatable", item.where).get("count")
            if count is None:
                continue
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST:
                place = f"{item.where}: spec: drivers: {driver.get('name')}: allocatable: count"
                raise InputError(place, repr(count), f"a whole number, 0 to {MOST:,}")
            limits.setdefault(item.name, {})[str(driver.get("name"))] = count
    return limits


def _of_volume(volume: Manifest) -> Volume | None:
    """Driver and handle of a PersistentVolume; None of one that no CSI driver has."""
    csi = volume.part("spec", "csi")
    return (str(csi["driver"]), str(csi.get("volumeHandle"))) if csi.get("driver") else None


def _key(pod: PodManifest) -> Key:
    return pod.namespace, pod.name


def _namespace(item: Manifest) -> str:
    return str(item.part("metadata").get("namespace") or "default")
