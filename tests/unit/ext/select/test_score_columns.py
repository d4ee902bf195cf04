"""Columns follow every change of a node; verify() finds one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.online.kernel_columns import COLUMN_SETTINGS
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim_ext.select.state_memo import Memo
from tests.unit.ext.scores.test_frag_grouped import THIRDS
from tests.unit.ext.select.test_indexed import COLUMNS, KeptDecision, cluster, trial
from tests.unit.ext.state.test_node_table import t4

FGD = OnlinePlan((ScoreTerm("fgd"),))
SHAPES = ((1, 500, 1000), (1, 300, 500, 2), (2, 1000, 0), (0, 0, 1000), (1, 500, 1000, 0, "A10"))


def filled(plan: OnlinePlan = FGD) -> KeptDecision:
    """Nodes of two models, a column for each of five classes and bounds for four families."""
    nodes = cluster(num_gpu=[2, 4, 8, 2] * 5, gpu_model=["T4", "A10", "T4", "A10"] * 5)
    decision = KeptDecision(nodes, plan, COLUMNS)
    for shape in SHAPES:
        cls = decision.pod(*shape)
        for _ in range(6):
            trial(decision, cls)
    return decision


def test_classes_that_ask_for_the_same_devices_are_of_one_family() -> None:
    table = filled().select.table
    assert (table.n_families, table.n_terms) == (4, 1) and table.n_used == table.n_columns >= 5 + 4
    assert table.bounded and not table.normalised


@pytest.mark.parametrize(
    ("terms", "stretched", "bounded"),
    [
        ((ScoreTerm("fgd"),), False, True),
        ((ScoreTerm("fgd", normalise="min_max_0"),), False, True),  # the largest points stay the largest
        ((ScoreTerm("best_fit", weight=-1, normalise="min_max_0"),), True, False),  # the smallest may get company
        ((ScoreTerm("fgd"), ScoreTerm("pwr", weight=-1)), False, False),
        ((ScoreTerm("fgd"), ScoreTerm("pwr", normalise="min_max_100")), True, False),
        ((ScoreTerm("fgd"), ScoreTerm("simon")), False, False),
    ],
)
def test_what_totals_depend_on(terms: tuple[ScoreTerm, ...], stretched: bool, bounded: bool) -> None:
    table = filled(OnlinePlan(terms)).select.table
    assert (table.normalised, table.bounded) == (stretched, bounded)


@pytest.mark.parametrize(
    ("column", "place", "value"),
    [
        ("present", 8, 0),
        ("gpu_left", (2, slice(0, 8)), 100),
    ],
)
def test_a_node_changed_behind_the_tables_back_is_found(column: str, place: Any, value: int) -> None:
    decision = filled()
    assert decision.select.verify() == 0 and decision.select.table.n_used > 0
    decision.table.columns[column][place] = value
    with pytest.raises(AssertionError, match=f"node {place[0] if isinstance(place, tuple) else place}"):
        decision.select.verify()


def test_pods_counted_behind_the_tables_back_are_found() -> None:
    decision = filled()
    decision.table.columns["pods"][7] += 1
    with pytest.raises(AssertionError, match=r"node 7: cached .* pod slots"):
        decision.table.nodes.verify()


def test_a_change_that_the_table_is_told_of_is_followed() -> None:
    decision = filled()
    for n, gpus in enumerate(decision.table.columns["num_gpu"].tolist()):
        decision.table.nodes.load(n, 50_000 - n, 3, [1000 - 100 * (n % 3)] * gpus, {})
        assert decision.select.verify() == 0


def test_all_is_forgotten_for_another_target() -> None:
    decision = filled()
    table = decision.select.table
    decision.table.nodes.retarget(decision.table.target(THIRDS))
    memo = Memo(decision.table.nodes.width, 1, 10**6)
    decision.select.restart(memo)
    assert (table.n_used, table.n_columns, table.n_families) == (0, 0, 0)
    for cls in range(5):
        for _ in range(6):
            trial(decision, cls)
    assert table.n_used >= 5 and memo.n_states > 0 and decision.select.verify() == 0


def test_memory_bounds_the_number_of_columns() -> None:
    def limit(count: int, terms: int, **settings: Any) -> int:
        plan = OnlinePlan((ScoreTerm("fgd", normalise="min_max_0"),) * terms)
        return KeptDecision(t4(count), plan, settings).select.table.limit

    # So many bytes for each node and row: that of totals, and one for each term where totals are stretched.
    assert limit(100, 1, columns_bytes=30_000) == 30_000 // (2 * 100)
    assert limit(100, 2, columns_bytes=100_000) == 100_000 // (6 * 3 * 100)
    assert limit(100, 1, columns_bytes=0) == COLUMN_SETTINGS["least_columns"]
    assert limit(1, 1, columns_bytes=2**40) == 256


def test_a_plan_of_too_many_terms_is_refused() -> None:
    plan = OnlinePlan((ScoreTerm("fgd"),) * 9)
    with pytest.raises(ValueError, match="found a plan of 9 terms, expected at most 8"):
        KeptDecision(t4(1), plan, {})
