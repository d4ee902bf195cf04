"""Fitted step times: recovered where they can be, pinned where nothing was measured."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.errors import InputError
from fastsim.performance.goodput import Perf
from fastsim.performance.step_time_fit import FREE, LATE_STOP, START, STOP, Observation, _kernel, fitted, loss
from tests.reference.rounds import goodput as by_hand

TRUE = Perf(0.08, 0.002, 0.06, 0.004, 0.02, 0.001, 2.0)
MANY = [(1, 1), (1, 2), (1, 4), (2, 4), (2, 8), (4, 16)]


def measured(perf: Perf, configurations: list[tuple[int, int]], batches: list[int]) -> list[Observation]:
    """What a job sees whose steps take as long as the model says."""
    found = []
    for nodes, replicas in configurations:
        for atomic in batches:
            step_s = replicas * atomic / by_hand.throughput(perf, nodes, replicas, atomic, 0)
            found.append(Observation(nodes, replicas, atomic, perf.alpha_c + perf.beta_c * atomic, step_s))
    return found


def predicted_s(perf: Perf, at: Observation) -> float:
    """Seconds of a step."""
    return at.replicas * at.atomic / by_hand.throughput(perf, at.nodes, at.replicas, at.atomic, 0)


def test_a_model_without_error_is_found_again() -> None:
    observed = measured(TRUE, MANY, [8, 16, 32, 64])
    found = fitted(observed)
    assert loss(observed, TRUE) < loss(observed, found) < loss(observed, START) / 10
    for at in observed:
        assert predicted_s(found, at) == pytest.approx(at.step_s, rel=0.2)  # the search ends early on purpose


def test_what_was_not_measured_is_pinned() -> None:
    one = fitted(measured(TRUE, [(1, 1)], [8]))
    assert one.alpha_c == (TRUE.alpha_c + 8 * TRUE.beta_c) / 2
    assert (one.alpha_r, one.beta_r) == (FREE, FREE)
    assert (one.alpha_n, one.beta_n) == (1.1 * FREE, 1.1 * FREE)
    two = fitted(measured(TRUE, [(1, 2)], [8, 16]))
    assert (two.beta_r, two.alpha_n) == (FREE, 1.1 * two.alpha_r)
    apart = fitted(measured(TRUE, [(2, 8)], [8, 16]))
    assert (apart.alpha_r, apart.beta_r) == (FREE, FREE)


def test_the_same_observations_are_fitted_once() -> None:
    observed = measured(TRUE, MANY, [8, 24])
    assert fitted(observed) is fitted(list(observed))


def test_a_late_stop_comes_closer() -> None:
    observed = [at._replace(step_s=at.step_s * (1.1 if k % 2 else 0.9)) for k, at in
                enumerate(measured(TRUE, MANY, [8, 16, 32]))]  # fmt: skip
    early, late = fitted(observed), fitted(observed, LATE_STOP)
    assert fitted(observed, STOP) is early and loss(observed, late) < loss(observed, early)


sizes = st.tuples(st.integers(1, 4), st.integers(0, 12), st.integers(1, 512))
seconds = st.tuples(st.floats(1e-3, 10), st.floats(1, 5))


@given(
    st.lists(st.tuples(sizes, seconds), min_size=1, max_size=8),
    st.builds(Perf, *[st.floats(1e-3, 1) for _ in range(6)], st.floats(1.01, 9)),
)
@settings(max_examples=60)
def test_slopes_are_those_of_small_steps(
    rows: list[tuple[tuple[int, int, int], tuple[float, float]]], perf: Perf
) -> None:
    observed = [Observation(n, n + k, m, turn_s, turn_s * slower) for (n, k, m), (turn_s, slower) in rows]
    kernel, slope = _kernel(tuple(observed)), np.empty(7)
    kernel.loss(np.array(perf), slope)
    for index in range(7):
        width = 1e-6 * perf[index]
        sides = [np.array(perf), np.array(perf)]
        sides[0][index] -= width
        sides[1][index] += width
        low, high = (kernel.loss(side, np.empty(7)) for side in sides)
        # A difference of two losses has some 1e-16 / 1e-6 of rounding in it, and the curve's own bend.
        assert (high - low) / (2 * width) == pytest.approx(slope[index], rel=1e-3, abs=1e-5 / perf[index])


@pytest.mark.parametrize(
    "observed",
    [
        [],
        [Observation(0, 1, 8, 0.1, 0.1)],
        [Observation(2, 1, 8, 0.1, 0.1)],
        [Observation(1, 1, 8, 0.1, 0.1), Observation(1, 2, 8, 0.0, 0.1)],
        [Observation(1, 1, 8, 0.1, float("nan"))],
    ],
)
def test_times_that_cannot_be_are_refused(observed: list[Observation]) -> None:
    with pytest.raises(InputError, match="step times"):
        fitted(observed)
