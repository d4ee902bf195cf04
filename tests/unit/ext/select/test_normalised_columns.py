"""Totals between extremes follow the extremes, whether raw points can be counted one by one or not."""

from __future__ import annotations

import pytest

from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from tests.unit.ext.select.test_indexed import COLUMNS, KeptDecision, cluster
from tests.unit.ext.select.test_scan import Decision

SHAPES = ((1, 500, 4000), (1, 300, 500), (2, 1000, 9000), (0, 0, 1000), (1, 1000, 30_000))


@pytest.mark.parametrize("kernel", ["pwr", "best_fit", "simon"])
@pytest.mark.parametrize("normalise", ["min_max_0", "min_max_100"])
def test_decisions_are_those_of_a_look_at_every_node(kernel: str, normalise: str) -> None:
    plan = OnlinePlan((ScoreTerm("fgd", weight=9), ScoreTerm(kernel, normalise=normalise)))
    nodes = cluster(num_gpu=[2, 4, 8, 2] * 10, gpu_model=["T4", "A10", "T4", "A10"] * 10)
    kept, plain = KeptDecision(nodes, plan, COLUMNS), Decision(nodes, plan)
    classes = [(kept.pod(*shape), plain.pod(*shape)) for shape in SHAPES]
    for k in range(120):
        mine, other = classes[k * k % 5]
        assert kept.placed(mine) == plain.placed(other), k
        if k % 8 == 0:
            assert kept.select.verify() == 0
    assert kept.select.table.n_used >= 5


def test_columns_of_a_second_row_are_kept_as_those_of_the_first() -> None:
    plan = OnlinePlan((ScoreTerm("fgd", weight=9), ScoreTerm("pwr", normalise="min_max_100")))
    nodes = cluster(num_gpu=[2, 4, 8, 2] * 4, gpu_model=["T4", "A10", "T4", "A10"] * 4)
    kept, plain = KeptDecision(nodes, plan, COLUMNS | {"window_changes": 10_000}), Decision(nodes, plan)
    classes = [(kept.pod(1, 100, 10 * k), plain.pod(1, 100, 10 * k)) for k in range(1, 41)]
    for k in range(240):
        mine, other = classes[k % 40]
        assert kept.placed(mine) == plain.placed(other), k
    assert kept.select.table.n_columns > 32 and kept.select.verify() == 0


def test_a_table_of_totals_that_depend_on_no_extremes_keeps_no_points() -> None:
    decision = KeptDecision(cluster(num_gpu=[2] * 4), OnlinePlan((ScoreTerm("fgd"),)), COLUMNS)
    assert type(decision.select.table).__name__ == "ByteScoreColumns"
    stretched = OnlinePlan((ScoreTerm("best_fit", weight=-1, normalise="min_max_0"),))
    assert (
        type(KeptDecision(cluster(num_gpu=[2] * 4), stretched, COLUMNS).select.table).__name__
        == "NormalisedScoreColumns"
    )
