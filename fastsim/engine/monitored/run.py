"""Runs pods under a monitored scheduler: arrivals, steps of the scheduler, containers, and exporters of metrics."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fastsim.engine.driving.drive import Stop, drive
from fastsim.engine.monitored.containers import Containers, Stay
from fastsim.engine.monitored.plan import Binding, Scheduler
from fastsim.engine.monitored.step_checks import checked_step
from fastsim.errors import PolicyError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.knobs import STEPS
from fastsim.telemetry.usage_profile import Profile

QUIET_STEPS = 10_000
"""Steps of the scheduler in a row without any other event, after which a run ends."""


class PodArrival(NamedTuple):
    """A pod: number, second of submission, seconds of work (may be infinite), declared memory, application.

    Schedulers here ignore the rest of its request and its tenant.
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
    """The history of a pod; NaN for events that did not happen."""

    request: PodArrival
    binding: Binding | None = None
    lost_s: float = 0.0
    end_s: float = math.nan


class Exporter:
    """Used memory as exporters report it: sampled on all GPUs at the seconds ``refreshes``, and constant in between.

    ``longest_s`` is the longest gap between two of them, if it is known.
    """

    def __init__(self, containers: Containers, refreshes: Iterator[float], longest_s: float = math.inf) -> None:
        self.containers, self.refreshes, self.longest_s = containers, refreshes, longest_s
        self.next_s = next(refreshes)
        self.reported: list[tuple[list[float], list[float]]] = [([-math.inf], [0.0]) for _ in containers.gpus]

    def refresh(self) -> None:
        """Sample all GPUs; all events up to now have been handled."""
        for gpu, (times, values) in zip(self.containers.gpus, self.reported, strict=True):
            used = gpu.used_mib()
            if used != values[-1]:
                times.append(self.next_s)
                values.append(used)
        self.next_s = next(self.refreshes)

    def window(self, gpu: int, start_s: int, end_s: int) -> list[float]:
        """Used memory of a GPU at every second from start to end; earlier reports are dropped."""
        times, values = self.reported[gpu]
        at = bisect_right(times, start_s) - 1
        del times[:at], values[:at]
        window, at = [], 0
        for second in range(start_s, end_s + 1):
            while at + 1 < len(times) and times[at + 1] <= second:
                at += 1
            window.append(values[at])
        return window


@dataclass
class MonitoredRun:
    """One run, which is also the view of its scheduler."""

    scheduler: Scheduler
    capacity_mib: list[int]
    containers: Containers
    exporter: Exporter
    profile_of: Callable[[PodArrival, int], Profile]
    until_s: float = math.inf
    now_s: float = -math.inf
    arrived: int = 0
    waiting: int = 0
    histories: dict[int, PodHistory] = field(default_factory=dict)
    progress: Callable[[int], None] | None = None
    _pods: Iterator[PodArrival] = field(default_factory=lambda: iter(()))
    _next_pod: PodArrival | None = None
    _step_s: float = math.inf
    """Second of the next step of the scheduler; infinite if none follows."""
    _quiet_steps: int = 0
    """Steps in a row without any other event."""

    def window(self, gpu: int, start_s: int, end_s: int) -> tuple[list[float], list[float]]:
        """Free and used memory of a GPU, whole MiB, at every second, as last reported by its exporter."""
        used = self.exporter.window(gpu, start_s, end_s)
        capacity = self.containers.gpus[gpu].device.memory_mib
        return [float(int(capacity - value)) for value in used], [float(int(value)) for value in used]

    def over(self, pod: int) -> bool:
        """Whether a pod is known to have ended."""
        return pod not in self.containers.pods

    def next_s(self) -> float:
        """The next second at which a pod arrives or a container has an event."""
        arrival_s = math.inf if self._next_pod is None else self._next_pod.submit_s
        return min(arrival_s, self.containers.next_s())

    def play(self, pods: Iterator[PodArrival]) -> None:
        """Run all pods until no event is left."""
        self._pods = pods
        self._next_pod = next(pods, None)
        self._step_s = self.next_s()
        drive(self.advance, {Stop.ASK_POLICY: self.ask_policy})
        if math.isfinite(self.until_s):
            self._handle_until(self.until_s)

    def advance(self) -> int:
        """Handle all events up to the next step of the scheduler."""
        if not math.isfinite(self._step_s) or self._step_s > self.until_s:
            return Stop.DONE
        self._handle_until(self._step_s)
        return Stop.ASK_POLICY

    def ask_policy(self) -> None:
        """Bind the pods that the scheduler's step binds, and note when its next step is."""
        time = self._step_s
        step = checked_step(self.scheduler.step(time, self), self.histories, len(self.capacity_mib), time)
        for binding in step.bindings:
            self._bind(binding, time)
        idle = self._next_pod is None and not math.isfinite(self.containers.next_s())
        self._quiet_steps = self._quiet_steps + 1 if idle else 0
        if idle and (not self.waiting or self._quiet_steps > QUIET_STEPS):
            self._step_s = math.inf
            return
        if step.next_s <= time:
            raise PolicyError("scheduler: next_s", step.next_s, f"a second after {time}")
        self._step_s = step.next_s if math.isfinite(step.next_s) else self.next_s()

    def _handle_until(self, until_s: float) -> None:
        """Handle all events up to a second, exporters included, in order of time."""
        ahead_s = min(until_s, self.next_s()) - self.exporter.next_s  # no pod ends before the next event
        self.containers.headway.foresee(STEPS, ahead_s / self.exporter.longest_s, self.now_s)
        while self.exporter.next_s <= until_s:
            self._handle_events(self.exporter.next_s)
            self.exporter.refresh()
        self._handle_events(until_s)
        if self.progress is not None:
            self.progress(self.arrived)

    def _handle_events(self, until_s: float) -> None:
        while self._next_pod is not None and self._next_pod.submit_s <= until_s:
            request = self._next_pod
            if request.request_mib > max(self.capacity_mib, default=0):
                self.histories[request.pod] = PodHistory(request, Binding(request.pod, -1, math.nan))
            else:
                self.histories[request.pod] = PodHistory(request)
                self.waiting += 1
                self.scheduler.arrive(request.pod, request.request_mib)
            self.arrived += 1
            self._next_pod = next(self._pods, None)
        for container in self.containers.advance(until_s):
            self.histories[container.pod].lost_s = container.lost_s
        self.now_s = until_s
        interrupts.check()
        self.containers.headway.add(STEPS, 1, until_s)

    def _bind(self, binding: Binding, now_s: float) -> None:
        history = self.histories[binding.pod]
        if history.binding is not None:
            where = f"scheduler at {now_s:g} s: step()"
            raise PolicyError(f"{where}: pod", f"pod {binding.pod}, which is bound already", "a pod that waits")
        history.binding = binding
        self.waiting -= 1
        profile = self.profile_of(history.request, binding.gpu)
        self.containers.bind(binding.pod, binding.gpu, profile, history.request.work_s, binding.at_s)

    def stays(self) -> Sequence[Stay]:
        """All stays of containers, the running ones last."""
        return [*self.containers.stays, *self.containers.still_running()]
