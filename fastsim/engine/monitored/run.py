"""Plays pods under a scheduler that looks at what GPUs report: arrivals, its turns, and the containers meanwhile."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fastsim.engine.monitored.containers import Containers, Stay
from fastsim.engine.monitored.plan import Binding, Scheduler
from fastsim.errors import PolicyError
from fastsim.foundation import interrupts
from fastsim.telemetry.usage_profile import Profile

QUIET_TURNS = 10_000
"""So many turns in a row that change nothing, while nothing else will ever happen, end a run."""


class PodArrival(NamedTuple):
    """A pod: number, second of submission, seconds of work (infinite: for ever), memory it declares, application.

    And what it asks for that no scheduler here looks at, and the tenant it belongs to.
    """

    pod: int
    submit_s: float
    work_s: float
    request_mib: int
    application: str | None
    gpu_milli: int = 1000
    cpu_milli: int = 0
    tenant: str | None = None


@dataclass
class PodHistory:
    """What became of a pod; NaN for what never happened."""

    asked: PodArrival
    placed: Binding | None = None
    lost_s: float = 0.0
    end_s: float = math.nan


class Exporter:
    """What exporters saw of used memory: they look at all GPUs now and then, and tell the last they saw."""

    def __init__(self, containers: Containers, looks: Iterator[float]) -> None:
        self.containers, self.looks = containers, looks
        self.next_s = next(looks)
        self.told: list[tuple[list[float], list[float]]] = [([-math.inf], [0.0]) for _ in containers.gpus]

    def look(self) -> None:
        """Look at all GPUs; everything up to now has happened."""
        for gpu, (times, values) in zip(self.containers.gpus, self.told, strict=True):
            used = gpu.used_mib()
            if used != values[-1]:
                times.append(self.next_s)
                values.append(used)
        self.next_s = next(self.looks)

    def window(self, gpu: int, start_s: int, end_s: int) -> list[float]:
        """Used memory of a GPU at every second from start to end; what was told before is forgotten."""
        times, values = self.told[gpu]
        at = bisect_right(times, start_s) - 1
        del times[:at], values[:at]
        found, at = [], 0
        for second in range(start_s, end_s + 1):
            while at + 1 < len(times) and times[at + 1] <= second:
                at += 1
            found.append(values[at])
        return found


@dataclass
class MonitoredRun:
    """One run; also what its scheduler sees."""

    capacity_mib: list[int]
    containers: Containers
    exporter: Exporter
    profile_of: Callable[[PodArrival, int], Profile]
    until_s: float = math.inf
    now_s: float = -math.inf
    arrived: int = 0
    waiting: int = 0
    lived: dict[int, PodHistory] = field(default_factory=dict)
    progress: Callable[[int], None] | None = None
    _pods: Iterator[PodArrival] = field(default_factory=lambda: iter(()))
    _ahead: PodArrival | None = None

    def window(self, gpu: int, start_s: int, end_s: int) -> tuple[list[float], list[float]]:
        """Free and used memory of a GPU, whole MiB, at every second, as its exporter told it last."""
        used = self.exporter.window(gpu, start_s, end_s)
        capacity = self.containers.gpus[gpu].device.memory_mib
        return [float(int(capacity - value)) for value in used], [float(int(value)) for value in used]

    def over(self, pod: int) -> bool:
        """Whether a pod is known to be done."""
        return pod not in self.containers.pods

    def next_s(self) -> float:
        """The next second at which a pod comes or something happens to a container."""
        coming = math.inf if self._ahead is None else self._ahead.submit_s
        return min(coming, self.containers.next_s())

    def play(self, pods: Iterator[PodArrival], scheduler: Scheduler) -> None:
        """Let all pods come, and go on until nothing more happens."""
        self._pods = pods
        self._ahead = next(pods, None)
        time, quiet = self.next_s(), 0
        while math.isfinite(time) and time <= self.until_s:
            interrupts.check()
            self._advance(time, scheduler)
            turn = scheduler.turn(time, self)
            for placed in turn.placed:
                self._bind(placed, time)
            still = self._ahead is None and not math.isfinite(self.containers.next_s())
            quiet = quiet + 1 if still else 0
            if still and (not self.waiting or quiet > QUIET_TURNS):
                break
            if turn.next_s <= time:
                raise PolicyError("scheduler: next_s", turn.next_s, f"a second after {time}")
            time = turn.next_s if math.isfinite(turn.next_s) else self.next_s()
        if math.isfinite(self.until_s):
            self._advance(self.until_s, scheduler)

    def _advance(self, until_s: float, scheduler: Scheduler) -> None:
        """Everything up to a second, exporters included, in order of time."""
        while self.exporter.next_s <= until_s:
            self._happen(self.exporter.next_s, scheduler)
            self.exporter.look()
        self._happen(until_s, scheduler)
        if self.progress is not None:
            self.progress(self.arrived)

    def _happen(self, until_s: float, scheduler: Scheduler) -> None:
        while self._ahead is not None and self._ahead.submit_s <= until_s:
            asked = self._ahead
            if asked.request_mib > max(self.capacity_mib, default=0):
                self.lived[asked.pod] = PodHistory(asked, Binding(asked.pod, -1, math.nan))
            else:
                self.lived[asked.pod] = PodHistory(asked)
                self.waiting += 1
                scheduler.arrive(asked.pod, asked.request_mib)
            self.arrived += 1
            self._ahead = next(self._pods, None)
        for container in self.containers.advance(until_s):
            self.lived[container.pod].lost_s = container.lost_s
        self.now_s = until_s

    def _bind(self, placed: Binding, now_s: float) -> None:
        lived = self.lived[placed.pod]
        if lived.placed is not None or not 0 <= placed.gpu < len(self.capacity_mib) or placed.at_s < now_s:
            raise PolicyError("scheduler", f"{placed}", "a pod that waits, a GPU that is there, a second to come")
        lived.placed = placed
        self.waiting -= 1
        profile = self.profile_of(lived.asked, placed.gpu)
        self.containers.bind(placed.pod, placed.gpu, profile, lived.asked.work_s, placed.at_s)

    def stays(self) -> Sequence[Stay]:
        """All stays of containers, those that go on at last."""
        return [*self.containers.stays, *self.containers.still_running()]
