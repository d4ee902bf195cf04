"""GPUs given out one after the other, each to the job whose end it brings nearest.

    gain of a job = (seconds left with what it has - seconds left with more) / further GPUs

Every larger size is looked at, not only the next one, so a size that is slow because it begins another node holds
nobody back; and every GPU model, so a job goes where as many GPUs or fewer are faster before anybody grows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Size(NamedTuple):
    """GPUs of one group of nodes."""

    group: int
    gpus: int


@dataclass(frozen=True)
class Speeds:
    """Sizes that one kind of job may have, and seconds for a unit of its work with each of them."""

    unit_s: dict[Size, float]

    def seconds(self, size: Size) -> float:
        """For a unit of work with this size; for ever with one that is not listed."""
        return self.unit_s.get(size, math.inf)

    @cached_property
    def least(self) -> dict[int, Size]:
        """The smallest size on each group where there is one, the fastest first."""
        found: dict[int, Size] = {}
        for size in sorted(self.unit_s):
            found.setdefault(size.group, size)
        return dict(sorted(found.items(), key=lambda entry: (self.unit_s[entry[1]], entry[0])))

    def steps(self, has: Size, free: Sequence[int]) -> Iterator[tuple[float, int, int]]:
        """(seconds that each further GPU saves for a unit of work, -GPUs, -group) of each size that is faster."""
        now_s = self.seconds(has)
        for (group, gpus), unit_s in self.unit_s.items():
            more = gpus - has.gpus
            if unit_s < now_s and (more if group == has.group else gpus) <= free[group]:
                yield (now_s - unit_s) / more if more > 0 else math.inf, -gpus, -group


def grown(
    has: Sequence[Size], left: Sequence[float], speeds: Sequence[Speeds], free: Sequence[int]
) -> list[Size]:  # fmt: skip
    """The size of each job after the free GPUs of each group were given out; ``left`` is work in units of its speeds.

    Among equal gains the first job comes first. A step that is too large for what is left becomes the best smaller one.
    """
    sizes, rest = list(has), list(free)
    queue: list[tuple[float, int, Size]] = []

    def ask(job: int) -> None:
        step = max(speeds[job].steps(sizes[job], rest), default=None)
        if step is not None and left[job] > 0:
            heapq.heappush(queue, (-step[0] * left[job], job, Size(-step[2], -step[1])))

    def ask_all() -> None:
        queue.clear()
        for job in range(len(sizes)):
            ask(job)

    ask_all()
    while queue:
        _, job, wanted = heapq.heappop(queue)
        before = sizes[job]
        more = wanted.gpus - before.gpus if wanted.group == before.group else wanted.gpus
        if more > rest[wanted.group]:
            ask(job)
            continue
        rest[wanted.group] -= more
        sizes[job] = wanted
        if wanted.group == before.group:
            ask(job)
        else:  # GPUs have come free, for which there may be others
            rest[before.group] += before.gpus
            ask_all()
    return sizes
