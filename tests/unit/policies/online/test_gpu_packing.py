"""GPU packing: the three kinds of node by hand, in their order."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.online.plan import KERNELS, ScoreTerm
from fastsim.policies import GpuPacking
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


@pytest.mark.parametrize(
    ("devices", "pod", "points"),
    [
        ([500, 1000, 1000], (1, 300), 95),  # a used device, half free
        ([310, 500, 1000], (1, 300), 97),  # the tightest counts: 31 % free, 100 - 31 // 10
        ([999, 0, 0], (1, 300), 91),
        ([200, 1000, 1000], (1, 300), 49),  # a free device of a used node
        ([200, 1000, 1000], (1, 1000), 49),
        ([200, 1000, 1000], (2, 1000), 48),
        ([1000, 1000, 1000], (1, 300), 30),  # three free devices and none in use
        ([1000, 1000, 1000], (3, 1000), 30),
        ([500, 1000, 1000], (0, 0), 0),
    ],
)
def test_points_by_hand(devices: list[int], pod: Any, points: int) -> None:
    decision = Decision(t4(1, gpus=3))
    decision.table.nodes.load(0, 8000, 64, devices, {})
    assert decision.select.raw(KERNELS.index("gpu_packing"), 0, 0, 0, decision.pod(*pod)) == (points, 0)


@pytest.mark.parametrize(("gpus", "free", "points"), [(20, 20, 20), (17, 17, 17), (16, 16, 17), (30, 29, 33)])
def test_points_have_a_floor_on_large_nodes(gpus: int, free: int, points: int) -> None:
    decision = Decision(t4(1, gpus=gpus))
    decision.table.nodes.load(0, 8000, 64, [1000] * free + [0] * (gpus - free), {})
    assert decision.select.raw(KERNELS.index("gpu_packing"), 0, 0, 0, decision.pod(18 if free > 18 else 1))[0] == points


def test_an_idle_node_is_woken_last_and_the_tightest_device_taken() -> None:
    assert GpuPacking().term() == ScoreTerm("gpu_packing") and GpuPacking().own_gpu_pick() == "best"
    decision = Decision(t4(3), GpuPacking().plan(None, None))  # type: ignore[arg-type]
    decision.table.nodes.load(1, 8000, 64, [0, 1000], {1: 1})
    decision.table.nodes.load(2, 8000, 64, [900, 500], {0: 2})
    cls = decision.pod(1, 500)
    assert [decision.placed(cls) for _ in range(6)] == [2, 2, 1, 1, 0, 0]
    assert decision.table.columns["gpu_left"][:, :2].tolist() == [[0, 1000], [0, 0], [400, 0]]
