"""Pairs of jobs drawn at random, kept while their normalised rate is high enough; states of random streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from fastsim.engine.shares.plan import Allocation, Floats, Ints, RoundView
from fastsim.policies.allocators.equal_shares import part_of_cluster, singles_and_pairs

WORTH_STAYING = 1.0
"""A pair whose normalised rates, summed over its jobs and all models, are below this is given up."""
Pair = tuple[int, int]


class DrawnPartners:
    """Equal parts for pairs and single jobs. While GPUs suffice for all jobs, none share; the last pairs are kept."""

    def __init__(self, seed: int) -> None:
        self._draws = Random(seed)
        self._pairs: list[Pair] = []

    def allocate(self, view: RoundView) -> Allocation | None:
        """The same part of the cluster for every pair and every job without a partner; None without jobs."""
        if not len(view):
            return None
        if view.num_gpu.sum() <= view.setting.gpus__g.sum():
            return Allocation.of_singles(view.job_id, part_of_cluster(view, len(view), view.num_gpu))
        pairs = self._worth_staying(view)
        pairs += self._drawn(view, pairs)
        ids = view.job_id.tolist()
        self._pairs = [(ids[one], ids[two]) for one, two in pairs]
        return _equal_parts(view, pairs)

    def state(self) -> dict[str, Any]:
        """The pairs, and the state of the draws."""
        return {"pairs": [list(pair) for pair in self._pairs], "draws": draw_state(self._draws)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._pairs = [(one, two) for one, two in state["pairs"]]
        self._draws = draws_from(state["draws"])

    def _worth_staying(self, view: RoundView) -> list[Pair]:
        """Rows of the last pairs whose jobs are both still active and whose normalised rate is high enough."""
        row = {job: row for row, job in enumerate(view.job_id.tolist())}
        pairs = [(row[one], row[two]) for one, two in self._pairs if one in row and two in row]
        if not pairs:
            return []
        worth = normalised_rate(view, *np.array(pairs, np.int64).T) >= WORTH_STAYING
        return [pair for pair, stays in zip(pairs, worth.tolist(), strict=True) if stays]

    def _drawn(self, view: RoundView, pairs: list[Pair]) -> list[Pair]:
        """New pairs: one draw of two for each job without a partner; two jobs of one size become a pair."""
        taken = {job for pair in pairs for job in pair}
        single = [row for row in range(len(view)) if row not in taken]
        num_gpu, drawn = view.num_gpu.tolist(), []
        for _ in range(len(single)):
            if len(single) < 2:
                break
            one, two = self._draws.sample(range(len(single)), 2)
            if num_gpu[single[one]] == num_gpu[single[two]]:
                drawn.append((single[one], single[two]))
                del single[max(one, two)], single[min(one, two)]
        return drawn


def normalised_rate(view: RoundView, first: Ints, second: Ints) -> Floats:
    """Rate together over rate alone, summed over both jobs of a pair and all models; 0 where one of the rates is."""
    one, two = view.pair_rates(first, second)
    alone__jg = view.rate__jg
    runs = ((one > 0) & (two > 0)).all(axis=1)
    known = runs & (alone__jg[first] > 0).all(axis=1) & (alone__jg[second] > 0).all(axis=1)
    rate = np.zeros(len(first))
    rate[known] = (one[known] / alone__jg[first[known]] + two[known] / alone__jg[second[known]]).sum(axis=1)
    return rate


def _equal_parts(view: RoundView, pairs: list[Pair]) -> Allocation:
    members = np.array(pairs, np.int64).reshape(-1, 2)
    part__jg = part_of_cluster(view, len(view) - len(pairs), view.num_gpu)
    share__jg = part__jg.copy()
    share__jg[members.ravel()] = 0.0
    return singles_and_pairs(view.job_id, share__jg, pairs, part__jg[members[:, 0]])


def draw_state(stream: Random) -> list[Any]:
    """State of a stream, as JSON values: a restored run draws the same numbers."""
    version, words, spare = stream.getstate()
    return [version, list(words), spare]


def draws_from(state: Sequence[Any]) -> Random:
    """A stream that goes on from a state."""
    version, words, spare = state
    stream = Random()
    stream.setstate((version, tuple(words), spare))
    return stream
