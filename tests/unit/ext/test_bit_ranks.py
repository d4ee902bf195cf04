"""Digits of floats: counted and gathered as sorting all values would have it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim_ext.bit_ranks import counted, gathered

FLOATS = st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, math.inf, 5e-324, -5e-324]), max_size=30)


def keys_of(values: list[float]) -> list[int]:
    """The keys, spelled with Python's integers."""
    bits = [int(np.array(0.0 if v == 0 else v).view(np.uint64)) for v in values]
    return [2**64 - 1 - b if b >> 63 else b + 2**63 for b in bits]


@given(FLOATS)
def test_keys_are_in_the_order_of_the_values(values: list[float]) -> None:
    for shift in (16, 32, 48):
        for prefix in {key >> shift for key in keys_of(values)}:
            own = [key for key in keys_of(values) if key >> shift == prefix]
            room = np.zeros(len(own) + 1, np.uint64)
            assert gathered(np.array(values), shift, prefix, room, 1) == len(own) + 1
            assert room[1:].tolist() == own
    ordered = sorted(keys_of(values))
    assert [ordered.index(k) for k in keys_of(values)] == [sorted(values).index(v) for v in values]


@given(FLOATS)
def test_digits_are_counted_behind_each_prefix(values: list[float]) -> None:
    for shift in (0, 16, 32, 48):
        prefixes = sorted({key >> shift >> 16 for key in keys_of(values)})[:4]
        counts = np.zeros((len(prefixes), 1 << 16), np.int64)
        for part in (values[:7], values[7:]):
            counted(np.array(part, np.float64), shift, np.array(prefixes, np.uint64), counts)
        for prefix, row in zip(prefixes, counts, strict=True):
            own = [key >> shift & 0xFFFF for key in keys_of(values) if key >> shift >> 16 == prefix]
            assert {digit: own.count(digit) for digit in own} == {int(d): int(row[d]) for d in np.flatnonzero(row)}


def test_what_does_not_fit_is_refused() -> None:
    one, room = np.ones(2), np.zeros(1, np.uint64)
    prefix = keys_of([1.0])[0] >> 48
    with pytest.raises(ValueError, match="more than 1 keys"):
        gathered(one, 48, prefix, room, 0)
    with pytest.raises(ValueError, match="before 8 bits"):
        gathered(one, 8, 0, room, 0)
    with pytest.raises(ValueError, match="2 by 65536 for 1 prefixes"):
        counted(one, 48, room, np.zeros((2, 1 << 16), np.int64))
    with pytest.raises(ValueError, match="before 8 bits"):
        counted(one, 8, room, np.zeros((1, 1 << 16), np.int64))
