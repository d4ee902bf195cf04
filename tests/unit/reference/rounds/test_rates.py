"""Rates of the plain rounds, by hand."""

from __future__ import annotations

import numpy as np

from fastsim.engine.rounds.options import RoundOptions
from tests.reference.rounds.rates import pair_is_hopeful, round_of, true_rates
from tests.rounds import oracle

ALONE = [[4.0, 2.0], [3.0, 0.0], [1.0, 1.0]]
SHARED = np.zeros((3, 3, 2))
SHARED[0, 0] = [2.0, 1.0]
SHARED[0, 2], SHARED[2, 0] = [3.0, np.nan], [0.5, 0.5]
RATES = oracle(ALONE, SHARED)


def test_true_rates_are_of_every_member() -> None:
    assert true_rates(RATES, [1], 0) == [3.0]
    assert true_rates(RATES, [0, 2], 0) == [3.0, 0.5]
    assert true_rates(RATES, [2, 0], 1) == [0.5, 0.0]  # not measured


def test_a_pair_is_as_hopeful_as_what_it_is_taken_for() -> None:
    assert pair_is_hopeful(RATES, [0, 2], [0, 2], 0)
    assert not pair_is_hopeful(RATES, [0, 2], [0, 2], 1)
    assert not pair_is_hopeful(RATES, [0, 1], [0, 1], 0)
    assert pair_is_hopeful(RATES, [0, 1], [0, 0], 0)


def test_who_cannot_run_alone_is_hopeless() -> None:
    assert pair_is_hopeful(RATES, [0, 2], [0, 0], 1)
    assert not pair_is_hopeful(RATES, [0, 1], [0, 0], 1)


def test_a_round_ends_with_it_or_with_the_job() -> None:
    options, whole = RoundOptions(round_s=10.0), RoundOptions(round_s=10.0, compat=frozenset({"whole_steps"}))
    assert round_of(0.25, 100.0, 50.0, 0.0, options) == (2.5, 60.0)
    assert round_of(0.25, 100.0, 50.0, 0.0, whole) == (2.0, 58.0)
    assert round_of(0.25, 1.0, 50.0, 2.0, options) == (1.0, 56.0)


def test_a_round_lasts_as_long_as_it_should_however_its_steps_are_rounded() -> None:
    options = RoundOptions(round_s=360.0)
    for rate in (0.093, 0.094):
        steps = rate * 360.0
        assert steps / rate != 360.0
        assert round_of(rate, 1e9, 0.0, 0.0, options) == (steps, 360.0)
        assert round_of(rate, steps, 0.0, 0.0, options) == (steps, min(steps / rate, 360.0))


def test_a_wrong_guess_costs_a_round() -> None:
    assert round_of(0.0, 100.0, 50.0, 2.0, RoundOptions(round_s=10.0)) == (0.0, 60.0)
