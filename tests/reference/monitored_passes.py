"""Passes of the metric-driven scheduler as specified, one statement after another: twin of ``knots``.

The scheduler has a clock of its own: it sleeps, waits for the API server, and reads what is known at that second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fastsim.policies.monitored.knots import Knots

DIRECT, BY_USE, BY_FORECAST = "direct", "correlation", "peak"
FAILS = 8
"""The attempt to bind that fails with ``zero_draw``."""


class World(Protocol):
    """Pods that come and end, and reported memory; time moves on as the scheduler asks for it."""

    def arrivals(self, now_s: float) -> list[int]:
        """Pods that came up to a second and were not given before, in order."""

    def has_ended(self, pod: int, now_s: float) -> bool:
        """Whether a pod is known to have ended."""

    def used_mib(self, gpu: int, second: int, now_s: float) -> float:
        """Used memory of a GPU as reported at a second up to now, whole MiB."""

    def bind(self, pod: int, gpu: int, now_s: float) -> None:
        """Start a pod."""

    def is_over(self) -> bool:
        """Whether all pods came and ended."""


class Bound(NamedTuple):
    """A pod that was bound."""

    pod: int
    gpu: int
    at_s: float
    stage: str


class ReferencePasses:
    """The scheduler of one run."""

    def __init__(self, rule: Knots, capacity_mib: Sequence[int], requests: dict[int, int], begin_s: float) -> None:
        self.rule, self.capacity_mib, self.requests, self.now_s = rule, capacity_mib, requests, begin_s
        self.available = list(capacity_mib)
        self.running: list[list[int]] = [[] for _ in capacity_mib]
        self.placed_s = [int(begin_s)] * len(capacity_mib)
        self.heap: list[int] = []
        self.came: list[int] = []
        self.tokens, self.tokens_at_s = float(rule.burst), begin_s
        self.attempts = 0
        self.bound: list[Bound] = []

    def play(self, world: World) -> list[Bound]:
        """Pods in the order in which they are bound."""
        self.world = world
        self.listen()
        idle = True
        while not (world.is_over() and not self.heap):
            idle = self.one_pass(idle)
        return self.bound

    def one_pass(self, idle: bool) -> bool:
        """A pass; whether it was an idle one."""
        if not self.heap:
            self.purge()
            self.sleep(self.rule.pass_s)
            return True
        pod = self.pop()
        if idle and self.rule.idle_pass:
            self.purge()
            self.sleep(self.rule.pass_s)
        self.purge()
        skipped: list[int] = []
        target = self.admitting_gpu(pod)
        while target is None:
            skipped.append(pod)
            if not self.heap:
                break
            pod = self.pop()
            target = self.admitting_gpu(pod)
        for other in skipped:
            self.push(other)
        self.sleep(self.rule.pass_s)
        if target is None:
            return False
        self.attempts += 1
        self.request()
        if self.rule.zero_draw and self.attempts == FAILS:
            self.push(pod)
            return False
        gpu, stage = target
        self.bound.append(Bound(pod, gpu, self.now_s, stage))
        self.world.bind(pod, gpu, self.now_s)
        self.request()
        self.running[gpu].append(pod)
        self.available[gpu] -= self.requests[pod]
        self.placed_s[gpu] = int(self.now_s)
        self.sleep(self.rule.placed_s)
        return False

    # ------------------------------------------------------------ time

    def sleep(self, seconds: float) -> None:
        """Wait, while pods come."""
        self.now_s += seconds
        self.listen()

    def listen(self) -> None:
        """Pods that came up to now enter the queue."""
        for pod in self.world.arrivals(self.now_s):
            self.came.append(pod)
            self.push(pod)

    def request(self) -> None:
        """Send a request to the API server as soon as there is a token for it."""
        if not self.rule.api_pace:
            return
        rate, burst = self.rule.requests_per_s, float(self.rule.burst)
        self.tokens = min(burst, self.tokens + (self.now_s - self.tokens_at_s) * rate)
        self.tokens_at_s = self.now_s
        if self.tokens < 1:
            wait_s = (1 - self.tokens) / rate
            self.tokens, self.tokens_at_s = 1.0, self.now_s + wait_s
            self.sleep(wait_s)
        self.tokens -= 1

    def purge(self) -> None:
        """Look up pods in the order of their placement; with ``one_release`` no more after the first that has ended."""
        for gpu, running in enumerate(self.running):
            for pod in list(running):
                self.request()
                if self.world.has_ended(pod, self.now_s):
                    running.remove(pod)
                    self.available[gpu] += self.requests[pod]
                    if self.rule.one_release:
                        break

    # ------------------------------------------------------------ the queue

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
        """Root and last change places; the new root goes down, left unless the right is strictly larger.

        Without ``heap_ties`` the largest leaves, of those that declare the same the one that came first.
        """
        if not self.rule.heap_ties:
            first = min(self.heap, key=lambda pod: (-self.requests[pod], self.came.index(pod)))
            self.heap.remove(first)
            return first
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

    # ------------------------------------------------------------ admission

    def admitting_gpu(self, pod: int) -> tuple[int, str] | None:
        """The GPU that admits a pod at the earliest stage, of these the one with most room, and the stage."""
        best: tuple[int, float, int] | None = None
        stages = (DIRECT, BY_USE, BY_FORECAST)
        for gpu in range(len(self.capacity_mib)):
            stage, room_mib = self.admission(gpu, self.requests[pod])
            if stage is not None:
                mine = (stages.index(stage), -room_mib, gpu)
                best = mine if best is None else min(best, mine)
        return None if best is None else (best[2], stages[best[0]])

    def admission(self, gpu: int, request: int) -> tuple[str | None, float]:
        """The stage that admits a request, and the memory left beside it."""
        if request <= self.available[gpu]:
            return DIRECT, self.available[gpu] - request
        end = int(self.now_s)
        start = end - 20 if end - self.placed_s[gpu] < 20 else self.placed_s[gpu]
        used = [self.world.used_mib(gpu, second, self.now_s) for second in range(start, end + 1)]
        free = [self.capacity_mib[gpu] - value for value in used]
        count = len(free)
        mean = plain_sum(free) / count
        variance = plain_sum([value * value for value in free]) / count - mean * mean
        if mean > 0 and math.sqrt(max(variance, 0.0)) / mean < self.rule.variation:
            harvested = self.capacity_mib[gpu] - int(sorted(used)[int(count * self.rule.percentile)])
            if request <= harvested:
                return BY_USE, harvested - request
        forecast = self.forecast(free, mean)
        return (BY_FORECAST, forecast - request) if forecast is not None and request <= forecast else (None, 0.0)

    def forecast(self, free: list[float], mean: float) -> int | None:
        """Free memory ten seconds ahead by a line; None if readings do not repeat themselves."""
        lag = self.rule.lag
        around = plain_sum([(value - mean) * (value - mean) for value in free])
        if around == 0:
            return None
        before, after = free[:-lag], free[lag:]
        pairs = list(zip(before, after, strict=True))
        if not plain_sum([(x - mean) * (y - mean) for x, y in pairs]) / around > self.rule.autocorrelation:
            return None
        count = len(pairs)
        mean_x, mean_y = plain_sum(before) / count, plain_sum(after) / count
        below = plain_sum([x * x for x in before]) - count * mean_x * mean_x
        above = plain_sum([x * y for x, y in pairs]) - count * mean_x * mean_y
        if below == 0:
            return None
        slope = above / below
        return int(mean_y - slope * mean_x + slope * free[-1])


def plain_sum(values: list[float]) -> float:
    """The sum from left to right, rounded at each step."""
    total = 0.0
    for value in values:
        total += value
    return total
