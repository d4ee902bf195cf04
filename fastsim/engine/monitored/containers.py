"""Containers that share GPUs: their speed, their memory, and restarts after running out of memory.

A container's memory follows its profile from its start; its speed follows from the number of containers beside it. A
container that allocates memory which the GPU lacks is killed, loses its work and starts again later on the same GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from fastsim.engine.driving.headway import Headway
from fastsim.engine.monitored.plan import ContainerLifecycle
from fastsim.foundation.limits.knobs import STAYS, STEPS
from fastsim.telemetry.reading_model import Device
from fastsim.telemetry.usage_profile import Profile

START, PHASE, END, KNOWN = range(4)
"""Events of a container; KNOWN: the scheduler learns of its end."""
KIB = 1024
"""Memory is summed up in whole 1/1024 MiB."""


@dataclass
class Container:
    """A pod's container: seconds of work that it needs alone, and those done since its last start."""

    pod: int
    gpu: int
    profile: Profile
    work_s: float
    bound_s: float
    started_s: float = math.nan
    done_s: float = 0.0
    lost_s: float = 0.0
    phase: int = 0
    kib: int = 0
    cut_mib: float = math.inf
    kills: int = 0
    version: int = 0  # of its planned events; those of earlier versions are void
    over: bool = False


class Stay(NamedTuple):
    """A container ran from a start to an end, infinite if it still does.

    ``lost_s`` seconds of work lost so far · ``profile`` name of the profile, cut to the memory that it had.
    """

    container: Container
    attempt: int
    start_s: float
    end_s: float
    killed: bool
    lost_s: float
    profile: str


@dataclass
class Gpu:
    """A device, its running containers, and the second up to which their work is counted."""

    device: Device
    running: dict[int, Container] = field(default_factory=dict)
    at_s: float = -math.inf
    kib: int = 0

    def used_mib(self) -> float:
        """Used memory as the device reports it."""
        return self.kib / KIB + self.device.kept_mib if self.kib else 0.0

    def rate(self) -> float:
        """Seconds of work in a second, of each container here."""
        table = self.device.slowdown
        return 1 / table[min(len(self.running), len(table) - 1)] if table and self.running else 1.0


class Containers:
    """All GPUs and the containers on them, in order of time; `stays` are those that ended."""

    def __init__(self, devices: Sequence[Device], lifecycle: ContainerLifecycle) -> None:
        self.gpus = [Gpu(device) for device in devices]
        self.lifecycle = lifecycle
        self.pods: dict[int, Container] = {}
        self.stays: list[Stay] = []
        self.headway = Headway("pods", STEPS, STAYS)
        self._heap: list[tuple[float, int, int, int, int]] = []
        self._count = 0
        self._ends: dict[int, int] = {}

    def next_s(self) -> float:
        """The second of the next event."""
        heap = self._heap
        while heap and self._is_void(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else math.inf

    def bind(self, pod: int, gpu: int, profile: Profile, work_s: float, at_s: float) -> None:
        """Bind a pod to a GPU; its container starts a little later."""
        container = self.pods[pod] = Container(pod, gpu, profile, work_s, at_s)
        self._plan(at_s + self.lifecycle.start_s, START, container)

    def advance(self, until_s: float) -> list[Container]:
        """Handle all events up to a second; containers whose end became known."""
        known = []
        while self.next_s() <= until_s:
            time, _, kind, pod, _ = heappop(self._heap)
            container = self.pods[pod]
            if kind == START:
                self._start(time, container)
            elif kind == PHASE:
                self._next_phase(time, container)
            elif kind == END:
                self._end(time, container)
            else:
                container.over = True
                self._ends.pop(pod, None)
                known.append(self.pods.pop(pod))
        return known

    def still_running(self) -> list[Stay]:
        """Stays of running containers."""
        return [stay_of(one, math.inf, False) for gpu in self.gpus for one in gpu.running.values()]

    def _plan(self, time: float, kind: int, container: Container) -> None:
        self._count += 1
        heappush(self._heap, (time, self._count, kind, container.pod, container.version))

    def _is_void(self, event: tuple[float, int, int, int, int]) -> bool:
        """Whether an event was planned for an earlier state; ends are planned anew when a container starts or stops."""
        _, number, kind, pod, version = event
        container = self.pods.get(pod)
        return container is None or container.version != version or (kind == END and self._ends.get(pod) != number)

    def _start(self, time: float, container: Container) -> None:
        gpu = self.gpus[container.gpu]
        self._count_work(time, gpu)
        container.started_s, container.done_s, container.phase, container.cut_mib = time, 0.0, 0, math.inf
        gpu.running[container.pod] = container
        self._enter_phase(time, container)
        self._plan_ends(time, gpu)

    def _next_phase(self, time: float, container: Container) -> None:
        container.phase += 1
        self._enter_phase(time, container)

    def _enter_phase(self, time: float, container: Container) -> None:
        """Allocate the memory of a phase; a container without enough is killed, or has less from now on."""
        gpu, phases = self.gpus[container.gpu], container.profile.phases
        phase = phases[container.phase]
        needed = round(min(phase.memory_mib, container.cut_mib) * KIB)
        room = round((gpu.device.memory_mib - gpu.device.kept_mib) * KIB) - gpu.kib + container.kib
        if needed > room:
            less = max((mib for mib in phase.less_mib if round(mib * KIB) <= room), default=None)
            if less is None:
                self._kill(time, container)
                return
            needed, container.cut_mib = round(less * KIB), less
        gpu.kib += needed - container.kib
        container.kib = needed
        if container.phase + 1 < len(phases):
            self._plan(container.started_s + container.profile.starts_s[container.phase + 1], PHASE, container)

    def _kill(self, time: float, container: Container) -> None:
        self._leave(time, container)
        container.lost_s += container.done_s
        self.stays.append(stay_of(container, time, True))
        self.headway.add(STAYS, 1, time)  # the container starts again
        self._plan(time + self.lifecycle.restart_s(container.kills), START, container)
        container.kills += 1

    def _end(self, time: float, container: Container) -> None:
        self._leave(time, container)
        self.stays.append(stay_of(container, time, False))
        self.headway.see(self.headway.ended + 1)
        self._plan(time + self.lifecycle.known_s, KNOWN, container)

    def _leave(self, time: float, container: Container) -> None:
        gpu = self.gpus[container.gpu]
        self._count_work(time, gpu)
        del gpu.running[container.pod]
        gpu.kib -= container.kib
        container.kib = 0
        container.version += 1
        self._plan_ends(time, gpu)

    def _count_work(self, time: float, gpu: Gpu) -> None:
        """Add the work of all containers on a GPU since the last event."""
        rate = gpu.rate()
        for container in gpu.running.values():
            container.done_s += (time - max(gpu.at_s, container.started_s)) * rate
        gpu.at_s = time

    def _plan_ends(self, time: float, gpu: Gpu) -> None:
        rate = gpu.rate()
        for container in gpu.running.values():
            if math.isfinite(container.work_s):
                self._plan(time + max(container.work_s - container.done_s, 0.0) / rate, END, container)
                self._ends[container.pod] = self._count


def stay_of(container: Container, end_s: float, killed: bool) -> Stay:
    """The stay of a container that ends at ``end_s``; its profile is cut to the memory that it had."""
    name = container.profile.name
    if math.isfinite(container.cut_mib):
        name = container.profile.cut(container.cut_mib).name
    return Stay(
        container=container,
        attempt=container.kills,
        start_s=container.started_s,
        end_s=end_s,
        killed=killed,
        lost_s=container.lost_s,
        profile=name,
    )
