"""The metric-driven scheduler: a GPU's own readings decide whether one more pod may share it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from heapq import heappop, heappush
from typing import Any, ClassVar, NamedTuple

from fastsim.engine.monitored.plan import Binding, ContainerLifecycle, MonitoredPlan, Scheduler, SchedulerStep, View
from fastsim.errors import PolicyError
from fastsim.policies.monitored.admission import OUTCOMES, Admission, Admitted
from fastsim.policies.registry import about, policy

KUBE_KNOTS = """@inproceedings{thinakaran2019kubeknots,
  title = {Kube-Knots: Resource Harvesting through Dynamic Container Orchestration in {GPU}-based Datacenters},
  author = {Thinakaran, Prashanth and Gunasekaran, Jashwant Raj and Sharma, Bikash and Kandemir, Mahmut Taylan
            and Das, Chita R.},
  booktitle = {IEEE CLUSTER},
  year = {2019}
}"""
FAILING_BINDS = (8,)
"""Attempts to bind, of the first 31, for which the random priority is 0, so that no node is found, in every log."""


class Found(NamedTuple):
    """A GPU that admits a pod: how early in the stages, and how much room it has beyond the request, MiB."""

    stage: int
    room_mib: float
    gpu: int


class KnotsScheduler:
    """One pass after another: the largest request first, each asked of every GPU; the first that is admitted is bound.

    A GPU is charged what its pods declare. A pod goes where an earlier stage admits it; among those where most room is
    left, then to the first GPU.
    """

    def __init__(self, rule: Knots, capacity_mib: Sequence[int], begin_s: float) -> None:
        self.pace = Pace(rule.pass_s, rule.placed_s, rule.requests_per_s, rule.api_pace, rule.zero_draw)
        self.queue = RequestQueue(rule.heap_ties)
        self.admission = [rule.admission(capacity) for capacity in capacity_mib]
        self.charges = [Charges(capacity, rule.one_release) for capacity in capacity_mib]
        self.placed_s = [int(begin_s)] * len(capacity_mib)
        self.request_mib: dict[int, int] = {}
        self.attempts = 0
        self._first: int | None = None

    def arrive(self, pod: int, request_mib: int) -> None:
        """A pod enters the queue."""
        self.request_mib[pod] = request_mib
        self.queue.push(pod, request_mib)

    def step(self, now_s: float, view: View) -> SchedulerStep:
        """The beginning of a pass, or its decision, once the pods that run were looked up."""
        if self._first is not None:
            first, self._first = self._first, None
            return self._decide(first, now_s, view)
        running = sum(len(charges.running) for charges in self.charges)
        if not len(self.queue):
            self._release(view)
            gone = sum(len(charges.running) for charges in self.charges) < running
            return SchedulerStep(next_s=self._later(now_s, now_s if gone else view.next_s()))
        self._first = int(str(self.queue.pop()))
        self._release(view)
        ask_s = self.pace.pass_length_s(running) - self.pace.pass_s
        if ask_s > 0:
            return SchedulerStep(next_s=now_s + ask_s)
        return self.step(now_s, view)

    def _later(self, now_s: float, event_s: float) -> float:
        """The first tick after an event: the queue is looked at once in a pass, and nothing changes before."""
        if not math.isfinite(event_s):
            return math.inf
        ticks = max(1, math.ceil((event_s - now_s) / self.pace.pass_s)) if self.pace.pass_s > 0 else 0
        return now_s + ticks * self.pace.pass_s if ticks else math.nextafter(max(now_s, event_s), math.inf)

    def _release(self, view: View) -> None:
        for charges in self.charges:
            charges.release(lambda pod: view.over(int(str(pod))))

    def _decide(self, first: int, now_s: float, view: View) -> SchedulerStep:
        """Ask for one pod after another until one is admitted; it is bound at the end of the pass."""
        skipped: list[int] = []
        pod: int | None = first
        found = self._where(first, now_s, view)
        while found is None:
            assert pod is not None
            skipped.append(pod)
            if not len(self.queue):
                pod = None
                break
            pod = int(str(self.queue.pop()))
            found = self._where(pod, now_s, view)
        for other in skipped:
            self.queue.push(other, self.request_mib[other])
        bound_s = now_s + self.pace.pass_s
        if pod is None or found is None:
            return SchedulerStep(next_s=_after(now_s, bound_s))
        self.attempts += 1
        if not self.pace.binds(self.attempts):
            self.queue.push(pod, self.request_mib[pod])
            return SchedulerStep(next_s=_after(now_s, bound_s))
        self.charges[found.gpu].place(pod, self.request_mib.pop(pod))
        self.placed_s[found.gpu] = int(bound_s)
        placed = Binding(pod, found.gpu, bound_s, OUTCOMES[found.stage])
        return SchedulerStep((placed,), _after(now_s, bound_s + self.pace.placed_s))

    def _where(self, pod: int, now_s: float, view: View) -> Found | None:
        """The best GPU that admits a pod."""
        request = self.request_mib[pod]
        direct = [
            Found(0, charges.available_mib - request, gpu)
            for gpu, charges in enumerate(self.charges)
            if request <= charges.available_mib
        ]
        found = direct or [
            one for gpu in range(len(self.charges)) if (one := self._by_readings(request, gpu, now_s, view)) is not None
        ]
        return min(found, key=lambda one: (one.stage, -one.room_mib, one.gpu), default=None)

    def _by_readings(self, request: int, gpu: int, now_s: float, view: View) -> Found | None:
        admission = self.admission[gpu]
        free, used = view.window(gpu, *admission.window(now_s, self.placed_s[gpu]))
        answer = admission(request, self.charges[gpu].available_mib, free, used)
        return Found(OUTCOMES.index(answer.outcome), _room(answer) - request, gpu) if answer else None


def _room(answer: Admitted) -> float:
    """What may be lent."""
    found = answer.forecast_mib if answer.outcome == "peak" else answer.harvested_mib
    return float(found or 0)


def _after(now_s: float, then_s: float) -> float:
    return then_s if then_s > now_s else math.nextafter(now_s, math.inf)


@policy("monitored")
@dataclass(frozen=True)
class Knots:
    """Share GPUs by what they are seen to use: a pod joins if declared, used or forecast memory leaves room for it.

    Pods wait by declared memory, largest first, and are asked one after another in passes. Stage 1: declared memory
    that nobody has claimed is enough. Stage 2: free memory varies less than ``variation`` (deviation over mean), and
    what ``percentile`` of the readings of used memory leave over is enough. Stage 3: free memory repeats itself after
    ``lag`` readings by more than ``autocorrelation``, and a line through them promises enough. Readings reach back to
    the GPU's last placement. Pods may run out of memory together; they start again after growing waits.
    """

    citation: ClassVar[str] = KUBE_KNOTS

    variation: float = field(default=0.5, metadata=about("free memory that varies less is lent by its percentile"))
    percentile: float = field(default=0.8, metadata=about("part of the readings of used memory that count as use"))
    lag: int = field(default=10, metadata=about("readings between those that are compared", unit="s"))
    autocorrelation: float = field(default=0.35, metadata=about("free memory that repeats itself more is forecast"))
    pass_s: float = field(default=0.5, metadata=about("a pass over the queue", unit="s"))
    placed_s: float = field(default=5.0, metadata=about("rest after a placement", unit="s"))
    requests_per_s: float = field(default=5.0, metadata=about("requests to the API server, with api_pace", unit="1/s"))
    heap_ties: bool = field(default=False, metadata=about("equal requests leave as they lie in a heap (compat)"))
    one_release: bool = field(default=False, metadata=about("one pod of a GPU is let go in each pass (compat)"))
    api_pace: bool = field(default=False, metadata=about("a pass looks every running pod up by itself (compat)"))
    zero_draw: bool = field(default=False, metadata=about("binding fails where the original's did (compat)"))

    def admission(self, capacity_mib: int) -> Admission:
        """The question a GPU with so much memory is asked."""
        return Admission(capacity_mib, self.variation, self.percentile, self.lag, self.autocorrelation)

    def check(self) -> None:
        """Raise :class:`PolicyError` if the numbers make no sense."""
        self.admission(1)
        Pace(self.pass_s, self.placed_s, self.requests_per_s)

    def watch(self) -> MonitoredPlan:
        """The plan of this scheduler."""
        from fastsim.telemetry.telemetry import RECORDED  # not before it is needed: it loads numpy

        return MonitoredPlan(self._scheduler, ContainerLifecycle(), RECORDED)

    def _scheduler(self, capacity_mib: Sequence[int], begin_s: float) -> Scheduler:
        return KnotsScheduler(self, capacity_mib, begin_s)

    def __str__(self) -> str:
        return spelled(self)


class Charges:
    """MiB that nobody has declared: `capacity_mib` less what every running pod declares, whatever admitted it.

    It may be negative. With ``one_release`` at most one pod is let go each time one looks, the oldest that is over.
    """

    def __init__(self, capacity_mib: int = 32_510, one_release: bool = False) -> None:
        self.available_mib = capacity_mib
        self.one_release = one_release
        self._running: dict[Hashable, int] = {}

    @property
    def running(self) -> list[Hashable]:
        """Pods that are charged, in the order of placement."""
        return list(self._running)

    def place(self, pod: Hashable, request_mib: int) -> None:
        """Charge a pod."""
        self.available_mib -= request_mib
        self._running[pod] = request_mib

    def release(self, over: Callable[[Hashable], bool]) -> list[Hashable]:
        """Let go of pods that are over; those that were let go."""
        gone = [pod for pod in self._running if over(pod)]
        if self.one_release:
            gone = gone[:1]
        for pod in gone:
            self.available_mib += self._running.pop(pod)
        return gone


@dataclass(frozen=True)
class Pace:
    """A pass over the queue takes `pass_s`, and a placement makes the scheduler sleep for `placed_s` more.

    With ``api_pace`` every running pod is looked up with a request of its own, of which `requests_per_s` are allowed,
    so that a pass with many of them takes longer. With ``zero_draw`` the attempts of `FAILING_BINDS` fail.
    """

    pass_s: float = 0.5
    placed_s: float = 5.0
    requests_per_s: float = 5.0
    api_pace: bool = False
    zero_draw: bool = False

    def __post_init__(self) -> None:
        for name in ("pass_s", "placed_s"):
            if not getattr(self, name) >= 0:
                raise PolicyError(f"pace.{name}", getattr(self, name), "0 s or more")
        if not self.requests_per_s > 0:
            raise PolicyError("pace.requests_per_s", self.requests_per_s, "more than 0")

    def pass_length_s(self, running: int) -> float:
        """Seconds of a pass while so many pods run."""
        return max(self.pass_s, running / self.requests_per_s) if self.api_pace else self.pass_s

    def binds(self, attempt: int) -> bool:
        """Whether the `attempt`-th binding of a run, from 1, finds its node."""
        return not (self.zero_draw and attempt in FAILING_BINDS)


class RequestQueue:
    """Waiting pods by declared MiB, largest first; equal requests keep the order in which they first came.

    With ``heap_ties`` equal requests leave as they lie in a binary heap without regard to age: of n that came one after
    another first the oldest leaves and then the youngest, the second youngest, and so on.
    """

    def __init__(self, heap_ties: bool = False) -> None:
        self.heap_ties = heap_ties
        self._heap: list[tuple[int, Hashable]] = []
        self._ordered: list[tuple[int, int, Hashable]] = []
        self._came: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._heap) + len(self._ordered)

    def push(self, pod: Hashable, request_mib: int) -> None:
        """A pod comes, or comes back."""
        if not self.heap_ties:
            heappush(self._ordered, (-request_mib, self._came.setdefault(pod, len(self._came)), pod))
            return
        heap, place = self._heap, len(self._heap)
        heap.append((request_mib, pod))
        while place and heap[place][0] > heap[above := (place - 1) // 2][0]:
            heap[place], heap[above] = heap[above], heap[place]
            place = above

    def pop(self) -> Hashable:
        """The pod whose turn it is, which leaves; IndexError if none waits."""
        if not self.heap_ties:
            return heappop(self._ordered)[2]
        heap = self._heap
        if not heap:
            raise IndexError("no pod waits")
        heap[0], heap[-1] = heap[-1], heap[0]
        _, pod = heap.pop()
        self._sink()
        return pod

    def _sink(self) -> None:
        """The root goes down until no child is larger; of two that are, the left one unless the right is larger."""
        heap, place = self._heap, 0
        while (child := 2 * place + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] > heap[child][0]:
                child += 1
            if heap[child][0] <= heap[place][0]:
                return
            heap[place], heap[child] = heap[child], heap[place]
            place = child


def spelled(policy: Any) -> str:
    """The name, and the parameters that are not as they are by default."""
    given = [f"{item.name}={getattr(policy, item.name)}" for item in fields(policy)
             if getattr(policy, item.name) != item.default]  # fmt: skip
    return f"{policy.policy_name}({', '.join(given)})" if given else str(policy.policy_name)
