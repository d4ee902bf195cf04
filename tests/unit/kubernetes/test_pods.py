"""Pods of Kubernetes as rows: times, priorities, nodes, and what leaves them out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import pods
from fastsim.kubernetes.nodes import Taint
from fastsim.kubernetes.pod_rules.host_ports import HostPorts
from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
from fastsim.kubernetes.pod_rules.node_affinity import Places
from fastsim.kubernetes.pod_rules.pod_affinity import Peers
from fastsim.kubernetes.pod_rules.priorities import Priorities
from fastsim.kubernetes.pod_rules.volumes import Volumes
from fastsim.kubernetes.pods import Facts, Templates, pod_row, unix_s
from fastsim.kubernetes.requests import Surroundings
from tests.objects import manifest, pod

PLACES = Places(({"name": "a"},), (Taint("k", "", "NoSchedule"),))


def row(body: dict[str, Any]) -> tuple[dict[str, Any] | None, Counter[str]]:
    notices: Counter[str] = Counter()
    (manifest_of_pod,) = pods([manifest(body)], PLACES, notices)
    return pod_row(
        manifest_of_pod,
        Facts(
            PLACES, Surroundings(), Priorities({"high": 7}), Peers(), Volumes(), HostPorts(), KeptParts(), Templates()
        ),
        notices,
    ), notices


def ended(*ends: str | None, phase: str = "Succeeded") -> dict[str, Any]:
    states: list[dict[str, Any]] = [
        {"state": {"terminated": {"finishedAt": end}} if end else {"running": {}}} for end in ends
    ]
    return {"phase": phase, "startTime": "2024-01-01T00:00:10Z", "containerStatuses": states, "qosClass": "Burstable"}


def test_a_pod_that_ran() -> None:
    meta = {"creationTimestamp": "2024-01-01T00:00:00Z", "namespace": "ns"}
    columns, _ = row(pod(status=ended("2024-01-01T00:01:10Z", "2024-01-01T00:00:20+00:00"), meta=meta, nodeName="a"))
    assert columns is not None
    times = columns["times"]
    assert (times.started - times.created, times.ended - times.started) == (10, 60)
    assert (columns["bound_node"], columns["pinned_node"], columns["qos"]) == ("a", None, "Burstable")
    assert (columns["native_id"], columns["tenant"], columns["orig_status"]) == ("ns/p1", "ns", "Succeeded")


def test_a_pod_that_runs_has_no_end_and_one_that_waits_no_start() -> None:
    columns, _ = row(pod(status=ended("2024-01-01T00:01:10Z", None, phase="Running")))
    assert columns is not None and columns["times"].ended is None and columns["times"].started is not None
    columns, _ = row(pod(labels={"kueue.x-k8s.io/queue-name": "q"}))
    assert columns is not None and columns["tenant"] == "q"
    columns, _ = row(pod(labels={"kai.scheduler/queue": "q"}))
    assert columns is not None and columns["times"] == (None, None, None)
    assert (columns["tenant"], [item["op"] for item in columns["constraints"]]) == ("q", ["DoesNotExist"])


def test_annotations_of_a_trace_tell_times() -> None:
    annotations = {"alibabacloud.com/creation-time": "100", "alibabacloud.com/deletion-time": "160"}
    columns, _ = row(pod(annotations=annotations))
    assert columns is not None and columns["times"] == (100, 100, 160)


def test_priorities() -> None:
    assert [(row(pod(**spec))[0] or {})["priority"] for spec in (
        {"priority": 5}, {"priorityClassName": "high"}, {"priorityClassName": "none"}, {}
    )] == [5, 7, None, None]  # fmt: skip
    assert sum(row(pod(priorityClassName="none"))[1].values()) == 1


@pytest.mark.parametrize("body", [pod(schedulingGates=[{"name": "g"}]), pod(status={"phase": "Failed"})])
def test_pods_that_are_left_out_are_counted(body: dict[str, Any]) -> None:
    columns, notices = row(body)
    assert columns is None and sum(notices.values()) == 1


def test_unknown_fields_are_counted() -> None:
    assert row(pod(evictionRequests=[{}], restartPolicy="Never"))[1] == {"pods: spec.evictionRequests": 1}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (pod(meta={"creationTimestamp": "yesterday"}), "creation time: found 'yesterday'"),
        (pod(priority="high"), "priority: found 'high'"),
        (pod(status=ended("2023-01-01T00:00:00Z")), "after the start"),
        (pod(containers=3), "containers: found 3"),
    ],
)
def test_bad_pods_are_named(body: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        row(body)


def test_times_are_utc() -> None:
    assert [unix_s(text, "t") for text in ("1970-01-01T00:00:01.5Z", "1970-01-01T01:00:00+01:00", "1970-01-01", 7)] == [
        1.5, 0, 0, 7,
    ]  # fmt: skip


def test_numbers_are_seconds_whatever_signs_they_have() -> None:
    assert [unix_s(text, "t") for text in ("123e-5", "-12.5", "1e3", 4)] == [0.00123, -12.5, 1000, 4]
