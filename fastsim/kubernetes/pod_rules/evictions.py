"""Evictions of running pods: pods that go with their node, pods that stay there, and the objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fastsim.kubernetes.objects import Manifest, mapping, sequence
from fastsim.kubernetes.pod_rules.node_affinity import OVER
from fastsim.kubernetes.workloads.owners import owners

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation that says whether a pod may be evicted; "true" comes before all other rules."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation of pods that their node has created."""
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Labels of nodes that run the cluster itself."""
REASONS = {
    "ownerless": "has no controller", "local-storage": "has local storage", "not-safe": "is not safe to evict",
}  # fmt: skip
"""Reasons why a pod stays on its node, which can be set aside."""


def goes_with_node(pod: Manifest) -> bool:
    """Whether a pod needs no other node: of a DaemonSet, of the node itself, ended, or being deleted."""
    metadata = pod.part("metadata")
    kinds = [kind for kind, _, _ in owners(pod)]
    ending = pod.part("status").get("phase") in OVER or metadata.get("deletionTimestamp")
    own = MIRROR in mapping(metadata, "annotations", pod.where)
    return bool(ending) or own or bool({"DaemonSet", "Node"} & set(kinds[:1]))


def reason_to_stay(pod: Manifest, set_aside: Collection[str] = ()) -> str:
    """One of `REASONS` why a pod stays on its node; "" if it can be evicted."""
    safe = str(mapping(pod.part("metadata"), "annotations", pod.where).get(SAFE)).lower()
    references = sequence(pod.part("metadata"), "ownerReferences", pod.where)
    found = {
        "not-safe": safe == "false",
        "ownerless": not any(one.get("controller") for one in references),
        "local-storage": any(_is_local(one, pod.where) for one in sequence(pod.part("spec"), "volumes", pod.where)),
    }
    reasons = [name for name, holds in found.items() if holds and name not in set_aside]
    return "" if safe == "true" or not reasons else reasons[0]


def eviction(name: str) -> dict[str, Any]:
    """The object that asks the API server to evict a pod, whose name has its namespace."""
    namespace, _, bare = name.partition("/")
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": bare, "namespace": namespace}}


def _is_local(volume: Mapping[str, Any], where: str) -> bool:
    """Whether a volume is on the node's disk."""
    empty = mapping(volume, "emptyDir", where)
    return bool(mapping(volume, "hostPath", where)) or ("emptyDir" in volume and empty.get("medium") != "Memory")
