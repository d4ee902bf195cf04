"""FGD: the sigmoid of the fragmentation that a pod adds, by hand, and the device that earns it."""

from __future__ import annotations

from math import exp

import pytest

from fastsim.engine.online.plan import KERNELS, ScoreTerm
from fastsim.policies import FGD
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4

KERNEL = KERNELS.index("fgd")


@pytest.mark.parametrize(
    ("devices", "milli", "growth", "device"),
    [
        # The typical pod wants a whole device, so what is left of a device in use is fragmented.
        ([1000, 1000], 400, 600, 0),  # breaks a whole device
        ([1000, 500], 400, -400, 1),  # uses up part of a fragment
        ([1000, 1000], 1000, 0, 0),  # leaves no fragment
        ([700, 400], 400, -400, 0),  # as good on either: the first
    ],
)
def test_points_by_hand(devices: list[int], milli: int, growth: int, device: int) -> None:
    decision = Decision(t4(1))
    decision.table.nodes.load(0, 8000, 64, devices, {})
    points = int(100 / (1 + exp(growth / 1000)))
    assert decision.select.raw(KERNEL, 0, 0, 0, decision.pod(1, milli)) == (points, 1 << device)


def test_a_pod_that_takes_the_last_cpu_strands_the_devices() -> None:
    decision = Decision(t4(1))
    points = int(100 / (1 + exp(2)))
    assert decision.select.raw(KERNEL, 0, 0, 0, decision.pod(0, 0, 7001)) == (points, 0)
    assert decision.select.raw(KERNEL, 0, 0, 0, decision.pod(0, 0, 7000)) == (50, 0)  # a typical pod still fits
    assert decision.select.raw(KERNEL, 0, 0, 0, decision.pod(0)) == (100, 0)


def test_a_used_device_is_filled_before_a_whole_one_is_broken() -> None:
    assert FGD().term() == ScoreTerm("fgd") and FGD().own_gpu_pick() == "fgd"
    decision = Decision(t4(2), FGD().plan(None, None))  # type: ignore[arg-type]
    decision.table.nodes.load(1, 8000, 64, [1000, 700], {0: 1})
    cls = decision.pod(1, 300)
    assert [decision.placed(cls) for _ in range(3)] == [1, 1, 0]
    assert decision.table.columns["gpu_left"][:, :2].tolist() == [[700, 1000], [1000, 100]]
