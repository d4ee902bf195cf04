"""Pods that run and are read as if they waited, so that policies can be compared on what a cluster has.

Every pod is chosen, or those whose owner is of a kind (``ReplicaSet``), or those with a label (``team=a``). A pod that
its node created itself stays there.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastsim.errors import ScenarioError
from fastsim.kubernetes.devices.hami import ALLOCATED
from fastsim.kubernetes.objects import Manifest, mapping
from fastsim.kubernetes.pods import HELD
from fastsim.kubernetes.workloads.owners import owners

EVERY = ("True", "true", "all")
"""Texts that choose every pod."""


def unpinned(objects: Sequence[Manifest], choice: str) -> list[Manifest]:
    """The objects, chosen pods without their nodes and devices; ScenarioError if no pod that runs is chosen."""
    chosen = [
        one.kind == "Pod" and bool(one.part("spec").get("nodeName")) and _is_chosen(one, choice) for one in objects
    ]
    if not any(chosen):
        expected = "true, or a kind of owner (ReplicaSet) or a label (team=a) of a pod that runs"
        raise ScenarioError("kubernetes: unpin", repr(choice), expected)
    return [without_node(item) if free else item for item, free in zip(objects, chosen, strict=True)]


def without_node(pod: Manifest) -> Manifest:
    """The pod as if it waited, without its node and devices."""
    metadata = pod.part("metadata")
    annotations = mapping(metadata, "annotations", pod.where)
    kept = {name: value for name, value in annotations.items() if name not in (*HELD, ALLOCATED)}
    spec = {name: value for name, value in pod.part("spec").items() if name != "nodeName"}
    return pod._replace(body={**pod.body, "metadata": {**metadata, "annotations": kept}, "spec": spec})


def _is_chosen(pod: Manifest, choice: str) -> bool:
    kinds = [kind for kind, _, _ in owners(pod)]
    if "Node" in kinds:
        return False
    label, sign, value = choice.partition("=")
    if sign:
        return str(mapping(pod.part("metadata"), "labels", pod.where).get(label)) == value
    return choice in EVERY or choice in kinds[:1]
