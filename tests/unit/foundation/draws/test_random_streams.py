"""Random streams: fixed words for a seed and a concern, and what follows from them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from fastsim.foundation.draws.random_streams import Stream, normal_quantile, shuffled_order


def test_the_words_of_a_seed_are_those_of_philox_with_a_hashed_key() -> None:
    key = int.from_bytes(hashlib.sha256(b"fastsim:7:arrival.gap").digest()[:16], "little")
    expected = np.random.Philox(key=key).random_raw(3)
    assert Stream(7, "arrival.gap").raw(3).tolist() == expected.tolist()
    assert Stream(7, "arrival.gap").uniform(3).tolist() == [((int(w) >> 11) + 0.5) / 2**53 for w in expected]


def test_every_draw_is_made_from_uniform_numbers() -> None:
    u = Stream(1, "x").uniform(50)
    assert Stream(1, "x").below(10, 50).tolist() == [int(10 * value) for value in u]
    assert Stream(1, "x").normal(50).tolist() == normal_quantile(u).tolist()
    assert Stream(1, "x").exponential(50).tolist() == (-np.log(u)).tolist()


def test_a_bound_of_one_leaves_no_choice() -> None:
    assert Stream(3, "x").below(1, 5).tolist() == [0] * 5
    assert Stream(3, "x").raw(0).tolist() == []


def test_an_order_is_a_permutation_fixed_by_seed_and_concern() -> None:
    assert shuffled_order(5, "nodes", 0) == [] and shuffled_order(5, "nodes", 1) == [0]
    order = shuffled_order(5, "nodes", 50)
    words = Stream(5, "nodes").raw(50).tolist()
    assert sorted(order) == list(range(50)) and words[order[0]] == min(words) and words[order[-1]] == max(words)
    assert order != shuffled_order(6, "nodes", 50) and order != shuffled_order(5, "pods", 50)


def test_the_normal_quantile_is_odd_and_joins_its_pieces() -> None:
    p = np.array([0.5, 1e-12, 0.02, 0.3])
    assert normal_quantile(p)[0] == 0.0
    # 1 - p is rounded to 2^-53; at 1e-12 the slope of the quantile, 1.4e11, makes 8e-6 of half an ulp.
    assert normal_quantile(1 - p) == pytest.approx(-normal_quantile(p), abs=1e-5)
    edge = np.nextafter(0.02425, [0.0, 1.0])
    low, high = normal_quantile(edge)
    assert abs(high - low) < 2 * 1.2e-9 * abs(low)  # each piece is off by less than 1.2e-9 of the value
