"""Kubernetes objects for tests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from fastsim.kubernetes.nodes import node_row
from fastsim.kubernetes.objects import Manifest


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


def row_of(body: dict[str, Any], unit: str = "GiB") -> tuple[dict[str, Any], Counter[str]]:
    """The columns of a node, and what is not honoured."""
    notices: Counter[str] = Counter()
    return node_row(manifest(body), unit, notices), notices
