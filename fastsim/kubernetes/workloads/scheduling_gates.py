"""Scheduling gates of pods, which keep them from kube-scheduler until a controller takes the gates away.

Kueue gates the pods of its queues until it admits them, and some until it has chosen their topology. Such a pod waits
for its queue, as the pods of a suspended workload in a queue of Kueue do. Any other gate holds a pod back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastsim.kubernetes.objects import sequence
from fastsim.kubernetes.workloads.gang_workloads import KUEUE_QUEUE

GATES = "schedulingGates"
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
"""Gates of Kueue."""


def is_held(spec: Mapping[str, Any], labels: Mapping[str, Any], where: str) -> bool:
    """Whether gates hold a pod back: any but those of Kueue on a pod in one of its queues."""
    if not spec.get(GATES):
        return False
    names = {str(gate.get("name")) for gate in sequence(spec, GATES, where)}
    return not labels.get(KUEUE_QUEUE) or not names.issubset(KUEUE_GATES)
