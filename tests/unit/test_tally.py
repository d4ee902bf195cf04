"""The ends of a changing collection against a list."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastsim_ext.tally import Counted

values = st.one_of(st.integers(-4, 4), st.sampled_from((-(2**31), 2**31 - 1)))


@given(st.lists(values, max_size=40), st.data())
def test_the_ends_are_those_of_a_list(added: list[int], data: st.DataObject) -> None:
    tally, plain = Counted(), []
    for value in added:
        tally.add(value)
        plain.append(value)
        if data.draw(st.booleans()):
            tally.remove(gone := data.draw(st.sampled_from(plain)))
            plain.remove(gone)
        assert tally.ends() == ((min(plain), max(plain)) if plain else None)


def test_too_many_distinct_numbers_are_said_to_be_so() -> None:
    tally = Counted()
    for value in range(128):
        tally.add(value)
    assert tally.ends() == (0, 127)
    tally.add(5)
    tally.add(128)
    with pytest.raises(OverflowError, match="more than 128 distinct numbers"):
        tally.ends()
    tally.remove(7)  # what was there before cannot be told any more
    with pytest.raises(OverflowError, match="more than 128"):
        tally.ends()
