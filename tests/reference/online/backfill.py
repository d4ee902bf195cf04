"""Reservations for waiting pods, from the durations that the scheduler is told.

EASY (Lifka 1995): only the first pod in the line that does not fit has a reservation. Conservative backfilling: every
waiting pod has one, made in the order of the line. A pod that has run longer than its estimate is estimated to end now.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.reference.online.nodes import (
    Node,
    fits,
    fitting_devices,
    given_back,
    near_with,
    seen,
    sub_devices,
    taken,
)
from tests.reference.online.select import Choice
from tests.reference.online.tables import Outcome


class Reservation(NamedTuple):
    """A pod's place from ``start_s`` until ``end_s``; ``waits`` is False if it could start at once."""

    start_s: float
    waits: bool
    position: int
    pod: Outcome
    devices: tuple[int, ...] = ()
    end_s: float = math.inf


def by_end(running: Sequence[Outcome], position: int, now_s: float) -> list[tuple[float, Outcome]]:
    """Running pods of a node with the times at which they are estimated to end, the soonest and then earliest first."""
    ends = [(max(pod.est_end_s, now_s), pod) for pod in running if pod.node == position]
    return sorted(ends, key=lambda end: (end[0], end[1].sequence))


def head_reservation(
    nodes: Sequence[Node | None], running: Sequence[Outcome], head: Outcome, now_s: float
) -> Reservation | None:
    """The earliest time at which one pod after another ending makes room for the head; ties: smallest position."""
    best: Reservation | None = None
    for position, node in enumerate(nodes):
        if node is None:
            continue
        for end_s, pod in by_end(running, position, now_s):
            node = given_back(node, pod.request, pod.devices, pod.group)
            if end_s < math.inf and fits(node, head.request, near_with(nodes, position, node)):
                if best is None or end_s < best.start_s:
                    best = Reservation(end_s, True, position, head)
                break
    return best


def undisturbed(
    nodes: Sequence[Node | None], running: Sequence[Outcome], reserved: Reservation | None, pod: Outcome,
    choice: Choice, now_s: float, end_s: float,
) -> bool:  # fmt: skip
    """Whether a pod that runs on the chosen devices until ``end_s`` leaves the head's reservation as it is."""
    if reserved is None or choice.position != reserved.position or end_s <= reserved.start_s:
        return True
    node = nodes[reserved.position]
    assert node is not None
    node = taken(node, pod.request, choice.devices, pod.group)
    for other_s, other in by_end(running, reserved.position, now_s):
        if other_s <= reserved.start_s:
            node = given_back(node, other.request, other.devices, other.group)
    return fits(node, reserved.pod.request, near_with(nodes, reserved.position, node))


Profile = list[tuple[float, Node]]
"""A node's estimated states, each from its time on; the first is the real one of now."""


def profile(
    node: Node, running: Sequence[Outcome], reserved: Sequence[Reservation], position: int, now_s: float
) -> Profile:
    """The estimates of a node: running pods end, pods with reservations come and go."""
    here = [item for item in reserved if item.position == position]
    ends = [(end_s, pod, pod.devices, -1) for end_s, pod in by_end(running, position, now_s)]
    ends += [(item.end_s, item.pod, item.devices, -1) for item in here]
    changes = ends + [(item.start_s, item.pod, item.devices, 1) for item in here]
    states = [(now_s, node)]
    for t_s in sorted({change[0] for change in changes if change[0] < math.inf}):
        for _, pod, devices, sign in (change for change in changes if change[0] == t_s):
            node = (taken if sign > 0 else given_back)(node, pod.request, devices, pod.group)
        states.append((t_s, node))
    return states


def floor(states: Profile, first: int, lasts_s: float) -> Node:
    """The least of everything that is free from a state on for some seconds."""
    start_s, low = states[first]
    for t_s, node in states[first + 1 :]:
        if t_s < start_s + lasts_s:
            low = _least(low, node)
    return low


def _least(one: Node, other: Node) -> Node:
    return one._replace(
        cpu_free=min(one.cpu_free, other.cpu_free), memory_free=min(one.memory_free, other.memory_free),
        gpu_free=tuple(map(min, one.gpu_free, other.gpu_free)), pods=max(one.pods, other.pods),
        gpu_memory_used=_most(one.gpu_memory_used, other.gpu_memory_used),
        extra_used=_most(one.extra_used, other.extra_used), groups=_most(one.groups, other.groups),
    )  # fmt: skip


def _most(one: tuple[tuple[Any, int], ...], other: tuple[tuple[Any, int], ...]) -> tuple[tuple[Any, int], ...]:
    counts = dict(one)
    for key, count in other:
        counts[key] = max(counts.get(key, 0), count)
    return tuple(sorted(counts.items()))


def reservation(
    nodes: Sequence[Node | None], running: Sequence[Outcome], reserved: Sequence[Reservation], pod: Outcome,
    now_s: float, lasts_s: float,
) -> Reservation | None:  # fmt: skip
    """The earliest place for a pod beside all reservations made before; at once before later, then by position."""
    best: Reservation | None = None
    for position, node in enumerate(nodes):
        if node is None:
            continue
        states = profile(node, running, reserved, position, now_s)
        for index, (t_s, _) in enumerate(states):
            low = floor(states, index, lasts_s)
            if fits(low, pod.request, None if index else nodes):
                devices = sub_devices(seen(low, pod.request), pod.request) if pod.request.num_gpu else ()
                found = Reservation(t_s, index > 0, position, pod, devices, t_s + lasts_s)
                best = found if best is None or found[:2] < best[:2] else best
                break
    return best


def allowed(
    nodes: Sequence[Node | None], running: Sequence[Outcome], reserved: Sequence[Reservation], pod: Outcome,
    choice: Choice, now_s: float, lasts_s: float,
) -> bool:  # fmt: skip
    """Whether a pod may start now on the chosen devices without touching any reservation."""
    assert choice.position is not None
    node = nodes[choice.position]
    assert node is not None
    low = floor(profile(node, running, reserved, choice.position, now_s), 0, lasts_s)
    return fits(low, pod.request) and set(choice.devices) <= set(fitting_devices(seen(low, pod.request), pod.request))
