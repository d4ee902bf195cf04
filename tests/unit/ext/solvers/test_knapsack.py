"""The search for choices close to their bound: what it finds is best, and it says when it gave up."""

from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim_ext.solvers.knapsack import MOST, Knapsack
from tests.strategies import scenarios_per_run

Column = tuple[int, int, int]
"""Cost in tenths, size, kind."""


def knapsack(classes: list[list[Column]], count: list[int], room: list[int]) -> Knapsack:
    """Classes of columns, so many things of each, and rooms."""
    columns = [column for columns in classes for column in columns]
    cost, size, kind = (np.array([column[part] for column in columns], np.int64) for part in range(3))
    first = np.cumsum([0, *map(len, classes)])
    return Knapsack(cost / 10, size, kind, first, np.array(count, np.int64), np.array(room, np.int64))


def exhaustive(classes: list[list[Column]], count: list[int], room: list[int]) -> float:
    """The least cost of all choices there are."""
    things = [[*columns, (0, 0, 0)] for columns, n in zip(classes, count, strict=True) for _ in range(n)]
    best = 0
    for picked in product(*things):
        used = [sum(size for _, size, at in picked if at == k) for k in range(len(room))]
        if all(u <= r for u, r in zip(used, room, strict=True)):
            best = min(best, sum(cost for cost, _, _ in picked))
    return best / 10


SCENES: Any = st.tuples(
    st.lists(
        st.tuples(
            st.lists(
                st.tuples(st.integers(-30, -1), st.integers(1, 5), st.integers(0, 1)), min_size=0, max_size=4
            ),
            st.integers(1, 2),
        ), min_size=0, max_size=4,
    ),
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
)  # fmt: skip


@given(SCENES)
@settings(max_examples=scenarios_per_run(150))
def test_as_good_as_trying_everything(scene: Any) -> None:
    classes, count = [columns for columns, _ in scene[0]], [n for _, n in scene[0]]
    made, best = knapsack(classes, count, scene[1]), exhaustive(classes, count, scene[1])
    bound = made.bound()
    assert bound <= best + 1e-9
    assert made.search(best - bound - 0.05, 10_000, 10_000) is None  # nothing is better than the best
    excess = made.search(best - bound + 0.05, 10_000, 10_000)
    assert made.ended
    assert excess is not None and bound + excess == pytest.approx(best, abs=1e-9)
    columns = [column for columns in classes for column in columns]
    taken = made.chosen.tolist()
    assert sum(c * n for (c, _, _), n in zip(columns, taken, strict=True)) / 10 == pytest.approx(best)
    for k, room in enumerate(scene[1]):
        assert sum(size * n for (_, size, at), n in zip(columns, taken, strict=True) if at == k) <= room
    starts = np.cumsum([0, *map(len, classes)])
    for c, n in enumerate(count):
        assert sum(taken[starts[c] : starts[c + 1]]) <= n


def test_prices_are_those_of_what_the_last_gpu_would_bring() -> None:
    solution = knapsack([[(-10, 1, 0)], [(-4, 1, 0)]], [2, 3], [4])
    assert solution.bound() == pytest.approx(-2.8)
    assert solution.price.tolist() == pytest.approx([0.4])
    assert solution.search(0.0, 100, 100) == pytest.approx(0.0)
    assert solution.chosen.tolist() == [2, 2]


def test_a_search_without_nodes_gives_up() -> None:
    solution = knapsack([[(-10, 3, 0), (-4, 1, 0)]], [3], [5])
    bound = solution.bound()
    assert solution.search(5.0, 0, 0) is None and not solution.ended
    assert solution.search(5.0, 1000, 1000) == pytest.approx(-1.8 - bound)


def test_more_kinds_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(ValueError, match="16 kinds"):
        knapsack([], [], [1] * (MOST + 1))
