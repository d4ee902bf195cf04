"""Scores of preferences on the nodes that can host a pod, as kube-scheduler's formulas read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from fastsim.hardware.node_constraints import Conditions, Preference, eligible
from tests.reference.online.nodes import Node, Nodes

Labels = Mapping[str, str]
MIB = 1 << 20


def preference_points(
    kernel: str, wanted: Sequence[Preference], near: Nodes, feasible: Sequence[int], every: Sequence[Labels]
) -> list[int]:
    """Points of one score on the feasible nodes; ``near`` are all that are there, ``every`` has the labels of all."""
    scores: dict[str, Callable[[], list[int]]] = {
        "node_affinity": lambda: in_proportion(_sums(_of(wanted, "labels"), feasible, every)),
        "taint_toleration": lambda: [
            100 - part for part in in_proportion(_sums(_of(wanted, "taint"), feasible, every))
        ],
        "pod_spread": lambda: spread(_of(wanted, "spread"), near, feasible, every),
        "pod_affinity": lambda: affinity(_of(wanted, "near", "required"), near, feasible, every),
        "image_locality": lambda: images(_of(wanted, "image"), feasible, every),
    }
    return scores[kernel]()


def in_proportion(raw: Sequence[int]) -> list[int]:
    """0 to 100, the largest 100; all 0 if none is above."""
    most = max(raw)
    return [100 * points // most if most else 0 for points in raw]


def spread(wanted: list[Preference], near: Nodes, feasible: Sequence[int], every: Sequence[Labels]) -> list[int]:
    """Few pods of the sets in the domains of a node."""
    has_all = [all(one.topology in labels for one in wanted) for labels in every]
    open_ = [position for position in feasible if has_all[position]]
    if not wanted or not open_:
        return [0] * len(feasible)
    sums = dict.fromkeys(open_, 0.0)
    for one in wanted:
        host = one.topology == "name"
        counted = [has_all[n] and (host or _holds(one, labels)) for n, labels in enumerate(every)]
        size = len({every[position][one.topology] for position in open_})
        for position in open_:
            here = every[position][one.topology]
            count = sum(
                _liked(node, one.pods) for n, node in enumerate(near) if counted[n] and every[n][one.topology] == here
            )
            sums[position] += count * math.log(size + 2) + (one.max_skew - 1)
    raw = {position: math.floor(amount + 0.5) for position, amount in sums.items()}
    most, least = max(raw.values()), min(raw.values())
    points = {n: 100 if most == 0 else 100 * (most + least - amount) // most for n, amount in raw.items()}
    return [points.get(position, 0) for position in feasible]


def affinity(wanted: list[Preference], near: Nodes, feasible: Sequence[int], every: Sequence[Labels]) -> list[int]:
    """Weights of the pods in the domains of a node, spread from the worst to the best."""
    raw = []
    for position in feasible:
        raw.append(sum(
            one.weight * _liked(node, one.pods)
            for one in wanted for n, node in enumerate(near)
            if one.topology in every[position] and every[n].get(one.topology) == every[position][one.topology]
        ))  # fmt: skip
    least, most = min(raw), max(raw)
    return [int(100.0 * ((points - least) / (most - least))) if most > least else 0 for points in raw]


def images(wanted: list[Preference], feasible: Sequence[int], every: Sequence[Labels]) -> list[int]:
    """Large images that a node has, and many others, too."""
    points = []
    for position in feasible:
        total = 0
        for one in wanted:
            sizes = [int(labels[one.topology]) for labels in every if one.topology in labels]
            total += one.weight * int(sizes[0] * (len(sizes) / len(every))) if one.topology in every[position] else 0
        most = 1000 * MIB * sum(one.weight for one in wanted)
        points.append(100 * (min(max(total, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB) if wanted else 0)
    return points


def _of(wanted: Sequence[Preference], *rules: str) -> list[Preference]:
    return [one for one in wanted if one.rule in rules]


def _holds(one: Preference, labels: Labels) -> bool:
    return eligible(Conditions(constraints=one.nodes), labels)


def _sums(wanted: list[Preference], feasible: Sequence[int], every: Sequence[Labels]) -> list[int]:
    return [sum(one.weight for one in wanted if _holds(one, every[position])) for position in feasible]


def _liked(node: Node | None, pods: str) -> int:
    """Pods of a set on a node."""
    return 0 if node is None else dict(node.preference_sets).get(pods, 0)
