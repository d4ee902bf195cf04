"""Forests with deferred maxima against plain lists."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim_ext.select.max_tree_updates import DeferredMaxForest

TREES = 32
counts = st.sampled_from((1, 4, 5, 16, 17, 64, 65, 300, 4097))
numbers = st.integers(-127, 126)


def row_of(seed: int) -> list[int]:
    """Numbers of all trees that differ from tree to tree and often repeat."""
    return [(seed * (tree + 3)) % 11 - 5 for tree in range(TREES)]


def assert_same(trees: DeferredMaxForest, plain: list[list[int]], which: int) -> None:
    column = [row[which] for row in plain]
    assert trees.first(which) == (max(column), column.index(max(column)))
    assert trees.sound(which)


@given(counts, st.data())
def test_a_query_sees_all_rows_that_were_written(count: int, data: st.DataObject) -> None:
    trees, plain = DeferredMaxForest(count), [[-128] * TREES for _ in range(count)]
    for _ in range(data.draw(st.integers(0, 30))):
        at, seed = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, 40))
        if data.draw(st.integers(0, 4)) == 0:  # one tree alone, among deferred updates
            which, value = seed % TREES, data.draw(numbers)
            trees.put_one(which, at, value)
            plain[at][which] = value
        else:
            plain[at] = row_of(seed)
            trees.put(at, plain[at])
        if data.draw(st.booleans()):
            assert_same(trees, plain, seed % TREES)
    for which in (0, 1, 15, 16, 31):
        assert_same(trees, plain, which)


@pytest.mark.parametrize("count", [3, 257, 5000])
def test_more_rows_than_may_wait_are_summed_up_meanwhile(count: int) -> None:
    trees, plain = DeferredMaxForest(count), [[-128] * TREES for _ in range(count)]
    for seed in range(1000):
        at = seed * 7919 % count
        plain[at] = row_of(seed)
        trees.put(at, plain[at])
    for which in range(TREES):
        assert_same(trees, plain, which)


def test_what_falls_lowers_every_maximum_above_it() -> None:
    trees, plain = DeferredMaxForest(300), [row_of(0) for _ in range(300)]
    for at in range(300):
        trees.put(at, plain[at])
    for at in (5, 70, 299):
        trees.put(at, [100] * TREES)
    assert trees.first(9) == (100, 5)
    for at in (5, 70, 299):
        trees.put(at, plain[at])
    for which in (0, 9, 31):
        assert_same(trees, plain, which)


def test_there_is_no_place_beside_the_trees() -> None:
    trees = DeferredMaxForest(16)
    for at in (-1, 16):
        with pytest.raises(IndexError, match=f"no row of 32 at {at} in 32 trees of 16"):
            trees.put(at, [0] * TREES)
        with pytest.raises(IndexError, match=f"no position {at}"):
            trees.put_one(0, at, 1)
    with pytest.raises(IndexError, match="no row of 31"):
        trees.put(0, [0] * 31)
    for which in (-1, TREES):
        with pytest.raises(IndexError, match=f"no tree {which} of 32"):
            trees.first(which)
