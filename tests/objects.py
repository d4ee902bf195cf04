"""Kubernetes objects for tests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.importers import snapshot_nodes
from fastsim.hardware.model_catalog import Catalog
from fastsim.kubernetes.nodes import NodeFacts, node_row
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.workload import Workload
from fastsim.workload.importers.kubernetes import snapshot_pods


def node(
    name: str = "n1", labels: dict[str, str] | None = None, spec: Any = None, amounts: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A node with 8 CPUs and 16 GiB; further amounts by name."""
    told = {"cpu": "8", "memory": "16Gi", "pods": "110", **(amounts or {})}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {}, "status": {"capacity": told, "allocatable": told},
    }  # fmt: skip


def pod(
    name: str = "p1", requests: dict[str, object] | None = None, annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None, status: dict[str, Any] | None = None, meta: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    """A pod with one container."""
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}, **(meta or {})}
    containers = [{"name": "main", "resources": {"requests": requests or {}}}]
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}, "status": status or {}}


def manifest(body: dict[str, Any]) -> Manifest:
    """An object as if it were read."""
    return Manifest(f"a.json: {body['kind']} {body['metadata']['name']}", body)


def written(path: Path, *objects: dict[str, Any]) -> Path:
    """A file with a list of objects."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return path


def cluster_of(snapshot: Snapshot, catalog: Catalog | None = None) -> Cluster:
    """The cluster of a snapshot."""
    return Cluster(*snapshot_nodes(snapshot, catalog))


def workload_of(snapshot: Snapshot, read_as: str = "now", marked: bool = False) -> Workload:
    """The workload of a snapshot."""
    return Workload.of(snapshot_pods(snapshot, read_as, marked))


def row_of(body: dict[str, Any], unit: str = "GiB") -> tuple[dict[str, Any], Counter[str]]:
    """The columns of a node, and what is not honoured."""
    notices: Counter[str] = Counter()
    return node_row(manifest(body), NodeFacts(unit), notices), notices


def device(name: str, amounts: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A device for a ResourceSlice; attributes are texts, whole numbers, truths, lists, or mappings as they stand."""
    attributes = {key.replace("__", "/"): _attribute(value) for key, value in more.pop("attributes", {}).items()}
    capacity = {key: {"value": value} for key, value in (amounts or {}).items()}
    return {"name": name, "attributes": attributes, "capacity": capacity, **more}


def gpu(name: str, model: str = "NVIDIA A100-SXM4-40GB", memory: str = "40Gi", **attributes: Any) -> dict[str, Any]:
    """A whole GPU as NVIDIA's driver publishes it."""
    own = {"type": "gpu", "productName": model, "uuid": f"GPU-{name}", **attributes}
    return device(name, {"memory": memory}, attributes=own)


def resource_slice(
    node_name: str | None, *devices: dict[str, Any], driver: str = "gpu.nvidia.com", pool: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    """A ResourceSlice of a node's pool."""
    where = {} if node_name is None else {"nodeName": node_name}
    told = {"name": node_name or "shared", "generation": 1, "resourceSliceCount": 1, **(pool or {})}
    name = f"{told['name']}-{driver}-{spec.pop('name', 'a')}"
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
        "spec": {"driver": driver, "pool": told, **where, "devices": list(devices), **spec},
    }  # fmt: skip


def device_class(
    name: str = "gpu.nvidia.com", *selectors: str, meta: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A DeviceClass; without selectors that of NVIDIA's whole GPUs."""
    default = ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",)
    return {
        "kind": "DeviceClass", "metadata": {"name": name, **(meta or {})},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in selectors or default], **spec},
    }  # fmt: skip


def request(name: str = "gpu", device_class: str = "gpu.nvidia.com", *selectors: str, **more: Any) -> dict[str, Any]:
    """A request of a claim for an exact number of devices, 1 if nothing is said."""
    listed = [{"cel": {"expression": text}} for text in selectors]
    own = {"deviceClassName": device_class, **more} | ({"selectors": listed} if listed else {})
    return {"name": name, "exactly": own}


def claim(
    name: str, *requests: dict[str, Any], status: dict[str, Any] | None = None, meta: dict[str, Any] | None = None,
    **devices: Any,
) -> dict[str, Any]:  # fmt: skip
    """A ResourceClaim."""
    return {
        "kind": "ResourceClaim", "metadata": {"name": name, **(meta or {})},
        "spec": {"devices": {"requests": list(requests), **devices}}, "status": status or {},
    }  # fmt: skip


def template(name: str, *requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    """A ResourceClaimTemplate."""
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": spec}}


def allocation(
    *devices: tuple[str, str], driver: str = "gpu.nvidia.com", users: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The status of a claim with devices, as pools and names, on the node of the first pool."""
    results = [{"request": "gpu", "driver": driver, "pool": pool, "device": name} for pool, name in devices]
    fields = [{"key": "metadata.name", "operator": "In", "values": [devices[0][0]]}]
    reserved = [{"resource": "pods", "name": name, "uid": name} for name in users]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"allocation": {"devices": {"results": results}, "nodeSelector": selector}, "reservedFor": reserved}


def claiming(name: str, *templates: str, claims: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A pod with claims of templates, and with claims by their names."""
    listed = [{"name": text, "resourceClaimTemplateName": text} for text in templates]
    listed += [{"name": text, "resourceClaimName": text} for text in claims]
    return pod(name, resourceClaims=listed, **more)


def _attribute(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    kinds = {bool: "bool", int: "int", str: "string"}
    return {f"{kinds[type(value[0])]}s": value} if isinstance(value, list) else {kinds[type(value)]: value}
