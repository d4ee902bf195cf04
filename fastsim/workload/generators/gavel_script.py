"""Jobs as Gavel's stand-alone trace generator draws them: short ones, from four streams of CPython's generator.

Seed S drives the workloads and weights (S), the gaps (S + 1), the durations (S + 2) and the GPUs (S + 3). Here the
workload comes first, and only a workload that runs on several GPUs draws how many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fastsim.errors import ScenarioError
from fastsim.performance.oracle import Oracle
from fastsim.workload import schema as s
from fastsim.workload.generators.gavel_jobs import WEIGHT_MIX, Choices
from fastsim.workload.generators.python_random import Twister, chain, floats_at, numbers_at
from fastsim.workload.generators.weighted_choice import Given, Mix

GPU_MIX: Given = {1: 0.7, 2: 0.1, 4: 0.2}
"""Shares of jobs by their number of GPUs."""


@dataclass(frozen=True)
class ScriptRecipe:
    """Options of the generator: durations are `lengths` equally likely hours from `min_h` to `max_h`."""

    oracle: Oracle
    seed: int = 0
    mean_gap_s: float = 0.0
    multi_gpu: bool = False
    priorities: bool = False
    min_h: float = 1.0
    max_h: float = 4.0
    lengths: int = 4

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean_gap_s) and self.mean_gap_s >= 0):
            raise ScenarioError("jobs.mean_gap_s", self.mean_gap_s, "seconds, 0 or more")
        if not (0 < self.min_h <= self.max_h < math.inf and self.lengths >= 1):
            found = f"{self.lengths} durations from {self.min_h} to {self.max_h} h"
            raise ScenarioError("jobs.lengths", found, "1 or more, from a positive number up")


def script_jobs(recipe: ScriptRecipe, count: int) -> pa.Table:
    """The first `count` jobs as rows of a workload."""
    mix, oracle, seed = Mix.of(GPU_MIX, "gpu_mix"), recipe.oracle, recipe.seed
    sizes = tuple(int(value) for value in mix.values) if recipe.multi_gpu else (1,)
    choices = Choices(oracle, sizes)
    workload, weight = _workloads(Twister(seed), choices, count, recipe.priorities)
    size = np.zeros(count, np.int64)
    if recipe.multi_gpu:
        gangs: Any = choices.runs__tc[:, 1:].all(axis=1)
        asked = gangs[workload]
        size[asked] = mix.picks(Twister(seed + 3).floats(int(asked.sum())))
    hours = np.linspace(recipe.min_h, recipe.max_h, recipe.lengths)
    duration_s = 3600 * hours[Twister(seed + 2).below(recipe.lengths, count)]
    columns: dict[str, Any] = {
        s.POD_ID: np.arange(count),
        s.SUBMIT_S: _arrivals(Twister(seed + 1), recipe.mean_gap_s, count),
        s.CPU_MILLI: np.zeros(count, np.int64),
        s.MEMORY_MIB: np.zeros(count, np.int64),
        s.NUM_GPU: np.array(sizes, np.int16)[size],
        s.GPU_MILLI: np.full(count, 1000, np.int16),
        s.DURATION_S: duration_s,
        s.WORKLOAD: np.array(choices.names, object)[workload],
        s.TOTAL_WORK: duration_s * choices.rate__tc[workload, size],
        s.WEIGHT: weight,
    }
    return pa.table(columns)


def _workloads(words: Twister, choices: Choices, count: int, priorities: bool) -> tuple[Any, Any]:
    """Positions of workloads, and weights."""
    if not priorities:
        return words.below(choices.limit, count), np.ones(count)
    guess = 64 + 6 * count
    while True:
        drawn = words.ahead(guess)
        number = numbers_at(drawn, choices.limit)
        places = np.where(number < choices.limit, np.arange(guess), guess)
        ends = np.minimum.accumulate(places[::-1])[::-1]
        at = chain(ends + 3, count)
        picked = ends[at]
        if len(at) == count and (not count or picked[-1] + 3 <= guess):
            return number[picked], Mix.of(WEIGHT_MIX, "weight_mix").at(floats_at(drawn)[picked + 1])
        guess *= 2


def _arrivals(gaps: Twister, mean_gap_s: float, count: int) -> Any:
    """The first job comes at 0 s, every other a gap after the one before."""
    if not mean_gap_s or count < 2:
        return np.zeros(count)
    rate = 1 / mean_gap_s
    steps = [0.0, *(-math.log(1.0 - u) / rate for u in gaps.floats(count - 1).tolist())]
    return np.add.accumulate(np.array(steps))
