"""Estimated step times of a job, fitted to its measured ones.

Loss and slopes stand in `fastsim_ext.adaptive.step_time_fit`. What was never measured cannot be fitted and is pinned:
without a second GPU, networks cost nothing; without a second node, they are a tenth slower between nodes than inside
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from operator import add
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError
from fastsim.performance.goodput import Perf
from fastsim_ext.adaptive.step_time_fit import Observations

Floats = npt.NDArray[np.float64]

START = Perf(alpha_c=0.1, beta_c=0.01, alpha_n=0.1, beta_n=0.01, alpha_r=0.1, beta_r=0.01, gamma=1.001)
"""Start of the search."""
FREE = 1e-8
"""Fixed value of a time without measurements, seconds; also the lower bound of all times."""
LARGEST_GAMMA = 10.0
"""Full overlap of arithmetic and network, in effect."""
SLOWER_BETWEEN_NODES = 1.1
"""Guess at the network between nodes where only the one inside a node was measured."""
FLAT = 1e-5
"""The search ends where no slope is steeper."""
STOP = 1e-5
"""The search ends when the loss falls by less than this part of it, or of 1.

That is long before the bottom. Fits of Sia's published simulator end there, and predictions depend on it.
"""
LATE_STOP = 1e7 * float(np.finfo(np.float64).eps)
"""The stop of the fits of Pollux's published simulator, which are what SciPy's L-BFGS-B finds by default."""
REMEMBERED = 1 << 16
"""Fits that are kept; jobs of one kind measure the same things in the same order."""


class Observation(NamedTuple):
    """One measured configuration: nodes, GPUs, samples a GPU takes at once, seconds of a turn and of a whole step."""

    nodes: int
    replicas: int
    atomic: int
    turn_s: float
    step_s: float


def fitted(observed: Iterable[Observation], stop: float = STOP) -> Perf:
    """The parameters that fit these observations; the same ones in the same order are fitted once."""
    return _fitted(tuple(observed), stop)


def loss(observed: Iterable[Observation], perf: Perf) -> float:
    """How far these parameters are from the observations; no unit, 0 = exact."""
    return float(_kernel(tuple(observed)).loss(np.array(perf), np.empty(len(perf))))


@lru_cache(maxsize=REMEMBERED)
def _fitted(observed: tuple[Observation, ...], stop: float) -> Perf:
    _check(observed)
    low, high = np.full(len(START), FREE), np.full(len(START), np.inf)
    low[-1], high[-1] = 1.0, LARGEST_GAMMA
    ended = np.array(START)
    for index, value in _pinned(observed).items():
        ended[index] = low[index] = high[index] = value
    _kernel(observed).fitted(low, high, FLAT, stop, ended)
    perf = Perf(*ended.tolist())  # wherever it ended: a search that gave up has come closer too
    if max(at.nodes for at in observed) == 1:
        perf = perf._replace(
            alpha_n=max(perf.alpha_n, SLOWER_BETWEEN_NODES * perf.alpha_r),
            beta_n=max(perf.beta_n, SLOWER_BETWEEN_NODES * perf.beta_r),
        )
    return perf


def _pinned(observed: tuple[Observation, ...]) -> dict[int, float]:
    """Fixed values of the parameters that no observation determines, by position."""
    alpha_c, _, alpha_n, beta_n, alpha_r, beta_r, _ = range(len(START))
    pinned = {}
    if len({at.atomic for at in observed}) == 1:
        pinned[alpha_c] = reduce(add, (at.turn_s for at in observed)) / len(observed) / 2
    if all(at.nodes == 1 for at in observed):
        pinned |= {alpha_n: FREE, beta_n: FREE}
    if not any(at.nodes == 1 and at.replicas > 1 for at in observed):
        pinned |= {alpha_r: FREE, beta_r: FREE}
    if all(at.replicas <= 2 for at in observed):
        pinned |= {beta_n: FREE, beta_r: FREE}
    return pinned


def _kernel(observed: tuple[Observation, ...]) -> Observations:
    sizes = [np.array(column, np.int64) for column in zip(*(at[:3] for at in observed), strict=True)]
    turn_s, step_s = (np.array(column, np.float64) for column in zip(*(at[3:] for at in observed), strict=True))
    return Observations(sizes[0], sizes[1], sizes[2], turn_s, step_s)


def _check(observed: tuple[Observation, ...]) -> None:
    if not observed:
        raise InputError("step times", "no observation", "one or more")
    for row, at in enumerate(observed, 1):
        if not (at.nodes >= 1 and at.replicas >= at.nodes and at.atomic >= 1):
            raise InputError(f"step times: observation {row}", at[:3], "nodes, as many GPUs or more, and samples")
        if not (0 < at.turn_s < np.inf and 0 < at.step_s < np.inf):
            raise InputError(f"step times: observation {row}", f"{at.turn_s} and {at.step_s} s", "seconds above 0")
