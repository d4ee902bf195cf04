"""Where two rows differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim_ext.select import row_difference

NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(NUMBERS, min_size=32, max_size=32), st.dictionaries(st.integers(0, 31), NUMBERS))
def test_the_places_are_those_that_a_plain_look_finds(row: list[int], other: dict[int, int]) -> None:
    changed = [other.get(place, number) for place, number in enumerate(row)]
    assert row_difference.places(row, changed) == [place for place in range(32) if row[place] != changed[place]]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="rows of 31 and 32 numbers, expected 32"):
        row_difference.places([0] * 31, [0] * 32)
