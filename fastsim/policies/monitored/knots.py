"""The metric-driven scheduler: the readings of a GPU decide whether one more pod may share it.

The policy and its scheduler come first; below are the scheduler's parts: declared memory, waiting pods.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, fields
from heapq import heappop, heappush
from typing import Any, ClassVar, NamedTuple

from fastsim.engine.monitored.plan import Binding, ContainerLifecycle, MonitoredPlan, Scheduler, SchedulerStep, View
from fastsim.errors import PolicyError
from fastsim.policies.monitored.admission import OUTCOMES, Admission, AdmissionOutcome
from fastsim.policies.monitored.request_limiter import RequestLimiter
from fastsim.policies.registry import about, policy

KUBE_KNOTS = """@inproceedings{thinakaran2019kubeknots,
  title = {Kube-Knots: Resource Harvesting through Dynamic Container Orchestration in {GPU}-based Datacenters},
  author = {Thinakaran, Prashanth and Gunasekaran, Jashwant Raj and Sharma, Bikash and Kandemir, Mahmut Taylan
            and Das, Chita R.},
  booktitle = {IEEE CLUSTER},
  year = {2019}
}"""
LEAST_PASS_S = 0.001
"""Shortest pass, seconds: while pods wait, time goes on by passes."""
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
    engine: ClassVar[str] = "monitored"

    variation: float = field(default=0.5, metadata=about("free memory that varies less is shared by its percentile"))
    percentile: float = field(default=0.8, metadata=about("part of the readings of used memory that count as use"))
    lag: int = field(default=10, metadata=about("readings between those that are compared", unit="s"))
    autocorrelation: float = field(default=0.35, metadata=about("free memory that repeats itself more is forecast"))
    pass_s: float = field(default=0.5, metadata=about("a pass over the queue", unit="s"))
    placed_s: float = field(default=5.0, metadata=about("rest after a placement", unit="s"))
    requests_per_s: float = field(default=5.0, metadata=about("requests to the API server, with api_pace", unit="1/s"))
    burst: int = field(default=10, metadata=about("requests to the API server at once, with api_pace"))
    heap_ties: bool = field(default=False, metadata=about("equal requests leave in the order of a heap (compat)"))
    one_release: bool = field(default=False, metadata=about("one ended pod of a GPU is released in each pass (compat)"))
    api_pace: bool = field(default=False, metadata=about("a pass sends one request for each running pod (compat)"))
    idle_pass: bool = field(default=False, metadata=about("a pod that ends idleness waits one pass more (compat)"))
    zero_draw: bool = field(default=False, metadata=about("binding fails where the original's did (compat)"))

    def admission(self, capacity_mib: int) -> Admission:
        """The admission rule of a GPU with so much memory."""
        return Admission(capacity_mib, self.variation, self.percentile, self.lag, self.autocorrelation)

    def check(self) -> None:
        """Raise :class:`PolicyError` if a number is out of its range."""
        self.admission(1)
        bounds = (
            ("pass_s", self.pass_s >= LEAST_PASS_S, f"{LEAST_PASS_S:g} s or more"),
            ("placed_s", self.placed_s >= 0, "0 s or more"),
            ("requests_per_s", self.requests_per_s > 0, "more than 0"),
            ("burst", self.burst >= 1, "1 or more"),
        )
        for name, good, expected in bounds:
            if not good:
                raise PolicyError(f"policy monitored, parameter {name}", getattr(self, name), expected)

    def binds(self, attempt: int) -> bool:
        """Whether the `attempt`-th binding of a run, from 1, finds its node."""
        return not (self.zero_draw and attempt in FAILING_BINDS)

    def watch(self) -> MonitoredPlan:
        """The plan of this scheduler."""
        from fastsim.telemetry.telemetry import RECORDED  # here, as it loads numpy

        return MonitoredPlan(self._scheduler, ContainerLifecycle(), RECORDED)

    def _scheduler(self, capacity_mib: Sequence[int], begin_s: float) -> Scheduler:
        return KnotsScheduler(self, capacity_mib, begin_s)

    def __str__(self) -> str:
        return policy_text(self)


Passes = Generator[SchedulerStep, float, float]
"""Steps of a scheduler, each resumed with the second that it is then; in the end the second of its end."""


class KnotsScheduler:
    """Tries waiting pods on every GPU in passes, the largest request first, and binds the first one that is admitted.

    A pod goes to the GPU that admits it in the earliest stage, then to the one with most room left, then to the first.
    """

    def __init__(self, rule: Knots, capacity_mib: Sequence[int], begin_s: float) -> None:
        self.rule = rule
        self.limiter = RequestLimiter(rule.requests_per_s, rule.burst) if rule.api_pace else RequestLimiter()
        self.queue = RequestQueue(rule.heap_ties)
        self.admission = [rule.admission(capacity) for capacity in capacity_mib]
        self.declared = [DeclaredMemory(capacity) for capacity in capacity_mib]
        self.placed_s = [int(begin_s)] * len(capacity_mib)
        self.request_mib: dict[int, int] = {}
        self.attempts = self.released = 0
        self._passes: Passes | None = None

    def arrive(self, pod: int, request_mib: int) -> None:
        """Add a pod to the queue."""
        self.request_mib[pod] = request_mib
        self.queue.push(pod, request_mib)

    def step(self, now_s: float, view: View) -> SchedulerStep:
        """Continue the passes up to where they wait for a later second."""
        if self._passes is None:
            self._passes = self._all_passes(now_s, view)
            return next(self._passes)
        return self._passes.send(now_s)

    def _all_passes(self, now_s: float, view: View) -> Passes:
        """One pass after another; with ``idle_pass`` a pod that ends idleness is taken along until the next one."""
        idle = True
        while True:
            while not len(self.queue):
                idle, released, event_s = True, self.released, view.next_s()
                now_s = yield from self._look_up(now_s, view)
                changed = self.released > released
                now_s = yield self._pause(now_s) if changed else self._idle_pause(now_s, event_s)
            pod = self.queue.pop()
            if idle and self.rule.idle_pass:
                now_s = yield from self._look_up(now_s, view)
                now_s = yield self._pause(now_s)
            idle = False
            now_s = yield from self._look_up(now_s, view)
            now_s = yield from self._place(pod, now_s, view)

    def _look_up(self, now_s: float, view: View) -> Passes:
        """Look up all running pods, and release the declared memory of those that ended."""
        for declared in self.declared:
            for pod in declared.running:
                sent_s = self.limiter.sent_s(now_s)
                if sent_s > now_s:
                    now_s = yield SchedulerStep(next_s=sent_s)
                if view.over(pod):
                    declared.release(pod)
                    self.released += 1
                    if self.rule.one_release:
                        break
        return now_s

    def _pause(self, now_s: float) -> SchedulerStep:
        """The pause of a pass."""
        return SchedulerStep(next_s=_after(now_s, now_s + self.rule.pass_s))

    def _idle_pause(self, now_s: float, event_s: float) -> SchedulerStep:
        """The pause up to the first pass that begins no earlier than an event; all before are as the next one is.

        Where requests wait it is the last that begins no later, as these may see the event. If the event came while
        pods were looked up it is the next one.
        """
        if not math.isfinite(event_s):
            return SchedulerStep()
        running, pass_s = sum(len(declared.running) for declared in self.declared), self.rule.pass_s
        wait_s = self.limiter.wait_s(running, pass_s)
        if wait_s and not self.limiter.is_empty(now_s):  # passes are shorter until the burst is used up
            return self._pause(now_s)
        length_s = pass_s + wait_s
        whole = math.floor if wait_s else math.ceil
        passes = max(0, whole((event_s - now_s - pass_s) / length_s))
        self.limiter.repeat(passes, running)
        return SchedulerStep(next_s=_after(now_s, now_s + pass_s + passes * length_s))

    def _place(self, first: int, now_s: float, view: View) -> Passes:
        """Try one pod after another until one is admitted, and bind it after the pause; then rest."""
        skipped, pod = list[int](), first
        while (target := self._best_gpu(pod, now_s, view)) is None:
            skipped.append(pod)
            if not len(self.queue):
                break
            pod = self.queue.pop()
        for other in skipped:
            self.queue.push(other, self.request_mib[other])
        if target is None:
            return (yield self._pause(now_s))
        self.attempts += 1
        bound_s = self.limiter.sent_s(now_s + self.rule.pass_s)
        if not self.rule.binds(self.attempts):
            now_s = yield SchedulerStep(next_s=_after(now_s, bound_s))
            self.queue.push(pod, self.request_mib[pod])
            return now_s
        return (yield self._bound(pod, target, now_s, bound_s))

    def _bound(self, pod: int, target: AdmittingGpu, now_s: float, bound_s: float) -> SchedulerStep:
        """Bind a pod, and report that with another request."""
        reported_s = self.limiter.sent_s(bound_s)
        self.declared[target.gpu].place(pod, self.request_mib.pop(pod))
        self.placed_s[target.gpu] = int(reported_s)
        binding = Binding(pod, target.gpu, bound_s, OUTCOMES[target.stage])
        return SchedulerStep((binding,), _after(now_s, reported_s + self.rule.placed_s))

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
    """Declared memory of the pods on a GPU; ``available_mib`` is its capacity less their declarations, even below 0."""

    def __init__(self, capacity_mib: int = 32_510) -> None:
        self.available_mib = capacity_mib
        self._running: dict[int, int] = {}

    @property
    def running(self) -> list[int]:
        """Pods on the GPU, in the order of placement."""
        return list(self._running)

    def place(self, pod: int, request_mib: int) -> None:
        """Count a pod's declaration."""
        self.available_mib -= request_mib
        self._running[pod] = request_mib

    def release(self, pod: int) -> None:
        """Release the memory of a pod that ended."""
        self.available_mib += self._running.pop(pod)


class RequestQueue:
    """Waiting pods by declared MiB, largest first; equal requests keep the order in which they first came.

    With ``heap_ties`` equal requests leave in the order of a binary heap, whatever their age: of n that came one after
    another first the oldest leaves and then the youngest, the second youngest, and so on.
    """

    def __init__(self, heap_ties: bool = False) -> None:
        self.heap_ties = heap_ties
        self._heap: list[tuple[int, int]] = []
        self._ordered: list[tuple[int, int, int]] = []
        self._order: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._heap) + len(self._ordered)

    def push(self, pod: int, request_mib: int) -> None:
        """Add a pod, or one that returns."""
        if not self.heap_ties:
            heappush(self._ordered, (-request_mib, self._order.setdefault(pod, len(self._order)), pod))
            return
        heap, place = self._heap, len(self._heap)
        heap.append((request_mib, pod))
        while place and heap[place][0] > heap[above := (place - 1) // 2][0]:
            heap[place], heap[above] = heap[above], heap[place]
            place = above

    def pop(self) -> int:
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
