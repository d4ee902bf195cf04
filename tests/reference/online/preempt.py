"""Which running pods a more important one may stop, and what they would cost.

On each node, imagine all pods of lower priority gone that may be stopped. If the pod then fits, they come back one
after another (higher priority first, then the earlier start, then the earlier arrival) while the pod still fits; who
cannot come back is a victim. The node is the one with the least of, in this order: highest priority among the victims,
sum of their priorities, number of victims; then the one whose victims of that highest priority started last, counted
by the first of them to start; then the smallest position.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    @property
    def cost(self) -> tuple[int, int, int, float, int]:
        """What is compared between nodes; smaller is better."""
        priorities = [pod.priority for pod in self.victims]
        highest = max(priorities)
        first_s = min(pod.start_s or 0.0 for pod in self.victims if pod.priority == highest)
        return highest, sum(priorities), len(priorities), -first_s, self.position


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
            victims = _victims(nodes, position, lower, pod)
            options += [Eviction(position, victims)] if victims else []
    return min(options, key=lambda option: option.cost, default=None)


def _victims(
    nodes: Sequence[Node | None], position: int, lower: Sequence[Outcome], pod: Outcome
) -> tuple[Outcome, ...]:
    """The pods that would have to go from one node; none if that would not help."""
    node = nodes[position]
    assert node is not None
    for other in lower:
        node = given_back(node, other.request, other.devices, other.group)
    if not fits(node, pod.request, near_with(nodes, position, node)):
        return ()
    victims = []
    for other in sorted(lower, key=lambda other: (-other.priority, other.start_s, other.sequence)):
        back = taken(node, other.request, other.devices, other.group)
        if fits(back, pod.request, near_with(nodes, position, back)):
            node = back
        else:
            victims.append(other)
    return tuple(victims)
