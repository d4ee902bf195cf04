"""Fronts and crowding of points are those of the definition, in the order in which a slow search finds them."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim_ext.adaptive.pareto_fronts import ascending, sorted_fronts
from tests.reference.rounds import genetic_search as by_hand
from tests.strategies import scenarios_per_run

few = st.integers(0, 6).map(float)
points = st.lists(st.tuples(few, few) | st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=60)


@given(points)
@settings(max_examples=scenarios_per_run(200))
def test_fronts_and_crowding(values: list[tuple[float, float]]) -> None:
    first, second = np.array(values, np.float64).reshape(-1, 2).T.copy()
    found, crowded = sorted_fronts(first, second, len(values))
    expected = by_hand.fronts(values)
    assert found == expected
    for front in expected:
        assert crowded[front].tolist() == by_hand.crowding([values[p] for p in front])


def test_the_search_for_fronts_ends_when_there_are_enough() -> None:
    line = np.arange(5.0)
    assert sorted_fronts(line, line, 2)[0] == [[0], [1]]
    assert sorted_fronts(line, -line, 1)[0] == [[0, 1, 2, 3, 4]]
    assert sorted_fronts(line[:0], line[:0], 1)[0] == []


def test_a_front_of_two_is_not_crowded_and_twins_are() -> None:
    assert sorted_fronts(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 2)[1].tolist() == [np.inf, np.inf]
    first, second = np.array([0.0, 1.0, 2.0, 1.0]), np.array([3.0, 2.0, 0.0, 2.0])
    assert sorted_fronts(first, second, 4)[1].tolist() == [np.inf, 1.0, np.inf, 0.0]


@given(st.lists(few | st.just(np.inf), max_size=200))
@settings(max_examples=scenarios_per_run(200))
def test_ties_end_where_quicksort_leaves_them(values: list[float]) -> None:
    found = ascending(np.array(values, np.float64)).tolist()
    assert found == by_hand.quicksorted(values)
    assert [values[at] for at in found] == sorted(values)


@pytest.mark.parametrize("seed", range(3))
def test_ties_of_few_and_of_many_values_end_where_quicksort_leaves_them(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for count in range(80):  # short lists are sorted by insertion, longer ones divided first
        values = draw.integers(0, 4, count).astype(np.float64)
        assert ascending(values).tolist() == by_hand.quicksorted(values.tolist())
