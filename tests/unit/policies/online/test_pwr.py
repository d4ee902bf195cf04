"""PWR: watts saved by hand, and devices and sockets that are awake already."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.online.plan import KERNELS, ScoreTerm
from fastsim.policies import PWR
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


@pytest.mark.parametrize(
    ("state", "pod", "points", "devices"),
    [
        # A T4 wakes from 10 to 70 W, the socket of 16 cores from 15 to 120 W.
        ((8000, [1000, 1000]), (1, 500, 1000), -60 - 105, 0b01),
        ((8000, [1000, 1000]), (2, 1000, 0), -120, 0b11),
        ((7000, [1000, 1000]), (1, 500, 1000), -60, 0b01),
        ((7000, [1000, 600]), (1, 500, 1000), 0, 0b10),
        ((7000, [1000, 400]), (1, 500, 1000), -60, 0b01),  # the device awake has no room
        ((8000, [0, 0]), (0, 0, 1), -105, 0),
    ],
)
def test_points_by_hand(state: Any, pod: Any, points: int, devices: int) -> None:
    decision = Decision(t4(1))
    decision.table.nodes.load(0, state[0], 64, state[1], {})
    assert decision.select.raw(KERNELS.index("pwr"), 0, 0, 0, decision.pod(*pod)) == (points, devices)


def test_a_fraction_of_a_watt_is_nothing() -> None:
    decision = Decision(t4(1, gpu_idle_w=10.0, gpu_peak_w=11.999))
    assert decision.select.raw(KERNELS.index("pwr"), 0, 0, 0, decision.pod(1))[0] == -1  # towards zero


def test_what_is_awake_is_used_first() -> None:
    assert PWR().term() == ScoreTerm("pwr", normalise="min_max_100") and PWR().own_gpu_pick() == "pwr"
    decision = Decision(t4(3), PWR().plan(None, None))  # type: ignore[arg-type]
    decision.table.nodes.load(2, 8000, 64, [1000, 500], {0: 1})
    decision.table.nodes.load(1, 5000, 64, [1000, 1000], {})
    assert decision.placed(decision.pod(1, 500)) == 2  # wakes nothing
    assert decision.placed(decision.pod(1, 500, 1000)) == 1  # wakes a device, 2 and 0 a socket too
    assert decision.table.columns["gpu_left"][:, :2].tolist() == [[1000, 1000], [500, 1000], [1000, 0]]
