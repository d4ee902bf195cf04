"""The metric-driven scheduler on several GPUs: passes, stages, releases."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.engine.monitored.plan import Binding
from fastsim.errors import PolicyError
from fastsim.policies.monitored.knots import DeclaredMemory, Knots, KnotsScheduler, RequestQueue, SchedulerLatency
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


def test_a_pass_takes_longer_with_every_pod_that_is_looked_up() -> None:
    view = Readings(0)
    knots = scheduler(view, api_pace=True)
    for pod in range(5):
        knots.arrive(pod, 100)
    time, begins = 0.0, list[float]()
    while len(begins) < 5:
        turn = knots.step(time, view)
        begins += [placed.at_s for placed in turn.bindings]
        time = turn.next_s
    # Half a second, five of rest; the fourth pod's pass looks three up in 0.6 s, the fifth's four in 0.8 s.
    assert [b - a for a, b in pairwise(begins)] == pytest.approx([5.5, 5.5, 5.6, 5.8])


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
    assert describe("monitored").socket == "monitored"
    with pytest.raises(PolicyError, match="percentile"):
        parse("monitored(percentile=2)")


@pytest.mark.parametrize(("one_release", "first"), [(False, ["a", "c"]), (True, ["a"])])
def test_declared_memory_is_counted_and_released(one_release: bool, first: list[str]) -> None:
    declared = DeclaredMemory(100, one_release)
    for pod, request_mib in (("a", 60), ("b", 30), ("c", 50)):
        declared.place(pod, request_mib)
    assert (declared.available_mib, declared.running) == (-40, ["a", "b", "c"])
    assert declared.release(lambda pod: pod != "b") == first
    assert declared.release(lambda pod: pod != "b") == (["c"] if one_release else [])
    assert (declared.available_mib, declared.running) == (70, ["b"])
    assert declared.release(lambda pod: False) == []


def test_passes_are_longer_where_every_pod_is_looked_up() -> None:
    assert [SchedulerLatency().pass_length_s(running) for running in (0, 8)] == [0.5, 0.5]
    assert [SchedulerLatency(api_pace=True).pass_length_s(running) for running in (0, 2, 3, 8)] == [0.5, 0.5, 0.6, 1.6]


def test_bindings_fail_only_if_asked_for() -> None:
    assert all(SchedulerLatency().binds(attempt) for attempt in range(1, 32))
    assert sum(not SchedulerLatency(zero_draw=True).binds(attempt) for attempt in range(1, 32)) == 1


@pytest.mark.parametrize("options", [{"pass_s": -1.0}, {"placed_s": float("nan")}, {"requests_per_s": 0.0}])
def test_bad_paces_are_named(options: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=f"parameter {next(iter(options))}"):
        SchedulerLatency(**options)  # type: ignore[arg-type]


def order(sizes: list[int], heap_ties: bool) -> list[object]:
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
    assert sorted(heaped) == list(range(len(sizes)))  # type: ignore[type-var]
    assert [sizes[pod] for pod in heaped] == sorted(sizes, reverse=True)  # type: ignore[call-overload]


def test_who_comes_back_keeps_its_age() -> None:
    queue = RequestQueue()
    for pod in "ab":
        queue.push(pod, 1)
    assert queue.pop() == "a"
    queue.push("c", 1)
    queue.push("a", 1)
    assert [queue.pop() for _ in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize("heap_ties", [False, True])
def test_nobody_waits(heap_ties: bool) -> None:
    with pytest.raises(IndexError):
        RequestQueue(heap_ties).pop()


# ---------------------------------------------------------------- passes as they are specified, written down slowly

CAPACITY_MIB = 1000
"""Of a GPU whose readings lend nothing, so that declarations alone decide."""
STEP_S, REST_S = 0.5, 5.0


class SlowPasses:
    """One GPU: what the specification says of a pass, one statement after another, events up to now before each."""

    def __init__(self, arrivals: list[float], stays: list[float], requests: list[int]) -> None:
        self.coming = sorted((time, pod) for pod, time in enumerate(arrivals))
        self.stays, self.requests, self.now_s = stays, requests, self.coming[0][0]
        self.heap, self.running = list[int](), list[int]()
        self.end_s: dict[int, float] = {}
        self.bound: list[tuple[int, float]] = []
        self.attempts = 0

    def sleep(self, seconds: float) -> None:
        """Wait, while pods arrive."""
        self.now_s += seconds
        self.listen()

    def listen(self) -> None:
        """Pods that came up to now enter the queue."""
        while self.coming and self.coming[0][0] <= self.now_s:
            self.push(self.coming.pop(0)[1])

    def larger(self, one: int, two: int) -> bool:
        """Whether the pod at one place of the heap declares more than that at another."""
        return self.requests[self.heap[one]] > self.requests[self.heap[two]]

    def swap(self, one: int, two: int) -> None:
        """Exchange two places of the heap."""
        self.heap[one], self.heap[two] = self.heap[two], self.heap[one]

    def push(self, pod: int) -> None:
        """At the end, then up as long as it is strictly larger than the one above."""
        self.heap.append(pod)
        place = len(self.heap) - 1
        while place > 0 and self.larger(place, (place - 1) // 2):
            self.swap(place, (place - 1) // 2)
            place = (place - 1) // 2

    def pop(self) -> int:
        """Root and last change places; the new root goes down, left unless the right is strictly larger."""
        last, place = len(self.heap) - 1, 0
        self.swap(0, last)
        while 2 * place + 1 < last:
            child = 2 * place + 1
            if child + 1 < last and self.larger(child + 1, child):
                child += 1
            if not self.larger(child, place):
                break
            self.swap(place, child)
            place = child
        return self.heap.pop()

    def fits(self, pod: int) -> bool:
        """Whether its declaration is left."""
        return sum(self.requests[one] for one in (*self.running, pod)) <= CAPACITY_MIB

    def purge(self) -> None:
        """Release the first pod that has ended, and no other."""
        for pod in self.running:
            if self.end_s[pod] <= self.now_s:
                self.running.remove(pod)
                return

    def play(self) -> list[tuple[int, float]]:
        """Pods in the order in which they are bound, with the second."""
        self.listen()
        while self.coming or self.heap:
            if not self.heap:
                self.purge()
                self.sleep(STEP_S)
                continue
            self.one_pass()
        return self.bound

    def one_pass(self) -> None:
        """Try one pod after another; bind the first that fits, but for the eighth attempt."""
        pod: int | None = self.pop()
        self.purge()
        skipped = list[int]()
        while pod is not None and not self.fits(pod):
            skipped.append(pod)
            pod = self.pop() if self.heap else None
        for other in skipped:
            self.push(other)
        self.sleep(STEP_S)
        if pod is None:
            return
        self.attempts += 1
        if self.attempts == 8:
            self.push(pod)
            return
        self.running.append(pod)
        self.bound.append((pod, self.now_s))
        self.end_s[pod] = self.now_s + self.stays[pod]
        self.sleep(REST_S)


def bound_by_scheduler(arrivals: list[float], stays: list[float], requests: list[int]) -> list[tuple[int, float]]:
    """The same from the scheduler; events up to a step come before it."""
    view, bound, end_s = Readings(CAPACITY_MIB), list[tuple[int, float]](), dict[int, float]()
    made = scheduler(view, heap_ties=True, one_release=True, zero_draw=True)
    coming = sorted((time, pod) for pod, time in enumerate(arrivals))
    now_s = coming[0][0]
    while len(bound) < len(arrivals):
        while coming and coming[0][0] <= now_s:
            pod = coming.pop(0)[1]
            made.arrive(pod, requests[pod])
        view.done = {pod for pod, end in end_s.items() if end <= now_s}
        later = [time for time in (*(time for time, _ in coming[:1]), *end_s.values()) if time > now_s]
        view.later_s = min(later, default=math.inf)
        step = made.step(now_s, view)
        for one in step.bindings:
            bound.append((one.pod, one.at_s))
            end_s[one.pod] = one.at_s + stays[one.pod]
        now_s = step.next_s
    return bound


HALVES = st.integers(0, 60).map(lambda half: half / 2)
"""Seconds on the grid of passes, so that arrivals, ends and passes coincide."""


@given(
    st.lists(st.tuples(HALVES, HALVES, st.integers(0, 2)), min_size=1, max_size=20),
    st.sampled_from([(300, 300, 300), (300, 500, 1000)]),
)
def test_pods_are_bound_in_the_order_of_the_specification(
    pods: list[tuple[float, float, int]], sizes: tuple[int, ...]
) -> None:
    arrivals, stays, requests = [pod[0] for pod in pods], [pod[1] for pod in pods], [sizes[pod[2]] for pod in pods]
    assert bound_by_scheduler(arrivals, stays, requests) == SlowPasses(arrivals, stays, requests).play()


def test_a_pod_that_is_not_bound_comes_after_those_that_came_in_its_pass() -> None:
    # Eight pods a long time apart; the ninth comes half a second after the eighth is admitted, whose binding fails.
    arrivals = [10.0 * pod for pod in range(8)] + [70.25]
    bound = bound_by_scheduler(arrivals, [0.0] * 9, [300] * 9)
    assert [pod for pod, _ in bound][-2:] == [8, 7]
