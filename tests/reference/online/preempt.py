"""Which running pods a more important one may stop, and what they would cost.

On each node, imagine all pods of lower priority gone that may be stopped. If the pod then fits, they come back one
after another (higher priority first, then the earlier start, then the earlier arrival) while the pod still fits; who
cannot come back is a victim. Pods that break a disruption budget come back before all others: in the same order of
importance each pod takes one from what its budgets allow, pods that run beyond the least number, and a pod that finds
nothing left in one of them breaks it.

The node is the one with the least of, in this order: victims that break a budget, highest priority among the victims,
sum of their priorities, each raised by 2**31 so that none is below 0; then the one whose victims of that highest
priority started last, counted by the first of them to start; then the smallest position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tests.reference.online.nodes import Node, fits, given_back, near_with, taken
from tests.reference.online.select import Choice
from tests.reference.online.tables import Outcome

if TYPE_CHECKING:
    from tests.reference.online.engine import ReferenceEngine


class Eviction(NamedTuple):
    """A node position and the pods to stop there, in the order in which they would have come back."""

    position: int
    victims: tuple[Outcome, ...]
    broken: int = 0
    """How many of them break a disruption budget."""

    @property
    def cost(self) -> tuple[int, int, int, float, int]:
        """What is compared between nodes; smaller is better."""
        priorities = [pod.priority for pod in self.victims]
        highest = max(priorities)
        first_s = min(pod.start_s or 0.0 for pod in self.victims if pod.priority == highest)
        return self.broken, highest, sum(priority + 2**31 for priority in priorities), -first_s, self.position


def made_room(engine: ReferenceEngine, pod: Outcome) -> Choice | None:
    """Stop less important pods where that costs least, and choose devices on their node; None if nothing helps.

    The stopped wait again, or are lost in a run without a waiting line.
    """
    found = eviction(engine.nodes, list(engine.running.values()), pod)
    if found is None:
        return None
    for victim in found.victims:
        if victim.sequence in engine.running:
            engine.stop(victim, "preempted", engine.queue_rule != "drop")
    engine.free_something(engine.now)
    alone = [node if place == found.position else None for place, node in enumerate(engine.nodes)]
    return engine.select.choose(alone, pod.request, engine.nodes)


def eviction(nodes: Sequence[Node | None], running: Sequence[Outcome], pod: Outcome) -> Eviction | None:
    """The cheapest way to make room for a pod that fits nowhere, if there is any."""
    options = []
    for position, node in enumerate(nodes):
        lower = [
            other for other in running
            if other.node == position and other.preemptible and other.priority < pod.priority
        ]  # fmt: skip
        if node is not None and lower:
            breaking = breakers(lower, running)
            victims = _victims(nodes, position, lower, breaking, pod)
            broken = sum(victim.sequence in breaking for victim in victims)
            options += [Eviction(position, victims, broken)] if victims else []
    return min(options, key=lambda option: option.cost, default=None)


def breakers(lower: Sequence[Outcome], running: Sequence[Outcome]) -> set[int]:
    """Sequence numbers of the pods of one node that break a budget if all of them stop."""
    present = Counter(budget for other in running for budget in other.request.conditions.budgets)
    left = {(name, least): max(count - least, 0) for (name, least), count in present.items()}
    breaking = set()
    for other in sorted(lower, key=importance):
        for budget in other.request.conditions.budgets:
            left[budget] -= 1
            if left[budget] < 0:
                breaking.add(other.sequence)
    return breaking


def importance(pod: Outcome) -> tuple[float, ...]:
    """Sort key of running pods, the most important first."""
    return -pod.priority, pod.start_s or 0.0, pod.sequence


def _victims(
    nodes: Sequence[Node | None], position: int, lower: Sequence[Outcome], breaking: Container[int], pod: Outcome
) -> tuple[Outcome, ...]:
    """The pods that would have to go from one node; none if that would not help."""
    node = nodes[position]
    assert node is not None
    for other in lower:
        node = given_back(node, other.request, other.devices, other.group)
    if not fits(node, pod.request, near_with(nodes, position, node)):
        return ()
    victims = []
    for other in sorted(lower, key=lambda other: (other.sequence not in breaking, *importance(other))):
        back = taken(node, other.request, other.devices, other.group)
        if fits(back, pod.request, near_with(nodes, position, back)):
            node = back
        else:
            victims.append(other)
    return tuple(sorted(victims, key=importance))
