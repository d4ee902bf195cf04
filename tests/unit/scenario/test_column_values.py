"""Values of columns for sort keys: their signs, what is missing, the user's own, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from fastsim.errors import InputError
from fastsim.scenario.column_values import SortColumns
from fastsim.scenario.sort_keys import MOST_TERMS
from fastsim.workload import Workload

INF = np.inf


def pods(**columns: list[Any]) -> Workload:
    rows = len(next(iter(columns.values())))
    base = {"submit_s": [10.0 * row for row in range(rows)], "num_gpu": [1] * rows}
    return Workload.from_polars(pl.DataFrame(base | columns, strict=False), origin="keep", name="w")


def values(workload: Workload, *key: str, ideal_s: Any = np.nan) -> list[list[float]]:
    (batch,) = workload.batches()
    found = SortColumns(key, workload).values(batch, ideal_s).reshape(-1, MOST_TERMS)
    assert (found[:, len(key) :] == INF).all()
    columns: list[list[float]] = found[:, : len(key)].T.tolist()
    return columns


def test_what_has_no_value_is_last_whichever_the_sign() -> None:
    mine = pods(priority=[3, None, -1], weight=[0.5, 2.0, None])
    assert values(mine, "column(priority)", "-column(weight)") == [[3.0, INF, -1.0], [-0.5, -2.0, INF]]
    assert values(mine, "arrival", "-column(priority)") == [[INF] * 3, [-3.0, INF, 1.0]]  # the loop has other terms


def test_columns_of_the_users_own_are_read_as_numbers() -> None:
    mine = pods(value=[1.5, None, float("nan")], whole=[7, 8, 9], text=["1e3", "-inf", "NA"])
    assert values(mine, "column(value)", "column(native_value)") == [[1.5, INF, INF]] * 2
    assert values(mine, "-column(whole)", "column(text)") == [[-7.0, -8.0, -9.0], [1000.0, INF, INF]]
    tenth = pods(value=[0.1, 1 / 3, 1e300])
    assert values(tenth, "column(value)") == [[0.1, 1 / 3, 1e300]]


def test_a_deadline_may_be_a_multiple_of_the_duration() -> None:
    mine = pods(deadline_s=[7.0, None, None, None], slo=[2.0, 1.5, None, 3.0])
    ideal_s = np.array([100.0, 100.0, 100.0, np.nan])
    assert values(mine, "column(deadline_s)", "column(slo)", ideal_s=ideal_s) == [
        [7.0, 10.0 + 150.0, INF, INF], [2.0, 1.5, INF, 3.0],
    ]  # fmt: skip
    assert values(pods(slo=[2.0]), "-column(deadline_s)", ideal_s=np.array([5.0])) == [[-10.0]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "deadline_s",
            r"w: column\(deadline_s\): found no such column, expected one of pod_id, submit_s, .*, "
            r"native_value; Workload.from_polars and CSV files keep columns of your own",
        ),
        ("preemptible", r"w: column\(preemptible\): found a column of type bool, expected a column of numbers"),
        ("tenant", r"found a column of type dictionary<.*string.*>, expected a column of numbers"),
        ("native_id", "found a column of type string, expected a column of numbers"),
    ],
)
def test_what_cannot_be_sorted_by_is_one_clear_error(name: str, words: str) -> None:
    mine = pods(priority=[1], value=[2.0], preemptible=[True], tenant=["a"], native_id=["x"])
    with pytest.raises(InputError, match=words):
        SortColumns(("arrival", f"-column({name})"), mine)


@pytest.mark.parametrize("wrong", ["many", "true", "2020-01-01"])
def test_a_text_that_is_no_number_is_named_with_its_pod(wrong: str) -> None:
    mine = pods(value=["1", None, wrong], pod_id=[5, 6, 7])
    with pytest.raises(InputError, match=f"pod 7: native_value: found '{wrong}', expected a number to sort by"):
        values(mine, "column(value)")


def test_other_keys_read_nothing() -> None:
    assert not SortColumns(("arrival", "-gpus"), pods(value=[1.0]))
    assert SortColumns(("arrival", "column(value)"), pods(value=[1.0]))
