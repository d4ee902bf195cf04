"""The whole online engine in plain Python: slow, readable, and the measure of the compiled one.

Events have one total order: (time, kind, sequence), kinds at equal time in the order node change,
departure, retry, sample, deschedule, arrival. Nothing else is compared anywhere. Published rules:
Fragmentation Gradient Descent (USENIX ATC 2023) and PWR (CCGrid 2025).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.plan import OnlinePlan
from fastsim.reference_frag import Fragmentation
from fastsim.reference_nodes import Node, empty_node, fits, given_back, taken
from fastsim.reference_select import Choice, Selection
from fastsim.reference_stages import Stages, Step, closing_stages, deschedule
from fastsim.reference_tables import (
    EVENTS,
    Outcome,
    ReferenceRun,
    Tally,
    arrived,
    job_row,
    placement_rows,
    pods,
    shapes,
    timeline_row,
)
from fastsim.typical import PodBatches, TypicalPods

if TYPE_CHECKING:
    from fastsim.cluster import Cluster

NODE, DEPARTURE, RETRY, SAMPLE, DESCHEDULE, ARRIVAL, END = range(len(EVENTS))


class Event(NamedTuple):
    """One entry of the event queue; ``subject`` is a node position or a pod sequence."""

    t_s: float
    kind: int
    sequence: int
    subject: int = -1
    adds: bool = False


def simulate_reference(
    cluster: Cluster, workload: PodBatches, plan: OnlinePlan, typical: TypicalPods, *, seed: int = 0,
    sample_s: float | None = None, until_s: float | None = None,
    deschedule: Sequence[Step] = (), inflation: tuple[float, int] | None = None, retarget: TypicalPods | None = None,
) -> ReferenceRun:  # fmt: skip
    """Place every pod of the workload; times in seconds, a row per event or every ``sample_s``.

    ``deschedule`` has (policy, ratio, seconds or None for the end), ``inflation`` is (ratio, seed).
    """
    stages = Stages(deschedule, inflation, retarget)
    engine = ReferenceEngine(cluster, workload, plan, typical, seed, sample_s, stages)
    while engine.step(math.inf if until_s is None else until_s):
        pass
    return engine.finished()


class ReferenceEngine:
    """One run in progress, one event per :meth:`step`."""

    def __init__(
        self, cluster: Cluster, workload: PodBatches, plan: OnlinePlan, typical: TypicalPods, seed: int,
        sample_s: float | None, stages: Stages | None = None,
    ) -> None:  # fmt: skip
        self.shapes, self.pods, self.sample_s = shapes(cluster), pods(workload), sample_s
        self.names: list[str] = cluster.nodes["name"].to_pylist()
        self.queue_rule, self.stages = plan.queue, stages or Stages()
        self.frag = Fragmentation(typical)
        self.select = Selection(plan, self.frag, seed)
        self.nodes: list[Node | None] = []
        self.running: dict[int, Outcome] = {}
        self.queue: list[Outcome] = []
        self.tally, self.run = Tally(), ReferenceRun()
        self.events: list[Event] = []
        self.now, self.steps, self.departures, self.freed = 0.0, 0, 0, False
        self._schedule_known(cluster)

    def _schedule_known(self, cluster: Cluster) -> None:
        """Put every node change, every arrival, the first sample and all descheduling into the event queue."""
        changes: list[tuple[float, int, bool]] = []
        for position, row in enumerate(cluster.nodes.select(["add_s", "remove_s"]).to_pylist()):
            self.nodes.append(empty_node(self.shapes[position]) if row["add_s"] is None else None)
            changes += [(row["add_s"], position, False)] if row["add_s"] is not None else []
            changes += [(row["remove_s"], position, True)] if row["remove_s"] is not None else []
        for sequence, (t_s, position, removes) in enumerate(sorted(changes)):
            heapq.heappush(self.events, Event(t_s, NODE, sequence, position, not removes))
        for pod in self.pods:
            heapq.heappush(self.events, Event(pod.submit_s, ARRIVAL, pod.sequence, pod.sequence))
        if self.pods and self.sample_s is not None:
            first = math.ceil(self.pods[0].submit_s / self.sample_s)
            heapq.heappush(self.events, Event(first * self.sample_s, SAMPLE, first))
        for sequence, at_s in enumerate(self.stages.instants):
            heapq.heappush(self.events, Event(at_s, DESCHEDULE, sequence))

    def step(self, until_s: float) -> bool:
        """Process the next event not later than ``until_s``; False when there is none."""
        self._drop_stale()
        if not self.events or self.events[0].t_s > until_s:
            return False
        event = heapq.heappop(self.events)
        handler: dict[int, Callable[[Event], bool]] = {
            NODE: self._node, DEPARTURE: self._departure, RETRY: self._retry, SAMPLE: self._sample,
            DESCHEDULE: self._deschedule, ARRIVAL: self._arrival,
        }  # fmt: skip
        if event.kind == RETRY and not self.queue:
            self.freed = False
            return True
        self.now = event.t_s
        self.steps += 1
        if handler[event.kind](event) and (event.kind == SAMPLE) == (self.sample_s is not None):
            self._note(event)
        return True

    def _drop_stale(self) -> None:
        """Forget departures of pods that lost their node, and samples after which nothing happens."""
        self.events = [e for e in self.events if e.kind != DEPARTURE or e.subject in self.running]
        if all(event.kind == SAMPLE for event in self.events):
            self.events = []
        heapq.heapify(self.events)

    def _node(self, event: Event) -> bool:
        """A node appears empty, or disappears with every pod on it."""
        if event.adds:
            self.nodes[event.subject] = empty_node(self.shapes[event.subject])
            self._free_something(event.t_s)
            return True
        self.nodes[event.subject] = None
        for sequence in sorted(key for key, pod in self.running.items() if pod.node == event.subject):
            self._end(self.running[sequence], event.t_s, "node_lost")
            self.tally.lost += 1
        return True

    def _departure(self, event: Event) -> bool:
        """A pod has run for its duration and gives everything back."""
        self.release(self.running[event.subject], event.t_s, "finished")
        self.tally.finished += 1
        self._free_something(event.t_s)
        return True

    def release(self, pod: Outcome, t_s: float, reason: str) -> None:
        """A running pod gives everything back and its interval ends."""
        assert pod.node is not None
        node = self.nodes[pod.node]
        assert node is not None
        self.nodes[pod.node] = given_back(node, pod.request, pod.devices)
        self._end(pod, t_s, reason)

    def _end(self, pod: Outcome, t_s: float, reason: str) -> None:
        del self.running[pod.sequence]
        pod.end_s, pod.reason = t_s, reason
        self.tally.running -= 1

    def _free_something(self, t_s: float) -> None:
        """Plan one retry at this instant, after all node changes and departures of the instant."""
        if not self.freed:
            self.freed = True
            heapq.heappush(self.events, Event(t_s, RETRY, 0))

    def _retry(self, event: Event) -> bool:
        """Offer the queue what was freed; whether a pod was placed."""
        self.freed = False
        before = len(self.queue)
        for pod in list(self.queue):
            if self._try(pod, event.t_s):
                self.queue.remove(pod)
                self.tally.pending -= 1
            elif not self.queue_rule.endswith("_skip"):
                break
        return len(self.queue) < before

    def _sample(self, event: Event) -> bool:
        """Look at the cluster and plan the next look."""
        assert self.sample_s is not None
        heapq.heappush(self.events, Event((event.sequence + 1) * self.sample_s, SAMPLE, event.sequence + 1))
        return True

    def _deschedule(self, event: Event) -> bool:
        """Some running pods are taken off their nodes and placed again; pods that wait may fit then."""
        for policy, ratio, _ in self.stages.due(event.t_s):
            deschedule(self, policy, ratio)
        self._free_something(event.t_s)
        return True

    def _arrival(self, event: Event) -> bool:
        """A pod asks for a place; what happens if there is none is the queue rule's business."""
        pod = self.pods[event.subject]
        arrived(self.tally, pod.request)
        if not any(fits(empty_node(shape), pod.request) for shape in self.shapes):
            pod.reason = "too_large"
            self.tally.unplaced += 1
        elif self.queue_rule == "drop":
            self.tally.unplaced += not self._try(pod, event.t_s)
        else:
            self._join(pod, event.t_s)
        return True

    def _join(self, pod: Outcome, t_s: float) -> None:
        """Queue the pod at its place, unless it may try at once and fits."""
        place = len(self.queue)
        if self.queue_rule.startswith("priority"):
            place = sum(other.priority >= pod.priority for other in self.queue)
        if (place == 0 or self.queue_rule.endswith("_skip")) and self._try(pod, t_s):
            return
        pod.reason = "pending"
        self.queue.insert(place, pod)
        self.tally.pending += 1

    def _try(self, pod: Outcome, t_s: float) -> bool:
        """Place the pod if it fits somewhere now."""
        choice = self.select.choose(self.nodes, pod.request)
        if choice.position is None:
            pod.reason = choice.reason if self.queue_rule == "drop" else "pending"
            return False
        self.settle(pod, choice, t_s)
        if pod.duration_s is not None:
            heapq.heappush(self.events, Event(t_s + pod.duration_s, DEPARTURE, self.departures, pod.sequence))
            self.departures += 1
        return True

    def settle(self, pod: Outcome, choice: Choice, t_s: float) -> None:
        """The pod starts an interval on the chosen node and devices."""
        assert choice.position is not None
        node = self.nodes[choice.position]
        assert node is not None
        self.nodes[choice.position] = taken(node, pod.request, choice.devices)
        pod.node, pod.devices, pod.start_s, pod.end_s = choice.position, choice.devices, t_s, None
        pod.reason = "running"
        self.running[pod.sequence] = pod
        self.tally.running += 1

    def _note(self, event: Event) -> None:
        about_pod = event.kind in (DEPARTURE, ARRIVAL)
        self._write_row(event.kind, self.pods[event.subject].pod_id if about_pod else None)

    def note_deschedule(self) -> None:
        """A timeline row for descheduling after the run."""
        if self.sample_s is None:
            self._write_row(DESCHEDULE, None)

    def _write_row(self, kind: int, pod_id: int | None) -> None:
        self.run.timeline_rows.append(self.state_row(EVENTS[kind], pod_id))

    def state_row(self, event: str, pod_id: int | None) -> dict[str, Any]:
        """The timeline row of now."""
        present = [node for node in self.nodes if node is not None]
        return timeline_row(self.now, self.steps, event, pod_id, self.tally, present, self.frag)

    def finished(self) -> ReferenceRun:
        """Close the tables; pods that have not arrived by now are in none of them."""
        closing_stages(self, self.stages)
        self._write_row(END, None)
        known = self.pods[: self._arrived()]
        self.run.placement_rows = [row for pod in known for row in placement_rows(pod, self.names)]
        self.run.job_rows = [job_row(pod) for pod in known]
        return self.run

    def _arrived(self) -> int:
        waiting = sum(event.kind == ARRIVAL for event in self.events)
        return len(self.pods) - waiting
