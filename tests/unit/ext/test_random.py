"""Numbers are those of numpy's RandomState; rows that are drawn leave a list."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim_ext.random import drawn_as_numpy, rows_taken


@pytest.mark.parametrize("most", [1, 2, 4, 7, 1000, 9_999_999])
@pytest.mark.parametrize("skipped", [0, 1, 623, 624, 1300])
def test_numbers_are_those_of_numpy(most: int, skipped: int) -> None:
    theirs = np.random.RandomState(seed=skipped + most)
    theirs.randint(0, 2**32, size=skipped, dtype=np.uint32)
    whole, parts = drawn_as_numpy(skipped + most, most, 700, skipped)
    assert whole == theirs.randint(0, most + 1, size=700).tolist()
    assert parts == theirs.random_sample(700).tolist()


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 8, 9, 63, 64, 1000])
def test_rows_that_are_taken_are_those_that_leave_a_list(rows: int) -> None:
    for seed in range(20):
        drawn, left = np.random.default_rng(seed), list(range(rows))
        places = drawn.integers(0, np.arange(rows, 0, -1))[: rows if seed % 2 else rows // 2]
        nodes, taken = np.arange(rows + 1, dtype=np.int32), np.empty_like(places)
        counts = nodes & -nodes
        rows_taken(counts, places, taken)
        assert taken.tolist() == [left.pop(place) for place in places]
        more = np.zeros(len(left), np.int64)
        rows_taken(counts, more, taken := np.empty_like(more))
        assert taken.tolist() == left
