"""Documented rules of volumes and of claims that wait for their pod, each on a dump worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.documented.dumps import FORMS, Dump, unexpected
from tests.objects import node, pod

HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ZONES = [node(f"{zone}1", {HOST: f"{zone}1", ZONE: zone}) for zone in "abc"]
DELAYED, STATIC = {"volumeBindingMode": "WaitForFirstConsumer"}, {"provisioner": "kubernetes.io/no-provisioner"}
FREE = {"phase": "Available"}


def local(name: str, *zones: str, size: str = "10Gi", labels: dict[str, str] | None = None, **more: Any) -> Any:
    """A volume of the class "local" in some zones; anywhere without them."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local", **more}
    required = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zones else {}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels or {}},
            "spec": {**spec, **required}, "status": FREE}  # fmt: skip


def claim(name: str, size: str = "5Gi", **more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "local"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {**spec, **more}}  # fmt: skip


def local_class(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
            **DELAYED, **STATIC, **more}  # fmt: skip


def using(*claims: str) -> dict[str, Any]:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return pod("p", {"cpu": 1}, volumes=volumes)


def limit(name: str, **counts: int | None) -> dict[str, Any]:
    """A CSINode with numbers of volumes by the first part of the driver's name."""
    drivers: list[dict[str, Any]] = []
    for driver, count in counts.items():
        number = None if count is None else {"count": count}
        drivers.append({"name": f"{driver}.example.com", "nodeID": name, "topologyKeys": [], "allocatable": number})
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
            "spec": {"drivers": drivers}}  # fmt: skip


def disks(*names: str, driver: str = "csi") -> list[dict[str, Any]]:
    """Claims, each with its volume of a driver."""
    volumes = [
        local(f"v-{name}", csi={"driver": f"{driver}.example.com", "volumeHandle": name}) for name in names
    ]  # fmt: skip
    return [*volumes, *(claim(name, volumeName=f"v-{name}") for name in names)]


def with_disk(name: str, disk: str, where: str = "") -> dict[str, Any]:
    item = using(disk)
    placed = {"spec": {**item["spec"], "nodeName": where}, "status": {"phase": "Running"}} if where else {}
    return {**item, "metadata": {**item["metadata"], "name": name}, **placed}


TWO, DISK_CLASS = [node("n1"), node("n2")], local_class(provisioner="csi.example.com")


def kept_for(name: str) -> dict[str, Any]:
    return {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}}


IN_B = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]}
DUMPS = [
    Dump("a pod goes to the zone of its volume's label",
         [*ZONES, local("v", labels={ZONE: "b"}), claim("d", volumeName="v"), using("d")], {"p": "b1"}),
    Dump("a volume can be in several zones",
         [*ZONES, local("v", labels={ZONE: "b__c"}), claim("d", volumeName="v"), using("d")], {"p": {"b1", "c1"}}),
    Dump("a node without labels of zone and region is in every zone",
         [node("n1"), local("v", labels={ZONE: "b"}), claim("d", volumeName="v"), using("d")], {"p": "n1"}),
    Dump("a node with a zone and without the volume's region is elsewhere",
         [*ZONES, local("v", labels={REGION: "r"}), claim("d", volumeName="v"), using("d")], {"p": ""}),
    Dump("the older label of a volume's zone means the newer one of nodes",
         [*ZONES, local("v", labels={"failure-domain.beta.kubernetes.io/zone": "c"}), claim("d", volumeName="v"),
          using("d")], {"p": "c1"}),
    Dump("a claim with a selector takes a volume whose labels match",
         [*ZONES, local_class(), local("u", "a"), local("v", "b", labels={"disk": "fast"}),
          claim("d", selector={"matchLabels": {"disk": "fast"}}), using("d")], {"p": "b1"}),
    Dump("a claim takes a volume of its own mode",
         [*ZONES, local_class(), local("u", "a", volumeMode="Block"), local("v", "b"), claim("d"), using("d")],
         {"p": "b1"}),
    Dump("a volume kept for a claim is the one that it takes",
         [*ZONES, local_class(), local("u", "a"), local("v", "b", **kept_for("d")), claim("d"), using("d")],
         {"p": "b1"}),
    Dump("a volume kept for another claim is not free",
         [*ZONES, local_class(), local("v", "b", **kept_for("e")), claim("d"), using("d")], {"p": ""}),
    Dump("two claims of a pod need two volumes that one node reaches",
         [*ZONES, local_class(), local("u", "a"), local("v", "b"), local("w", "b"), claim("d"), claim("e"),
          using("d", "e")], {"p": "b1"}),
    Dump("the smaller of two claims takes the smaller volume",
         [*ZONES, local_class(), local("u", "a", size="10Gi"), local("v", "b", size="10Gi"),
          local("w", "b", size="30Gi"), claim("d", "20Gi"), claim("e"), using("d", "e")], {"p": "b1"}),
    Dump("a class that provisions has the nodes of its free volumes as well",
         [*ZONES[::2], local_class(provisioner="csi.example.com", **IN_B), local("v", "c"), claim("d"), using("d")],
         {"p": "c1"}),
    Dump("of two claims one is provisioned and the other takes a volume",
         [*ZONES, local_class(provisioner="csi.example.com", **IN_B), local("v", "a", "b"), claim("d"), claim("e"),
          using("d", "e")], {"p": "b1"}),
    Dump("a claim that is being provisioned for a node keeps its pod there",
         [*ZONES, local_class(provisioner="csi.example.com"), using("d"),
          {**claim("d"), "metadata": {"name": "d", "namespace": "default",
                                      "annotations": {"volume.kubernetes.io/selected-node": "c1"}}}], {"p": "c1"}),
    Dump("a node has at most as many volumes of a driver as its CSINode says, those of its pods among them",
         [*TWO, limit("n1", csi=1), limit("n2", csi=1), *disks("d", "e", "f"), with_disk("r", "d", "n1"),
          with_disk("p", "e"), with_disk("q", "f")], {"r": "n1", "p": "n2", "q": ""}),
    Dump("a volume that two pods on a node have is attached once",
         [node("n1"), limit("n1", csi=2), *disks("d", "e", "f"), with_disk("r", "d", "n1"), with_disk("s", "d", "n1"),
          with_disk("p", "e"), with_disk("q", "f")], {"r": "n1", "s": "n1", "p": "n1", "q": ""}),
    Dump("each driver of a node has a limit of its own, or none",
         [node("n1"), limit("n1", csi=0, file=1, web=None), *disks("d"), *disks("e", driver="file"),
          *disks("f", "g", driver="web"), *(with_disk(name, name) for name in "defg")],
         {"d": "", "e": "n1", "f": "n1", "g": "n1"}),
    Dump("a node without a CSINode has no limit",
         [*TWO, limit("n1", csi=0), *disks("d", "e"), with_disk("p", "d"), with_disk("q", "e")],
         {"p": "n2", "q": "n2"}),
    Dump("a volume that is made for a waiting pod counts for the driver of its class",
         [node("n1"), DISK_CLASS, limit("n1", csi=1), claim("d"), claim("e"), with_disk("p", "d"), with_disk("q", "e")],
         {"p": "n1", "q": ""}),
    Dump("a volume that is attached and that no pod uses counts, too",
         [*TWO, limit("n1", csi=1), *disks("d", "e"), {
             "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "a"},
             "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v-d"}}},
          with_disk("p", "e")], {"p": "n2"}),
    Dump("a claim of no class waits for a volume of no class",
         [*ZONES, local_class(), claim("d", storageClassName=""), using("d")], {"p": ""}),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dump", DUMPS, ids=str)
def test_pods_are_where_the_rule_says(dump: Dump, form: str, tmp_path: Path) -> None:
    assert unexpected(dump, form, tmp_path) == {}
