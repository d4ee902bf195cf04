"""Pods that wait, the largest request first."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush


class RequestQueue:
    """Waiting pods by declared MiB, largest first; equal requests keep the order in which they first came.

    With ``heap_ties`` equal requests leave as they lie in a binary heap without regard to age: of n that came one after
    another first the oldest leaves and then the youngest, the second youngest, and so on.
    """

    def __init__(self, heap_ties: bool = False) -> None:
        self.heap_ties = heap_ties
        self._heap: list[tuple[int, Hashable]] = []
        self._ordered: list[tuple[int, int, Hashable]] = []
        self._came: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._heap) + len(self._ordered)

    def push(self, pod: Hashable, request_mib: int) -> None:
        """A pod comes, or comes back."""
        if not self.heap_ties:
            heappush(self._ordered, (-request_mib, self._came.setdefault(pod, len(self._came)), pod))
            return
        heap, place = self._heap, len(self._heap)
        heap.append((request_mib, pod))
        while place and heap[place][0] > heap[above := (place - 1) // 2][0]:
            heap[place], heap[above] = heap[above], heap[place]
            place = above

    def pop(self) -> Hashable:
        """The pod whose turn it is, which leaves; IndexError if none waits."""
        if not self.heap_ties:
            return heappop(self._ordered)[2]
        heap = self._heap
        if not heap:
            raise IndexError("no pod waits")
        heap[0], heap[-1] = heap[-1], heap[0]
        _, pod = heap.pop()
        self._sink()
        return pod

    def _sink(self) -> None:
        """The root goes down until no child is larger; of two that are, the left one unless the right is larger."""
        heap, place = self._heap, 0
        while (child := 2 * place + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] > heap[child][0]:
                child += 1
            if heap[child][0] <= heap[place][0]:
                return
            heap[place], heap[child] = heap[child], heap[place]
            place = child
