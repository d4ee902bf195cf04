"""Pods of Kubernetes as rows of a pod table: what they ask for, where they may go, when they came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fastsim.errors import InputError
from fastsim.manifests import mapping, sequence
from fastsim.workload.kubernetes_expansion import PodManifest
from fastsim.workload.kubernetes_requests import Surroundings, pod_amounts, request_columns
from fastsim.workload.kubernetes_rules import Places, constraints, spread

CREATED, DELETED = "alibabacloud.com/creation-time", "alibabacloud.com/deletion-time"
"""Annotations that tell when a pod of a trace came and went."""
QUEUE_LABELS = ("kai.scheduler/queue", "runai/queue")
"""Labels that name the tenant; without one it is the namespace."""
HONOURED = (
    "affinity", "containers", "initContainers", "nodeName", "nodeSelector", "overhead", "priority", "priorityClassName",
    "schedulingGates", "tolerations",
)  # fmt: skip
"""Fields of a pod that are looked at."""
HARMLESS = (
    "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostname", "imagePullSecrets", "preemptionPolicy",
    "readinessGates", "restartPolicy", "runtimeClassName", "schedulerName", "securityContext", "serviceAccount",
    "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds",
    "volumes",
)  # fmt: skip
"""Fields that say nothing about how much a pod needs or where it goes."""


class PodTimes(NamedTuple):
    """Unix seconds of a pod's arrival, start and end; None if nothing tells."""

    created: float | None = None
    started: float | None = None
    ended: float | None = None


def pod_row(
    pod: PodManifest, places: Places, surroundings: Surroundings, priorities: Mapping[str, int], notices: Counter[str]
) -> dict[str, Any] | None:
    """The pod as columns of a pod table, its times under `times`; None if it waits to be released or left no trace."""
    times, phase = pod_times(pod), str(pod.status.get("phase") or "")
    if pod.spec.get("schedulingGates") and not pod.node:
        notices["pods: left out, because scheduling gates hold them"] += 1
        return None
    if phase in ("Succeeded", "Failed") and (times.started is None or times.ended is None):
        notices["pods: left out, because they are over and do not tell how long they ran"] += 1
        return None
    for name in pod.spec:
        if name not in HONOURED and name not in HARMLESS:
            notices[f"pods: spec.{name}"] += 1
    group = spread(pod.spec, pod.labels, pod.namespace, pod.where, notices)
    asked = request_columns(
        pod_amounts(pod.spec, pod.where), pod.labels, pod.annotations, pod.where, surroundings, notices
    )
    # A pod that has a node stays there, whatever keeps others away from it.
    found = [] if pod.node else constraints(pod.spec, pod.where, places, notices)
    return {
        "times": times,
        **asked,
        "owner": pod.owner,
        "priority": _priority(pod, priorities, notices),
        "qos": _optional(pod.status, "qosClass"),
        "tenant": next((str(pod.labels[key]) for key in QUEUE_LABELS if pod.labels.get(key)), pod.namespace),
        "group": group,
        "max_per_node": None if group is None else 1,
        "constraints": [{"key": c.key, "op": c.op, "values": list(c.values)} for c in found] or None,
        "pinned_node": pod.node,
        "orig_status": phase or None,
        "native_id": f"{pod.namespace}/{pod.name}",
    }


def pod_times(pod: PodManifest) -> PodTimes:
    """When the pod came, started and ended, as its annotations, its status and its containers tell."""
    created = unix_s(pod.annotations.get(CREATED) or pod.created, f"{pod.where}: creation time")
    ended = unix_s(pod.annotations.get(DELETED), f"{pod.where}: {DELETED}")
    started = unix_s(pod.status.get("startTime"), f"{pod.where}: status: startTime")
    ends = list(_container_ends(pod))
    if ended is None and ends and None not in ends and pod.status.get("phase") in ("Succeeded", "Failed"):
        ended = max(end for end in ends if end is not None)
    if ended is not None and started is None and DELETED in pod.annotations:
        started = created
    if started is not None and ended is not None and ended < started:
        raise InputError(f"{pod.where}: end", f"{ended - started:g} s after the start", "0 s or more")
    return PodTimes(created if created is not None else started, started, ended)


def unix_s(given: object, where: str) -> float | None:
    """Seconds of a time in UTC: a date such as 2024-01-01T00:00:00Z, or seconds; None stays None."""
    if given is None:
        return None
    text = str(given)
    try:
        return float(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(where, repr(given), "a time such as 2024-01-01T00:00:00Z, or seconds") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _container_ends(pod: PodManifest) -> Iterable[float | None]:
    """When each container ended; None for one that did not say."""
    for status in sequence(pod.status, "containerStatuses", pod.where):
        state = mapping(mapping(status, "state", pod.where), "terminated", pod.where)
        yield unix_s(state.get("finishedAt"), f"{pod.where}: finishedAt")


def _priority(pod: PodManifest, priorities: Mapping[str, int], notices: Counter[str]) -> int | None:
    given, name = pod.spec.get("priority"), pod.spec.get("priorityClassName")
    if given is None and name is not None:
        if name not in priorities:
            notices["pods: a priority class that is not among the objects"] += 1
        return priorities.get(str(name))
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or abs(given) >= 1 << 31):
        raise InputError(f"{pod.where}: spec: priority", repr(given), "a whole number of 32 bits")
    return given


def _optional(parent: Mapping[str, Any], key: str) -> str | None:
    return None if parent.get(key) is None else str(parent[key])
