"""GPU clustering: points by hand for a node with pods of the same kind, of others, and of none."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.online.plan import KERNELS, ScoreTerm
from fastsim.policies import GpuClustering
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4

SHARED, WHOLE, TWO = (1, 400), (1, 1000), (2, 1000)


@pytest.mark.parametrize(
    ("tags", "pod", "points"),
    [
        # 25 x (8,000 - 4,400 free) / 8,000 = 11.25 for the node itself.
        ({0: 2}, SHARED, 11 + 75),
        ({0: 2, 1: 1}, SHARED, 11 + 50),
        ({1: 1}, SHARED, 11),
        ({}, SHARED, 11 + 25),
        ({1: 3}, WHOLE, 11 + 75),
        ({0: 1}, WHOLE, 11),
        ({1: 1, 2: 1}, TWO, 11 + 50),
        ({1: 1}, TWO, 11),
        ({0: 2}, (0, 0), 0),
    ],
)
def test_points_by_hand(tags: dict[int, int], pod: Any, points: int) -> None:
    decision = Decision(t4(1, gpus=8))
    decision.table.nodes.load(0, 8000, 64, [0, 0, 0, 400, 1000, 1000, 1000, 1000], tags)
    assert decision.select.raw(KERNELS.index("gpu_clustering"), 0, 0, 0, decision.pod(*pod)) == (points, 0)


def test_pods_gather_by_kind() -> None:
    assert GpuClustering().term() == ScoreTerm("gpu_clustering") and GpuClustering().own_gpu_pick() == "best"
    decision = Decision(t4(3, gpus=4), GpuClustering().plan(None, None))  # type: ignore[arg-type]
    shared, whole, two = decision.pod(*SHARED), decision.pod(*WHOLE), decision.pod(*TWO)
    order = [shared, whole, two, shared, whole, two, whole]
    assert [decision.placed(cls) for cls in order] == [0, 1, 2, 0, 1, 2, 1]
