"""Strict FIFO on one pool: by hand, and against a slow twin that looks at every instant."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fastsim_ext.online.fifo_pool import fifo_starts

Job = tuple[float, float | None, int]
"""Arrival in s, duration in s (None = for ever), devices."""


def starts(jobs: list[Job], capacity: int) -> list[float]:
    """Compiled starts."""
    submit, duration = np.array([job[0] for job in jobs], np.float64), np.array([job[1] for job in jobs], np.float64)
    found = np.empty(len(jobs))
    count = fifo_starts(submit, duration, np.array([job[2] for job in jobs], np.int32), capacity, found)
    assert count == np.isfinite(found).sum()
    return found.tolist()


def slow_starts(jobs: list[Job], capacity: int) -> list[float]:
    """The same, from the definition: the head starts at the first instant at which enough is free."""
    held: list[tuple[float, int]] = []
    found: list[float] = []
    for submit, duration, devices in jobs:
        earliest = max([submit, *found])
        instants = sorted({earliest, *(end for end, _ in held if earliest < end < math.inf)})
        start = next((t for t in instants if capacity - sum(d for end, d in held if end > t) >= devices), math.nan)
        if math.isnan(start):
            return found + [math.nan] * (len(jobs) - len(found))
        found.append(start)
        held.append((math.inf if duration is None else start + duration, devices))
    return found


def test_nobody_overtakes() -> None:
    jobs: list[Job] = [(0, 10, 3), (1, 5, 2), (2, 1, 1), (2, 1, 1)]
    assert starts(jobs, 4) == [0, 10, 10, 10]


def test_an_end_comes_before_an_arrival_of_the_same_instant() -> None:
    assert starts([(0, 5, 2), (5, 5, 2), (5, 0, 1), (5, 1, 2)], 2) == [0, 5, 10, 10]


def test_jobs_without_devices_wait_for_their_turn_only() -> None:
    assert starts([(0, 5, 2), (0, 1, 0), (1, 1, 1), (2, 1, 0)], 2) == [0, 0, 5, 5]


def test_behind_a_job_that_never_starts_nobody_does() -> None:
    found = starts([(0, None, 1), (1, 2, 1), (2, 1, 2), (3, 1, 0)], 2)
    assert found[:2] == [0, 1] and all(map(math.isnan, found[2:]))


def test_no_jobs_and_columns_of_other_lengths() -> None:
    assert starts([], 1) == []
    column = np.zeros(2)
    with pytest.raises(ValueError, match="different lengths"):
        fifo_starts(column, column, np.zeros(3, np.int32), 1, column)


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Job], int]:
    """Jobs that arrive close together, and a small pool."""
    capacity = draw(st.sampled_from((1, 2, 3, 8, 40)))
    gaps, spans = st.sampled_from((0, 0, 0, 1, 2, 0.5)), st.sampled_from((0, 1, 2, 3.5, 7, 20, 1, 2, None))
    rows = draw(st.lists(st.tuples(gaps, spans, st.integers(0, capacity)), max_size=60))
    submits = np.cumsum([float(gap) for gap, _, _ in rows]).tolist()
    return [(submit, span, devices) for submit, (_, span, devices) in zip(submits, rows, strict=True)], capacity


@given(queues())
def test_as_the_slow_twin(queue: tuple[list[Job], int]) -> None:
    np.testing.assert_array_equal(starts(*queue), slow_starts(*queue))


def test_a_full_pool_of_single_devices() -> None:
    rng = np.random.default_rng(3)
    jobs: list[Job] = [(float(i // 3), float(rng.integers(1, 90)), 1) for i in range(400)]
    assert starts(jobs, 64) == slow_starts(jobs, 64)
