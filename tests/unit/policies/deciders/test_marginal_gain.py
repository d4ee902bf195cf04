"""GPUs one after the other to whom they help most: nothing is given twice, and for convex times the sum is least."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
from hypothesis import given

from fastsim.policies.deciders.marginal_gain import Size, Speeds, grown


def speeds(*unit_s: float, group: int = 0) -> Speeds:
    """Seconds with 1, 2, 3 ... GPUs."""
    return Speeds({Size(group, gpus): second for gpus, second in enumerate(unit_s, 1)})


def on_one(has: list[int], left: list[float], known: list[Speeds], free: int) -> list[int]:
    return [size.gpus for size in grown([Size(0, gpus) for gpus in has], left, known, [free])]


def test_gpus_go_to_the_largest_gain() -> None:
    known = [speeds(10.0, 5.0, 4.0), speeds(10.0, 8.0, 7.5)]
    assert on_one([1, 1], [1.0, 1.0], known, 1) == [2, 1]
    assert on_one([1, 1], [1.0, 1.0], known, 2) == [2, 2]
    assert on_one([1, 1], [1.0, 10.0], known, 1) == [1, 2]
    assert on_one([1, 1], [1.0, 1.0], known, 9) == [3, 3]
    assert on_one([1, 1], [0.0, 0.0], known, 9) == [1, 1]


def test_a_slow_size_is_stepped_over_if_there_are_gpus() -> None:
    known = [speeds(10.0, 12.0, 4.0)]
    assert on_one([1], [1.0], known, 2) == [3]
    assert on_one([1], [1.0], known, 1) == [1]


def test_a_step_that_is_too_large_becomes_a_smaller_one() -> None:
    known = [speeds(10.0, 9.9, 1.0), speeds(10.0, 5.0)]
    assert on_one([1, 1], [1.0, 1.1], known, 2) == [2, 2]


def test_equal_jobs_are_served_in_their_order() -> None:
    assert on_one([1, 1, 1], [1.0] * 3, [speeds(2.0, 1.0)] * 3, 2) == [2, 2, 1]


def test_jobs_move_to_a_faster_group_and_leave_their_gpus_to_others() -> None:
    slow, fast = Size(0, 1), Size(1, 1)
    known = Speeds({slow: 4.0, Size(0, 2): 2.0, fast: 1.0})
    assert grown([slow, slow], [1.0, 1.0], [known, known], [0, 1]) == [fast, Size(0, 2)]


def test_the_least_size_of_each_group_comes_fastest_first() -> None:
    known = Speeds({Size(0, 2): 4.0, Size(0, 4): 2.0, Size(1, 1): 1.0})
    assert list(known.least.values()) == [Size(1, 1), Size(0, 2)]
    assert known.seconds(Size(2, 1)) == math.inf


@st.composite
def convex(draw: st.DrawFn) -> Speeds:
    """Times that fall by less and less."""
    drops = sorted(draw(st.lists(st.integers(0, 50), min_size=0, max_size=4)), reverse=True)
    return speeds(*(float(1 + sum(drops[at:])) for at in range(len(drops) + 1)))


@given(st.lists(st.tuples(convex(), st.integers(1, 5)), min_size=1, max_size=4), st.integers(0, 8))
def test_for_convex_times_no_other_sizes_add_up_better(jobs: list[tuple[Speeds, int]], free: int) -> None:
    known, left = [speed for speed, _ in jobs], [float(work) for _, work in jobs]
    found = on_one([1] * len(jobs), left, known, free)

    def total(sizes: tuple[int, ...] | list[int]) -> float:
        return sum(w * k.seconds(Size(0, gpus)) for w, k, gpus in zip(left, known, sizes, strict=True))

    assert sum(found) <= len(jobs) + free
    choices = itertools.product(*(range(1, len(k.unit_s) + 1) for k in known))
    assert total(found) == min(total(sizes) for sizes in choices if sum(sizes) <= len(jobs) + free)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(1, 9), min_size=6, max_size=6)), max_size=6),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_no_group_gives_more_than_it_has_and_nobody_gets_slower(
    jobs: list[tuple[int, list[int]]], free: tuple[int, int]
) -> None:
    known = [Speeds({Size(at // 3, at % 3 + 1): float(unit_s) for at, unit_s in enumerate(times)}) for _, times in jobs]
    has = [Size(group, 1) for group, _ in jobs]
    found = grown(has, [1.0] * len(jobs), known, free)
    for group in (0, 1):
        there = free[group] + sum(size.gpus for size in has if size.group == group)
        assert sum(size.gpus for size in found if size.group == group) <= there
    assert all(k.seconds(size) <= k.seconds(was) for k, size, was in zip(known, found, has, strict=True))
