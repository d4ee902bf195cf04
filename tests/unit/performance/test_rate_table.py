"""Tables of rates: canonical order, what becomes an oracle, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.performance.oracle import Oracle
from fastsim.performance.rate_table import RATE_SCHEMA, rate_arrays, rate_table


def columns(**changed: Any) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "workload": ["b", "a", "a", "b"],
        "gpu_model": ["v", "v", "k", "v"],
        "num_gpu": [1, 1, 1, 1],
        "colocated_workload": [None, None, None, "a"],
        "steps_per_s": [4.0, 8.0, 2.0, 3.0],
        "colocated_steps_per_s": [None, None, None, 5.0],
    }
    return {name: value for name, value in (rows | changed).items() if value is not None}


def test_rows_stand_by_workload_model_and_company() -> None:
    spread = columns(consolidated=[False, True, True, True])
    table = rate_table(spread)
    assert table.schema == RATE_SCHEMA
    assert table["steps_per_s"].to_pylist() == [2.0, 8.0, 3.0, 4.0]


def test_holes_are_nan_and_one_row_tells_both_sides_of_a_pair() -> None:
    kinds, models, alone, shared = rate_arrays(pa.table(columns()), "t")
    assert (kinds, models) == ((("a", 1), ("b", 1)), ("k", "v"))
    assert np.array_equal(alone, np.array([[2, 8], [np.nan, 4]]), equal_nan=True)
    assert shared[1, 0, 1] == 3 and shared[0, 1, 1] == 5
    assert np.isnan(shared).sum() == 6


def test_gpus_spread_over_nodes_are_left_out() -> None:
    table = pa.table(columns(consolidated=[None, True, False, True]))
    assert rate_arrays(table, "t").gpu_models == ("v",)


def test_an_oracle_comes_back_from_its_rows() -> None:
    oracle = Oracle.from_table(pa.table(columns()))
    again = Oracle.from_table(oracle.table())
    assert np.array_equal(again.alone__kg, oracle.alone__kg, equal_nan=True)
    assert np.array_equal(again.shared__kkg, oracle.shared__kkg, equal_nan=True)
    assert oracle.table().num_rows == 5


def test_company_on_another_number_of_gpus_has_no_row() -> None:
    shared = np.full((2, 2, 1), np.nan)
    shared[0, 1] = 0
    oracle = Oracle((("a", 1), ("a", 2)), ("v",), np.ones((2, 1)), shared)
    with pytest.raises(InputError, match="'a' on 1 sharing with 'a' on 2 GPUs"):
        oracle.table()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps_per_s": None}, "t: steps_per_s: found columns"),
        ({"colocated_steps_per_s": None}, "t: colocated_steps_per_s: found no such column"),
        ({"colocated_steps_per_s": [None, None, None, None]}, "t:4: colocated_steps_per_s: found None"),
        ({"workload": ["b", None, "a", "b"]}, "t:2: workload: found None, expected a value"),
        ({"num_gpu": [1, 1, 0, 1]}, "t:3: num_gpu: found 0, expected 1 or more"),
        ({"num_gpu": ["x", "1", "1", "1"]}, "t:1: num_gpu: found 'x', expected a value of type int32"),
        ({"steps_per_s": [1.0, 2.0, -3.0, 4.0]}, "t:3: steps_per_s: found -3.0"),
        ({"steps_per_s": [1.0, float("nan"), 3.0, 4.0]}, "t:2: steps_per_s: found nan"),
        ({"colocated_workload": [None, None, None, "c"]}, "t:4: colocated_workload: found 'c'"),
        ({"gpu_model": ["v", "v", "v", "v"]}, "t: found 8 and 2 steps/s"),
    ],
)
def test_wrong_rows_are_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rate_arrays(pa.table(columns(**changed)), "t")
