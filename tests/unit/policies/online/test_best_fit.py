"""Best fit: points by hand, and the fullest node that still has room."""

from __future__ import annotations

import pytest

from fastsim.engine.online.plan import KERNELS, ScoreTerm
from fastsim.policies import BestFit
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


@pytest.mark.parametrize(
    ("cpu_left", "devices", "points"),
    [
        # 100 x (1 - CPU left / 256,000 - milli-GPU left / 16,000), after the pod has taken 1,000 and 500.
        (7400, [500, 0], 97),  # 97.5
        (7400, [1000, 1000], 88),  # 88.125
        (1000, [500, 0], 100),
        (2000, [1000, 0], 96),  # 96.48
    ],
)
def test_points_by_hand(cpu_left: int, devices: list[int], points: int) -> None:
    decision = Decision(t4(1))
    decision.table.nodes.load(0, cpu_left, 64, devices, {})
    assert decision.select.raw(KERNELS.index("best_fit"), 0, 0, 0, decision.pod(1, 500, 1000)) == (points, 0)


def test_the_fullest_node_is_filled_up_and_the_next_begun() -> None:
    assert BestFit().term() == ScoreTerm("best_fit", normalise="min_max_0")
    decision = Decision(t4(3), BestFit().plan(None, None))  # type: ignore[arg-type]
    decision.table.nodes.load(1, 8000, 64, [1000, 0], {1: 1})
    cls = decision.pod()
    assert [decision.placed(cls) for _ in range(6)] == [1, 0, 0, 2, 2, -1]


def test_of_its_devices_the_tightest_is_taken() -> None:
    assert BestFit().own_gpu_pick() == "best"
    decision = Decision(t4(1, gpus=3), BestFit().plan(None, None))  # type: ignore[arg-type]
    decision.table.nodes.load(0, 8000, 64, [1000, 400, 600], {0: 2})
    decision.placed(decision.pod(1, 500))
    assert decision.table.columns["gpu_left"][0, :3].tolist() == [1000, 400, 100]
