"""Requests of Kubernetes' pods, in every dialect of GPU shares."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.controllers import pod_specs, pods
from fastsim.kubernetes.pod_rules.node_affinity import Places
from fastsim.kubernetes.requests import Surroundings, pod_amounts, request_columns
from tests.objects import manifest, pod

V100 = Surroundings(32510)


def columns(
    requests: dict[str, object] | None = None, annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None, around: Surroundings = V100,
) -> dict[str, Any]:  # fmt: skip
    spec = {"containers": [{"name": "c", "resources": {"requests": requests or {}}}]}
    return request_columns(pod_amounts(spec, "p"), labels or {}, annotations or {}, "p", around, Counter())


@pytest.mark.parametrize(
    ("requests", "annotations", "labels", "share"),
    [
        ({}, {}, {}, (0, 0, None)),
        ({"nvidia.com/gpu": 2}, {}, {}, (2, 1000, None)),
        ({}, {"alibabacloud.com/gpu-milli": "460", "alibabacloud.com/gpu-count": "1"}, {}, (1, 460, None)),
        ({}, {"alibabacloud.com/gpu-milli": "1000", "alibabacloud.com/gpu-count": "8"}, {}, (8, 1000, None)),
        ({}, {"alibabacloud.com/gpu-mem": "16255Mi", "alibabacloud.com/gpu-count": "1"}, {}, (1, 500, 16255)),
        ({}, {"alibabacloud.com/gpu-mem": "16255Mi"}, {}, (0, 0, None)),  # no count, so nothing is allocated
        ({"aliyun.com/gpu-mem": "7"}, {}, {}, (1, 220, 7168)),
        ({}, {"gpu-fraction": "0.5"}, {}, (1, 500, None)),
        ({}, {"gpu-memory": "2000"}, {}, (1, 61, 2000)),
        ({}, {}, {"GPU_MEM_REQ": "6994"}, (1, 215, 6994)),
    ],
)
def test_shares(
    requests: dict[str, object], annotations: dict[str, str], labels: dict[str, str], share: tuple[Any, ...]
) -> None:
    row = columns(requests, annotations, labels)
    assert (row["num_gpu"], row["gpu_milli"], row["gpu_memory_mib"]) == share


def test_a_share_in_mib_is_the_least_if_no_device_is_known() -> None:
    row = columns({}, {}, {"GPU_MEM_REQ": "6994"}, Surroundings())
    assert (row["gpu_milli"], row["gpu_memory_mib"]) == (1, 6994)


def test_turns_on_a_device_are_parts_of_it() -> None:
    assert columns({"nvidia.com/gpu": "1"}, around=Surroundings(slots_per_gpu=4))["gpu_milli"] == 250


def test_containers_are_added_and_one_that_initialises_may_need_more() -> None:
    spec = {
        "overhead": {"cpu": "100m"},
        "initContainers": [
            {"resources": {"requests": {"cpu": "1", "memory": "3Gi"}}},
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        ],
        "containers": [
            {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "9", "nvidia.com/gpu": 1}}},
            {"resources": {"limits": {"cpu": "500m", "memory": "1025Mi"}}},
        ],
    }
    row = request_columns(pod_amounts(spec, "p"), {}, {}, "p", V100, Counter())
    assert (row["cpu_milli"], row["memory_mib"], row["num_gpu"]) == (1850, 3072, 1)


@pytest.mark.parametrize(
    ("container", "side_car", "reason", "cpus"),
    [
        ({"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "6"}}}, {}, "", 6000 + 500),
        ({"allocatedResources": {"cpu": "7"}, "resources": {"requests": {"cpu": "6"}}}, {}, "", 7000 + 500),
        ({"allocatedResources": {"cpu": "500m"}}, {"resources": {"requests": {"cpu": "2"}}}, "", 1000 + 2000),
        ({"resources": {"requests": {"cpu": "500m"}}}, {}, "Deferred", 1500),
        ({"resources": {"requests": {"cpu": "500m"}}}, {}, "Infeasible", 1000),
        ({}, {}, "", 1500),
    ],
)  # fmt: skip
def test_while_containers_are_resized_the_most_counts(
    container: dict[str, Any], side_car: dict[str, Any], reason: str, cpus: int
) -> None:
    """ "the scheduler uses the maximum of a container's desired requests, allocated requests, and actual requests"."""
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else [],
        "containerStatuses": [{"name": "main", **container}], "initContainerStatuses": [{"name": "side", **side_car}],
    }  # fmt: skip
    side = {"name": "side", "restartPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}}
    body = pod(requests={"cpu": "1", "nvidia.com/gpu": 1}, status=status, initContainers=[side])
    (spec,) = pod_specs(manifest(body))
    amounts = pod_amounts(spec, "p")
    assert [int(1000 * amounts["cpu"]), int(amounts["nvidia.com/gpu"])] == [cpus, 1]
    (read,) = pods([manifest(body)], Places(), Counter())
    assert read.spec == spec


def test_what_the_pod_asks_for_as_a_whole_counts() -> None:
    containers = [{"resources": {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}}}]
    whole = {"requests": {"cpu": "3"}, "limits": {"cpu": "4", "memory": "8Gi", "hugepages-2Mi": "4Mi"}}
    spec = {"overhead": {"cpu": "100m"}, "containers": containers, "resources": whole}
    row = request_columns(pod_amounts(spec, "p"), {}, {}, "p", V100, Counter())
    assert (row["cpu_milli"], row["memory_mib"], row["num_gpu"]) == (3100, 1024, 1)
    assert row["extra_resources"] == [("hugepages-2Mi", 4)]
    row = request_columns(pod_amounts({"resources": whole}, "p"), {}, {}, "p", V100, Counter())
    assert (row["cpu_milli"], row["memory_mib"]) == (3000, 8192)
    with pytest.raises(InputError, match="p: resources: memory: found 'x'"):
        pod_amounts({"resources": {"requests": {"memory": "x"}}}, "p")


def test_models_and_further_resources() -> None:
    amounts = {"ephemeral-storage": "1500k", "rdma/hca": "1", "nvidia.com/mig-1g.10gb": 2, "cpu": "0.1m", "idle/x": 0}
    row = columns(amounts, {"alibabacloud.com/gpu-card-model": "V100M16|Tesla-T4"})
    assert row["extra_resources"] == [("ephemeral-storage", 2), ("mig-1g.10gb", 2), ("rdma/hca", 1)]
    assert (row["gpu_models"], row["cpu_milli"]) == (["V100M16", "T4"], 1)


def test_shares_of_several_devices_are_counted_as_not_honoured() -> None:
    notices: Counter[str] = Counter()
    annotations = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}
    row = request_columns({}, {}, annotations, "p", V100, notices)
    assert (row["num_gpu"], row["gpu_milli"], sum(notices.values())) == (2, 1000, 1)


@pytest.mark.parametrize(
    ("requests", "annotations", "labels", "message"),
    [
        ({"memory": "1GB"}, {}, {}, r"p: container c: memory: found '1GB'"),
        ({"nvidia.com/gpu": "500m"}, {}, {}, "a whole number of devices"),
        ({"nvidia.com/gpu": "1000000000"}, {}, {}, "nvidia.com/gpu: found 1e"),
        ({"cpu": "1e30"}, {}, {}, "an amount of at most"),
        ({"memory": "1e30"}, {}, {}, "memory: found 9.53674e[+]23 MiB, expected at most"),
        ({"cpu": "-1"}, {}, {}, "0 or more"),
        ({}, {"gpu-fraction": "1.5"}, {}, "at most 1"),
        ({}, {"alibabacloud.com/gpu-milli": "half"}, {}, "gpu-milli: found 'half'"),
        ({}, {}, {"GPU_MEM_REQ": "-5"}, "GPU_MEM_REQ: found '-5'"),
    ],
)
def test_bad_requests_are_named(
    requests: dict[str, object], annotations: dict[str, str], labels: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        columns(requests, annotations, labels)
