"""The whole online engine in plain Python: slow, readable, and the measure of the compiled one.

Events have one total order: (time, kind, sequence), kinds at equal time in the order node change,
departure, retry, sample, deschedule, arrival. Nothing else is compared anywhere. Published rules:
Fragmentation Gradient Descent (USENIX ATC 2023) and PWR (CCGrid 2025).

Every selection of a node is one attempt, and random numbers depend on the number of the attempt. The pods of a gang
are tried one after another and all taken back if one does not fit. A pod that stops others (the gang of a stopped pod
stops with it) is placed on their node by one more attempt, and a retry follows at the same instant.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.engine.online.plan import OnlinePlan
from fastsim.scenario.outages import Change
from fastsim.scenario.run_rules import NO_RULES, Rules
from fastsim.workload.typical_pods import PodStream, TypicalPods
from tests.reference.online.closing_stages import Stages, Step, closing_stages, deschedule
from tests.reference.online.frag import Fragmentation
from tests.reference.online.gangs import Gangs, lasting_reasons, offer_gang, stop
from tests.reference.online.node_changes import Presence
from tests.reference.online.nodes import Node, empty_node, given_back, taken
from tests.reference.online.preempt import made_room
from tests.reference.online.select import Choice, Selection
from tests.reference.online.tables import (
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
from tests.reference.online.tenants import Tenants
from tests.reference.online.waiting_line import Entry, arrive, join, take_up, walk

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster

NODE, DEPARTURE, RETRY, SAMPLE, DESCHEDULE, ARRIVAL, END = range(len(EVENTS))


class Event(NamedTuple):
    """One entry of the event queue; ``subject`` is a node position or a pod sequence.

    A departure counts only in the ``turn`` of the pod in which it was planned.
    """

    t_s: float
    kind: int
    sequence: int
    subject: int = -1
    turn: int = 0
    change: Change | None = None


def simulate_reference(
    cluster: Cluster, workload: PodStream, plan: OnlinePlan, typical: TypicalPods, *, seed: int = 0,
    sample_s: float | None = None, until_s: float | None = None,
    deschedule: Sequence[Step] = (), inflation: tuple[float, int] | None = None, retarget: TypicalPods | None = None,
    rules: Rules = NO_RULES,
) -> ReferenceRun:  # fmt: skip
    """Place every pod of the workload; times in seconds, a row per event or every ``sample_s``.

    ``deschedule`` has (policy, ratio, seconds or None for the end), ``inflation`` is (ratio, seed).
    """
    stages = Stages(deschedule, inflation, retarget)
    engine = ReferenceEngine(cluster, workload, plan, typical, seed, sample_s, stages, rules)
    while engine.step(math.inf if until_s is None else until_s):
        pass
    return engine.finished(until_s)


class ReferenceEngine:
    """One run in progress, one event per :meth:`step`."""

    def __init__(
        self, cluster: Cluster, workload: PodStream, plan: OnlinePlan, typical: TypicalPods, seed: int,
        sample_s: float | None, stages: Stages | None = None, rules: Rules = NO_RULES,
    ) -> None:  # fmt: skip
        self.shapes, self.pods, self.sample_s = shapes(cluster), pods(workload), sample_s
        self.names: list[str] = cluster.nodes["name"].to_pylist()
        self.queue_rule, self.stages, self.rules = plan.queue, stages or Stages(), rules
        self.frag = Fragmentation(typical)
        models, labels = [shape.gpu_model for shape in self.shapes], [dict(shape.labels) for shape in self.shapes]
        self.select = Selection(plan, self.frag, seed, models, labels)
        self.nodes: list[Node | None] = []
        self.running: dict[int, Outcome] = {}
        self.line: list[Entry] = []
        self.gangs, self.tenants, self.tally, self.run = Gangs(), Tenants(rules), Tally(), ReferenceRun()
        self.events: list[Event] = []
        self.now, self.steps, self.departures, self.freed = 0.0, 0, 0, False
        begin_s = self.pods[0].submit_s if self.pods else 0.0
        self.presence = Presence(cluster, rules.outages, seed, begin_s)
        self.nodes += [
            None if away else empty_node(shape) for away, shape in zip(self.presence.away, self.shapes, strict=True)
        ]
        self._schedule_known()

    def _schedule_known(self) -> None:
        """Put the first node change, every arrival, the first sample and all descheduling into the event queue."""
        self._next_change()
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
        if (self.events[0].t_s > self.now or self.events[0].kind == SAMPLE) and self._over():
            return False
        event = heapq.heappop(self.events)
        handler: dict[int, Callable[[Event], bool]] = {
            NODE: self._node, DEPARTURE: self._departure, RETRY: self._retry, SAMPLE: self._sample,
            DESCHEDULE: self._deschedule, ARRIVAL: self._arrival,
        }  # fmt: skip
        if event.kind == RETRY and not self.line:
            self.freed = False
            return True
        self.now = event.t_s
        self.steps += 1
        if handler[event.kind](event) and (event.kind == SAMPLE) == (self.sample_s is not None):
            self._note(event)
        return True

    def _over(self) -> bool:
        """Whether every pod has come and left."""
        return not (self.tally.running or self.tally.pending or any(event.kind == ARRIVAL for event in self.events))

    def _drop_stale(self) -> None:
        """Forget departures of pods that lost their node, unnoticed failures, samples after which nothing happens."""
        self.events = [e for e in self.events if e.kind != DEPARTURE or self._departs(e)]
        busy = any(e.kind in (ARRIVAL, DEPARTURE) for e in self.events) or (self.freed and bool(self.line))
        while any(e.change is not None and self.presence.unnoticed(e.change, busy) for e in self.events):
            self.events = [event for event in self.events if event.kind != NODE]
            self._next_change()
        if all(event.kind == SAMPLE for event in self.events):
            self.events = []
        heapq.heapify(self.events)

    def _departs(self, event: Event) -> bool:
        return event.subject in self.running and self.running[event.subject].turn == event.turn

    def _next_change(self) -> None:
        """Put the next node change into the event queue."""
        change = self.presence.following()
        if change is not None:
            sequence = 2 * change.position + change.comes
            heapq.heappush(self.events, Event(change.t_s, NODE, sequence, change.position, change=change))

    def _node(self, event: Event) -> bool:
        """A node appears empty, or disappears with every pod on it; or there is another reason why it is away."""
        change = event.change
        assert change is not None
        self._next_change()
        if self.presence.happened(change):
            if change.comes:
                self.nodes[change.position] = empty_node(self.shapes[change.position])
                self.free_something(event.t_s)
            else:
                self._lose(change.position)
        return True

    def _lose(self, position: int) -> None:
        """The pods of a node stop, the earliest to arrive first, and whole gangs with them."""
        shaken, requeue = False, self.rules.on_node_loss == "requeue"
        for sequence in sorted(key for key, pod in self.running.items() if pod.node == position):
            if sequence in self.running:
                pod = self.running[sequence]
                shaken |= requeue or bool(pod.mates)
                self.stop(pod, "node_lost", requeue)
        self.nodes[position] = None
        if shaken:
            self.free_something(self.now)

    def stop(self, pod: Outcome, reason: str, waits_again: bool) -> None:
        """A running pod stops, and all that runs of its gang with it; they wait again or are lost."""
        entry = stop(self, pod, reason)
        if not waits_again:
            self.tally.lost += len(entry.members)
            return
        for other in entry.members:
            other.earlier = (*other.earlier, replace(other, earlier=()))
            other.node, other.devices, other.start_s, other.end_s = None, (), None, None
        join(self, entry)

    def _departure(self, event: Event) -> bool:
        """A pod has run for its duration and gives everything back."""
        self.release(self.running[event.subject], event.t_s, "finished")
        self.tally.finished += 1
        self.free_something(event.t_s)
        return True

    def release(self, pod: Outcome, t_s: float, reason: str) -> None:
        """A running pod gives everything back and its interval ends."""
        assert pod.node is not None
        node = self.nodes[pod.node]
        assert node is not None
        self.nodes[pod.node] = given_back(node, pod.request, pod.devices, pod.group)
        self._end(pod, t_s, reason)

    def _end(self, pod: Outcome, t_s: float, reason: str) -> None:
        del self.running[pod.sequence]
        pod.end_s, pod.reason = t_s, reason
        self.tally.running -= 1
        self.tenants.add(pod, -1)

    def free_something(self, t_s: float) -> None:
        """Plan one retry at this instant, after all node changes and departures of the instant."""
        if not self.freed:
            self.freed = True
            heapq.heappush(self.events, Event(t_s, RETRY, 0))

    def _retry(self, event: Event) -> bool:
        """Offer the line what was freed; whether a pod was placed."""
        self.freed = False
        return walk(self)

    def _sample(self, event: Event) -> bool:
        """Look at the cluster and plan the next look."""
        assert self.sample_s is not None
        heapq.heappush(self.events, Event((event.sequence + 1) * self.sample_s, SAMPLE, event.sequence + 1))
        return True

    def _deschedule(self, event: Event) -> bool:
        """Some running pods are taken off their nodes and placed again; pods that wait may fit then."""
        for policy, ratio, _ in self.stages.due(event.t_s):
            deschedule(self, policy, ratio)
        self.free_something(event.t_s)
        return True

    def _arrival(self, event: Event) -> bool:
        """A pod asks for a place, or waits for the rest of its gang first."""
        pod = self.pods[event.subject]
        arrived(self.tally, pod.request)
        stage = "" if pod.bound else self.gangs.stage(pod, self)
        entry = None if pod.bound or stage else self.gangs.completed(pod)
        if pod.bound:
            take_up(self, pod, *pod.bound)
        elif stage == "given_up":
            self.refuse(Entry((pod,)), [pod], "gang")
        elif entry is None:
            self.tally.pending += 1
        else:
            self.tally.pending -= len(entry.members) - 1
            self.take_in(entry)
        return True

    def take_in(self, entry: Entry, tries: bool = True) -> None:
        """An entry starts, waits or leaves; without ``tries`` it is not tried at once where it can wait."""
        if never := lasting_reasons(self, entry):
            self.gangs.give_up(self, entry)
            for other, reason in zip(entry.members, never, strict=True):
                other.reason = reason
            self.tally.unplaced += len(never)
        elif self.queue_rule == "drop":
            self._drop_or_start(entry)
        elif tries:
            arrive(self, entry)
        else:
            join(self, entry)

    def refuse(self, entry: Entry, pods: Sequence[Outcome], reason: str) -> None:
        """The entry leaves without ever being placed, because of some of its pods."""
        for pod in entry.members:
            pod.reason = reason if pod in pods else "gang"
        self.tally.unplaced += len(entry.members)

    def _drop_or_start(self, entry: Entry) -> None:
        if (refusal := self.offer(entry)) is not None:
            self.gangs.give_up(self, entry)
            self.refuse(entry, refusal[:1], refusal[1])

    def offer(self, entry: Entry) -> tuple[Outcome, str] | None:
        """Start the entry if it fits now; otherwise the pod that does not, and why."""
        over = self.tenants.excess(entry.members)
        if over is not None:
            return over, "over_quota"
        if len(entry.members) > 1 or entry.lead.mates:
            return offer_gang(self, entry)
        pod = entry.lead
        choice = self.select.choose(self.nodes, pod.request)
        if choice.position is None and self.rules.preempt == "priority" and pod.preempts:
            choice = made_room(self, pod) or choice
        if choice.position is None:
            return pod, choice.reason
        self.begin(pod, choice)
        return None

    def told_s(self, pod: Outcome) -> float:
        """Seconds that the scheduler believes a waiting pod will run."""
        return math.inf if pod.est_left_s is None else max(0.0, pod.est_left_s + self._restart_s(pod))

    def _restart_s(self, pod: Outcome) -> float:
        return self.rules.restart_s if pod.turn else 0.0

    def begin(self, pod: Outcome, choice: Choice) -> None:
        """The pod starts to work, and its end is planned."""
        self.settle(pod, choice, self.now)
        pod.began_s, pod.restart_s = self.now, self._restart_s(pod)
        if pod.left_s is not None:
            end_s = self.now + (pod.left_s + pod.restart_s)
            heapq.heappush(self.events, Event(end_s, DEPARTURE, self.departures, pod.sequence, turn=pod.turn))
            self.departures += 1
        # A pod that rules of spread count may open nodes to others.
        if pod.request.conditions.spread_sets and any(pod not in entry.members for entry in self.line):
            self.free_something(self.now)

    def hold(self, pod: Outcome, choice: Choice) -> None:
        """What the pod needs is taken from the chosen node."""
        assert choice.position is not None
        node = self.nodes[choice.position]
        assert node is not None
        self.nodes[choice.position] = taken(node, pod.request, choice.devices, pod.group)

    def settle(self, pod: Outcome, choice: Choice, t_s: float) -> None:
        """The pod starts an interval on the chosen node and devices."""
        self.hold(pod, choice)
        pod.node, pod.devices, pod.start_s, pod.end_s = choice.position, choice.devices, t_s, None
        pod.reason = "running"
        self.running[pod.sequence] = pod
        self.tally.running += 1
        self.tenants.add(pod, 1)

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

    def finished(self, until_s: float | None = None) -> ReferenceRun:
        """Close the tables; pods that have not arrived by now are in none of them, others keep time going."""
        left = self.tally.running or self.tally.pending or self._arrived() < len(self.pods)
        if until_s is not None and self._arrived() and left:
            self.now = max(self.now, until_s)
        closing_stages(self, self.stages)
        self._write_row(END, None)
        known = self.pods[: self._arrived()]
        self.run.placement_rows = [row for pod in known for row in placement_rows(pod, self.names)]
        self.run.job_rows = [job_row(pod, self.now) for pod in known]
        return self.run

    def _arrived(self) -> int:
        waiting = sum(event.kind == ARRIVAL for event in self.events)
        return len(self.pods) - waiting
