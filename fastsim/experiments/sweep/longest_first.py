"""In which order the runs of a sweep begin: the longest first, so that none is left running alone at the end.

How long a run will take follows from how much is offered to it
(:func:`fastsim.experiments.sweep.scenario_builder.effort`) and from what runs of its policy under the same load took so
far. Those of a policy that nobody has seen the end of come first. The order changes no result.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fastsim.experiments.sweep.scenario_builder import effort

if TYPE_CHECKING:
    from fastsim.scenario.scenario import Scenario


class _Alike:
    """Runs of one policy under one load, the largest first."""

    def __init__(self, load: float) -> None:
        self.load = load
        self.waiting: deque[tuple[float, int]] = deque()
        self.begun = False
        self.least_s = math.inf
        """Seconds for each unit of effort: the least seen, because others include the start of a worker."""

    def urgency(self) -> tuple[bool, float, float, float, int]:
        """Larger is earlier; the last part is the place among equals."""
        size, position = self.waiting[0]
        return not self.begun, self.least_s * size, size, self.load, -position


class LongestFirst(Iterator[int]):
    """Places of runs in a list, each when there is room for it; ``order`` are those that were asked for so far."""

    def __init__(self, scenarios: Sequence[Scenario], clock_s: Callable[[], float] = time.monotonic) -> None:
        self.order: list[int] = []
        self._clock_s = clock_s
        self._kinds: list[_Alike] = []
        self._sizes: list[float] = []
        self._began_s: dict[int, float] = {}
        found: dict[tuple[str, float], _Alike] = {}
        for scenario in scenarios:
            size, load = effort(scenario)
            self._kinds.append(found.setdefault((str(scenario.policy), load), _Alike(load)))
            self._sizes.append(max(size, 1.0))
        for position in sorted(range(len(scenarios)), key=lambda position: -self._sizes[position]):
            self._kinds[position].waiting.append((self._sizes[position], position))
        self._left = list(found.values())

    def __next__(self) -> int:
        if not self._left:
            raise StopIteration
        kind = max(self._left, key=_Alike.urgency)
        kind.begun = True
        _, position = kind.waiting.popleft()
        if not kind.waiting:
            self._left.remove(kind)
        self._began_s[position] = self._clock_s()
        self.order.append(position)
        return position

    def note_end(self, position: int) -> None:
        """This run is complete now."""
        took_s = self._clock_s() - self._began_s.pop(position)
        kind = self._kinds[position]
        kind.least_s = min(kind.least_s, took_s / self._sizes[position])
