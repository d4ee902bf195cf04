"""The sort of rows by several terms is the stable one of Python."""

from __future__ import annotations

import math
from dataclasses import astuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.scenario.sort_keys import MOST_TERMS, TERMS
from fastsim_ext.sorting import counted, gathered, in_order, terms
from tests.reference.rounds.sort_keys import KeyInputs, OrderContext
from tests.reference.rounds.sort_keys import key as sort_key
from tests.strategies import scenarios_per_run

ROW = st.lists(st.sampled_from([0.0, 1.0, 2.5, -1.0, float("inf")]), min_size=MOST_TERMS, max_size=MOST_TERMS)
AMOUNTS = st.one_of(st.just(0.0), st.integers(1, 40).map(float), st.floats(0.01, 1e6))
SECONDS = st.one_of(AMOUNTS, st.just(math.inf))
FLOATS = st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, math.inf, 5e-324, -5e-324]), max_size=30)


def compiled(claim: KeyInputs, context: OrderContext, level_s: list[float]) -> list[float]:
    """Every term but those of columns."""
    inputs = [claim.submit_s, claim.last_s, claim.left_s, claim.total_s, claim.attained_s, claim.gpus, claim.cpu_milli,
              claim.memory_mib, claim.weight, claim.priority]  # fmt: skip
    return terms(range(len(TERMS)), *(np.array(row, np.float64) for row in (inputs, astuple(context), level_s)))


@settings(max_examples=scenarios_per_run(300))
@given(st.lists(ROW, max_size=120), st.integers(1, MOST_TERMS))
def test_equal_rows_stay_as_they_were(rows: list[list[float]], terms: int) -> None:
    assert in_order(np.array(rows, np.float64).ravel(), terms) == sorted(
        range(len(rows)), key=lambda row: rows[row][:terms]
    )


def test_sorted_rows_are_only_looked_at() -> None:
    keys = np.arange(400.0).reshape(-1, MOST_TERMS)
    assert in_order(keys.ravel(), 4) == list(range(100))
    assert in_order(keys[::-1].ravel(), 4) == list(range(99, -1, -1))


@settings(max_examples=scenarios_per_run(400))
@given(
    st.builds(
        KeyInputs, AMOUNTS, SECONDS, SECONDS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, st.integers(-3, 3)
    ),
    st.builds(OrderContext, st.just(1e6), AMOUNTS, AMOUNTS, AMOUNTS),
    st.lists(st.integers(1, 10_000).map(float), max_size=3, unique=True).map(sorted),
)
def test_every_term_is_what_plain_python_says(claim: KeyInputs, context: OrderContext, level_s: list[float]) -> None:
    found = compiled(claim, context, level_s)
    expected = sort_key(TERMS, claim, context, level_s)
    assert found == expected
    assert not any(math.isnan(term) for term in found)
    assert sort_key(["-" + term for term in TERMS], claim, context, level_s) == [-term for term in expected]


def test_terms_by_hand() -> None:
    claim = KeyInputs(
        submit_s=100.0, left_s=50.0, total_s=200.0, gpus=2.0, cpu_milli=10.0, memory_mib=30.0, attained_s=40.0
    )
    context = OrderContext(now_s=300.0, gpus=8.0, cpu_milli=100.0, memory_mib=100.0)
    by_name = dict(zip(TERMS, compiled(claim, context, [60.0, 90.0]), strict=True))
    assert by_name == {
        "arrival": 100.0, "starving": 0.0, "remaining": 50.0, "service": 80.0, "attained": 40.0, "finish_ratio": 1.25,
        "dominant": 0.3, "packing": (0.25 + 0.1 + 0.3) * 50.0, "service_left": 100.0, "level": 1.0, "weight": 1.0,
        "gpus": 2.0, "last": 0.0,
    }  # fmt: skip


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
