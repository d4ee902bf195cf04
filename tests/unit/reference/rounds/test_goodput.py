"""Goodput by hand, on numbers that one can check."""

from __future__ import annotations

import pytest

from fastsim.performance.goodput import BatchLimits, Noise, Perf
from tests.reference.rounds import goodput as by_hand

PLAIN = Perf(1.0, 0.5, 2.0, 1.0, 1.0, 0.5, 1.0)
"""With gamma = 1 arithmetic and network follow each other."""


def test_steps_add_up_without_overlap() -> None:
    assert by_hand.throughput(PLAIN, 1, 4, 2, 0) == pytest.approx(8 / (2.0 + 1.0 + 1.0))
    assert by_hand.throughput(PLAIN, 2, 4, 2, 0) == pytest.approx(8 / (2.0 + 2.0 + 2.0))
    assert by_hand.throughput(PLAIN, 2, 4, 2, 3) == pytest.approx(32 / (4 * 2.0 + 2.0 + 2.0))


def test_a_sample_of_a_larger_batch_teaches_less() -> None:
    assert by_hand.efficiency(Noise(1.0, 3.0, 10), 10) == 1.0
    assert by_hand.efficiency(Noise(1.0, 3.0, 10), 30) == pytest.approx(4 / 2 / 3)
    assert by_hand.efficiency(Noise(0.0, 0.0, 10), 20) == 0.5


def test_candidates_run_from_end_to_end() -> None:
    found = by_hand.candidates(128.0, 4096.0, False)
    assert (len(found), found[0], found[-1]) == (50, 128.0, 4096.0)
    assert found == sorted(found)
    assert by_hand.candidates(64.0, 64.0, True)[0] == 64.0


def test_the_best_of_one_candidate() -> None:
    goodput, *split = by_hand.best(PLAIN, Noise(1.0, 3.0, 8), BatchLimits(8, 1, 8), 1, 2)
    assert goodput == pytest.approx(8 / 4.0)
    assert split == [4, 0]


def test_a_pipeline() -> None:
    assert by_hand.staged(PLAIN, Noise(1.0, 3.0, 4), 4, 2, 4, 1, 1) == pytest.approx(100 * 4 / (3 * 5 * 1.5))
    assert by_hand.staged(PLAIN, Noise(1.0, 3.0, 4), 4, 2, 4, 1, 2) == 0.0
