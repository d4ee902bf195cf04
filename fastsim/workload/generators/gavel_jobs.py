"""Jobs as Gavel's simulator draws them: the same seed means the same jobs, to the last bit, however they are drawn.

Seed S drives three streams of CPython's generator: the jobs (S + 2), the gaps between arrivals (S + 3) and the SLO
factors (S + 6). A job takes from its stream, in this order: one number for its GPUs, two for its duration unless that
is fixed, as many words as it takes to find a workload that runs on so many GPUs, and one for its weight if weights are
drawn. So the words where a job begins are found by following a chain; all else is arithmetic on arrays.

The revision of September 2019 took a workload, one number for the duration, one for the GPUs, and one for the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.performance.oracle import Oracle
from fastsim.workload import schema as s
from fastsim.workload.generators.python_random import Given, Mix, Twister, chain, floats_at, numbers_at

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Durations = Callable[[Floats, Floats], Floats]
"""Seconds on the reference GPU from two uniform numbers of each job."""

GPU_MIX: Given = {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}
"""Shares of jobs by their number of GPUs."""
WEIGHT_MIX: Given = {5.0: 0.2, 1.0: 0.8}
"""Shares of jobs by their weight."""
EARLY_GPU_MIX: Given = {1: 0.8, 2: 0.05, 4: 0.1, 8: 0.05}
"""Those of September 2019."""
SLO_MIX: Given = {1.2: 0.33, 2.0: 0.34, 10.0: 0.33}
"""Shares of jobs by their SLO, a multiple of the duration."""
PIECE = 65_536
"""Most jobs drawn at once."""


def gavel_seconds(branch: Floats, place: Floats) -> Floats:
    """Durations of the published experiments: four in five last 10**1.5 to 10**3 minutes, the others up to 10**4."""
    exponent = np.where(branch >= 0.8, 3.0 + place, 1.5 + 1.5 * place)
    # Python's own power: numpy's may differ from the C library in the last bit.
    return np.array([60 * 10.0**x for x in exponent.tolist()], np.float64)


def early_seconds(place: Floats) -> Floats:
    """Durations of September 2019: 10**2 to 10**4 minutes."""
    return np.array([60 * 10.0 ** (2.0 + 2.0 * x) for x in place.tolist()], np.float64)


class Choices:
    """The workloads jobs are drawn from and their rates on the reference GPU, by number of GPUs."""

    def __init__(self, oracle: Oracle, counts: Sequence[int], names: Sequence[str] = (), reference: str = "") -> None:
        known = {workload for workload, _ in oracle.kinds}
        ours = JOB_NAMES if known >= set(JOB_NAMES) else tuple(sorted(known))
        self.names = tuple(names) or ours
        self.reference = reference or oracle.fastest_first[0]
        alone = oracle.restricted([self.reference]).alone__kg[:, 0]
        index = oracle.kind_index
        rates = [[alone[index[name, n]] if (name, n) in index else 0.0 for n in counts] for name in self.names]
        self.rate__tc = np.nan_to_num(np.array(rates, np.float64))
        self.runs__tc = self.rate__tc > 0
        # Most numbers of GPUs are possible for the same workloads, so the search for one is shared.
        masks, place = np.unique(self.runs__tc.T, axis=0, return_inverse=True)
        self.masks, self.mask_of = list(masks), place.reshape(-1)
        for column, count in enumerate(counts):
            if not self.runs__tc[:, column].any():
                found = f"no workload that runs on {count} GPUs of model {self.reference}"
                raise ScenarioError(f"jobs of {oracle.name}", found, "rates of one at least")

    @property
    def limit(self) -> int:
        """How many workloads a draw chooses among."""
        return len(self.names)


@dataclass(frozen=True)
class JobRecipe:
    """Everything that fixes the jobs; see `synth_gavel` for the meaning of the options."""

    oracle: Oracle
    seed: int = 0
    mean_gap_s: float = 0.0
    multi_gpu: bool = False
    priorities: bool = False
    slos: bool = False
    durations: float | Durations = gavel_seconds
    gpu_mix: Given = field(default_factory=lambda: GPU_MIX)
    weight_mix: Given = field(default_factory=lambda: WEIGHT_MIX)
    slo_mix: Given = field(default_factory=lambda: SLO_MIX)
    workloads: tuple[str, ...] = ()
    reference: str = ""
    present_gpus: tuple[int, ...] = ()
    """GPUs of each model, models sorted by name, that jobs of the very first instant shall fill; empty = none."""
    early: bool = False
    """Jobs are drawn as in September 2019; every workload has to run on every number of GPUs."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean_gap_s) and self.mean_gap_s >= 0):
            raise ScenarioError("jobs.mean_gap_s", self.mean_gap_s, "seconds, 0 or more")
        if not callable(self.durations) and not (math.isfinite(self.durations) and self.durations > 0):
            raise ScenarioError("jobs.durations", self.durations, "seconds above 0, or a function")
        if any(value != int(value) or value < 1 for value in self.gpus.values):
            raise ScenarioError("jobs.gpu_mix", self.gpus.values, "whole numbers of GPUs, 1 or more")

    @cached_property
    def gpus(self) -> Mix:
        """Numbers of GPUs and their shares."""
        return Mix.of(self.gpu_mix, "jobs.gpu_mix")

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Numbers of GPUs a job may have, in the order of the mix."""
        return tuple(int(value) for value in self.gpus.values) if self.multi_gpu else (1,)

    @cached_property
    def choices(self) -> Choices:
        """Choices from which jobs are drawn."""
        return Choices(self.oracle, self.counts, self.workloads, self.reference)

    @cached_property
    def weights(self) -> Mix:
        """Weights and their shares."""
        return Mix.of(self.weight_mix, "jobs.weight_mix")

    @cached_property
    def factors(self) -> Mix:
        """SLO factors and their shares."""
        return Mix.of(self.slo_mix, "jobs.slo_mix")

    @cached_property
    def present(self) -> int:
        """How many jobs are there at 0 s before any arrives: enough to fill each model's GPUs, one model at a time."""
        if not sum(self.present_gpus):
            return 0
        needs = iter(JobDraws(self, Twister(self.seed + 2)).take(sum(self.present_gpus)).num_gpu.tolist())
        count = 0
        for free in self.present_gpus:
            while free > 0:
                free -= next(needs)
                count += 1
        return count

    @property
    def columns(self) -> list[str]:
        """Names of the columns of every batch."""
        names = [*s.REQUIRED, s.DURATION_S, s.WORKLOAD, s.TOTAL_WORK]
        return names + [s.WEIGHT] * self.priorities + [s.SLO] * self.slos


class Drawn(NamedTuple):
    """Some jobs: position of the workload, GPUs, seconds on the reference GPU, steps, weight."""

    workload: Ints
    num_gpu: Ints
    duration_s: Floats
    steps: Floats
    weight: Floats


class JobDraws:
    """Jobs from one stream of words, without arrivals."""

    def __init__(self, recipe: JobRecipe, words: Twister) -> None:
        self.recipe, self.words = recipe, words
        self._lasting = callable(recipe.durations)

    def take(self, count: int) -> Drawn:
        """The next `count` jobs."""
        # GPUs, duration, about two attempts at a workload, weight; too few is noticed.
        guess = 64 + count * (4 + 4 * self._lasting + 2 * self.recipe.priorities)
        parsed = self._parsed_early if self.recipe.early else self._parsed
        while True:
            words = self.words.ahead(guess)
            jobs = parsed(words, count)
            if jobs is not None:
                return jobs
            guess *= 2

    def _parsed_early(self, words: Any, count: int) -> Drawn | None:
        """The jobs of September 2019 if there are words enough for all of them."""
        recipe, choices = self.recipe, self.recipe.choices
        uniform, number, size = floats_at(words), numbers_at(words, choices.limit), len(words)
        tail = 1 + 2 * (self._lasting + recipe.multi_gpu + recipe.priorities)
        chosen = _next_true(number < choices.limit, size)
        at = chain(chosen + tail, count)
        if len(at) < count or (count and chosen[at[-1]] + tail > size):
            return None
        self.words.take(int(chosen[at[-1]]) + tail if count else 0)
        picked = chosen[at]
        workload, gpus = number[picked], picked + 1 + 2 * self._lasting
        column = recipe.gpus.picks(uniform[gpus]) if recipe.multi_gpu else np.zeros(count, np.int64)
        duration = early_seconds(uniform[picked + 1]) if self._lasting else self._seconds(uniform, at)
        weights = recipe.weights.at(uniform[gpus + 2 * recipe.multi_gpu]) if recipe.priorities else np.ones(count)
        steps = duration * choices.rate__tc[workload, column]
        return Drawn(workload, np.array(recipe.counts)[column], duration, steps, weights)

    def _parsed(self, words: Any, count: int) -> Drawn | None:
        """The jobs if there are words enough for all of them."""
        recipe, choices = self.recipe, self.recipe.choices
        uniform, number = floats_at(words), numbers_at(words, choices.limit)
        size, head, tail = len(words), 2 + 4 * self._lasting, 1 + 2 * recipe.priorities
        starts = size - head
        column = recipe.gpus.picks(uniform[:starts]) if recipe.multi_gpu else np.zeros(starts, np.int64)
        # End of the search for a workload that begins at each word; outside if it does not end here.
        ends = [_next_true(_hits(number, runs), size)[head:] for runs in choices.masks]
        chosen = ends[0] if len(ends) == 1 else np.choose(choices.mask_of[column], ends)
        at = chain(chosen + tail, count)
        if len(at) < count or (count and chosen[at[-1]] + tail > size):
            return None
        self.words.take(int(chosen[at[-1]]) + tail if count else 0)
        picked, column = chosen[at], column[at]
        workload = number[picked]
        duration = self._seconds(uniform, at)
        weight = recipe.weights.at(uniform[picked + 1]) if recipe.priorities else np.ones(count)
        steps = duration * choices.rate__tc[workload, column]
        return Drawn(workload, np.array(recipe.counts)[column], duration, steps, weight)

    def _seconds(self, uniform: Floats, at: Ints) -> Floats:
        lasting = self.recipe.durations
        if not callable(lasting):
            return np.full(len(at), float(lasting))
        seconds = np.asarray(lasting(uniform[at + 2], uniform[at + 4]), np.float64)
        if seconds.shape != at.shape or not (np.isfinite(seconds) & (seconds > 0)).all():
            raise ScenarioError("jobs.durations", f"{seconds!r}"[:80], "seconds above 0, one for each job")
        return seconds


def _hits(number: Ints, runs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether the number drawn at each word is a workload that runs."""
    padded = np.zeros(1 << (len(runs)).bit_length(), bool)
    padded[: len(runs)] = runs
    return padded[number]


def _next_true(hits: npt.NDArray[np.bool_], outside: int) -> Ints:
    """The first place from each place on where `hits` is true."""
    places = np.where(hits, np.arange(len(hits)), outside)
    following: Ints = np.minimum.accumulate(places[::-1])[::-1]
    return following


class JobStream:
    """An endless stream of jobs in order of arrival; it can be kept as JSON and restored at the same job."""

    def __init__(self, recipe: JobRecipe, kept: Mapping[str, Any] | None = None) -> None:
        self.recipe = recipe
        self.jobs, words, self._submit_s = (0, 0, 0.0) if kept is None else _standing(kept)
        seed, gaps = recipe.seed, max(0, self.jobs - recipe.present - 1)
        self._draws = JobDraws(recipe, Twister(seed + 2, words))
        self._gaps = Twister(seed + 3, 2 * gaps if recipe.mean_gap_s else 0)
        self._factors = Twister(seed + 6, 2 * self.jobs if recipe.slos else 0)

    def kept(self) -> dict[str, Any]:
        """State of the stream for the constructor: jobs drawn, words they took, the last arrival in seconds."""
        return {"jobs": self.jobs, "words": self._draws.words.used, "submit_s": self._submit_s}

    def take(self, count: int) -> pa.RecordBatch:
        """The next `count` jobs as rows of a workload."""
        drawn = self._draws.take(count)
        recipe, first = self.recipe, self.jobs
        codes = pa.array(drawn.workload.astype(np.int32))
        columns: dict[str, Any] = {
            s.POD_ID: np.arange(first, first + count),
            s.SUBMIT_S: self._arrivals(count),
            s.CPU_MILLI: np.zeros(count, np.int64),
            s.MEMORY_MIB: np.zeros(count, np.int64),
            s.NUM_GPU: drawn.num_gpu.astype(np.int16),
            s.GPU_MILLI: np.full(count, 1000, np.int16),
            s.DURATION_S: drawn.duration_s,
            s.WORKLOAD: pa.DictionaryArray.from_arrays(codes, pa.array(recipe.choices.names, pa.string())),
            s.TOTAL_WORK: drawn.steps,
        }
        if recipe.priorities:
            columns[s.WEIGHT] = drawn.weight
        if recipe.slos:
            columns[s.SLO] = recipe.factors.at(self._factors.floats(count))
        self.jobs += count
        schema = s.pod_schema(recipe.columns)
        return pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in schema], schema=schema)

    def batches(self, jobs: int | None = None, rows: int = PIECE) -> Iterator[pa.RecordBatch]:
        """The next `jobs` jobs in batches of `rows`; without end if `jobs` is None."""
        while jobs is None or jobs > 0:
            count = rows if jobs is None else min(rows, jobs)
            yield self.take(count)
            jobs = None if jobs is None else jobs - count

    def _arrivals(self, count: int) -> Floats:
        """Jobs that are present come at 0 s, the first that arrives does, too, and the others a gap after another."""
        recipe = self.recipe
        times = np.zeros(count)
        gaps = max(0, self.jobs + count - max(self.jobs, recipe.present + 1))
        if gaps and recipe.mean_gap_s:
            rate = 1 / recipe.mean_gap_s
            uniform = (1.0 - self._gaps.floats(gaps)).tolist()
            steps = [self._submit_s, *(-math.log(u) / rate for u in uniform)]
            times[count - gaps :] = np.add.accumulate(np.array(steps))[1:]
            self._submit_s = float(times[-1])
        return times


def _standing(kept: Mapping[str, Any]) -> tuple[int, int, float]:
    try:
        jobs, words, submit_s = int(kept["jobs"]), int(kept["words"]), float(kept["submit_s"])
    except (KeyError, TypeError, ValueError):
        raise InputError("job stream", f"{kept!r}"[:80], "what kept() gave: jobs, words, submit_s") from None
    return jobs, words, submit_s
