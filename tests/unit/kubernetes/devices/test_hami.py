"""Virtual GPUs: boards that their device plugin registers, and pods that request parts of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import InputError
from fastsim.kubernetes.devices.hami import Board, boards
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, manifest, node, pod, row_of, workload_of, written

HAMI, VOLCANO = "hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register"
ENTRY = "GPU-{},10,15360,100,NVIDIA-Tesla T4,0,true:"
GPU, MEMORY, PERCENT, CORES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)
NUMBER = "volcano.sh/vgpu-number"


def registered(count: int, name: str = "hami", text: str | None = None) -> dict[str, Any]:
    body = node(name, amounts={GPU: str(10 * count)})
    body["metadata"]["annotations"] = {HAMI: text or "".join(ENTRY.format(i) for i in range(count))}
    return body


def placed(path: Path, *objects: dict[str, Any]) -> tuple[dict[Any, int], list[tuple[Any, ...]], Counter[str]]:
    """Number of pods on each node, their shares of devices, and the notices."""
    snapshot = Snapshot.read(written(path / "a.json", *objects))
    workload = workload_of(snapshot)
    result = fs.simulate(cluster_of(snapshot), workload, "best_fit")
    rows = [row for batch in workload.batches() for row in batch.to_pylist()]
    shares = [(row["num_gpu"], row["gpu_milli"], row.get("gpu_memory_mib")) for row in rows]
    return dict(result.placements.group_by("node").agg(pl.len()).rows()), shares, snapshot.notices


def devices(body: dict[str, Any]) -> tuple[Any, ...]:
    row = row_of(body)[0]
    return row["num_gpu"], row["gpu_model"], row["gpu_memory_mib"], row["extra_resources"]


@pytest.mark.parametrize("count", [2, 8])
def test_boards_are_counted_not_the_pods_that_may_share_them(count: int) -> None:
    assert devices(registered(count)) == (count, "T4", 15360, None)


def test_every_form_of_the_list() -> None:
    entry = {"id": "GPU-1", "count": 5, "devmem": 46068, "devcore": 100, "type": "NVIDIA-NVIDIA A10", "health": True}
    text = json.dumps([entry, {**entry, "id": "GPU-2", "health": False}])
    assert boards(manifest(registered(1, text=text))) == [Board(46068, "NVIDIA-A10", "GPU-1")]
    ill = ENTRY.format(1) + ENTRY.format(2).replace("true", "false")
    assert boards(manifest(registered(1, text=ill))) == [Board(15360, "Tesla-T4", "GPU-1")]
    other = node(amounts={NUMBER: "10"})
    other["metadata"]["annotations"] = {VOLCANO: "GPU-1,10,32768,Tesla-V100-SXM2-32GB,true:"}
    assert devices(other) == (1, "V100M32", 32768, None)
    assert boards(manifest(node())) == []
    for wrong in ("GPU-1", "[1]", "GPU-1,10,b:", "[{]"):
        with pytest.raises(InputError, match="expected boards such as GPU-1,10"):
            boards(manifest(registered(1, text=wrong)))


def test_boards_of_several_kinds() -> None:
    text = ENTRY.format(1) * 2 + "GPU-9,10,7611,100,NVIDIA-P4,0,true:"
    row, notices = row_of(registered(3, text=text))
    assert (row["num_gpu"], row["gpu_model"], row["gpu_memory_mib"]) == (3, "T4", 7611) and len(notices) == 2


def test_pods_share_boards_by_memory_and_cores(tmp_path: Path) -> None:
    pods = [pod(f"p{i}", {GPU: 1, MEMORY: 7000, CORES: 30}) for i in range(5)]
    assert placed(tmp_path, registered(2), *pods)[:2] == ({"hami": 4, None: 1}, [(1, 300, 7000)] * 5)
    pods = [pod(f"p{i}", {GPU: 1, MEMORY: 1000, CORES: 60}) for i in range(3)]
    assert placed(tmp_path, registered(2), *pods)[0] == {"hami": 2, None: 1}
    pods = [pod(f"p{i}", {MEMORY: 5000}) for i in range(7)]
    assert placed(tmp_path, registered(2), *pods)[:2] == ({"hami": 6, None: 1}, [(1, 325, 5000)] * 7)


def test_percent_of_the_memory(tmp_path: Path) -> None:
    pods = [pod(f"p{i}", {GPU: 1, PERCENT: 50, CORES: 20}) for i in range(3)]
    counts, shares, notices = placed(tmp_path, registered(1), *pods)
    assert (counts, shares) == ({"hami": 2, None: 1}, [(1, 200, 7680)] * 3)
    notice = "pods: a percentage of a device's memory is that of the largest device"
    assert notice not in notices
    large = registered(1, "large", ENTRY.format(7).replace("15360", "20000"))
    assert placed(tmp_path, registered(1), large, *pods)[2][notice] == 3


@pytest.mark.parametrize("asked", [{GPU: 1}, {GPU: 1, CORES: 30}, {GPU: 1, PERCENT: 100}])
def test_all_memory_is_the_whole_board(tmp_path: Path, asked: dict[str, object]) -> None:
    pods = [pod(f"p{i}", asked) for i in range(3)]
    assert placed(tmp_path, registered(2), *pods)[:2] == ({"hami": 2, None: 1}, [(1, 1000, None)] * 3)


def test_several_parts_are_whole_boards_with_a_notice(tmp_path: Path) -> None:
    counts, shares, notices = placed(tmp_path, registered(2), pod("p", {GPU: 2, MEMORY: 3000, CORES: 10}))
    assert counts == {"hami": 1} and shares == [(2, 1000, 3000)]
    assert notices["pods: shares of several GPUs count as whole ones"] == 1


def test_containers_ask_for_parts_of_the_same_size(tmp_path: Path) -> None:
    body = pod("p", {GPU: 1, MEMORY: 3000})
    body["spec"]["containers"] *= 2
    assert placed(tmp_path, registered(2), body)[1] == [(2, 1000, 3000)]
    body = pod("p", {MEMORY: 3000})
    body["spec"]["containers"] *= 2
    assert placed(tmp_path, registered(2), body)[1] == [(2, 1000, 3000)]


def test_parts_go_to_nodes_that_registered_boards(tmp_path: Path) -> None:
    plain = node("plain", {"nvidia.com/gpu.product": "Tesla-T4"}, amounts={GPU: "4"})
    pods = [pod(f"p{i}", {GPU: 1, MEMORY: 7000}) for i in range(3)]
    assert placed(tmp_path, plain, registered(1), *pods)[0] == {"hami": 2, None: 1}


def test_volcano_without_a_list(tmp_path: Path) -> None:
    amounts = {NUMBER: "20", "volcano.sh/vgpu-cores": "200", "volcano.sh/vgpu-memory": "30720"}
    body = node("v", {"nvidia.com/gpu.product": "Tesla-T4"}, amounts=amounts)
    assert devices(body) == (2, "T4", 15360, None)
    request: dict[str, object] = {NUMBER: 1, "volcano.sh/vgpu-memory": 7000, "volcano.sh/vgpu-cores": 50}
    assert placed(tmp_path, body, *(pod(f"p{i}", request) for i in range(5)))[0] == {"v": 4, None: 1}


def held(name: str, board: str, mib: int) -> dict[str, Any]:
    text = {"hami.io/vgpu-devices-allocated": f"{board},NVIDIA,{mib},0:;"}
    return pod(name, {GPU: 1, MEMORY: mib}, text, nodeName="hami")


def test_pods_hold_the_boards_that_were_allocated(tmp_path: Path) -> None:
    """HAMi writes "UUID,type,memory MiB,cores:" for each device, and ";" between the containers."""
    running = [held("a", "GPU-0", 7000), held("b", "GPU-1", 7000)]
    assert placed(tmp_path, registered(2), *running, pod("large", {GPU: 1, MEMORY: 15360}))[0] == {"hami": 2, None: 1}
    both = [held("a", "GPU-1", 7000), held("b", "GPU-1", 7000)]
    assert placed(tmp_path, registered(2), *both, pod("large", {GPU: 1, MEMORY: 15360}))[0] == {"hami": 3}
    assert placed(tmp_path, registered(2), held("a", "GPU-7", 7000))[2].total() == 1


@pytest.mark.parametrize(
    ("annotation", "text", "nodes", "partial"),
    [
        ("nvidia.com/use-gputype", "h100,a10", ["a10"], 0), ("nvidia.com/use-gputype", "H100", [None], 0),
        ("nvidia.com/nouse-gputype", "Tesla T4", ["a10"], 0), ("nvidia.com/nouse-gputype", "A10", ["hami"], 0),
        ("nvidia.com/use-gpuuuid", "GPU-9", ["a10"], 0), ("nvidia.com/use-gpuuuid", "GPU-1", ["hami"], 1),
        ("nvidia.com/nouse-gpuuuid", "GPU-0,GPU-1", ["a10"], 0),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_pods_choose_boards(tmp_path: Path, annotation: str, text: str, nodes: list[Any], partial: int) -> None:
    """HAMi's annotations name parts of types, or boards, with commas between."""
    a10 = registered(1, "a10", "GPU-9,10,24000,100,NVIDIA-NVIDIA A10,0,true:")
    counts, _, notices = placed(tmp_path, registered(2), a10, pod("p", {GPU: 1, MEMORY: 5000}, {annotation: text}))
    assert list(counts) == nodes
    assert notices["pods: boards of chosen types or names, of which any on their nodes count"] == partial
