"""Metrics of a service that decides for a scheduler, as Prometheus scrapes them: requests and their seconds."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from time import monotonic
from typing import NamedTuple

from fastsim.errors import FastsimError
from fastsim.foundation.http.replies import Reply, Request
from fastsim.foundation.http.service import Route

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the classes by which durations of requests are counted, seconds."""


class Gauge(NamedTuple):
    """A number at the moment of a scrape: its name, its meaning, a function that gives it."""

    name: str
    meaning: str
    value: Callable[[], float]


@dataclass
class RequestMetrics:
    """Counts requests by verb and result, ``ok`` or ``error``, and adds up how long they took."""

    prefix: str
    clock: Callable[[], float] = monotonic
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    classes: dict[str, list[int]] = field(default_factory=dict)
    """By verb: requests of each class of durations, the last one beyond all bounds."""
    spent_s: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def measured(self, verb: str, route: Route, failed: Callable[[Reply], bool] = lambda _: False) -> Route:
        """The same route, whose requests are counted; ``failed`` says whether a reply tells of an error."""

        def answer(request: Request) -> Reply:
            began_s, result = self.clock(), "error"
            try:
                reply = route(request)
                result = "error" if failed(reply) else "ok"
                return reply
            finally:
                self._add(verb, result, self.clock() - began_s)

        return answer

    def _add(self, verb: str, result: str, took_s: float) -> None:
        with self._lock:
            self.requests[verb, result] += 1
            self.spent_s[verb] = self.spent_s.get(verb, 0.0) + took_s
            self.classes.setdefault(verb, [0] * (len(BOUNDS_S) + 1))[bisect_left(BOUNDS_S, took_s)] += 1

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """All metrics, and these gauges; a gauge whose function raises a FastsimError is left out."""
        with self._lock:
            lines = [*self._counts(), *self._durations()]
        for gauge in gauges:
            try:
                lines += self._family(gauge.name, "gauge", gauge.meaning, [("", gauge.value())])
            except FastsimError:
                continue
        return "\n".join(lines) + "\n"

    def _counts(self) -> list[str]:
        values = [(f'{{verb="{verb}",result="{result}"}}', n) for (verb, result), n in sorted(self.requests.items())]
        return self._family("requests_total", "counter", "Requests that were answered.", values)

    def _durations(self) -> list[str]:
        values: list[tuple[str, float]] = []
        for verb, counts in sorted(self.classes.items()):
            bounds = [*map(repr, BOUNDS_S), "+Inf"]
            sums = zip(bounds, accumulate(counts), strict=True)
            values += [(f'_bucket{{verb="{verb}",le="{bound}"}}', number) for bound, number in sums]
            values += [(f'_sum{{verb="{verb}"}}', self.spent_s[verb]), (f'_count{{verb="{verb}"}}', sum(counts))]
        return self._family("request_seconds", "histogram", "Seconds from a request to its answer.", values)

    def _family(self, name: str, kind: str, meaning: str, values: Sequence[tuple[str, float]]) -> list[str]:
        whole = f"{self.prefix}_{name}"
        head = [f"# HELP {whole} {meaning}", f"# TYPE {whole} {kind}"]
        return head + [f"{whole}{labels} {_text(value)}" for labels, value in values]


def _text(value: float) -> str:
    """A number as the text format has it."""
    return "+Inf" if value == math.inf else repr(value)
