"""Time-sliced GPUs and instances of strategy "single": as many pods as Kubernetes counts, and watts of boards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.errors import InputError
from fastsim.kubernetes.devices.gpu_slots import WHOLE, Slots, common_division, slots
from fastsim.kubernetes.snapshot import NotHonoured, Snapshot
from tests.objects import cluster_of, manifest, node, pod, workload_of, written

PRODUCT = "nvidia.com/gpu.product"
SLICED = {PRODUCT: "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"}
T4 = {PRODUCT: "Tesla-T4"}
SINGLE = {PRODUCT: "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/mig.strategy": "single",
          "nvidia.com/gpu.count": "14", "nvidia.com/gpu.memory": "9728"}  # fmt: skip
ONE: dict[str, object] = {"nvidia.com/gpu": "1"}


def sliced(name: str = "sliced", **labels: str) -> dict[str, Any]:
    return node(name, {**SLICED, **labels}, amounts={"nvidia.com/gpu": "8"})


def test_labels_of_gke_divide_gpus() -> None:
    a100 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}
    shared = {**a100, "cloud.google.com/gke-max-shared-clients-per-gpu": "3"}
    parts = {**a100, "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}
    assert slots(manifest(node("n", shared))) == Slots(3) and slots(manifest(node("n", parts))) == Slots(1, "1g.5gb")
    division = common_division([manifest(node("n", parts, amounts={"nvidia.com/gpu": "7"}))])
    assert division == {"nvidia.com/gpu": Slots(1, "1g.5gb")}


def gke(name: str, strategy: str, boards: int, clients: int) -> dict[str, Any]:
    """A node with T4s that GKE shares: it offers `clients` slots for each board."""
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4", "cloud.google.com/gke-gpu-sharing-strategy": strategy,
        "cloud.google.com/gke-max-shared-clients-per-gpu": str(clients),
    }  # fmt: skip
    return node(name, labels, amounts={"nvidia.com/gpu": str(boards * clients)})


SEVERAL = "pods: several slots of shared GPUs, of which GKE gives a container only one"


@pytest.mark.parametrize("strategy", ["time-sharing", "mps"])
def test_boards_that_gke_shares_are_the_slots_divided_by_the_clients(tmp_path: Path, strategy: str) -> None:
    nodes = gke("a", strategy, 2, 3), gke("b", strategy, 4, 3)
    counts, snapshot = placed(tmp_path, *nodes, *(pod(f"p{i}", ONE) for i in range(20)))
    assert counts == {"a": 6, "b": 12, None: 2} and busy_w(snapshot) == 6 * 70
    assert cluster_of(snapshot).nodes["num_gpu"].to_pylist() == [2, 4] and SEVERAL not in snapshot.notices
    counts, snapshot = placed(tmp_path, gke("a", strategy, 2, 3), plain(), *(pod(f"p{i}", ONE) for i in range(10)))
    assert counts == {"a": 6, "plain": 2, None: 2} and busy_w(snapshot) == 4 * 70
    assert cluster_of(snapshot).nodes["gpu_model"].to_pylist() == ["T4/3", "T4"]


def test_several_slots_of_one_container_are_named_where_gke_refuses_them(tmp_path: Path) -> None:
    for strategy, boards, named in (("time-sharing", 1, True), ("mps", 2, True), ("mps", 1, False)):
        shared = gke("a", strategy, boards, 4)
        _, snapshot = placed(tmp_path, shared, pod("p", {"nvidia.com/gpu": "2"}), pod("q", ONE))
        assert snapshot.notices[SEVERAL] == named


def plain(name: str = "plain") -> dict[str, Any]:
    return node(name, T4, amounts={"nvidia.com/gpu": "2"})


def single(name: str = "single") -> dict[str, Any]:
    return node(name, SINGLE, amounts={"nvidia.com/gpu": "14"})


def placed(path: Path, *objects: dict[str, Any]) -> tuple[dict[Any, int], Snapshot]:
    """Number of pods on each node; None counts those without one."""
    snapshot = Snapshot.read(written(path / "a.json", *objects))
    result = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit")
    return dict(result.placements.group_by("node").agg(pl.len()).rows()), snapshot


def busy_w(snapshot: Snapshot) -> float:
    """Watts of all devices while busy."""
    cluster = cluster_of(snapshot)
    return sum(float(count * watts) for count, watts in zip(
        cluster.nodes["num_gpu"].to_pylist(), cluster.watts["gpu_peak_w"].to_pylist(), strict=True))  # fmt: skip


def test_sliced_gpus_beside_plain_ones_hold_what_kubernetes_counts(tmp_path: Path) -> None:
    counts, snapshot = placed(tmp_path, sliced(), plain(), *(pod(f"p{i}", ONE) for i in range(11)))
    assert counts == {"sliced": 8, "plain": 2, None: 1}
    row = cluster_of(snapshot).nodes.to_pylist()[-1]
    assert (row["num_gpu"], row["gpu_model"], row["gpu_memory_mib"]) == (8, "T4/4", 15109 // 4)
    assert busy_w(snapshot) == 4 * 70
    assert any("divided GPU" in text for text in snapshot.notices)


def test_a_table_of_watts_holds_for_parts_as_well(tmp_path: Path) -> None:
    path, table = written(tmp_path / "a.json", sliced(), plain()), tmp_path / "w.csv"
    table.write_text("kind,model,idle_w,peak_w,memory_mib,cores_per_socket\ngpu,T4,20,80,15109,\n")
    with pytest.warns(NotHonoured):
        cluster = Cluster.from_text(f"kubernetes:{path}?watts={table}")
    assert cluster.watts["gpu_peak_w"].to_pylist() == [80, 20]


def test_running_pods_follow_the_node_they_are_on(tmp_path: Path) -> None:
    bound = [pod(f"s{i}", ONE, nodeName="sliced") for i in range(8)]
    bound += [pod(f"q{i}", ONE, nodeName="plain") for i in range(2)]
    counts, _ = placed(tmp_path, sliced(), plain(), *bound, pod("late", ONE))
    assert counts == {"sliced": 8, "plain": 2, None: 1}


def test_a_pod_with_several_slots_counts_them(tmp_path: Path) -> None:
    counts, _ = placed(tmp_path, sliced(), plain(), *(pod(f"p{i}", {"nvidia.com/gpu": "3"}) for i in range(4)))
    assert counts == {"sliced": 2, None: 2}
    counts, _ = placed(tmp_path, sliced(), *(pod(f"p{i}", {"nvidia.com/gpu": "2"}) for i in range(5)))
    assert counts == {"sliced": 4, None: 1}


def test_boards_stay_boards_where_all_are_divided_alike(tmp_path: Path) -> None:
    counts, snapshot = placed(tmp_path, sliced(), node("cpu"), *(pod(f"p{i}", ONE) for i in range(9)))
    assert counts == {"sliced": 8, None: 1}
    assert cluster_of(snapshot).nodes["num_gpu"].to_pylist() == [0, 2]
    many = node("many", {**T4, "nvidia.com/gpu.replicas": "10"}, amounts={"nvidia.com/gpu": "80"})
    assert placed(tmp_path, many, pod("p", ONE))[0] == {"many": 1}
    with pytest.raises(InputError, match=r"found 80 slots, expected at most 64 where nodes divide"):
        placed(tmp_path, many, plain(), pod("p", ONE))


def test_slots_of_boards_that_are_ill_are_not_there(tmp_path: Path) -> None:
    half = node("half", SLICED, amounts={"nvidia.com/gpu": "5"})
    counts, snapshot = placed(tmp_path, half, *(pod(f"p{i}", ONE) for i in range(6)))
    assert counts == {"half": 5, None: 1} and busy_w(snapshot) == 5 * 70 / 4


def test_models_that_a_pod_accepts_are_also_accepted_in_parts(tmp_path: Path) -> None:
    annotations = {"alibabacloud.com/gpu-card-model": "T4"}
    counts, _ = placed(tmp_path, sliced(), plain(), *(pod(f"p{i}", ONE, annotations) for i in range(10)))
    assert counts == {"sliced": 8, "plain": 2}


def test_strategy_single_is_two_partitioned_boards(tmp_path: Path) -> None:
    counts, snapshot = placed(tmp_path, single(), *(pod(f"p{i}", ONE) for i in range(15)))
    assert counts == {"single": 14, None: 1}
    row = cluster_of(snapshot).nodes.to_pylist()[0]
    assert (row["num_gpu"], row["gpu_model"], row["mig"]) == (2, "A100-80GB", "7*1g.10gb;7*1g.10gb")
    assert row["gpu_memory_mib"] == 81920 and busy_w(snapshot) == 800


def test_strategy_single_beside_whole_gpus_has_parts_of_the_watts(tmp_path: Path) -> None:
    counts, snapshot = placed(tmp_path, single(), plain(), *(pod(f"p{i}", ONE) for i in range(17)))
    assert counts == {"single": 14, "plain": 2, None: 1}
    assert cluster_of(snapshot).nodes["gpu_model"].to_pylist() == ["T4", "A100-80GB/7"]
    assert cluster_of(snapshot).nodes["gpu_memory_mib"].to_pylist() == [15109, 9728]
    assert busy_w(snapshot) == pytest.approx(2 * 400 + 2 * 70)


def test_instances_of_a_model_without_known_profiles_are_named(tmp_path: Path) -> None:
    odd = node("odd", {PRODUCT: "NVIDIA-B300-MIG-1g.34gb"}, amounts={"nvidia.com/gpu": "7"})
    counts, snapshot = placed(tmp_path, odd, *(pod(f"p{i}", ONE) for i in range(8)))
    assert counts == {"odd": 7, None: 1}
    assert "nodes: GPU model NVIDIA-B300/1g.34gb of unknown watts counts 0 W" in snapshot.notices


def test_how_a_node_divides_its_gpus() -> None:
    both = {PRODUCT: "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me-SHARED", "nvidia.com/gpu.replicas": "2"}
    assert slots(manifest(node(labels=both))) == Slots(2, "1g.10gb+me")
    assert slots(manifest(plain())) == WHOLE == Slots(1, "")
    assert Slots(2, "1g.10gb").on("A100-80GB") == 14 and Slots(2, "1g.10gb").on("T4") is None
    assert common_division([manifest(sliced()), manifest(sliced("b"))]) == {"nvidia.com/gpu": Slots(4)}
    assert common_division([manifest(sliced()), manifest(plain())]) == {}


def test_shared_slots_under_a_name_of_their_own(tmp_path: Path) -> None:
    shared = node("shared", SLICED, amounts={"nvidia.com/gpu.shared": "8"})
    pods = [pod(f"p{i}", {"nvidia.com/gpu.shared": "1"}) for i in range(9)]
    counts, _ = placed(tmp_path, plain(), shared, *pods, *(pod(f"w{i}", ONE) for i in range(3)))
    assert counts == {"shared": 8, "plain": 2, None: 2}
