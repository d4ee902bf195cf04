"""Pollux's genetic operators and its fitness as whole-array formulas: what `fastsim_ext.adaptive.genetic_operators` and
`fitness` do."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
RARE = 0.1
LEAST = 1e-3


def crossed(random: np.random.RandomState, first__mjn: States, second__mjn: States) -> tuple[States, States]:
    """Couples after an exchange of the rows above a drawn cut."""
    matings, jobs, _ = first__mjn.shape
    swap = (np.arange(jobs) < random.randint(jobs, size=(matings, 1)))[:, :, None]
    return np.where(swap, second__mjn, first__mjn), np.where(swap, first__mjn, second__mjn)


def mutated(random: np.random.RandomState, state__pjn: States, base__jn: States, node_gpus: int) -> States:
    """States after rows were reset, thinned out, and free GPUs given away."""
    rows = (*state__pjn.shape[:2], 1)
    state = np.where(random.random_sample(rows) < RARE, base__jn, state__pjn)
    thinned = random.random_sample(rows) < RARE
    state = np.where(thinned & (random.random_sample(state.shape) < RARE), 0, state)
    free = np.broadcast_to(state.sum(axis=1, keepdims=True) < node_gpus, state.shape)
    there = free & (state > 0)
    any_job = free / np.maximum(free.sum(axis=1, keepdims=True), 1)
    known = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    chosen = random.random_sample(state.shape) < any_job + known - any_job * known
    grown = random.randint(state, np.full(state.shape, node_gpus + 1))
    return np.where(chosen, grown, state).astype(np.int8)


def repaired(
    random: np.random.RandomState, state__pjn: States, most__j: Counts, least__j: Counts, node_gpus: int,
    apart: bool = True,
) -> States:  # fmt: skip
    """States in which nobody has, and no node gives, more than there is."""
    spread = (state__pjn > 0).sum(axis=2, keepdims=True) > 1
    state = np.where(((state__pjn > 0) & spread & apart).cumsum(axis=1) > 1, 0, state__pjn)
    order = np.argsort(random.random_sample(state.shape), axis=2)
    state = _capped(np.take_along_axis(state, order, axis=2), most__j[:, None], 2)
    state = _capped(np.take_along_axis(state, np.argsort(order, axis=2), axis=2), node_gpus, 1)
    return np.where(state.sum(axis=2, keepdims=True) < least__j[:, None], 0, state).astype(np.int8)


def _capped(state: npt.NDArray[np.int64], most: Counts | int, axis: int) -> npt.NDArray[np.int64]:
    before = state.cumsum(axis=axis) - state
    found: npt.NDArray[np.int64] = np.minimum(state, np.maximum(most - before, 0))
    return found


def fitness(
    state__jn: States, base__jn: States, speedup__jsk: Floats, keeping__j: Floats, share__j: Floats,
    node_gpus: int, power: float,
) -> tuple[float, float]:  # fmt: skip
    """Mean speedup and utility of one state."""
    jobs, nodes = state__jn.shape
    busy, terms, worths = int((state__jn > 0).any(axis=0).sum()), [], []
    for j, row in enumerate(state__jn):
        gpus, several = int(row.sum()), int((row > 0).sum() > 1)
        speedup = float(speedup__jsk[j, several, gpus])
        scaled = speedup * float(share__j[j]) * nodes
        if (row != base__jn[j]).any():
            scaled *= float(keeping__j[j])
        terms.append(math.log(max(scaled, LEAST)) if power == 0 else _powered(scaled + LEAST, power))
        worths.append(speedup / gpus * (gpus / (busy * node_gpus)) if gpus else 0.0)
    total = float(np.sum(terms)) / jobs
    return math.exp(total) if power == 0 else _powered(total, 1 / power), float(np.sum(worths))


def _powered(value: float, power: float) -> float:
    """As numpy does it: a power of -1 is a division."""
    return 1 / value if power == -1 else math.pow(value, power)
