"""The sort of rows by several terms is the stable one of Python."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from fastsim.scenario.sort_keys import MOST_TERMS
from fastsim_ext.sorting import in_order
from tests.strategies import scenarios_per_run

ROW = st.lists(st.sampled_from([0.0, 1.0, 2.5, -1.0, float("inf")]), min_size=MOST_TERMS, max_size=MOST_TERMS)


@settings(max_examples=scenarios_per_run(300))
@given(st.lists(ROW, max_size=120), st.integers(1, MOST_TERMS))
def test_equal_rows_stay_as_they_were(rows: list[list[float]], terms: int) -> None:
    keys = np.array(rows, np.float64).reshape(-1, MOST_TERMS)
    assert in_order(keys, terms) == sorted(range(len(rows)), key=lambda row: rows[row][:terms])


def test_sorted_rows_are_only_looked_at() -> None:
    keys = np.arange(400.0).reshape(-1, MOST_TERMS)
    assert in_order(keys, 4) == list(range(100))
    assert in_order(keys[::-1].copy(), 4) == list(range(99, -1, -1))
