"""The extremes of a changing multiset against a list."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim_ext.select import value_counts
from fastsim_ext.select.value_counts import ValueCountsTable

values = st.one_of(st.integers(-4, 4), st.integers(-7168, 1023), st.sampled_from((-7168, -129, -128, -65, -64, 63, 64)))
NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(values, max_size=40), st.data())
def test_the_ends_are_those_of_a_list(added: list[int], data: st.DataObject) -> None:
    tally, plain = ValueCountsTable(), []
    for value in added:
        tally.add(value)
        plain.append(value)
        if data.draw(st.booleans()):
            tally.remove(gone := data.draw(st.sampled_from(plain)))
            plain.remove(gone)
        assert tally.ends() == ((min(plain), max(plain)) if plain else None)


def test_one_number_too_far_off_hides_the_ends_while_it_is_there() -> None:
    tally = ValueCountsTable()
    tally.add(-7168)
    tally.add(1023)
    assert tally.ends() == (-7168, 1023)
    tally.add(1024)
    tally.add(-7169)
    tally.remove(1023)
    with pytest.raises(OverflowError, match="found 2 numbers beyond -7168 to 1023"):
        tally.ends()
    tally.remove(1024)
    tally.remove(-7169)
    assert tally.ends() == (-7168, -7168)
    tally.remove(-7168)
    assert tally.ends() is None


@given(st.lists(NUMBERS, min_size=32, max_size=32), st.dictionaries(st.integers(0, 31), NUMBERS))
def test_the_places_are_those_that_a_plain_look_finds(row: list[int], other: dict[int, int]) -> None:
    changed = [other.get(place, number) for place, number in enumerate(row)]
    assert value_counts.differing_positions(row, changed) == [
        place for place in range(32) if row[place] != changed[place]
    ]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="rows of 31 and 32 numbers, expected 32"):
        value_counts.differing_positions([0] * 31, [0] * 32)
