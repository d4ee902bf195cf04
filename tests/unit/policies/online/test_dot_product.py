"""Dot product: one vector by hand, and which parameters name devices."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.online.plan import DIMS, KERNELS, NORMS, ScoreTerm
from fastsim.policies import DotProduct
from tests.unit.ext.select.test_scan import Decision
from tests.unit.ext.state.test_node_table import t4


@pytest.mark.parametrize(
    ("dim", "norm", "points", "devices"),
    [
        # Free are 6,400 milli-CPU and devices of 700 and 1,000; asked for are 3,200 and 400.
        ("merge", "max", 99, 0),  # 1 - (0.05 x 0.025 + 0.2125 x 0.05) / 2 = 0.9941
        ("merge", "node", 75, 0),  # of a capacity of 8,000 and 2,000: 1 - (0.8 x 0.4 + 0.85 x 0.2) / 2 = 0.755
        ("share", "max", 99, 0b01),  # 1 - (0.05 x 0.025 + 0.0875 x 0.05) / 2 = 0.9972
    ],
)
def test_points_by_hand(dim: str, norm: str, points: int, devices: int) -> None:
    decision = Decision(t4(1))
    decision.table.nodes.load(0, 6400, 64, [700, 1000], {0: 1})
    cls = decision.pod(1, 400, 3200)
    found = decision.select.raw(KERNELS.index("dot_product"), DIMS.index(dim), NORMS.index(norm), 0, cls)
    assert found == (points, devices)


@pytest.mark.parametrize("dim", DIMS)
def test_parameters_reach_the_term_and_decide_who_picks_the_device(dim: str) -> None:
    policy = DotProduct(dim=dim, norm="pod")
    assert policy.term() == ScoreTerm("dot_product", dim=dim, norm="pod")
    assert policy.own_gpu_pick() == ("best" if dim == "merge" else "dot_product")
    nothing: Any = None
    plan = policy.plan(nothing, nothing)
    assert (plan.gpu_dim, plan.gpu_norm) == (("merge", "max") if dim == "merge" else (dim, "pod"))


def test_the_node_with_least_along_the_request_is_preferred() -> None:
    decision = Decision(t4(3), DotProduct(norm="node").plan(None, None))  # type: ignore[arg-type]
    decision.table.nodes.load(1, 2000, 64, [1000, 1000], {})
    decision.table.nodes.load(2, 8000, 64, [1000, 0], {1: 1})
    assert decision.placed(decision.pod(0, 0, 2000)) == 1  # little CPU left
    assert decision.placed(decision.pod(1, 1000)) == 2  # few devices left
