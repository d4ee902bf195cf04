"""Pods that wait: by size, and among equals by age or as they lie in a heap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.policies.monitored.request_queue import RequestQueue


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
