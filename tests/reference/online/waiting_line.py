"""The waiting line: who stands where, who may try when, and who is passed over.

An entry is one pod or one gang; a gang stands where its last member joined, with that member's priority and tenant. A
pod that has to wait again joins like a new one. Pods that join during a walk are looked at in the next one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fastsim.engine.online.plan import RULES
from fastsim.scenario.sort_keys import POD_LEVEL_S, column_of, queue_key
from tests.reference.online.backfill import Reservation, allowed, head_reservation, reservation, undisturbed
from tests.reference.online.nodes import WHOLE
from tests.reference.online.select import Choice
from tests.reference.online.tables import Outcome
from tests.reference.online.tenants import amounts, capacity
from tests.reference.rounds.sort_keys import KeyInputs, OrderContext, key

if TYPE_CHECKING:
    from tests.reference.online.engine import ReferenceEngine

Tenant = str | None


@dataclass(eq=False)
class Entry:
    """One pod, or the pods of a gang in the order of their arrival."""

    members: tuple[Outcome, ...]

    @property
    def lead(self) -> Outcome:
        """The last to arrive, whose priority and tenant count for all."""
        return self.members[-1]

    def of(self, tenants: set[Tenant]) -> bool:
        """Whether any member belongs to one of these tenants."""
        return any(pod.tenant in tenants for pod in self.members)


def join(engine: ReferenceEngine, entry: Entry) -> None:
    """The entry takes its place: the end, or behind all of at least its priority."""
    line, place = engine.line, len(engine.line)
    if engine.queue_rule not in RULES:
        rank = ranked(engine)
        place = sum(rank(other) <= rank(entry) for other in line)
    if engine.queue_rule.startswith("priority"):
        place = sum(other.lead.priority >= entry.lead.priority for other in line)
    line.insert(place, entry)
    for pod in entry.members:
        pod.reason = "pending"
    engine.tally.pending += len(entry.members)


def take_up(engine: ReferenceEngine, pod: Outcome, name: str, gpus: tuple[int, ...]) -> None:
    """A pod that is bound to a node starts there, whatever its gang, its quota and labels; or leaves."""
    choice = engine.select.check_binding(engine.nodes, engine.names.index(name), pod.request, gpus)
    if choice.position is None:
        engine.refuse(Entry((pod,)), [pod], choice.reason)
    else:
        engine.begin(pod, choice)


def arrive(engine: ReferenceEngine, entry: Entry) -> None:
    """A new entry joins, and tries at once if the rule lets it."""
    join(engine, entry)
    ahead, rule = engine.line[: engine.line.index(entry)], engine.queue_rule
    if rule == "conservative":
        walk(engine)
    elif rule == "drf":
        if not any(other.lead.tenant == entry.lead.tenant for other in ahead):
            start(engine, entry)
    elif rule.endswith("_skip"):
        start(engine, entry)
    elif rule not in RULES:
        walk(engine)
    else:
        head, barred = front(engine, ahead)
        if entry.of(barred):
            return
        if head is None:
            start(engine, entry)
        elif rule == "easy" and engine.tenants.excess(entry.members) is None:
            backfill(engine, entry, reserved_for(engine, head))


def front(engine: ReferenceEngine, entries: list[Entry]) -> tuple[Entry | None, set[Tenant]]:
    """The first entry that its tenant's quota does not hold back, and the tenants that have one held back."""
    head: Entry | None = None
    barred: set[Tenant] = set()
    for entry in entries:
        if not entry.of(barred):
            over = engine.tenants.excess(entry.members)
            if over is not None:
                barred.add(over.tenant)
            elif head is None:
                head = entry
    return head, barred


def walk(engine: ReferenceEngine) -> bool:
    """Offer the whole line what is free; whether any pod started."""
    if engine.queue_rule not in RULES:
        ranked(engine)
    walks = {"drf": by_share, "easy": easy, "conservative": conservative}
    return walks.get(engine.queue_rule, in_order)(engine)


def ranked(engine: ReferenceEngine) -> Callable[[Entry], list[float]]:
    """Sort the line by the order's keys of now, equal entries as they are; what says the key of an entry."""
    order = queue_key(engine.queue_rule)
    cpu_milli, memory_mib, gpu_milli = capacity(engine.nodes)
    yard = OrderContext(engine.now, gpu_milli / WHOLE, cpu_milli, memory_mib)

    def rank(entry: Entry) -> list[float]:
        columns = {name: [value(pod, name) for pod in entry.members] for name in map(column_of, order) if name}
        return key(order, replace(claim(engine, entry), columns=columns), yard, POD_LEVEL_S)

    engine.line.sort(key=rank)
    return rank


def value(pod: Outcome, name: str) -> float | None:
    """The value of a pod in a column; deadlines may be multiples of the duration, own columns are texts."""
    found = pod.row.get(name, pod.row.get(f"native_{name}"))
    slo, duration_s = pod.row.get("slo"), pod.row.get("duration_s")
    if name == "deadline_s" and found is None and slo is not None and duration_s is not None:
        return float(pod.submit_s + slo * duration_s)
    return None if found is None else float(found)


def claim(engine: ReferenceEngine, entry: Entry) -> KeyInputs:
    """What an entry claims: a gang as much as all its pods, for as long as the longest of them."""
    asked = [amounts(pod.request) for pod in entry.members]
    cpu_milli, memory_mib, gpu_milli = (sum(column) for column in zip(*asked, strict=True))
    total_s = max(math.inf if pod.est_s is None else pod.est_s for pod in entry.members)
    left_s = max(engine.told_s(pod) for pod in entry.members)
    return KeyInputs(
        entry.lead.submit_s, left_s, total_s, gpu_milli / WHOLE, cpu_milli, memory_mib, entry.lead.attained_s
    )


def start(engine: ReferenceEngine, entry: Entry) -> bool:
    """The entry leaves the line if it can start."""
    if engine.offer(entry) is not None:
        return False
    leave(engine, entry)
    return True


def leave(engine: ReferenceEngine, entry: Entry) -> None:
    """The entry does not wait any more."""
    engine.line.remove(entry)
    engine.tally.pending -= len(entry.members)


def in_order(engine: ReferenceEngine) -> bool:
    """One after another until one fits nowhere, or past it if the rule skips. Quotas hold back only their tenant."""
    skips, started = engine.queue_rule.endswith("_skip"), False
    barred: set[Tenant] = set()
    for entry in list(engine.line):
        if entry.of(barred):
            continue
        over = engine.tenants.excess(entry.members)
        if over is not None:
            barred |= set() if skips else {over.tenant}
        elif start(engine, entry):
            started = True
        elif not skips:
            break
    return started


def by_share(engine: ReferenceEngine) -> bool:
    """Always the oldest entry of the tenant with the smallest dominant share; who fits nowhere is passed over."""
    line, passed, started = list(engine.line), set[Tenant](), False
    while True:
        oldest: dict[Tenant, Entry] = {}
        for entry in line:
            oldest.setdefault(entry.lead.tenant, entry)
        open_ = [entry for tenant, entry in oldest.items() if tenant not in passed]
        if not open_:
            return started
        whole = capacity(engine.nodes)
        entry = min(open_, key=lambda entry: engine.tenants.share(entry.lead.tenant, whole))
        if start(engine, entry):
            line.remove(entry)
            started = True
        else:
            passed.add(entry.lead.tenant)


def easy(engine: ReferenceEngine) -> bool:
    """In order until one fits nowhere; later ones may start if they do not delay that one."""
    reserved: Reservation | None = None
    head, started = False, False
    barred: set[Tenant] = set()
    for entry in list(engine.line):
        over = None if entry.of(barred) else engine.tenants.excess(entry.members)
        if over is not None:
            barred.add(over.tenant)
        elif entry.of(barred):
            continue
        elif head:
            started |= backfill(engine, entry, reserved)
        elif start(engine, entry):
            started = True
        else:
            head, reserved = True, reserved_for(engine, entry)
    return started


def reserved_for(engine: ReferenceEngine, head: Entry) -> Reservation | None:
    """The head's reservation; None if no end of a running pod makes room for it."""
    return head_reservation(engine.nodes, list(engine.running.values()), head.lead, engine.now)


def backfill(engine: ReferenceEngine, entry: Entry, reserved: Reservation | None) -> bool:
    """Start a later pod if that does not delay the head: where it is best, or else anywhere but on the head's node."""
    pod, running = entry.lead, list(engine.running.values())
    choice = engine.select.choose(engine.nodes, pod.request)
    if choice.position is None:
        return False
    end_s = engine.now + engine.told_s(pod)
    if not undisturbed(engine.nodes, running, reserved, pod, choice, engine.now, end_s):
        elsewhere = [None if place == choice.position else node for place, node in enumerate(engine.nodes)]
        choice = engine.select.choose(elsewhere, pod.request, engine.nodes)
        if choice.position is None:
            return False
    engine.begin(pod, choice)
    leave(engine, entry)
    return True


def conservative(engine: ReferenceEngine) -> bool:
    """Every entry in order gets the earliest place beside those before it, and starts if that is now.

    It starts on the devices the policy chooses if no reservation needs them, else on those of its own reservation.
    """
    reserved: list[Reservation] = []
    started = False
    barred: set[Tenant] = set()
    for entry in list(engine.line):
        over = None if entry.of(barred) else engine.tenants.excess(entry.members)
        if over is not None:
            barred.add(over.tenant)
        if entry.of(barred):
            continue
        pod, running, lasts_s = entry.lead, list(engine.running.values()), engine.told_s(entry.lead)
        place = reservation(engine.nodes, running, reserved, pod, engine.now, lasts_s)
        if place is None:
            continue
        if place.waits:
            reserved.append(place)
            continue
        choice = engine.select.choose(engine.nodes, pod.request)
        if not allowed(engine.nodes, running, reserved, pod, choice, engine.now, lasts_s):
            choice = Choice(place.position, place.devices)
        engine.begin(pod, choice)
        leave(engine, entry)
        started = True
    return started
