"""Trees of maxima against a plain list."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim_ext.select.max_tree import MaxTree

LOWEST = -(2**31)
few_values, many_values = st.integers(-3, 3), st.integers(-(10**6), 10**6)
any_values = st.one_of(few_values, st.sampled_from((LOWEST, LOWEST + 1, 2**31 - 1)), many_values)
small = st.one_of(few_values, st.sampled_from((-127, -106, 126)))
counts = st.sampled_from((1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 255, 256, 257, 300, 4096, 4097))


def next_of(plain: list[int], at: int, least: int) -> int:
    """The first position from ``at`` on with ``least`` or more, or -1."""
    return next((i for i in range(at, len(plain)) if plain[i] >= least), -1)


def assert_same(tree: MaxTree, plain: list[int]) -> None:
    assert tree.top() == max(plain)
    assert tree.first() == plain.index(max(plain))
    assert tree.sound()


@given(counts, st.data())
def test_a_tree_answers_as_a_list_does(count: int, data: st.DataObject) -> None:
    narrow = data.draw(st.booleans())
    values = small if narrow else any_values
    few = data.draw(st.lists(values, min_size=1, max_size=6))
    plain = [few[i * i % len(few)] for i in range(count)]
    tree = MaxTree(plain, beside=data.draw(st.integers(0, 3)), narrow=narrow)
    assert_same(tree, plain)
    for _ in range(data.draw(st.integers(0, 12))):
        at, value = data.draw(st.integers(0, count - 1)), data.draw(st.one_of(values, st.sampled_from(few)))
        plain[at] = value
        tree.put(at, value)
        assert_same(tree, plain)
        for least in (value, value - 1 if value > LOWEST else value, max(plain), few[0]):
            for start in (0, at, at + 1, count - 1, count):
                assert tree.next(start, least) == next_of(plain, start, least), (start, least)


@pytest.mark.parametrize("count", [1, 16, 17, 40, 256, 257, 1213])
def test_the_first_of_equals_is_found_wherever_it_stands(count: int) -> None:
    tree, plain = MaxTree([7] * count), [7] * count
    for at in range(count):  # from the left, equals fall one by one
        assert (tree.first(), tree.next(0, 7), tree.next(at, 7)) == (at, at, at)
        tree.put(at, 6)
        plain[at] = 6
        assert tree.top() == max(plain)
    assert (tree.first(), tree.next(0, 7), tree.next(0, 6)) == (0, -1, 0)


@given(counts, st.booleans(), st.data())
def test_a_copy_says_what_its_tree_says(count: int, narrow: bool, data: st.DataObject) -> None:
    few = data.draw(st.lists(small if narrow else any_values, min_size=1, max_size=6))
    plain = [few[i * i % len(few)] for i in range(count)]
    tree, other = MaxTree(plain, beside=1, narrow=narrow), MaxTree([0] * count, beside=3, narrow=narrow)
    other.copy(tree)
    assert_same(other, plain)
    other.put(count - 1, -3)
    assert_same(tree, plain)
    with pytest.raises(ValueError, match="no copy"):
        other.copy(MaxTree([0] * (count + 1), narrow=narrow))


@given(counts, st.booleans(), st.data())
def test_a_row_is_written_to_every_tree_of_a_grove(count: int, narrow: bool, data: st.DataObject) -> None:
    tree, plain = MaxTree([0] * count, beside=31, narrow=narrow), [0] * count
    for _ in range(data.draw(st.integers(1, 12))):
        at, value = data.draw(st.integers(0, count - 1)), data.draw(small if narrow else any_values)
        plain[at] = value
        tree.put_row(at, [*range(31), value])
        assert_same(tree, plain)
    with pytest.raises(IndexError, match="no row of 31"):
        tree.put_row(0, [0] * 31)


@pytest.mark.parametrize("count", [1, 4, 5, 16, 17, 63, 64, 300, 4097])
@pytest.mark.parametrize("wanted", [1, 2, 16])
@pytest.mark.parametrize("narrow", [False, True])
def test_gathering_finds_every_position(count: int, wanted: int, narrow: bool) -> None:
    plain = [k * k % 11 for k in range(count)]
    tree = MaxTree(plain, beside=2, narrow=narrow)
    for at in range(0, count, 3):  # some maxima fall
        plain[at] -= 5
        tree.put(at, plain[at])
    for least in (-5, 0, 4, 9, 10, 11):
        assert tree.gathered(least, wanted) == [i for i in range(count) if plain[i] >= least]
        assert tree.sound()
    assert_same(tree, plain)


def test_what_falls_lowers_every_maximum_above_it() -> None:
    plain = [k % 7 for k in range(300)]
    tree = MaxTree(plain)
    for at in [k for k in range(300) if plain[k] == 6]:  # all maxima of a 6 fall, none is looked at
        tree.put(at, 1)
        plain[at] = 1
        assert tree.sound()
    assert tree.next(0, 6) == -1
    assert_same(tree, plain)


def test_a_search_goes_on_from_behind_the_last_hit() -> None:
    plain = [k % 5 for k in range(70)]
    tree, found, at = MaxTree(plain), [], -1
    while (at := tree.next(at + 1, 3)) >= 0:
        found.append(at)
    assert found == [i for i, value in enumerate(plain) if value >= 3]


def test_there_is_no_position_behind_the_end() -> None:
    tree = MaxTree([1] * 16)
    for at in (-1, 16):
        with pytest.raises(IndexError, match=f"no position {at} in a tree of 16"):
            tree.put(at, 2)
    assert [tree.next(at, 1) for at in (15, 16, 17, 400)] == [15, -1, -1, -1]
