"""Memory in bytes as whole numbers: sums of pods are those of Kubernetes, or nearly."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastsim as fs
from fastsim.kubernetes.memory_step import MemoryStep, memory_step
from fastsim.kubernetes.quantity import MIB, quantity
from fastsim.kubernetes.snapshot import NotHonoured, Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written


def unplaced(path: Path, memory: str, *requests: str) -> int:
    """Number of pods that do not fit in this memory."""
    pods = [pod(f"p{i}", {"memory": amount}) for i, amount in enumerate(requests)]
    snapshot = Snapshot.read(written(path / "a.json", node(amounts={"memory": memory}), *pods))
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    return int(result.summary["pods_unplaced"][0])


@pytest.mark.parametrize(
    ("memory", "asked", "expected"),
    [
        ("100M", ["50M"] * 3, 1),
        ("100M", ["10M"] * 11, 1),
        ("1G", ["300M", "300M", "400M", "1M"], 1),
        ("12800M", ["128M"] * 101, 1),
        ("99999999", ["50M"] * 2, 1),
        ("1Gi", ["256Mi"] * 5, 1),
        ("1073741823", ["256Mi"] * 4, 1),
        ("100M", ["50M", "50000000001m"], 0),  # no common amount, by less than a MiB
    ],
)
def test_as_many_pods_as_kubernetes_places(tmp_path: Path, memory: str, asked: list[str], expected: int) -> None:
    assert unplaced(tmp_path, memory, *asked) == expected


def test_further_bytes_add_up_as_well(tmp_path: Path) -> None:
    storage = "ephemeral-storage"
    pods = [pod(f"p{i}", {storage: "50M"}) for i in range(3)]
    snapshot = Snapshot.read(written(tmp_path / "a.json", node(amounts={storage: "100M"}), *pods))
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    assert result.summary["pods_unplaced"][0] == 1 and len(snapshot.notices) == 1


def test_what_a_step_is() -> None:
    assert memory_step([]) == memory_step([Fraction(5 * MIB), Fraction(0)]) == MemoryStep()
    assert memory_step([quantity("50M"), quantity("100M")]) == MemoryStep(Fraction(50_000_000, 48))
    assert memory_step([quantity("50M"), quantity("64Mi")]) == MemoryStep(up=True)
    assert memory_step([quantity("1536Ki")]) == MemoryStep(up=True)
    assert (MemoryStep().request(Fraction(MIB + 1)), MemoryStep().capacity(Fraction(2 * MIB - 1))) == (2, 1)
    assert not MemoryStep().notice and "41,666.7 bytes" in memory_step([quantity("50M")]).notice


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=6), st.integers(0, 10**10))
def test_no_node_holds_a_mib_more_than_it_has(requests: list[int], memory: int) -> None:
    step = memory_step(map(Fraction, requests))
    fits = sum(step.request(Fraction(amount)) for amount in requests) <= step.capacity(Fraction(memory))
    assert not fits or sum(requests) < memory + (MIB if step.up else 1)
    if not step.up:
        assert fits == (sum(requests) <= memory)


def test_pods_and_nodes_of_several_sources_count_in_mib(tmp_path: Path) -> None:
    nodes = written(tmp_path / "n.json", node(amounts={"memory": "100M"}))
    pods = written(tmp_path / "p.json", pod("p", {"memory": "10M"}))
    assert fs.Workload.from_kubernetes(pods, nodes).table()["memory_mib"].to_pylist() == [10]
    assert fs.Cluster.from_kubernetes(nodes).nodes["memory_mib"].to_pylist() == [95]


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_pods_of_workloads_count_and_wrong_ones_do_not_stop_nodes(tmp_path: Path, kind: str) -> None:
    template = {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "50M"}}}]}}}
    spec: dict[str, Any] = {"jobTemplate": {"spec": template}} if kind == "CronJob" else template
    body = {"kind": kind, "metadata": {"name": "w"}, "spec": spec}
    path = written(tmp_path / "a.json", node(amounts={"memory": "100M"}), body, pod("bad", {"memory": "1GB"}))
    assert cluster_of(Snapshot.read(path)).nodes["memory_mib"].to_pylist() == [96]


def test_the_notice_comes_with_the_nodes_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", node(amounts={"memory": "100M"}), pod("a", {"memory": "50M"}))
    with pytest.warns(NotHonoured, match="nodes: memory: each .* bytes count as one MiB"):
        fs.Cluster.from_kubernetes(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.Workload.from_kubernetes(path)
