"""The interface between the monitored engine and schedulers: their view of metrics, and the bindings they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fastsim.errors import PolicyError

if TYPE_CHECKING:
    from fastsim.telemetry.reading_model import Device


class Binding(NamedTuple):
    """A pod that is bound to a GPU at a second; ``stage`` is the scheduler's reason."""

    pod: int
    gpu: int
    at_s: float
    stage: str = ""


class SchedulerStep(NamedTuple):
    """New bindings, and the second of the scheduler's next step; infinite: at the next event."""

    bindings: Sequence[Binding] = ()
    next_s: float = math.inf


class View(Protocol):
    """The scheduler's view: reported memory, and known ends of pods."""

    @property
    def capacity_mib(self) -> Sequence[int]:
        """Memory of every GPU, MiB."""

    def window(self, gpu: int, start_s: int, end_s: int) -> tuple[list[float], list[float]]:
        """Free and used memory of a GPU, MiB, at every second from start to end, as last reported by its exporter."""

    def over(self, pod: int) -> bool:
        """Whether a pod is known to have ended."""

    def next_s(self) -> float:
        """The next second at which a pod arrives or becomes known to have ended, as far as is known now."""


class Scheduler(Protocol):
    """Collects arriving pods, and binds some of them to GPUs at every step."""

    def arrive(self, pod: int, request_mib: int) -> None:
        """Add a pod that declares so much memory of one GPU."""

    def step(self, now_s: float, view: View) -> SchedulerStep:
        """The bindings of this second, and the time of the next step."""


class SchedulerFactory(Protocol):
    """A function that makes the scheduler of a run."""

    def __call__(self, capacity_mib: Sequence[int], begin_s: float) -> Scheduler:
        """A scheduler of GPUs with so much memory, from a second on."""


@dataclass(frozen=True)
class ContainerLifecycle:
    """Delays of a pod's container, seconds.

    It starts ``start_s`` after binding, and its end is known ``known_s`` later. If a GPU has no memory left, the
    container that allocates more is killed. It restarts on the same GPU after the next of ``wait_s``, the last of which
    holds for all further restarts: a kubelet restarts at once, then after 10 s, and doubles that up to 300 s.
    """

    start_s: float = 4.2
    known_s: float = 1.0
    wait_s: tuple[float, ...] = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)

    def __post_init__(self) -> None:
        if not self.wait_s or min(self.wait_s) < 0 or self.start_s < 0 or self.known_s < 0:
            raise PolicyError("lifecycle", f"{self}", "seconds of 0 or more")

    def restart_s(self, restarts: int) -> float:
        """Seconds until a container starts again after so many restarts."""
        return self.wait_s[min(restarts, len(self.wait_s) - 1)]


@dataclass(frozen=True)
class MonitoredPlan:
    """A scheduler, delays of containers, devices by GPU model, and refresh gaps of exporters (see ``Telemetry``)."""

    scheduler: SchedulerFactory
    lifecycle: ContainerLifecycle = ContainerLifecycle()
    devices: Mapping[str, Device] = field(default_factory=dict)
    refresh_s: tuple[float, ...] = (6.0, 8.0)
