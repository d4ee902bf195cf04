"""Containers on GPUs under a monitored scheduler, event by event: twin of ``engine.monitored`` without slowdown.

Each holds the same memory from its start to its end. One that finds too little is killed, and starts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastsim.engine.monitored.plan import ContainerLifecycle

START, END, KNOWN, REFRESH = "start", "end", "known", "refresh"


class ReferencePod(NamedTuple):
    """A pod: second of submission, seconds of work, declared memory, and the memory that it holds, MiB."""

    submit_s: float
    work_s: float
    request_mib: int
    memory_mib: int


class PodStay(NamedTuple):
    """A container ran from a start to an end."""

    pod: int
    start_s: float
    end_s: float
    killed: bool


class ReferenceContainers:
    """The world of one run; exporters sample at the seconds ``refreshes``."""

    def __init__(
        self, pods: Sequence[ReferencePod], memory_mib: Sequence[int], lifecycle: ContainerLifecycle,
        refreshes: Sequence[float],
    ) -> None:  # fmt: skip
        self.pods, self.memory_mib, self.lifecycle = pods, memory_mib, lifecycle
        self.coming = sorted(range(len(pods)), key=lambda pod: (pods[pod].submit_s, pod))
        self.gpu_of: dict[int, int] = {}
        self.on: list[dict[int, float]] = [{} for _ in memory_mib]  # start of each container on each GPU
        self.kills: dict[int, int] = {}
        self.known: set[int] = set()
        self.stays: list[PodStay] = []
        self.events: list[tuple[float, int, str, int]] = []
        self.planned = 0
        self.refreshes = list(refreshes)
        self.reports: list[tuple[float, list[int]]] = []

    def arrivals(self, now_s: float) -> list[int]:
        """Pods that came up to a second and were not given before, in order."""
        came = [pod for pod in self.coming if self.pods[pod].submit_s <= now_s]
        self.coming = self.coming[len(came) :]
        return came

    def has_ended(self, pod: int, now_s: float) -> bool:
        """Whether a pod is known to have ended."""
        self.advance(now_s)
        return pod in self.known

    def used_mib(self, gpu: int, second: int, now_s: float) -> float:
        """The last report of a GPU at a second, 0 before the first."""
        self.advance(now_s)
        reported = (used[gpu] for at_s, used in reversed(self.reports) if at_s <= second)
        return float(next(reported, 0))

    def bind(self, pod: int, gpu: int, now_s: float) -> None:
        """Start a pod."""
        self.gpu_of[pod] = gpu
        self.plan(now_s + self.lifecycle.start_s, START, pod)

    def is_over(self) -> bool:
        """Whether all pods came and ended."""
        return not self.coming and len(self.known) == len(self.pods)

    def plan(self, at_s: float, kind: str, pod: int) -> None:
        """Add an event; of those of one second the first that is planned comes first."""
        self.planned += 1
        self.events.append((at_s, self.planned, kind, pod))

    def advance(self, until_s: float) -> None:
        """Handle all events up to a second; a report includes the events of its second."""
        while True:
            event_s = min(self.events)[0] if self.events else until_s + 1
            report_s = self.refreshes[0]
            if min(event_s, report_s) > until_s:
                return
            if report_s < event_s:
                self.reports.append((self.refreshes.pop(0), [self.held_mib(gpu) for gpu in range(len(self.on))]))
            else:
                event = min(self.events)
                self.events.remove(event)
                self.handle(*event)

    def held_mib(self, gpu: int) -> int:
        """Memory of all containers on a GPU."""
        return sum(self.pods[pod].memory_mib for pod in self.on[gpu])

    def handle(self, now_s: float, number: int, kind: str, pod: int) -> None:
        """Handle an event."""
        gpu, mine = self.gpu_of[pod], self.pods[pod]
        if kind == KNOWN:
            self.known.add(pod)
        elif kind == END:
            self.stays.append(PodStay(pod, self.on[gpu].pop(pod), now_s, False))
            self.plan(now_s + self.lifecycle.known_s, KNOWN, pod)
        elif self.held_mib(gpu) + mine.memory_mib <= self.memory_mib[gpu]:
            self.on[gpu][pod] = now_s
            self.plan(now_s + mine.work_s, END, pod)
        else:
            self.stays.append(PodStay(pod, now_s, now_s, True))
            kills = self.kills.get(pod, 0)
            self.plan(now_s + self.lifecycle.restart_s(kills), START, pod)
            self.kills[pod] = kills + 1
