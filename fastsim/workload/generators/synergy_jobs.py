"""Jobs as Synergy's simulator makes them: the same seed means the same jobs, to the last bit.

One stream of CPython's generator serves all. A job takes from it, in this order: one number for the time since the job
before (Poisson arrivals only), then without a log two for its duration and one for its GPUs, then the words of a choice
among ten things that nothing depends on. With a log of jobs, durations are drawn for all of it at once, two numbers
each, where the log is read; the published runs have read it before and begin after seeding (``pickled``).

What a job runs is not drawn: the task furthest below its share of the split is next, and its workloads take turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count as counting
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.performance.sensitivity import Sensitivity
from fastsim.workload import schema as s
from fastsim.workload.generators.arrivals_and_durations import refuse_rate
from fastsim.workload.generators.gavel_jobs import PIECE, gavel_seconds
from fastsim.workload.generators.python_random import Twister, chain, floats_at, numbers_at

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ARRIVALS = ("poisson", "static", "log")
"""Whole seconds between two jobs, a thousandth of a second between two, or as in the log."""
DURATIONS = ("gavel", "short", "log")
"""As in Gavel's experiments, up to about eight hours, or as in the log."""
STATIC_GAP_S = 0.001
"""Between two static arrivals."""
MIXED_GPUS, MIXED_EDGES = (1, 2, 4, 8), (0.7, 0.8, 0.95)
"""GPUs of jobs without a log, and where the numbers drawn for them part."""
UNUSED = 10
"""Limit of the random number that ends a job's draws; the number has no use."""


def short_seconds(branch: Floats, place: Floats) -> Floats:
    """Four in five jobs last 10**1.5 to 10**2.5 minutes, the others up to 10**2.7."""
    exponent = np.where(branch >= 0.8, 2.5 + (2.7 - 2.5) * place, 1.5 + place)
    # Python's own power: numpy's may differ from the C library in the last bit.
    return np.array([60 * 10.0**x for x in exponent.tolist()], np.float64)


@dataclass(frozen=True, eq=False)
class JobLog:
    """Jobs of a recorded cluster, by arrival: GPUs, and if known arrival and duration in seconds."""

    num_gpu: Ints
    submit_s: Floats | None = None
    duration_s: Floats | None = None
    name: str = "log"
    tells_gpus: bool = True

    def __len__(self) -> int:
        return len(self.num_gpu)


@dataclass(frozen=True, eq=False)
class SynergyRecipe:
    """Everything that fixes the jobs; see `synth_synergy` for the meaning of the options."""

    sensitivity: Sensitivity
    seed: int = 42
    rate_per_hour: float = 9.0
    split: tuple[float, ...] = (20, 70, 10)
    arrivals: str = "poisson"
    durations: str = "gavel"
    log: JobLog | None = None
    multi_gpu: bool = False
    pickled: bool = False

    def __post_init__(self) -> None:
        tasks, log = self.sensitivity.tasks, self.log
        if len(self.split) != len(tasks) or not all(math.isfinite(p) and p >= 0 for p in self.split):
            raise ScenarioError("synth.split", self.split, f"per cent of jobs for each of {', '.join(tasks)}")
        for name, value, known in (("arrivals", self.arrivals, ARRIVALS), ("durations", self.durations, DURATIONS)):
            if value not in known:
                raise ScenarioError(f"synth.{name}", repr(value), f"one of {', '.join(known)}")
        refuse_rate(self.rate_per_hour, 1)
        if log is None:
            if self.arrivals != "poisson" or self.durations == "log" or self.multi_gpu or self.pickled:
                found = f"arrivals={self.arrivals}, durations={self.durations}, multi_gpu={self.multi_gpu}"
                raise ScenarioError("synth.log", f"none, with {found}, pickled={self.pickled}", "a log of jobs")
        else:
            self._check_log(log)

    def _check_log(self, log: JobLog) -> None:
        if not len(log):
            raise ScenarioError("synth.log", "no jobs", "one job or more")
        if self.multi_gpu and not log.tells_gpus:
            raise ScenarioError("synth.multi_gpu", "a log that is only a number of jobs", "a log that tells GPUs")
        for name, column in (("arrivals", log.submit_s), ("durations", log.duration_s)):
            if getattr(self, name) == "log" and (column is None or np.isnan(column).any()):
                raise ScenarioError(f"synth.{name}", "a log without them", "a log in which every job has its own")

    @cached_property
    def turns(self) -> tuple[tuple[int, ...], ...]:
        """Positions of each task's workloads."""
        profiles = self.sensitivity.profiles
        return tuple(
            tuple(i for i, profile in enumerate(profiles) if profile.task == task) for task in self.sensitivity.tasks
        )

    @cached_property
    def drawn_s(self) -> Floats:
        """Durations drawn for the jobs of the log; none if the log's own are taken, or without a log."""
        if self.log is None or self.durations == "log":
            return np.zeros(0)
        return self.seconds(*Twister(self.seed).floats(2 * len(self.log)).reshape(-1, 2).T)

    def seconds(self, branch: Floats, place: Floats) -> Floats:
        """Durations from two uniform numbers of each job."""
        return (short_seconds if self.durations == "short" else gavel_seconds)(branch, place)

    @property
    def words_before(self) -> int:
        """Words that are taken before the first job."""
        return 0 if self.pickled else 4 * len(self.drawn_s)

    @property
    def end(self) -> int | None:
        """How many jobs there can be; None = endless."""
        return len(self.log) if self.log is not None and self.arrivals == "log" else None


def workload_turns(recipe: SynergyRecipe) -> Iterator[int]:
    """Position of each job's workload, for ever."""
    shares = [percent / 100 for percent in recipe.split]
    tasks = range(len(shares))
    jobs, place = [0] * len(shares), [0] * len(shares)
    for drawn in counting():
        lack = [shares[t] - jobs[t] / drawn if drawn else 0.0 for t in tasks]
        task = max(tasks, key=lack.__getitem__)
        yield recipe.turns[task][place[task] % len(recipe.turns[task])]
        jobs[task] += 1
        place[task] += 1


class SynergyStream:
    """A stream of jobs in order of arrival; it can be kept as JSON and restored at the same job."""

    def __init__(self, recipe: SynergyRecipe, kept: Mapping[str, Any] | None = None) -> None:
        self.recipe = recipe
        self.jobs, words, self._submit_s = (0, recipe.words_before, 0.0) if kept is None else _standing(kept)
        self._words = Twister(recipe.seed, words)
        self._turns = islice(workload_turns(recipe), self.jobs, None)

    def kept(self) -> dict[str, Any]:
        """State of the stream for the constructor: jobs made, words they took, the last arrival in seconds."""
        return {"jobs": self.jobs, "words": self._words.used, "submit_s": self._submit_s}

    def batches(self, jobs: int | None = None, rows: int = PIECE) -> Iterator[pa.RecordBatch]:
        """The next `jobs` jobs in batches of `rows`; all there are if `jobs` is None."""
        while jobs is None or jobs > 0:
            batch = self.take(rows if jobs is None else min(rows, jobs))
            if not batch.num_rows:
                return
            yield batch
            jobs = None if jobs is None else jobs - batch.num_rows

    def take(self, count: int) -> pa.RecordBatch:
        """The next `count` jobs as rows of a workload; fewer where the log ends."""
        recipe, first = self.recipe, self.jobs
        if recipe.end is not None:
            count = max(0, min(count, recipe.end - first))
        uniform, at = self._numbers(count)
        submit_s = self._arrivals(uniform, at)
        duration_s, num_gpu = self._sizes(uniform, at)
        workload = np.fromiter(islice(self._turns, count), np.int64, count)
        profiles = recipe.sensitivity.profiles
        iteration_s = np.array([profile.iteration_s for profile in profiles])[workload]
        self.jobs += count
        columns: dict[str, Any] = {
            s.POD_ID: np.arange(first, first + count),
            s.SUBMIT_S: submit_s,
            s.CPU_MILLI: np.zeros(count, np.int64),
            s.MEMORY_MIB: np.zeros(count, np.int64),
            s.NUM_GPU: num_gpu.astype(np.int16),
            s.GPU_MILLI: np.full(count, 1000, np.int16),
            s.DURATION_S: duration_s,
            s.WORKLOAD: pa.DictionaryArray.from_arrays(
                pa.array(workload.astype(np.int32)), pa.array(recipe.sensitivity.workloads, pa.string())
            ),
            s.TOTAL_WORK: np.floor(duration_s / iteration_s),
        }
        schema = s.pod_schema(columns)
        return pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in schema], schema=schema)

    def _numbers(self, count: int) -> tuple[Floats, Ints]:
        """Result of `random()` at each of the next words, and the word at which each job begins."""
        recipe = self.recipe
        head = 2 * (recipe.arrivals == "poisson") + 6 * (recipe.log is None)
        guess = 64 + count * (head + 3)
        while True:
            words = self._words.ahead(guess)
            hit = np.where(numbers_at(words, UNUSED) < UNUSED, np.arange(guess), guess)
            ends = np.minimum.accumulate(hit[::-1])[::-1][head:]
            at = chain(ends + 1, count)
            if len(at) == count and (not count or ends[at[-1]] < guess):
                uniform = floats_at(words)
                self._words.take(int(ends[at[-1]]) + 1 if count else 0)
                return uniform, at
            guess *= 2

    def _arrivals(self, uniform: Floats, at: Ints) -> Floats:
        recipe, log = self.recipe, self.recipe.log
        numbers = np.arange(self.jobs, self.jobs + len(at))
        if recipe.arrivals == "log":
            assert log is not None and log.submit_s is not None
            return log.submit_s[numbers]
        if recipe.arrivals == "static":
            return np.array([round(number * STATIC_GAP_S, 3) for number in numbers.tolist()], np.float64)
        gaps = [math.ceil(-math.log(1 - u) / recipe.rate_per_hour * 3600) for u in uniform[at].tolist()]
        times = self._submit_s + np.cumsum(np.array(gaps, np.float64))
        self._submit_s = float(times[-1]) if len(times) else self._submit_s
        return times

    def _sizes(self, uniform: Floats, at: Ints) -> tuple[Floats, Ints]:
        """Durations in seconds at the fair share, and GPUs."""
        recipe, log = self.recipe, self.recipe.log
        if log is None:
            mixed = np.array(MIXED_GPUS)[np.searchsorted(MIXED_EDGES, uniform[at + 6], "right")]
            return recipe.seconds(uniform[at + 2], uniform[at + 4]), mixed
        entry = np.arange(self.jobs, self.jobs + len(at)) % len(log)
        known = log.duration_s if recipe.durations == "log" else recipe.drawn_s
        assert known is not None
        return known[entry], log.num_gpu[entry] if recipe.multi_gpu else np.ones(len(at), np.int64)


def _standing(kept: Mapping[str, Any]) -> tuple[int, int, float]:
    try:
        return int(kept["jobs"]), int(kept["words"]), float(kept["submit_s"])
    except (KeyError, TypeError, ValueError):
        raise InputError("job stream", f"{kept!r}"[:80], "what kept() gave: jobs, words, submit_s") from None


def split_of(given: Sequence[float] | str) -> tuple[float, ...]:
    """Per cent for each task from numbers or a text such as `20:70:10`."""
    try:
        return tuple(float(part) for part in (given.split(":") if isinstance(given, str) else given))
    except (TypeError, ValueError):
        raise ScenarioError("synth.split", repr(given), "numbers, such as 20:70:10") from None
