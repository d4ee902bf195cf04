"""Dumps of clusters with placements worked out by hand: any order of objects, in any number of files, says the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from tests.objects import node, pod, written

pytestmark = pytest.mark.filterwarnings("ignore")
Objects = list[dict[str, Any]]

T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
INFRA = {"taints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]}
CONTENT = [{"key": "dedicated", "operator": "Equal", "value": "infra", "effect": "NoSchedule"}]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def gpus(name: str, count: int, labels: dict[str, str] = T4, **spec: Any) -> dict[str, Any]:
    return node(name, {HOST: name, **labels}, spec, {"nvidia.com/gpu": str(count)})


def at(second: int) -> dict[str, str]:
    return {"creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}


def runs(name: str, where: str, requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return pod(name, requests, status={"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}, nodeName=where, **more)


def apart(app: str, key: str = HOST) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def beside(app: str, key: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def needs(key: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def replicas(kind: str, name: str, count: int, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], **spec}}
    return {"kind": kind, "metadata": {"name": name}, "spec": {"replicas": count, "template": template}}


SLICED = {**T4, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"}
SINGLE = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/mig.strategy": "single",
          "nvidia.com/gpu.count": "14"}  # fmt: skip
DUMPS: dict[str, tuple[Objects, dict[str, str | None]]] = {
    "who runs before who waits": (
        [node("n"), pod("a", {"cpu": 8}, meta=at(0)), runs("b", "n", {"cpu": 8}, meta=at(9))], {"a": None, "b": "n"},
    ),
    "the more important first": (
        [node("n"), pod("a", {"cpu": 8}, meta=at(0)), pod("b", {"cpu": 8}, meta=at(9), priority=10)],
        {"a": None, "b": "n"},
    ),
    "the older of two equals": (
        [node("n"), pod("a", {"cpu": 8}, meta=at(9)), pod("b", {"cpu": 8}, meta=at(0))], {"a": None, "b": "n"},
    ),
    "a class of priority": (
        [node("n"), {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
         pod("a", {"cpu": 8}, meta=at(0)), pod("b", {"cpu": 8}, meta=at(9), priorityClassName="high")],
        {"a": None, "b": "n"},
    ),
    "a taint": (
        [node("t", spec=INFRA), node("n"), runs("r", "n", {"cpu": 6}), pod("a", {"cpu": 4}),
         pod("b", {"cpu": 4}, tolerations=CONTENT)], {"a": None, "b": "t", "r": "n"},
    ),
    "a cordoned node keeps who runs there": (
        [node("c", spec={"unschedulable": True}), runs("r", "c", {"cpu": 1}), pod("a", {"cpu": 1})],
        {"a": None, "r": "c"},
    ),
    "a selector and an affinity": (
        [node("x", {"zone": "x"}), node("y", {"zone": "y"}), pod("a", {"cpu": 1}, nodeSelector={"zone": "y"}),
         pod("b", {"cpu": 1}, affinity=needs("zone", "x", "z")), pod("c", {"cpu": 1}, affinity=needs("zone", "z"))],
        {"a": "y", "b": "x", "c": None},
    ),
    "away from who runs": (
        [node("x", {HOST: "x"}), node("y", {HOST: "y"}), runs("r", "x", {"cpu": 1}, labels={"app": "db"}),
         pod("a", {"cpu": 1}, affinity=apart("db"))], {"a": "y", "r": "x"},
    ),
    "who runs keeps others away": (
        [node("x", {HOST: "x"}), node("y", {HOST: "y"}), runs("r", "x", {"cpu": 1}, affinity=apart("web")),
         pod("a", {"cpu": 1}, labels={"app": "web"})], {"a": "y", "r": "x"},
    ),
    "beside who runs, by zone": (
        [node("x", {ZONE: "1"}), node("y", {ZONE: "1"}), node("z", {ZONE: "2"}),
         runs("r", "x", {"cpu": 8}, labels={"app": "db"}), pod("a", {"cpu": 1}, affinity=beside("db", ZONE))],
        {"a": "y", "r": "x"},
    ),
    "one of a group on a node": (
        [node("x", {HOST: "x"}), node("y", {HOST: "y"}),
         *(pod(name, {"cpu": 1}, labels={"app": "w"}, affinity=apart("w"), meta=at(second))
           for second, name in enumerate("abc"))],
        {"a": "x", "b": "y", "c": None},
    ),
    "a gang or nobody": (
        [gpus("n", 2), {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}},
         *(pod(name, {"nvidia.com/gpu": 1}, {"scheduling.k8s.io/group-name": "g"}) for name in "abc"),
         pod("d", {"nvidia.com/gpu": 2}, meta=at(9))],
        {"a": None, "b": None, "c": None, "d": "n"},
    ),
    "time slices beside whole GPUs": (
        [gpus("s", 8, SLICED), gpus("w", 1), *(runs(f"r{i}", "s", {"nvidia.com/gpu": 1}) for i in range(7)),
         *(pod(name, {"nvidia.com/gpu": 1}) for name in "abc")],
        {**{f"r{i}": "s" for i in range(7)}, "a": "s", "b": "w", "c": None},
    ),
    "partitions of one size": (
        [gpus("m", 14, SINGLE), *(runs(f"r{i:02}", "m", {"nvidia.com/gpu": 1}) for i in range(13)),
         pod("a", {"nvidia.com/gpu": 1}, meta=at(0)), pod("b", {"nvidia.com/gpu": 1}, meta=at(1))],
        {**{f"r{i:02}": "m" for i in range(13)}, "a": "m", "b": None},
    ),
    "shares of memory only where they are offered": (
        [gpus("w", 4), node("s", amounts={"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}),
         runs("r", "s", {"aliyun.com/gpu-mem": "10"}, annotations={"ALIYUN_COM_GPU_MEM_IDX": "1"}),
         pod("a", {"aliyun.com/gpu-mem": "15"}, meta=at(0)), pod("b", {"aliyun.com/gpu-mem": "6"}, meta=at(1)),
         pod("c", {"nvidia.com/gpu": 4})],
        {"a": "s", "b": None, "c": "w", "r": "s"},
    ),
    "GPUs of another maker": (
        [node("amd", {"amd.com/gpu.product-name": "MI300X"}, amounts={"amd.com/gpu": "8"}), gpus("nv", 1),
         pod("a", {"amd.com/gpu": 8}), pod("b", {"nvidia.com/gpu": 1}), pod("c", {"nvidia.com/gpu": 1}, meta=at(9))],
        {"a": "amd", "b": "nv", "c": None},
    ),
    "memory to the byte": (
        [node("n", amounts={"memory": "100M"}), *(pod(name, {"memory": "50M"}, meta=at(second))
                                                    for second, name in enumerate("abc"))],
        {"a": "n", "b": "n", "c": None},
    ),
    "who is over is gone": (
        [node("n"), pod("o", {"cpu": 8}, nodeName="n", status={"phase": "Succeeded"}), pod("a", {"cpu": 8})],
        {"a": "n"},
    ),
    "a set of pods and one for each node": (
        [node("x", spec=INFRA), node("y"), replicas("Deployment", "d", 3), runs("r", "y", {"cpu": 5}),
         replicas("DaemonSet", "e", 0, tolerations=CONTENT)],
        {"r": "y", "e-x": "x", "e-y": None, "d-0": "y", "d-1": "y", "d-2": "y"},
    ),
    "three hundred pods": (
        [*(gpus(f"n{i:02}", 8) for i in range(30)),
         *(runs(f"r{i:03}", f"n{i % 30:02}", {"nvidia.com/gpu": 1}) for i in range(239)),
         *(pod(f"w{i}", {"nvidia.com/gpu": 1}, meta=at(i)) for i in range(31))],
        {**{f"r{i:03}": f"n{i % 30:02}" for i in range(239)}, "w0": "n29", **{f"w{i}": None for i in range(1, 31)}},
    ),
}  # fmt: skip
"""Objects, and the node of each pod; None if it has none."""


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", DUMPS)
def test_any_order_and_any_files_say_what_was_worked_out(name: str, tmp_path: Path) -> None:
    objects, expected = DUMPS[name]
    for seed in range(4):
        rng, parts = random.Random(seed), 1 + seed % 3
        shuffled = rng.sample(objects, len(objects))
        files = [written(tmp_path / f"{seed}-{part}.json", *shuffled[part::parts]) for part in range(parts)]
        text = "kubernetes:" + ",".join(map(str, files))
        placed = fs.simulate(text, text, "best_fit").placements.select("native_id", "node").rows()
        assert {native.removeprefix("default/"): found for native, found in placed} == expected, seed


def test_there_are_twenty() -> None:
    assert len(DUMPS) == 20
