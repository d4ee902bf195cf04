"""Random dumps of Kubernetes: who runs is where it runs, sums are Kubernetes' own, and order changes nothing."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import fastsim as fs
from fastsim.kubernetes.objects import Manifest
from fastsim.kubernetes.pod_rules.host_ports import HostPort, clash
from fastsim.kubernetes.quantity import quantity
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, node, pod, workload_of
from tests.strategies import scenarios_per_run

pytestmark = pytest.mark.filterwarnings("ignore")
some = settings(max_examples=scenarios_per_run(60), deadline=None, suppress_health_check=list(HealthCheck))
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
TAINT = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
CPUS, BYTES = ("0", "250m", "500m"), ("0", "64Mi", "1Gi")
PORTS: tuple[list[dict[str, Any]], ...] = (
    [], [], [{"hostPort": 80}], [{"hostPort": 80, "hostIP": "10.0.0.1"}], [{"hostPort": 80}, {"hostPort": 81}],
)  # fmt: skip
Objects = list[dict[str, Any]]


@st.composite
def dumps(draw: st.DrawFn) -> Objects:
    """Nodes with GPUs, pods that fit where they run and tell their devices, pods that wait, pods that are over."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    sizes = {f"n{number}": rng.choice((0, 2, 4)) for number in range(rng.randint(1, 4))}
    left = {name: set(range(size)) for name, size in sizes.items()}
    objects: Objects = [
        node(name, T4 if size else {}, rng.choice(({}, TAINT)), {"nvidia.com/gpu": str(size)} if size else {})
        for name, size in sizes.items()
    ]
    for number in range(rng.randint(0, 12)):
        kind, name = rng.choice(("runs", "waits", "over")), f"p{number}"
        asked: dict[str, object] = {"cpu": rng.choice(CPUS), "memory": rng.choice(BYTES)}
        meta = {"creationTimestamp": f"2026-01-01T00:00:{rng.randrange(5):02}Z"}
        if kind == "waits":
            objects.append(pod(name, asked, meta=meta, priority=rng.choice((0, 5))))
            continue
        where, notes = rng.choice(list(sizes)), {}
        count = rng.randint(0, len(left[where])) if kind == "runs" else 0
        if count:
            devices = rng.sample(sorted(left[where]), count)
            left[where] -= set(devices)
            asked["nvidia.com/gpu"] = count
            notes = {"alibabacloud.com/gpu-index": "-".join(map(str, devices))}
        phase = "Running" if kind == "runs" else "Succeeded"
        objects.append(pod(name, asked, notes, status={"phase": phase}, meta=meta, nodeName=where))
    for item in objects:
        for container in item["spec"].get("containers", ()):
            container["ports"] = rng.choice(PORTS)
    return objects


def snapshot(objects: Objects) -> Snapshot:
    return Snapshot([Manifest(str(number), item) for number, item in enumerate(objects)])


def running(objects: Objects) -> Objects:
    return [item for item in objects if item["kind"] == "Pod" and item["status"].get("phase") == "Running"]


@some
@given(dumps())
def test_who_runs_is_on_its_node_and_devices(objects: Objects) -> None:
    there = running(objects)
    read = snapshot(objects)
    if not read.rows_of(read.objects, present=True):
        with pytest.raises(fs.errors.InputError, match="no pods"):
            workload_of(read)
        return
    placed = fs.simulate(cluster_of(read), workload_of(read), "best_fit", queue="fifo").placements
    found = {row["native_id"]: (row["node"], row["gpu_ids"]) for row in placed.iter_rows(named=True)}
    for item in there:
        told = item["metadata"]["annotations"].get("alibabacloud.com/gpu-index", "")
        devices = sorted(int(number) for number in told.split("-") if number)
        assert found[f"default/{item['metadata']['name']}"] == (item["spec"]["nodeName"], devices)


@some
@given(dumps())
def test_sums_of_a_node_are_kubernetes_own(objects: Objects) -> None:
    rows = pl.DataFrame(snapshot(objects).running() or None, schema_overrides={"times": pl.Object})
    for item in (one for one in objects if one["kind"] == "Node"):
        name = item["metadata"]["name"]
        asked = [one["spec"]["containers"][0]["resources"]["requests"] for one in running(objects)
                 if one["spec"]["nodeName"] == name]  # fmt: skip
        sums = {key: sum((quantity(one.get(key, "0")) for one in asked), Fraction(0))
                for key in ("cpu", "memory", "nvidia.com/gpu")}  # fmt: skip
        held = rows.filter(pl.col("bound_node") == name) if len(rows) else rows
        found = [held[key].sum() if len(held) else 0 for key in ("cpu_milli", "memory_mib", "num_gpu")]
        assert found == [1000 * sums["cpu"], sums["memory"] / 2**20, sums["nvidia.com/gpu"]]


@some
@given(dumps(), st.integers(0, 2**32))
def test_the_order_of_objects_changes_nothing(objects: Objects, seed: int) -> None:
    read, mixed = snapshot(objects), snapshot(random.Random(seed).sample(objects, len(objects)))
    assert cluster_of(mixed).nodes.equals(cluster_of(read).nodes)
    if read.rows_of(read.objects, present=True):
        assert workload_of(mixed).table().equals(workload_of(read).table())


@some
@given(dumps())
def test_a_pod_that_waited_is_beside_no_pod_with_its_ports(objects: Objects) -> None:
    read = snapshot(objects)
    if not read.rows_of(read.objects, present=True):
        return
    placed = fs.simulate(cluster_of(read), workload_of(read), "best_fit", queue="fifo_skip").placements
    if any("host ports" in notice for notice in read.notices):
        return  # clashes among pods that wait are not honoured
    ports = {f"default/{item['metadata']['name']}": _ports(item) for item in objects if item["kind"] == "Pod"}
    waited = {f"default/{item['metadata']['name']}" for item in objects if not item["spec"].get("nodeName")}
    for _, rows in placed.filter(pl.col("node").is_not_null()).group_by("node"):
        names = rows["native_id"].to_list()
        pairs = [(one, other) for one in names for other in names if one in waited and one != other]
        assert not any(clash(ports[one], ports[other]) for one, other in pairs)


def _ports(item: dict[str, Any]) -> frozenset[HostPort]:
    listed = item["spec"]["containers"][0]["ports"]
    return frozenset(HostPort("TCP", port.get("hostIP", "0.0.0.0"), port["hostPort"]) for port in listed)
