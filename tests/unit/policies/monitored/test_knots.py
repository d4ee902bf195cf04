"""The metric-driven scheduler on several GPUs: passes, stages, releases."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.monitored.plan import Binding
from fastsim.errors import PolicyError
from fastsim.policies.monitored.knots import DeclaredMemory, Knots, KnotsScheduler, RequestQueue
from fastsim.policies.registry import describe, parse


class Readings:
    """GPUs whose use of memory is constant; pods that have ended are listed by hand."""

    def __init__(self, *used_mib: float, capacity_mib: int = 1000) -> None:
        self.used_mib, self.capacity_mib = used_mib, [capacity_mib] * len(used_mib)
        self.done: set[int] = set()
        self.later_s = math.inf

    def window(self, gpu: int, start_s: int, end_s: int) -> tuple[list[float], list[float]]:
        """The same at every second."""
        count = end_s - start_s + 1
        return [self.capacity_mib[gpu] - self.used_mib[gpu]] * count, [self.used_mib[gpu]] * count

    def over(self, pod: int) -> bool:
        """Whether the pod is listed."""
        return pod in self.done

    def next_s(self) -> float:
        """The time set by hand."""
        return self.later_s


def scheduler(view: Readings, **parameters: object) -> KnotsScheduler:
    return KnotsScheduler(Knots(**parameters), view.capacity_mib, 0.0)  # type: ignore[arg-type]


def test_the_largest_is_first_and_goes_where_most_is_left() -> None:
    view = Readings(0, 0)
    knots = scheduler(view)
    for pod, request in enumerate((300, 700, 600)):
        knots.arrive(pod, request)
    turns = [knots.step(0.0, view)]
    while turns[-1].bindings:
        turns.append(knots.step(turns[-1].next_s, view))
    placed = [(one.pod, one.gpu, one.stage) for turn in turns for one in turn.bindings]
    assert placed == [(1, 0, "direct"), (2, 1, "direct"), (0, 1, "direct")]
    assert [turn.next_s for turn in turns[:3]] == [5.5, 11.0, 16.5] and turns[-1].next_s == math.inf


def test_memory_that_is_declared_but_not_used_is_lent() -> None:
    view = Readings(600, 200)
    knots = scheduler(view)
    for pod in range(3):
        knots.arrive(pod, 900)
    first, second = knots.step(0.0, view), knots.step(5.5, view)
    assert {*first.bindings, *second.bindings} == {Binding(0, 0, 0.5, "direct"), Binding(1, 1, 6.0, "direct")}
    assert not knots.step(40.0, view).bindings
    view.used_mib = (600, 50)
    assert knots.step(41.0, view).bindings == (Binding(2, 1, 41.5, "correlation"),)


@pytest.mark.parametrize(("burst", "apart_s"), [(10, [5.5, 5.5, 5.5, 5.5]), (1, [5.7, 5.9, 6.1, 6.3])])
def test_a_pass_takes_longer_with_every_pod_that_waits_for_its_request(burst: int, apart_s: list[float]) -> None:
    view = Readings(0)
    knots = scheduler(view, api_pace=True, burst=burst)
    for pod in range(5):
        knots.arrive(pod, 100)
    time, begins = 0.0, list[float]()
    while len(begins) < 5:
        turn = knots.step(time, view)
        begins += [placed.at_s for placed in turn.bindings]
        time = turn.next_s
    # Half a second and five of rest. One at a time, the report of a binding waits for 0.2 s, and so does each pod that
    # is looked up after the first.
    assert [b - a for a, b in pairwise(begins)] == pytest.approx(apart_s)


def test_a_pod_that_comes_while_none_waits_is_taken_along_for_a_pass() -> None:
    for idle_pass, bound_s in ((False, 10.5), (True, 11.0)):
        view = Readings(0)
        knots = scheduler(view, idle_pass=idle_pass)
        view.later_s = 9.8
        assert knots.step(0.0, view).next_s == 10
        knots.arrive(0, 100)
        turn = knots.step(10.0, view)
        assert (turn if turn.bindings else knots.step(turn.next_s, view)).bindings[0].at_s == bound_s


def test_one_pod_is_released_at_a_time() -> None:
    for one_release, left in ((True, 1), (False, 0)):
        view = Readings(0)
        knots = scheduler(view, one_release=one_release)
        for pod in range(2):
            knots.arrive(pod, 100)
        knots.step(0.0, view)
        knots.step(5.5, view)
        view.done = {0, 1}
        knots.step(11.0, view)
        assert len(knots.declared[0].running) == left


def test_a_binding_that_fails_is_tried_again() -> None:
    view = Readings(0)
    knots = scheduler(view, zero_draw=True)
    for pod in range(9):
        knots.arrive(pod, 10)
    time, counts = 0.0, list[int]()
    for _ in range(10):
        turn = knots.step(time, view)
        counts.append(len(turn.bindings))
        assert turn.next_s - time == (5.5 if turn.bindings else 0.5)
        time = turn.next_s
    assert counts == [1] * 7 + [0, 1, 1]


def test_no_turn_before_the_next_event() -> None:
    view = Readings(0)
    knots = scheduler(view)
    assert knots.step(0.0, view).next_s == math.inf
    view.later_s = 7.3
    assert knots.step(0.0, view).next_s == 7.5


def test_as_a_policy() -> None:
    assert str(parse("monitored(percentile=0.9, heap_ties=True)")) == "monitored(percentile=0.9, heap_ties=True)"
    assert describe("monitored").engine == "monitored"
    with pytest.raises(PolicyError, match="percentile"):
        parse("monitored(percentile=2)")


def test_declared_memory_is_counted_and_released() -> None:
    declared = DeclaredMemory(100)
    for pod, request_mib in ((7, 60), (5, 30), (6, 50)):
        declared.place(pod, request_mib)
    assert (declared.available_mib, declared.running) == (-40, [7, 5, 6])
    declared.release(7)
    declared.release(6)
    assert (declared.available_mib, declared.running) == (70, [5])


def test_bindings_fail_only_if_asked_for() -> None:
    assert all(Knots().binds(attempt) for attempt in range(1, 32))
    assert sum(not Knots(zero_draw=True).binds(attempt) for attempt in range(1, 32)) == 1


@pytest.mark.parametrize(
    "options", [{"pass_s": -1.0}, {"placed_s": float("nan")}, {"requests_per_s": 0.0}, {"burst": 0}]
)
def test_bad_paces_are_named(options: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=f"parameter {next(iter(options))}"):
        Knots(**options).check()  # type: ignore[arg-type]


def order(sizes: list[int], heap_ties: bool) -> list[int]:
    queue = RequestQueue(heap_ties)
    for pod, size in enumerate(sizes):
        queue.push(pod, size)
    return [queue.pop() for _ in range(len(queue))]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([1] * 3, [0, 2, 1]), ([1] * 5, [0, 4, 3, 2, 1]), ([5, 9, 5, 9, 7, 5, 9], [1, 3, 6, 4, 0, 5, 2])],
)
def test_equals_leave_as_they_lie_in_the_heap(sizes: list[int], expected: list[int]) -> None:
    assert order(sizes, True) == expected


@given(st.lists(st.integers(0, 4)))
def test_the_largest_leaves_first_and_of_equals_the_oldest(sizes: list[int]) -> None:
    assert order(sizes, False) == sorted(range(len(sizes)), key=lambda pod: (-sizes[pod], pod))
    heaped = order(sizes, True)
    assert sorted(heaped) == list(range(len(sizes)))
    assert [sizes[pod] for pod in heaped] == sorted(sizes, reverse=True)


def test_who_comes_back_keeps_its_age() -> None:
    queue = RequestQueue()
    for pod in (7, 8):
        queue.push(pod, 1)
    assert queue.pop() == 7
    queue.push(9, 1)
    queue.push(7, 1)
    assert [queue.pop() for _ in range(3)] == [7, 8, 9]


@pytest.mark.parametrize("heap_ties", [False, True])
def test_nobody_waits(heap_ties: bool) -> None:
    with pytest.raises(IndexError):
        RequestQueue(heap_ties).pop()
