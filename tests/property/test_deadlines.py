"""Earliest deadline first on one server: no other order has a smaller largest lateness (Jackson's rule).

All pods are there before the server is free, none is ever stopped, and lateness is the end minus the deadline.
"""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from tests.strategies import scenarios_per_run

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.run_warnings.ColumnIgnored")  # of other orders
ONE = "uniform?nodes=1&gpu=T4&gpus=1"
FREE_S = 3.0
"""The server is busy until then, so that all pods wait."""

EDF: dict[str, dict[str, Any]] = {
    "pods": {"policy": "best_fit", "queue": "edf"}, "orders": {"policy": "edf", "round_s": 1.0},
}  # fmt: skip
RANKED: dict[str, dict[str, Any]] = {
    "pods": {"policy": "best_fit", "queue": "column(rank)"},
    "orders": {"policy": "order(key='column(rank)')", "round_s": 1.0},
}
"""An order that a column of the user's says."""


def pods(seed: int) -> list[dict[str, Any]]:
    """Two to four pods of a few seconds each, with deadlines of which some cannot be met."""
    draw = random.Random(seed)
    spans = [draw.randint(1, 6) for _ in range(draw.randint(2, 4))]
    return [{"duration_s": float(span), "deadline_s": FREE_S + draw.randint(0, sum(spans))} for span in spans]


def largest_lateness_s(rows: list[dict[str, Any]], ranks: tuple[int, ...], **how: Any) -> float:
    """Of the pods in a run; ``ranks`` is a column of the table that an order may sort by."""
    last = {"duration_s": FREE_S, "deadline_s": FREE_S, "rank": -1}
    table = [last, *(row | {"rank": rank} for row, rank in zip(rows, ranks, strict=True))]
    frame = pl.DataFrame(table).with_columns(pl.lit(0.0).alias("submit_s"), pl.lit(1).alias("num_gpu"))
    jobs = fs.simulate(ONE, fs.Workload.from_polars(frame), **how).jobs.sort("pod_id")
    ends_s: list[float] = (jobs["submit_s"] + jobs["jct_s"]).to_list()
    assert ends_s[0] == FREE_S
    return float(max(end_s - row["deadline_s"] for end_s, row in zip(ends_s[1:], rows, strict=True)))


@pytest.mark.parametrize("engine", ["pods", "orders"])
@pytest.mark.parametrize("seed", range(scenarios_per_run(120)))
def test_no_order_has_a_smaller_largest_lateness(engine: str, seed: int) -> None:
    rows = pods(seed)
    least_s = largest_lateness_s(rows, tuple(range(len(rows))), **EDF[engine])
    others_s = [largest_lateness_s(rows, ranks, **RANKED[engine]) for ranks in permutations(range(len(rows)))]
    assert least_s == min(others_s)


def test_other_orders_are_later_at_times() -> None:
    """The property does not hold because all orders are alike."""
    rows = [{"duration_s": 5.0, "deadline_s": 20.0}, {"duration_s": 2.0, "deadline_s": 5.0}]
    late_s = [largest_lateness_s(rows, ranks, policy="best_fit", queue="column(rank)") for ranks in ((0, 1), (1, 0))]
    assert late_s == [5.0, 0.0]
