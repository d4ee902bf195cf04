"""A reserved device is that of the shares it is reserved for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, node, pod, workload_of, written

TWO = node("n", {"nvidia.com/gpu.product": "Tesla-T4"}, amounts={"nvidia.com/gpu": "2"})


def share(name: str, group: str, part: str = "0.4", **spec: Any) -> dict[str, Any]:
    return pod(name, {}, {"gpu-fraction": part}, {"runai-gpu-group": group}, nodeName="n", **spec)


def reservation(group: str, namespace: str = "kai-resource-reservation") -> dict[str, Any]:
    labels = {"runai-gpu-group": group}
    meta = {"namespace": namespace}
    return pod(f"gpu-reservation-{group}", {"nvidia.com/gpu": 1}, labels=labels, meta=meta, nodeName="n")


def waits(path: Path, *objects: dict[str, Any]) -> list[bool]:
    """Of each pod, by name, whether it has no node."""
    snapshot = Snapshot.read(written(path / "a.json", TWO, *objects))
    rows = fs.simulate(cluster_of(snapshot), workload_of(snapshot), "best_fit").placements.sort("native_id")
    assert not snapshot.notices
    return [node is None for node in rows["node"].to_list()]


@pytest.mark.parametrize("namespace", ["kai-resource-reservation", "runai-reservation"])
@pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.PodNeverFits")
def test_a_reserved_device_is_counted_once(tmp_path: Path, namespace: str) -> None:
    """ "In order to reserve a GPU device, KAI Scheduler will run a reservation pod"."""
    there = [reservation("g", namespace), share("a", "g"), share("b", "g")]
    assert waits(tmp_path, *there, pod("whole", {"nvidia.com/gpu": 1})) == [False] * 4
    assert waits(tmp_path, *there, pod("pair", {"nvidia.com/gpu": 2}))[2:] == [True, False] or namespace < "l"
    assert (
        waits(tmp_path, reservation("g", namespace), *(pod(f"w{i}", {"nvidia.com/gpu": 1}) for i in "ab")).count(True)
        == 1
    )  # a reservation without shares holds its device


def test_shares_of_one_group_are_on_one_device(tmp_path: Path) -> None:
    objects = [TWO, *(share(name, group) for name, group in (("a", "g"), ("b", "h"), ("c", "g")))]
    rows = Snapshot.read(written(tmp_path / "a.json", *objects)).pod_rows()
    assert [(row["native_id"][-1], row["bound_gpus"]) for row in rows] == [("a", [0]), ("b", [1]), ("c", [0])]
    several = pod("d", {}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
                  {"runai-gpu-group/g": "g", "runai-gpu-group/h": "h"}, nodeName="n")  # fmt: skip
    [row] = Snapshot.read(written(tmp_path / "a.json", TWO, several)).pod_rows()
    assert row["bound_gpus"] == [0, 1]
    known = {**objects[1]["metadata"]["annotations"], "alibabacloud.com/gpu-index": "0"}
    whole = pod("w", {"nvidia.com/gpu": 1}, known, nodeName="n")
    rows = Snapshot.read(written(tmp_path / "a.json", TWO, share("a", "g"), whole)).pod_rows()
    assert sorted((row["native_id"][-1], *row["bound_gpus"]) for row in rows) == [("a", 1), ("w", 0)]
