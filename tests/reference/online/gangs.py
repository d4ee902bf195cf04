"""Gangs of the reference engine: pods that start together or not at all, and stop together.

A gang is made of the pods of one ``job_id`` and one ``gang_size``, in the order of their arrival; a job with more pods
than that has several gangs, one after another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.reference.online.nodes import STAGES, Node, empty_node, fits, stage, sub_devices, taken
from tests.reference.online.tables import Outcome
from tests.reference.online.tenants import Tenants
from tests.reference.online.waiting_line import Entry

if TYPE_CHECKING:
    from fastsim.engine.online.plan import PodRequest
    from tests.reference.online.engine import ReferenceEngine


class Gangs:
    """Gangs that wait for their last member to arrive, and pods that wait for a gang of their job to start."""

    def __init__(self) -> None:
        self._forming: dict[tuple[int, int], list[Outcome]] = {}
        self._waiting: dict[int, list[Outcome]] = {}
        self._gangs: dict[int, list[list[Outcome]]] = {}
        self._begun: set[int] = set()
        self._given_up: set[int] = set()

    def stage(self, pod: Outcome, engine: ReferenceEngine) -> str:
        """``waits`` if the pod has to wait for a gang of its job, ``given_up`` if that has left, else empty."""
        if pod.after is None:
            return ""
        there = [gang for gang in self._gangs.get(pod.after, ()) if any(_present(engine, member) for member in gang)]
        if any(member.sequence in self._begun for gang in there for member in gang):
            return ""
        if there:
            self._waiting.setdefault(pod.after, []).append(pod)
            return "waits"
        return "given_up" if pod.after in self._given_up else ""

    def begun(self, engine: ReferenceEngine, entry: Entry) -> None:
        """A gang has started: pods that wait for it stand in line, in the order of their arrival."""
        job = entry.lead.job
        assert job is not None
        self._begun |= {member.sequence for member in entry.members}
        for pod in self._waiting.pop(job[0], ()):
            engine.tally.pending -= 1
            engine.take_in(Entry((pod,)), tries=False)
            if engine.line:
                engine.free_something(engine.now)

    def give_up(self, engine: ReferenceEngine, entry: Entry) -> None:
        """A gang leaves without having started: so do pods that wait for it, unless there is another one of the job."""
        if entry.lead.job is None:
            return
        job = entry.lead.job[0]
        self._given_up.add(job)
        others = (gang for gang in self._gangs[job] if entry.lead not in gang)
        if any(_present(engine, member) for gang in others for member in gang):
            return
        for pod in self._waiting.pop(job, ()):
            engine.tally.pending -= 1
            engine.tally.unplaced += 1
            pod.reason = "gang"

    def completed(self, pod: Outcome) -> Entry | None:
        """The pod, or its gang if the pod is the last of it; None if the gang is not complete."""
        if pod.job is None:
            return Entry((pod,))
        if pod.job not in self._forming:
            self._forming[pod.job] = []
            self._gangs.setdefault(pod.job[0], []).append(self._forming[pod.job])
        members = self._forming[pod.job]
        members.append(pod)
        if len(members) < pod.job[1]:
            return None
        del self._forming[pod.job]
        for member in members:
            member.mates = tuple(members)
        return Entry(tuple(members))


def offer_gang(engine: ReferenceEngine, entry: Entry) -> tuple[Outcome, str] | None:
    """All members find a place one after another, or none of them does. A gang stops nobody."""
    before, choices = list(engine.nodes), []
    for pod in entry.members:
        choice = engine.select.choose(engine.nodes, pod.request)
        if choice.position is None:
            engine.nodes = before
            return pod, choice.reason
        engine.hold(pod, choice)
        choices.append(choice)
    engine.nodes = before
    for pod, choice in zip(entry.members, choices, strict=True):
        engine.begin(pod, choice)
    engine.gangs.begun(engine, entry)
    return None


def _present(engine: ReferenceEngine, pod: Outcome) -> bool:
    """Whether a pod has arrived and not left."""
    return pod.sequence in engine.running or pod.reason in ("", "pending")


BY_CHECK = ("no_gpu_model", "no_gpu", "no_gpu_memory", "no_cpu", "no_memory", "no_extra", "no_pod_slot")
"""Lacks of empty nodes, in the order of the checks."""


def lasting_reasons(engine: ReferenceEngine, entry: Entry) -> list[str]:
    """Why each pod of an entry could not start on an empty cluster whose nodes are all there; empty if all could."""
    members = entry.members
    alone = [_hindrance(engine, pod) for pod in members]
    if any(alone):
        return [reason or "gang" for reason in alone]
    over = Tenants(engine.rules).excess(members)
    if over is not None:
        return ["over_quota" if pod is over else "gang" for pod in members]
    counts = Counter(pod.request for pod in members)
    crowded = any(count > _seats(engine, request, count) for request, count in counts.items())
    return ["gang_too_large"] * len(members) if crowded else []


def _hindrance(engine: ReferenceEngine, pod: Outcome) -> str:
    """Why no empty node could host a pod; empty if one could."""
    if any(fits(empty_node(shape), pod.request) for shape in engine.shapes):
        return ""
    anywhere = pod.request.conditions._replace(constraints=(), pinned_node=None, spread=(), near=())
    free = replace(pod.request, conditions=anywhere)
    if any(fits(empty_node(shape), free) for shape in engine.shapes):
        return "no_match"
    missing = {lack_of(empty_node(shape), free) for shape in engine.shapes}
    if not any(shape.num_gpu for shape in engine.shapes) and missing <= {"no_gpu_model", "no_gpu"}:
        return "no_gpu"
    furthest = max(missing, key=BY_CHECK.index, default="no_gpu")
    return furthest if furthest in ("no_gpu_model", "no_gpu_memory", "no_extra", "no_pod_slot") else "too_large"


def lack_of(node: Node, pod: PodRequest) -> str:
    """The first check that an empty node fails, device memory apart from the number of devices."""
    name = STAGES[stage(node, pod)]
    return "no_gpu_memory" if name == "no_gpu" and node.shape.num_gpu >= pod.num_gpu else name


def _seats(engine: ReferenceEngine, request: PodRequest, most: int) -> int:
    """How many of so many equal pods find a place on empty nodes, node by node."""
    found = 0
    for shape in engine.shapes:
        node = empty_node(shape)
        while found < most and fits(node, request):
            node, found = taken(node, request, sub_devices(node, request), request.conditions.group), found + 1
    return found


def stop(engine: ReferenceEngine, pod: Outcome, reason: str) -> Entry:
    """A running pod and all that runs of its gang are taken off their nodes; work since a checkpoint is lost."""
    members = tuple(other for other in pod.mates or (pod,) if other.sequence in engine.running)
    for other in members:
        worked_s = max(0.0, (engine.now - other.began_s) - other.restart_s)
        kept_s = engine.rules.kept_s(worked_s)
        other.lost_work_s += worked_s - kept_s
        other.left_s = None if other.left_s is None else max(0.0, other.left_s - kept_s)
        other.est_left_s = None if other.est_left_s is None else other.est_left_s - kept_s
        other.attained_s += engine.now - other.began_s
        other.turn += 1
        engine.release(other, engine.now, reason)
    return Entry(members)
