"""Which cases are tried next: turns of equal time for all targets, and no target with more than its share."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

TURN_S = 5.0
"""Seconds of one target before the next one has its turn."""
FEW = 20
"""Cases of the first turn of a target; later ones are as large as the time of a turn allows."""
GROWTH = 20
"""Largest ratio of a turn's cases to those of the turn before, as the first cases tell little of the next ones."""
LARGEST_SHARE = 1 / 25
"""Share of all cases after which a target rests, so that the fastest targets do not make up most of them."""
LEAST_SHARE = 1 / 400
"""Share of all cases that is kept for each target, however slow it is."""


class Lot(NamedTuple):
    """Cases of one target with consecutive seeds."""

    target: str
    first: int
    cases: int


class Plan:
    """The lots of all workers; seeds are handed out once and in order, so the cases of a target are a range.

    It ends at the deadline (a reading of ``time.monotonic``) or with so many cases in ``total`` or of ``each`` target.
    """

    def __init__(
        self, targets: Sequence[str], first: int, end_s: float, total: int | None = None, each: int | None = None
    ) -> None:
        self._first, self._end_s = first, end_s
        self._left = math.inf if total is None else total
        self._most = {name: _most_of(len(targets), total, each) for name in targets}
        self._least = 0 if total is None else int(total * LEAST_SHARE)
        self._given: Counter[str] = Counter()
        self._at_work: Counter[str] = Counter()
        self._last: Counter[str] = Counter()
        self.used_s = dict.fromkeys(targets, 0.0)
        """Seconds that each target has taken."""
        self._lock = threading.Lock()

    def next(self) -> Lot | None:
        """The next lot, of the target that has had the least time; None at the end."""
        with self._lock:
            kept = sum(max(0, self._least - self._given[name]) for name in self._most)
            waiting = [name for name, most in self._most.items() if self._given[name] < most]
            if self._left <= kept:
                waiting = [name for name in waiting if self._given[name] < self._least]
            left_s = self._end_s - time.monotonic()
            if not waiting or self._left <= 0 or left_s <= 0:
                return None
            name = min(waiting, key=lambda name: (self._at_work[name], self.used_s[name]))
            count = self._count(name, left_s)
            if self._given[name] >= self._least:
                count = int(min(count, self._left - kept))
            lot = Lot(name, self._first + self._given[name], count)
            self._given[name] += count
            self._at_work[name] += 1
            self._left -= count
            return lot

    def _count(self, name: str, left_s: float) -> int:
        count = float(FEW)
        if self._last[name]:
            done = max(1, self._given[name] - self._last[name] * self._at_work[name])
            rate = done / max(self.used_s[name], 1e-3)
            count = min(rate * min(TURN_S, left_s), GROWTH * self._last[name])
        return int(max(1, min(count, self._most[name] - self._given[name], self._left)))

    def took(self, lot: Lot, seconds: float) -> None:
        """Note that the cases of a lot are done."""
        with self._lock:
            self._at_work[lot.target] -= 1
            self._last[lot.target] = lot.cases
            self.used_s[lot.target] += seconds

    def stop(self) -> None:
        """No more lots."""
        self._left = 0


def _most_of(targets: int, total: int | None, each: int | None) -> float:
    """Most cases of one of the targets."""
    if each is not None:
        return each
    return math.inf if total is None else math.ceil(total * max(LARGEST_SHARE, 1 / targets))
