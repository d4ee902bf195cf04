"""Defaults that namespaces give to containers of templates, and quotas as the rule of a run."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from fastsim.errors import InputError
from fastsim.kubernetes.pod_rules.namespace_limits import QUOTAS, default_amounts, quota_notice, with_defaults
from fastsim.kubernetes.snapshot import Snapshot
from fastsim.scenario.run_rules import quotas_from
from tests.objects import manifest, pod, workload_of

IGNORED = "LimitRange: rules that are ignored for Pods, to which admission applied them"


def limit_range(namespace: str = "default", kind: str = "Container", **defaults: Any) -> dict[str, Any]:
    return {"kind": "LimitRange", "metadata": {"name": "l", "namespace": namespace},
            "spec": {"limits": [{"type": kind, **defaults}]}}  # fmt: skip


def quota(name: str = "q", namespace: str = "default", spec: Any = None, **hard: Any) -> dict[str, Any]:
    return {"kind": "ResourceQuota", "metadata": {"name": name, "namespace": namespace},
            "spec": {"hard": hard, **(spec or {})}}  # fmt: skip


def deployment(**requests: str) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": requests}}]
    template = {"metadata": {}, "spec": {"containers": containers, "initContainers": [{"name": "i"}]}}
    return {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}


def amounts(*objects: dict[str, Any]) -> tuple[list[tuple[int, int]], dict[str, int]]:
    snapshot = Snapshot([manifest(item) for item in objects])
    frame = pl.DataFrame(workload_of(snapshot).table())
    return frame.select("cpu_milli", "memory_mib").rows(), dict(snapshot.notices)


def test_pods_of_templates_have_the_defaults_and_written_ones_as_they_are() -> None:
    limits = limit_range(default={"cpu": "4"}, defaultRequest={"cpu": "2", "memory": "1Gi"})
    assert amounts(limits, deployment()) == ([(2000, 1024)], {})
    assert amounts(limits, deployment(cpu="1")) == ([(2000, 1024)], {})  # the container that initialises asks for 2
    assert amounts(limits, deployment(cpu="3", memory="5Gi")) == ([(3000, 5120)], {})
    assert amounts(limits, pod()) == ([(0, 0)], {IGNORED: 1})
    assert amounts(limit_range("else", default={"cpu": "4"}), deployment(), pod()) == ([(0, 0), (0, 0)], {})


@pytest.mark.parametrize(
    ("defaults", "requests"),
    [
        ({"default": {"cpu": "4"}}, {"cpu": "4"}),
        ({"max": {"cpu": "8"}}, {"cpu": "8"}),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}),
        ({"min": {"cpu": "1"}, "max": {"cpu": "8"}, "default": {"cpu": "4"}, "defaultRequest": {"cpu": "2"}},
         {"cpu": "2"}),
    ],
)  # fmt: skip
def test_absent_parts_of_a_range_follow_from_the_others(defaults: Any, requests: dict[str, str]) -> None:
    [limits] = default_amounts([manifest(limit_range(**defaults))])["default"]
    assert limits[1] == requests
    spec = with_defaults({"containers": [{"name": "c", "resources": {"limits": {"cpu": "9"}}}]}, [limits], "p")
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "9"}


def test_ranges_of_pods_are_no_defaults() -> None:
    assert default_amounts([manifest(limit_range(kind="Pod", max={"cpu": "1"}))]) == {}


def test_quotas_are_told_as_the_rule_that_honours_them() -> None:
    hard = {"requests.cpu": "10", "requests.memory": "1Gi", "requests.nvidia.com/gpu": "8", "pods": "50"}
    objects = [quota(**hard), quota("r", cpu="8"), quota("s", "team", **{"requests.nvidia.com/gpu": 2}),
            quota("t", "else", {"scopes": ["BestEffort"]}, cpu=1)]  # fmt: skip
    text = quota_notice([manifest(item) for item in objects])
    assert quotas_from(text.split("'")[1]) == {
        "default": {"cpu_milli": 8000, "memory_mib": 1024, "gpu_milli": 8000}, "team": {"gpu_milli": 2000},
    }  # fmt: skip
    assert amounts(pod(), *objects)[1] == {text: 4}
    assert quota_notice([manifest(quota(pods="3"))]) == f"{QUOTAS}; no option honours those on pods"
    with pytest.raises(InputError, match=r"hard: cpu: found 'many'"):
        quota_notice([manifest(quota(cpu="many"))])


def test_limits_that_no_option_honours_are_named() -> None:
    """A quota limits the number of pods and sums of any resource, of instances of GPUs as well."""
    mig, gpus = "requests.nvidia.com/mig-1g.5gb", "requests.nvidia.com/gpu"
    hard = {"pods": "10", mig: "2", gpus: "4", "requests.cpu": "8", "limits.memory": "1Gi", "requests.storage": "1Ti",
            "count/pods": "9", "services": "5", "count/jobs.batch": "3"}  # fmt: skip
    text = quota_notice(
        [manifest(quota(**hard)), manifest(quota("r", "default", {"scopes": ["BestEffort"]}, pods="1"))]
    )
    assert text == (
        f"{QUOTAS}; --quotas 'default:cpu_milli=8000,gpu_milli=4000' honours their limits on CPU, memory and GPUs"
        f"; no option honours those on count/pods, limits.memory, pods, pods of a scope, {mig}"
    )
    assert quota_notice([manifest(quota(services="5", cpu="1"))]).endswith("CPU, memory and GPUs")
