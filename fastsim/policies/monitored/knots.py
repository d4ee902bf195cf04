"""The metric-driven scheduler: the readings of a GPU decide whether one more pod may share it.

The policy and its scheduler come first; below are the scheduler's parts: declared memory, latency, waiting pods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from heapq import heappop, heappush
from typing import Any, ClassVar, NamedTuple

from fastsim.engine.monitored.plan import Binding, ContainerLifecycle, MonitoredPlan, Scheduler, SchedulerStep, View
from fastsim.errors import PolicyError
from fastsim.policies.monitored.admission import OUTCOMES, Admission, AdmissionOutcome
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


@policy("monitored")
@dataclass(frozen=True)
class Knots:
    """Share GPUs by their readings: a pod joins if declared, used or forecast memory leaves room for it.

    Pods wait by declared memory, largest first, and are tried one after another in passes. Stage 1: the GPU's
    undeclared memory is enough. Stage 2: free memory varies less than ``variation`` (deviation over mean), and the
    memory above the ``percentile`` of the readings of used memory is enough. Stage 3: free memory repeats itself after
    ``lag`` readings by more than ``autocorrelation``, and a line through them forecasts enough. Readings reach back to
    the GPU's last placement. Pods may run out of memory together; they start again after growing waits.
    """

    citation: ClassVar[str] = KUBE_KNOTS

    variation: float = field(default=0.5, metadata=about("free memory that varies less is shared by its percentile"))
    percentile: float = field(default=0.8, metadata=about("part of the readings of used memory that count as use"))
    lag: int = field(default=10, metadata=about("readings between those that are compared", unit="s"))
    autocorrelation: float = field(default=0.35, metadata=about("free memory that repeats itself more is forecast"))
    pass_s: float = field(default=0.5, metadata=about("a pass over the queue", unit="s"))
    placed_s: float = field(default=5.0, metadata=about("rest after a placement", unit="s"))
    requests_per_s: float = field(default=5.0, metadata=about("requests to the API server, with api_pace", unit="1/s"))
    heap_ties: bool = field(default=False, metadata=about("equal requests leave in the order of a heap (compat)"))
    one_release: bool = field(default=False, metadata=about("one ended pod of a GPU is released in each pass (compat)"))
    api_pace: bool = field(default=False, metadata=about("a pass sends one request for each running pod (compat)"))
    zero_draw: bool = field(default=False, metadata=about("binding fails where the original's did (compat)"))

    def admission(self, capacity_mib: int) -> Admission:
        """The admission rule of a GPU with so much memory."""
        return Admission(capacity_mib, self.variation, self.percentile, self.lag, self.autocorrelation)

    def check(self) -> None:
        """Raise :class:`PolicyError` if a number is out of its range."""
        self.admission(1)
        SchedulerLatency(self.pass_s, self.placed_s, self.requests_per_s)

    def watch(self) -> MonitoredPlan:
        """The plan of this scheduler."""
        from fastsim.telemetry.telemetry import RECORDED  # here, as it loads numpy

        return MonitoredPlan(self._scheduler, ContainerLifecycle(), RECORDED)

    def _scheduler(self, capacity_mib: Sequence[int], begin_s: float) -> Scheduler:
        return KnotsScheduler(self, capacity_mib, begin_s)

    def __str__(self) -> str:
        return policy_text(self)


class KnotsScheduler:
    """Tries waiting pods on every GPU in passes, the largest request first, and binds the first one that is admitted.

    A pod goes to the GPU that admits it in the earliest stage, then to the one with most room left, then to the first.
    """

    def __init__(self, rule: Knots, capacity_mib: Sequence[int], begin_s: float) -> None:
        self.latency = SchedulerLatency(rule.pass_s, rule.placed_s, rule.requests_per_s, rule.api_pace, rule.zero_draw)
        self.queue = RequestQueue(rule.heap_ties)
        self.admission = [rule.admission(capacity) for capacity in capacity_mib]
        self.declared = [DeclaredMemory(capacity, rule.one_release) for capacity in capacity_mib]
        self.placed_s = [int(begin_s)] * len(capacity_mib)
        self.request_mib: dict[int, int] = {}
        self.attempts = 0
        self._first: int | None = None
        self._unbound: int | None = None

    def arrive(self, pod: int, request_mib: int) -> None:
        """Add a pod to the queue."""
        self.request_mib[pod] = request_mib
        self.queue.push(pod, request_mib)

    def step(self, now_s: float, view: View) -> SchedulerStep:
        """Begin a pass, or take its decision once running pods were looked up."""
        if self._first is not None:
            first, self._first = self._first, None
            return self._decide(first, now_s, view)
        if self._unbound is not None:  # binding fails at the end of a pass, after pods that came during it
            pod, self._unbound = self._unbound, None
            self.queue.push(pod, self.request_mib[pod])
        running = sum(len(declared.running) for declared in self.declared)
        if not len(self.queue):
            self._release(view)
            any_ended = sum(len(declared.running) for declared in self.declared) < running
            return SchedulerStep(next_s=self._later(now_s, now_s if any_ended else view.next_s()))
        self._first = int(str(self.queue.pop()))
        self._release(view)
        lookup_s = self.latency.pass_length_s(running) - self.latency.pass_s
        if lookup_s > 0:
            return SchedulerStep(next_s=now_s + lookup_s)
        return self.step(now_s, view)

    def _later(self, now_s: float, event_s: float) -> float:
        """The first tick after an event: the queue is examined once in a pass, and nothing changes before."""
        if not math.isfinite(event_s):
            return math.inf
        ticks = max(1, math.ceil((event_s - now_s) / self.latency.pass_s)) if self.latency.pass_s > 0 else 0
        return now_s + ticks * self.latency.pass_s if ticks else math.nextafter(max(now_s, event_s), math.inf)

    def _release(self, view: View) -> None:
        for declared in self.declared:
            declared.release(lambda pod: view.over(int(str(pod))))

    def _decide(self, first: int, now_s: float, view: View) -> SchedulerStep:
        """Try one pod after another until one is admitted; it is bound at the end of the pass."""
        skipped: list[int] = []
        pod: int | None = first
        target = self._best_gpu(first, now_s, view)
        while target is None:
            assert pod is not None
            skipped.append(pod)
            if not len(self.queue):
                pod = None
                break
            pod = int(str(self.queue.pop()))
            target = self._best_gpu(pod, now_s, view)
        for other in skipped:
            self.queue.push(other, self.request_mib[other])
        bound_s = now_s + self.latency.pass_s
        if pod is None or target is None:
            return SchedulerStep(next_s=_after(now_s, bound_s))
        self.attempts += 1
        if not self.latency.binds(self.attempts):
            self._unbound = pod
            return SchedulerStep(next_s=_after(now_s, bound_s))
        self.declared[target.gpu].place(pod, self.request_mib.pop(pod))
        self.placed_s[target.gpu] = int(bound_s)
        binding = Binding(pod, target.gpu, bound_s, OUTCOMES[target.stage])
        return SchedulerStep((binding,), _after(now_s, bound_s + self.latency.placed_s))

    def _best_gpu(self, pod: int, now_s: float, view: View) -> AdmittingGpu | None:
        """The best GPU that admits a pod."""
        request = self.request_mib[pod]
        direct = [
            AdmittingGpu(0, declared.available_mib - request, gpu)
            for gpu, declared in enumerate(self.declared)
            if request <= declared.available_mib
        ]
        admitting = direct or [
            one
            for gpu in range(len(self.declared))
            if (one := self._by_readings(request, gpu, now_s, view)) is not None
        ]
        return min(admitting, key=lambda one: (one.stage, -one.room_mib, one.gpu), default=None)

    def _by_readings(self, request: int, gpu: int, now_s: float, view: View) -> AdmittingGpu | None:
        admission = self.admission[gpu]
        free, used = view.window(gpu, *admission.window(now_s, self.placed_s[gpu]))
        outcome = admission(request, self.declared[gpu].available_mib, free, used)
        return AdmittingGpu(OUTCOMES.index(outcome.outcome), _room(outcome) - request, gpu) if outcome else None


def _room(outcome: AdmissionOutcome) -> float:
    """Memory that the deciding stage makes available, MiB."""
    room_mib = outcome.forecast_mib if outcome.outcome == "peak" else outcome.harvested_mib
    return float(room_mib or 0)


def _after(now_s: float, then_s: float) -> float:
    return then_s if then_s > now_s else math.nextafter(now_s, math.inf)


class AdmittingGpu(NamedTuple):
    """A GPU that admits a pod: the stage that did, and the room beyond the request, MiB."""

    stage: int
    room_mib: float
    gpu: int


class DeclaredMemory:
    """Declared memory of the pods on a GPU; ``available_mib`` is its capacity less their declarations.

    It may be negative. With ``one_release`` each call of :meth:`release` drops at most one pod, the oldest that ended.
    """

    def __init__(self, capacity_mib: int = 32_510, one_release: bool = False) -> None:
        self.available_mib = capacity_mib
        self.one_release = one_release
        self._running: dict[Hashable, int] = {}

    @property
    def running(self) -> list[Hashable]:
        """Pods on the GPU, in the order of placement."""
        return list(self._running)

    def place(self, pod: Hashable, request_mib: int) -> None:
        """Count a pod's declaration."""
        self.available_mib -= request_mib
        self._running[pod] = request_mib

    def release(self, over: Callable[[Hashable], bool]) -> list[Hashable]:
        """Release the memory of pods that ended; returns these pods."""
        ended = [pod for pod in self._running if over(pod)]
        if self.one_release:
            ended = ended[:1]
        for pod in ended:
            self.available_mib += self._running.pop(pod)
        return ended


@dataclass(frozen=True)
class SchedulerLatency:
    """Time of the scheduler's work: a pass over the queue takes `pass_s`; after a placement it rests for `placed_s`.

    With ``api_pace`` every running pod is looked up with a request of its own, of which `requests_per_s` are allowed,
    so a pass takes longer with many of them. With ``zero_draw`` the attempts of `FAILING_BINDS` fail.
    """

    pass_s: float = 0.5
    placed_s: float = 5.0
    requests_per_s: float = 5.0
    api_pace: bool = False
    zero_draw: bool = False

    def __post_init__(self) -> None:
        for name in ("pass_s", "placed_s"):
            if not getattr(self, name) >= 0:
                raise PolicyError(f"policy monitored, parameter {name}", getattr(self, name), "0 s or more")
        if not self.requests_per_s > 0:
            raise PolicyError("policy monitored, parameter requests_per_s", self.requests_per_s, "more than 0")

    def pass_length_s(self, running: int) -> float:
        """Seconds of a pass while so many pods run."""
        return max(self.pass_s, running / self.requests_per_s) if self.api_pace else self.pass_s

    def binds(self, attempt: int) -> bool:
        """Whether the `attempt`-th binding of a run, from 1, finds its node."""
        return not (self.zero_draw and attempt in FAILING_BINDS)


class RequestQueue:
    """Waiting pods by declared MiB, largest first; equal requests keep the order in which they first came.

    With ``heap_ties`` equal requests leave in the order of a binary heap, whatever their age: of n that came one after
    another first the oldest leaves and then the youngest, the second youngest, and so on.
    """

    def __init__(self, heap_ties: bool = False) -> None:
        self.heap_ties = heap_ties
        self._heap: list[tuple[int, Hashable]] = []
        self._ordered: list[tuple[int, int, Hashable]] = []
        self._order: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._heap) + len(self._ordered)

    def push(self, pod: Hashable, request_mib: int) -> None:
        """Add a pod, or one that returns."""
        if not self.heap_ties:
            heappush(self._ordered, (-request_mib, self._order.setdefault(pod, len(self._order)), pod))
            return
        heap, place = self._heap, len(self._heap)
        heap.append((request_mib, pod))
        while place and heap[place][0] > heap[above := (place - 1) // 2][0]:
            heap[place], heap[above] = heap[above], heap[place]
            place = above

    def pop(self) -> Hashable:
        """Remove and return the next pod; IndexError if none waits."""
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
        """Move the root down until no child is larger; the larger child rises, the left one of equals."""
        heap, place = self._heap, 0
        while (child := 2 * place + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] > heap[child][0]:
                child += 1
            if heap[child][0] <= heap[place][0]:
                return
            heap[place], heap[child] = heap[child], heap[place]
            place = child


def policy_text(policy: Any) -> str:
    """The policy as text: its name, and parameters that differ from their defaults."""
    changed = [f"{item.name}={getattr(policy, item.name)}" for item in fields(policy)
             if getattr(policy, item.name) != item.default]  # fmt: skip
    return f"{policy.policy_name}({', '.join(changed)})" if changed else str(policy.policy_name)
