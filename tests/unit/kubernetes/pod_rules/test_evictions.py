"""Which running pods can be evicted."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.kubernetes.pod_rules.evictions import eviction, goes_with_node, reason_to_stay
from tests.objects import manifest, pod

DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}
REPLICA = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def test_who_goes_with_the_node() -> None:
    assert goes_with_node(manifest(pod(meta=DAEMON)))
    assert goes_with_node(manifest(pod(annotations={"kubernetes.io/config.mirror": "x"})))
    assert goes_with_node(manifest(pod(meta={"deletionTimestamp": "2024-01-01T00:00:00Z"})))
    assert goes_with_node(manifest(pod(status={"phase": "Failed"})))
    assert not goes_with_node(manifest(pod(meta=REPLICA)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"meta": REPLICA}, ""), ({}, "ownerless"), ({"annotations": {SAFE: "true"}}, ""),
        ({"meta": REPLICA, "annotations": {SAFE: "false"}}, "not-safe"),
        ({"meta": REPLICA, "volumes": [{"name": "v", "emptyDir": {}}]}, "local-storage"),
        ({"meta": REPLICA, "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}, ""),
        ({"meta": REPLICA, "volumes": [{"name": "v", "configMap": {"name": "c"}}]}, ""),
    ],
)  # fmt: skip
def test_who_stays(more: dict[str, Any], reason: str) -> None:
    assert reason_to_stay(manifest(pod(**more))) == reason
    assert reason_to_stay(manifest(pod(**more)), [reason]) == ""


def test_the_object_has_name_and_namespace() -> None:
    assert eviction("team/p")["metadata"] == {"name": "p", "namespace": "team"}
