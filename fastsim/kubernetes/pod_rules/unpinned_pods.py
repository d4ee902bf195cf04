"""Pods that run and are read as if they waited, so that policies can be compared on what a cluster has.

Every pod is chosen, or those whose owner is of a kind (``ReplicaSet``), or those with a label (``team=a``). A pod that
its node created itself stays there, and so does a pod of a DaemonSet, which is made for its node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fastsim.errors import ScenarioError
from fastsim.kubernetes.devices.hami import ALLOCATED
from fastsim.kubernetes.objects import Manifest, mapping
from fastsim.kubernetes.pod_rules.resource_claims import CLAIM, reserved_for
from fastsim.kubernetes.pods import HELD, NOMINATED
from fastsim.kubernetes.workloads.owners import owners

EVERY = ("True", "true", "all")
"""Texts that choose every pod."""
OF_NODES = frozenset(("Node", "DaemonSet"))
"""Kinds of owners whose pods belong to their nodes."""


def unpinned(objects: Sequence[Manifest], choice: str) -> list[Manifest]:
    """The objects, chosen pods without their nodes and devices; ScenarioError if no pod that runs is chosen.

    Claims for devices that chosen pods alone use have no devices then.
    """
    chosen = [
        one.kind == "Pod" and bool(one.part("spec").get("nodeName")) and _is_chosen(one, choice) for one in objects
    ]
    if not any(chosen):
        expected = "true, or a kind of owner (ReplicaSet) or a label (team=a) of a pod that runs"
        raise ScenarioError("kubernetes: unpin", repr(choice), expected)
    freed = {_key(item) for item, free in zip(objects, chosen, strict=True) if free}
    without = [without_node(item) if free else item for item, free in zip(objects, chosen, strict=True)]
    return [_deallocated(item, freed) if item.kind == CLAIM else item for item in without]


def _deallocated(claim: Manifest, freed: Collection[tuple[str, str]]) -> Manifest:
    """A claim without its devices, if pods without nodes alone use it."""
    users = {(_key(claim)[0], name) for name in reserved_for(claim)}
    return claim._replace(body={**claim.body, "status": {}}) if users and users.issubset(freed) else claim


def _key(item: Manifest) -> tuple[str, str]:
    return str(item.part("metadata").get("namespace") or "default"), item.name


def without_node(pod: Manifest) -> Manifest:
    """The pod as if it waited, without its node, a nomination and devices."""
    metadata = pod.part("metadata")
    annotations = mapping(metadata, "annotations", pod.where)
    kept = {name: value for name, value in annotations.items() if name not in (*HELD, ALLOCATED)}
    spec = {name: value for name, value in pod.part("spec").items() if name != "nodeName"}
    status = {name: value for name, value in pod.part("status").items() if name != NOMINATED}
    body = {**pod.body, "metadata": {**metadata, "annotations": kept}, "spec": spec, "status": status}
    return pod._replace(body=body)


def _is_chosen(pod: Manifest, choice: str) -> bool:
    kinds = [kind for kind, _, _ in owners(pod)]
    if not OF_NODES.isdisjoint(kinds):
        return False
    label, sign, value = choice.partition("=")
    if sign:
        return str(mapping(pod.part("metadata"), "labels", pod.where).get(label)) == value
    return choice in EVERY or choice in kinds[:1]
