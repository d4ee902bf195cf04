"""How good each configuration would be for a job, as far as the job knows: measured, projected, or one GPU to begin.

A job knows the goodput of GPU models on which it has run. On another one it guesses: that of a model it knows, times
how much faster one GPU was seen to be. A row is normalised, so that the worst configuration has the number of GPUs of
one replica, 1 unless jobs are made of pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastsim.performance.goodput import Goodput, Limits
from fastsim.policies.deciders.configurations import Configurations, NodeGroup
from fastsim.policies.deciders.sia_values import Flags, Ints, Singles

LEAST = 1e-4
"""Goodput of what a job cannot have, or knows nothing of; nothing good enough is ever worth less."""
MOST_REPLICAS = 64
"""No job has more replicas than this."""


@dataclass(frozen=True)
class KnownGoodput:
    """What a job knows of one GPU model: its goodput (None if it never ran there), batch limits, and its size there.

    ``stages`` is the number of GPUs of one replica, ``max_replicas`` the most replicas the job may have.
    """

    goodput: Goodput | None
    limits: Limits
    max_replicas: int
    stages: int = 1


def grown_replicas(profiled: int, max_batch: int, low: int) -> int:
    """Most replicas a job may have: twice as many as it was seen on, and as many as its largest batch keeps busy."""
    return max(min(max(2 * profiled, 1), MOST_REPLICAS, max_batch // low), 1)


def goodput_row(
    known: Sequence[KnownGoodput], ratio: Mapping[tuple[int, int], float], configurations: Configurations
) -> Singles:
    """Normalised goodput of every configuration; ``known`` and ``ratio`` count the groups of the configurations.

    ``ratio[c, d]`` is how many times faster one GPU of group ``c`` is than one of ``d``; without it a job that only
    knows ``d`` takes ``c`` for as good as unknown.
    """
    row = np.full(len(configurations), LEAST, np.float32)
    seeded = []
    teacher = next((d for d, at in enumerate(known) if at.goodput is not None), None)
    for c, (at, span) in enumerate(zip(known, configurations.spans, strict=True)):
        allowed = _allowed(at, configurations.gpus__q[span])
        from_group = c if at.goodput is not None else teacher
        if from_group is None or not allowed.any() or (from_group != c and (c, from_group) not in ratio):
            continue
        gpus, nodes = configurations.gpus__q[span][allowed], configurations.nodes__q[span][allowed]
        if from_group == c:
            found = _goodput(at, nodes, gpus // at.stages)
        else:
            learned = known[from_group]
            per_node = configurations.groups[from_group].gpus_per_node
            nodes = -(-gpus * learned.stages // per_node)
            found = _goodput(learned, nodes, gpus) * ratio[c, from_group]
        row[np.arange(span.start, span.stop)[allowed]] = found
        seeded.append(c)
    return _normalised(row, known, seeded, configurations)


def asked_row(
    known: Sequence[KnownGoodput], ratio: Mapping[tuple[int, int], float], groups: Sequence[NodeGroup], gpus: int
) -> Singles:
    """Normalised goodput of just so many GPUs of each group, the worst of them 1; 0 where a job cannot have them.

    What a job knows nothing of counts as many as the GPUs, as does everything if it knows of no goodput at all.
    """
    row, seeded = np.zeros(len(groups), np.float32), np.zeros(len(groups), np.bool_)
    teacher = next((d for d, at in enumerate(known) if at.goodput is not None), None)
    for c, (at, group) in enumerate(zip(known, groups, strict=True)):
        if gpus > min(group.nodes, group.max_nodes) * group.gpus_per_node or gpus % at.stages:
            continue
        row[c] = gpus
        learned, factor = (c, 1.0) if at.goodput is not None else (teacher, ratio.get((c, teacher or 0), math.nan))
        if learned is not None and not math.isnan(factor):
            replicas = gpus // known[learned].stages
            nodes = -(-gpus // groups[learned].gpus_per_node)
            row[c], seeded[c] = _goodput(known[learned], np.array([nodes]), np.array([replicas]))[0] * factor, True
    some = row[seeded & (row > 0)]
    if len(some):
        row[seeded] /= some.min()
    else:
        row[seeded] = gpus
    return row


def _allowed(at: KnownGoodput, gpus__q: Ints) -> Flags:
    """Configurations a job may have on one GPU model."""
    found: Flags = (gpus__q <= at.max_replicas * at.stages) & (gpus__q % at.stages == 0)
    return found


def _goodput(at: KnownGoodput, nodes: Ints, replicas: Ints) -> npt.NDArray[np.float64]:
    assert at.goodput is not None
    if at.stages > 1:
        return at.goodput.staged(nodes, replicas, at.limits.max_batch, at.stages)
    return at.goodput.best(nodes, replicas, at.limits).goodput


def _normalised(
    row: Singles, known: Sequence[KnownGoodput], seeded: list[int], configurations: Configurations
) -> Singles:
    least, unit = math.inf, 1
    for c in seeded:
        part = row[configurations.spans[c]]
        part = part[part > np.float32(LEAST)]
        if len(part) and float(part.min()) <= least:
            least, unit = float(part.min()), known[c].stages
    scaled = row * np.float32(1.0 / least if math.isfinite(least) else 1.0) * np.float32(unit)
    for c, span in enumerate(configurations.spans):
        if c not in seeded:
            one = np.flatnonzero(configurations.gpus__q[span] == known[c].stages)
            scaled[span.start + one] = known[c].stages
    found: Singles = np.maximum(scaled, np.float32(LEAST))
    return found
