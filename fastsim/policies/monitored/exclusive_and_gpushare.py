"""Baselines of the metric-driven scheduler: one pod on each GPU, and GPUs shared by declared memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from fastsim.engine.monitored.plan import Binding, ContainerLifecycle, MonitoredPlan, Scheduler, SchedulerStep, View
from fastsim.errors import PolicyError
from fastsim.policies.monitored.knots import policy_text
from fastsim.policies.registry import about, policy


class SlotScheduler:
    """Pods take units of memory of a GPU, first come, first served; smaller pods pass one that does not fit.

    A pod goes to the GPU with the fewest units left, then to the first one. With ``unit_mib=0`` it takes a whole GPU.
    """

    def __init__(self, unit_mib: int, capacity_mib: Sequence[int]) -> None:
        self.unit_mib = unit_mib
        self.free = [capacity // unit_mib if unit_mib else 1 for capacity in capacity_mib]
        self.queues: dict[int, deque[tuple[int, int]]] = {}
        self.running: dict[int, tuple[int, int]] = {}
        self.arrivals = 0

    def arrive(self, pod: int, request_mib: int) -> None:
        """Add a pod to the queue of its number of units."""
        units = -(-request_mib // self.unit_mib) if self.unit_mib else 1
        self.queues.setdefault(units, deque()).append((self.arrivals, pod))
        self.arrivals += 1

    def step(self, now_s: float, view: View) -> SchedulerStep:
        """Release the units of pods that ended, and bind pods that fit, in order of arrival."""
        for pod in [pod for pod in self.running if view.over(pod)]:
            gpu, units = self.running.pop(pod)
            self.free[gpu] += units
        placed: list[Binding] = []
        while True:
            most = max(self.free, default=0)
            heads = [(queue[0], units) for units, queue in self.queues.items() if queue and units <= most]
            if not heads:
                return SchedulerStep(placed)
            (_, pod), units = min(heads)
            self.queues[units].popleft()
            gpu = self._best(units)
            self.free[gpu] -= units
            self.running[pod] = gpu, units
            placed.append(Binding(pod, gpu, now_s, "slot"))

    def _best(self, units: int) -> int:
        fits = [gpu for gpu, free in enumerate(self.free) if free >= units]
        return min(fits, key=lambda gpu: (self.free[gpu], gpu))


@policy("exclusive")
@dataclass(frozen=True)
class Exclusive:
    """A GPU for every pod, whatever memory it declares, as the vendor's device plugin allocates them.

    First come, first served; the first GPU that is free.
    """

    citation: ClassVar[str] = ""
    engine: ClassVar[str] = "monitored"

    def watch(self) -> MonitoredPlan:
        """The plan of this scheduler."""
        from fastsim.telemetry.telemetry import RECORDED  # here, as it loads numpy

        return MonitoredPlan(
            lambda capacity_mib, begin_s: SlotScheduler(0, capacity_mib), ContainerLifecycle(), RECORDED
        )

    def __str__(self) -> str:
        return policy_text(self)


@policy("gpushare")
@dataclass(frozen=True)
class GpuShare:
    """Pods share a GPU as long as the memory they declare fits, in whole units, as a share extender does.

    units of a GPU = its memory / ``unit_mib``, cut; a pod takes its declared memory / ``unit_mib``, rounded up, of the
    GPU with the fewest units left. First come, first served; smaller pods pass one that does not fit.
    """

    citation: ClassVar[str] = ""
    engine: ClassVar[str] = "monitored"

    unit_mib: int = field(default=1024, metadata=about("unit in which memory is allocated", unit="MiB"))

    def check(self) -> None:
        """Raise :class:`PolicyError` if the unit is below 1 MiB."""
        if self.unit_mib < 1:
            raise PolicyError("policy gpushare, parameter unit_mib", self.unit_mib, "1 MiB or more")

    def watch(self) -> MonitoredPlan:
        """The plan of this scheduler."""
        from fastsim.telemetry.telemetry import RECORDED  # here, as it loads numpy

        return MonitoredPlan(self._scheduler, ContainerLifecycle(), RECORDED)

    def _scheduler(self, capacity_mib: Sequence[int], begin_s: float) -> Scheduler:
        return SlotScheduler(self.unit_mib, capacity_mib)

    def __str__(self) -> str:
        return policy_text(self)
