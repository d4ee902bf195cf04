"""Terms of sort keys: the kernel and plain Python agree on any claim, to the bit."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from fastsim.scenario.sort_keys import TERMS
from fastsim_ext.sort_keys import terms
from tests.reference.rounds.sort_keys import Claim, OrderContext, key
from tests.strategies import scenarios_per_run

AMOUNTS = st.one_of(st.just(0.0), st.integers(1, 40).map(float), st.floats(0.01, 1e6))
SECONDS = st.one_of(AMOUNTS, st.just(math.inf))


@settings(max_examples=scenarios_per_run(400))
@given(
    st.builds(
        Claim, AMOUNTS, SECONDS, SECONDS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, st.integers(-3, 3)
    ),
    st.builds(OrderContext, st.just(1e6), AMOUNTS, AMOUNTS, AMOUNTS),
    st.lists(st.integers(1, 10_000).map(float), max_size=3, unique=True).map(sorted),
)
def test_every_term_is_what_plain_python_says(claim: Claim, yard: OrderContext, level_s: list[float]) -> None:
    found = terms(range(len(TERMS)), claim, yard, np.array(level_s))
    expected = key(TERMS, claim, yard, level_s)
    assert found == expected
    assert not any(math.isnan(term) for term in found)
    assert key(["-" + term for term in TERMS], claim, yard, level_s) == [-term for term in expected]


def test_terms_by_hand() -> None:
    claim = Claim(
        submit_s=100.0, left_s=50.0, total_s=200.0, gpus=2.0, cpu_milli=10.0, memory_mib=30.0, attained_s=40.0
    )
    yard = OrderContext(now_s=300.0, gpus=8.0, cpu_milli=100.0, memory_mib=100.0)
    by_name = dict(zip(TERMS, terms(range(len(TERMS)), claim, yard, np.array([60.0, 90.0])), strict=True))
    assert by_name == {
        "arrival": 100.0, "priority": 0.0, "remaining": 50.0, "service": 80.0, "attained": 40.0, "finish_ratio": 1.25,
        "dominant": 0.3, "packing": (0.25 + 0.1 + 0.3) * 50.0, "service_left": 100.0, "level": 1.0, "weight": 1.0,
        "gpus": 2.0, "last": 0.0,
    }  # fmt: skip
