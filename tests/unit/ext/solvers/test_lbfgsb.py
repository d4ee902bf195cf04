"""The search behind fits: it ends inside its bounds, where no slope leads down, as SciPy's does, and as it began."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from scipy.optimize import Bounds, minimize

from fastsim.performance.step_time_fit import FREE, LARGEST_GAMMA, START, Observation, _kernel

Floats = npt.NDArray[np.float64]

TIGHT = 1e-11
"""Stop of searches that go on until losses hardly have digits left."""

sizes = st.tuples(st.integers(1, 4), st.integers(0, 12), st.integers(1, 512))
seconds = st.tuples(st.floats(1e-2, 10), st.floats(1, 5))
observations = st.lists(st.tuples(sizes, seconds), min_size=1, max_size=12).map(
    lambda rows: tuple(Observation(n, n + k, m, turn_s, turn_s * slower) for (n, k, m), (turn_s, slower) in rows)
)


def bounds(pinned: frozenset[int] = frozenset()) -> tuple[Floats, Floats]:
    """Least and largest parameters; pinned ones stay where searches begin."""
    low, high = np.full(7, FREE), np.full(7, np.inf)
    low[-1], high[-1] = 1.0, LARGEST_GAMMA
    for index in pinned:
        low[index] = high[index] = START[index]
    return low, high


def searched(
    observed: tuple[Observation, ...], low: Floats, high: Floats, stop: float, flat: float | None = None
) -> tuple[float, Floats]:
    """The loss where the search ends, and where that is; ``flat`` is ``stop`` unless given."""
    ended = np.array(START)
    return _kernel(observed).fitted(low, high, stop if flat is None else flat, stop, ended), ended


@given(observations, st.frozensets(st.integers(0, 6)))
@settings(max_examples=80)
def test_it_ends_inside_its_bounds_and_lower(observed: tuple[Observation, ...], pinned: frozenset[int]) -> None:
    low, high = bounds(pinned)
    loss, ended = searched(observed, low, high, 1e-5)
    slope = np.empty(7)
    assert (low <= ended).all() and (ended <= high).all()
    assert loss == _kernel(observed).loss(ended, slope) <= _kernel(observed).loss(np.array(START), slope)
    assert all(ended[index] == START[index] for index in pinned)


@given(observations)
@settings(max_examples=40)
def test_the_same_search_ends_at_the_same_bits(observed: tuple[Observation, ...]) -> None:
    (first, here), (second, there) = (searched(observed, *bounds(), 1e-5) for _ in range(2))
    assert (first, here.tobytes()) == (second, there.tobytes())


def test_a_search_that_goes_on_is_never_worse() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        observed = drawn(random, 8)
        losses = [searched(observed, *bounds(), stop)[0] for stop in (1e-2, 1e-5, 1e-8)]
        assert losses == sorted(losses, reverse=True)


def test_slopes_and_falls_have_limits_of_their_own() -> None:
    observed = drawn(np.random.default_rng(7), 8)
    slope = np.empty(7)
    steep = searched(observed, *bounds(), 0.0, 1e-2)[1]
    _kernel(observed).loss(steep, slope)
    projected = np.where(slope < 0, slope, np.minimum(steep - bounds()[0], slope))
    assert 1e-5 < np.abs(projected).max() <= 1e-2
    early, late = (searched(observed, *bounds(), stop, 0.0)[0] for stop in (1e-2, 1e-6))
    assert late < early
    assert searched(observed, *bounds(), 0.0, 1e9)[1].tolist() == list(START)


def test_bounds_that_are_near_but_are_not_met_hold_nothing_back() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        observed, (low, high) = drawn(random, 12), bounds()
        loss, ended = searched(observed, low, high, TIGHT)
        near = np.minimum(high, np.maximum(ended, START) + 0.25)
        assert searched(observed, low, near, TIGHT)[0] == pytest.approx(loss, rel=1e-3, abs=1e-6)


def drawn(random: np.random.Generator, count: int) -> tuple[Observation, ...]:
    """Step times that a model explains but for a tenth."""
    found = []
    for nodes, more, atomic in random.integers([1, 0, 8], [4, 12, 256], (count, 3)).tolist():
        turn_s = (0.05 + 0.002 * atomic) * random.uniform(0.9, 1.1)
        found.append(Observation(nodes, nodes + more, atomic, turn_s, turn_s + 0.02 * nodes + 0.001 * more))
    return tuple(found)


@pytest.mark.long
def test_scipy_ends_no_lower() -> None:
    """Both go down to the last digits; a valley with two ends may part them, so nine in ten have to agree."""
    random, apart = np.random.default_rng(4), []
    for _ in range(60):
        observed, (low, high) = drawn(random, int(random.integers(3, 30))), bounds()
        kernel = _kernel(observed)

        def slope(perf: Floats, kernel: object = kernel) -> tuple[float, Floats]:
            found = np.empty(7)
            return kernel.loss(perf, found), found  # type: ignore[attr-defined]

        theirs = minimize(slope, START, jac=True, bounds=Bounds(low, high), method="L-BFGS-B", tol=TIGHT)
        ours, _ = searched(observed, low, high, TIGHT)
        apart.append(ours - theirs.fun)
    assert np.percentile(np.abs(apart), 90) <= 1e-6  # of losses near 0.1: flat valleys, where a stop is anywhere
    assert max(apart) <= 1e-3
