"""The Kubernetes objects that a run was read from, for an export that keeps all their other fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastsim.engine.result import Result
from fastsim.foundation.option_texts import named, parted
from fastsim.kubernetes.controllers import PodManifest, pods
from fastsim.kubernetes.devices.device_resources import ALIBABA
from fastsim.kubernetes.pod_rules.node_affinity import Places
from fastsim.kubernetes.pods import CREATED, DELETED
from fastsim.kubernetes.snapshot import Snapshot

PREFIX = "kubernetes:"
"""Prefix of texts that name Kubernetes objects."""


class Originals(NamedTuple):
    """Objects as they were read: nodes by name, pods by namespace and name; pods of controllers from their template."""

    nodes: Mapping[str, Mapping[str, Any]]
    pods: Mapping[str, Mapping[str, Any]]


def originals_of(result: Result) -> Originals:
    """The objects behind the texts of a saved run; texts of other kinds have none."""
    fields = result.provenance.get("scenario")
    texts: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
    nodes, workload = _objects(texts.get("cluster")), _objects(texts.get("workload"))
    node_bodies = (
        {} if nodes is None else {item.name: _full(item.body) for item in nodes.objects if item.kind == "Node"}
    )
    return Originals(node_bodies, {} if workload is None else _pods(workload))


def bound(body: Mapping[str, Any], row: Mapping[str, Any], place: Mapping[str, Any], every: bool) -> dict[str, Any]:
    """The pod on the node of one row of placements; with `every`, its times are those of the run.

    Without `every`, a pod that was on this node before is unchanged.
    """
    metadata, spec, status = ({**(body.get(name) or {})} for name in ("metadata", "spec", "status"))
    if spec.get("nodeName") == place["node"] and status.get("phase") and not every:
        return dict(body)
    notes = {**(metadata.get("annotations") or {})}
    if place["gpu_ids"] and spec.get("nodeName") != place["node"]:
        notes[f"{ALIBABA}gpu-index"] = "-".join(map(str, place["gpu_ids"]))
    spec["nodeName"], status["phase"] = place["node"], "Running"
    if every:
        done = place["end_s"] is not None and str(place["reason"]) != "running"
        status = {"phase": "Succeeded" if done else "Running"}
        notes |= {CREATED: f"{row['submit_s']:.15g}", **({DELETED: f"{place['end_s']:.15g}"} if done else {})}
    if notes or "annotations" in metadata:
        metadata["annotations"] = notes
    return {**body, "metadata": metadata, "spec": spec, "status": status}


def _objects(text: object) -> Snapshot | None:
    if not str(text).strip().startswith(PREFIX):
        return None
    head, words = parted(str(text))
    nodes = named(words, f"workload {text!r}").get("nodes")
    return Snapshot.read(head.removeprefix(PREFIX), *([] if nodes is None else [nodes]))


def _pods(snapshot: Snapshot) -> dict[str, Mapping[str, Any]]:
    manifests = {item.where: _full(item.body) for item in snapshot.objects if item.kind == "Pod"}
    places = Places([{"name": item.name} for item in snapshot.objects if item.kind == "Node"])
    return {
        f"{pod.namespace}/{pod.name}": manifests[pod.where] if pod.where in manifests else _of_template(pod)
        for pod in pods(snapshot.objects, places, Counter())
    }


def _full(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object, which an item of a list may have left unversioned."""
    return {"apiVersion": "v1", **body}


def _of_template(pod: PodManifest) -> dict[str, Any]:
    """A pod from the template of a controller, without `ownerReferences`."""
    fields = {"name": pod.name, "namespace": pod.namespace, "creationTimestamp": pod.created,
            "labels": dict(pod.labels), "annotations": dict(pod.annotations)}  # fmt: skip
    metadata = {key: value for key, value in fields.items() if value}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(pod.spec), "status": {}}
