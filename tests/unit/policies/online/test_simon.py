"""Simon: the share of the node by hand, with the node's capacity and not what is left of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.plan import KERNELS, ScoreTerm
from fastsim.policies import Simon
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


@pytest.mark.parametrize(
    ("pod", "points"),
    [
        ((0, 0, 2000, 0), 33),  # 2 of 8 CPUs over the other 6: 33.3
        ((0, 0, 2000, 32), 100),  # half the memory over the other half
        ((0, 0, 4800, 0), 150),
        ((0, 0, 8000, 0), 100),  # nothing would be kept
        ((0, 0, 40, 0), 1),  # 0.503 is rounded
        ((1, 500, 0, 0), 0),  # GPUs are not looked at
        ((0, 0, 0, 0), 100),  # no request at all
    ],
)
def test_points_by_hand(pod: Any, points: int) -> None:
    decision = Decision(t4(1))
    cls = decision.pod(*pod)
    assert decision.select.raw(KERNELS.index("simon"), 0, 0, 0, cls) == (points, 0)
    decision.table.nodes.load(0, 1, 1, [0, 0], {2: 1})
    assert decision.select.raw(KERNELS.index("simon"), 0, 0, 0, cls) == (points, 0)


def test_the_smallest_node_that_has_room_is_chosen() -> None:
    assert Simon().term() == ScoreTerm("simon", normalise="min_max_0") and Simon().own_gpu_pick() == "best"
    rows = pa.table({"cpu_milli": [16_000, 4000, 8000], "memory_mib": [1, 1, 1], "num_gpu": [0, 0, 0]})
    decision = Decision(Cluster.from_arrow(rows), Simon().plan(None, None))  # type: ignore[arg-type]
    cls = decision.pod(0, 0, 3000)
    assert [decision.placed(cls) for _ in range(9)] == [1, 2, 2, 0, 0, 0, 0, 0, -1]
