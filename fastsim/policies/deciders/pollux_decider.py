"""Pollux's decisions in a round: speedups, the genetic search from the last best states, places on nodes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, JobView, Offer, Place
from fastsim.errors import InputError
from fastsim.foundation import interrupts
from fastsim.performance.applications.step_times import StepTimes
from fastsim.performance.goodput import BatchLimits, Goodput
from fastsim.policies.deciders.goodput_table import grown_replicas
from fastsim.policies.deciders.pollux_virtual_nodes import Counts, VirtualNodes
from fastsim_ext.adaptive.genetic_search import GeneticSearch

SINGLE_GPU = ("ncf",)
"""Applications that never get more than one GPU, as in the published simulator."""
Floats = npt.NDArray[np.float64]
RESTART_S = 30.0
"""Assumed time of a restart, seconds."""
SEED_BITS = 32
"""Bits of the seed of a search; a longer one is folded."""
CACHED_GOODPUTS = 1 << 12
"""Goodputs kept in a cache; most jobs need the same ones in several rounds."""


@dataclass
class PolluxDecider:
    """Pollux. State between rounds: GPUs of each job, and the best states of the last search."""

    setting: AdaptiveSetting
    power: float
    generations: int
    tuned: bool
    """Whether jobs of mode adaptive choose GPUs and batch sizes; else all have their requests."""
    apart: bool = True
    """Whether no two jobs on several nodes share a node."""
    search: GeneticSearch = field(init=False)
    nodes: VirtualNodes = field(init=False)
    held: dict[int, Counts] = field(default_factory=dict)
    """GPUs of each virtual node, by job."""
    population: tuple[tuple[int, ...], Counts] = ((), np.zeros((0, 0, 0), np.int8))
    """Jobs of the last search, and the states of its first front."""
    solver_s: float = 0.0

    def __post_init__(self) -> None:
        seed = self.setting.seed
        self.search = GeneticSearch((seed ^ seed >> SEED_BITS) & (1 << SEED_BITS) - 1)
        self.nodes = VirtualNodes(self.setting)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places of this round; jobs that have received least service come first."""
        jobs = sorted(view.jobs, key=lambda job: (job.service_s, job.job.submit_s))
        state = self._best(jobs)
        rows = [
            self.nodes.one_model(row, job.application.steps, preferred=not self._fixed(job))
            for row, job in zip(state, jobs, strict=True)
        ]
        rows = self.nodes.whole(rows, [self._most(job) if self._fixed(job) else 0 for job in jobs])
        self.held = {job.id: row for job, row in zip(jobs, rows, strict=True) if row.any()}
        return {job: self.nodes.place(row) for job, row in self.held.items()}

    def offers(self, view: AdaptiveView) -> list[Offer]:
        """Speedups of each job with every number of GPUs, on one node and on several.

        Their values are less by a restart where the number is another than the job has.
        """
        jobs, most = view.jobs, [self._most(job) for job in view.jobs]
        fair = fair_share(self.setting.gpus, len(self.nodes), len(jobs))
        speedup__jsr = speedups(jobs, fair, max(most), self.tuned) if jobs else np.zeros((0, 2, 1))
        found = []
        for job, speedup__sr, part, largest in zip(jobs, speedup__jsr, keeping(jobs), most, strict=True):
            has = int(self.held[job.id].sum()) if job.id in self.held else 0
            for gpus in range(largest if self._fixed(job) else 1, largest + 1):
                least = -(-gpus // self.nodes.gpus)
                for nodes in sorted({least, max(least, min(2, gpus))}):
                    speedup = float(speedup__sr[int(nodes > 1), gpus])
                    value = speedup if gpus == has else speedup * float(part)
                    found.append(Offer(job=job.id, group=-1, nodes=nodes, gpus=gpus, goodput=speedup, value=value))
        return found

    def state(self) -> dict[str, Any]:
        """GPUs of each job, the last states, and the state of the random stream."""
        return {
            "held": [[job, row.tolist()] for job, row in self.held.items()],
            "population": [self.population[0], self.population[1].tolist()], "stream": self.search.stream_state(),
            "solver_s": self.solver_s,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.held = {job: np.array(row, np.int8) for job, row in state["held"]}
        ids, states = state["population"]
        self.population = tuple(ids), np.array(states, np.int8).reshape(len(states), len(ids), len(self.nodes))
        for rows in (*self.held.values(), self.population[1]):
            if rows.shape[-1:] != (len(self.nodes),) or (rows < 0).any() or (rows > self.nodes.gpus).any():
                raise ValueError("other GPUs of jobs than nodes have")
        self.search.restore_stream(*state["stream"])
        self.solver_s = state["solver_s"]

    def _best(self, jobs: Sequence[JobView]) -> Counts:
        """The state of the largest mean speedup on the first front."""
        most = np.array([self._most(job) for job in jobs], np.int32)
        least = np.array([most if self._fixed(job) else 0 for job, most in zip(jobs, most, strict=True)], np.int32)
        gpus = self.setting.gpus
        fair = fair_share(gpus, len(self.nodes), len(jobs))
        ids = tuple(job.id for job in jobs)
        base = np.array([self.held.get(job, np.zeros(len(self.nodes), np.int8)) for job in ids], np.int8)
        start_s = time.thread_time()
        states, mean, _ = self.search.front(
            self._initial_states(ids, base), base, speedups(jobs, fair, int(most.max()), self.tuned), keeping(jobs),
            np.full(len(jobs), 1.0 / gpus), most, least, self.nodes.gpus, self.power, self.generations,
            self.apart, interrupts.check,
        )  # fmt: skip
        self.solver_s += time.thread_time() - start_s
        self.population = ids, states
        best: Counts = states[int(np.argmax(mean))]
        return best

    def _initial_states(self, ids: tuple[int, ...], base: Counts) -> Counts:
        """The states that the search begins with: the best ones of the last search, or the current one.

        Rows go to the jobs that are still active in the order of both searches. That order changes, so a job may begin
        with the row of another one, as in the published program.
        """
        before, states = self.population
        if not before:
            return base[None]
        initial = np.zeros((len(states), *base.shape), np.int8)
        taken = [row for row, job in enumerate(before) if job in ids]
        initial[:, [row for row, job in enumerate(ids) if job in before]] = states[:, taken]
        return initial

    def _most(self, job: JobView) -> int:
        """Most GPUs a job may have."""
        most = self.nodes.most_replicas
        if self._fixed(job):
            return min(job.job.num_gpu, most)
        if job.application.name in SINGLE_GPU:
            return 1
        estimate = next(iter(job.estimates.values()), None)
        low = first_times(job).low
        return min(grown_replicas(estimate.most_replicas if estimate else 0, job.application.max_batch, low), most)

    def _fixed(self, job: JobView) -> bool:
        """Whether a job has its requested GPUs or none."""
        return not self.tuned or job.job.mode == "rigid"


def fair_share(gpus: int, nodes: int, jobs: int) -> tuple[int, int]:
    """Nodes and replicas with which a job's speedup is 1: an equal part of the GPUs, as if they were on few nodes."""
    share = 1.0 / gpus
    return math.ceil(nodes * share), math.ceil(1.0 / share / jobs)


def speedups(jobs: Sequence[JobView], fair: tuple[int, int], most: int, tuned: bool) -> Floats:
    """Speedup of each job with up to ``most`` replicas on one node and on several (axes: job, several, replicas)."""
    speedup__jsr = np.empty((len(jobs), 2, most + 1))
    replicas = np.arange(1, most + 1)
    for row, job in zip(speedup__jsr, jobs, strict=True):
        goodput, limits = learned_goodput(job), limits_of(job, tuned)
        base = 0.0 if goodput is None else fair_goodput(goodput, fair, limits)
        row[:, 0], row[:, 1:] = 0.0, replicas / fair[1]
        if goodput is not None and base > 0:
            row[:, 1:] = _goodputs(goodput, limits, most) / base
    return speedup__jsr


@lru_cache(maxsize=CACHED_GOODPUTS)
def _goodputs(goodput: Goodput, limits: BatchLimits, most: int) -> Floats:
    """Goodput with up to ``most`` replicas (second axis) on one node and on several: the same until an epoch ends."""
    return goodput.best(np.array([[1], [2]]), np.arange(1, most + 1), limits).goodput.reshape(2, most)


@lru_cache(maxsize=CACHED_GOODPUTS)
def fair_goodput(goodput: Goodput, fair: tuple[int, int], limits: BatchLimits) -> float:
    """Goodput with a fair share, or with as much of it as a fixed batch size can use; 0 if it can use nothing."""
    goodputs = goodput.best(fair[0], fair[1], limits).goodput
    if not goodputs[0]:
        goodputs = goodput.best(fair[0], np.arange(fair[1], 0, -1), limits).goodput
    usable = goodputs[goodputs > 0]
    return float(usable[0]) if len(usable) else 0.0


def learned_goodput(job: JobView) -> Goodput | None:
    """A job's goodput on any GPU, all of which are equal to Pollux; None before it has trained."""
    estimate = next(iter(job.estimates.values()), None)
    return None if estimate is None or job.noise is None else Goodput(estimate.perf, job.noise)


def limits_of(job: JobView, tuned: bool) -> BatchLimits:
    """Batch sizes that the search takes for possible: those of the first GPU model a job was ever measured on.

    If no job chooses its batch size, the published search still values GPUs as if smaller ones than requested could be.
    """
    times = first_times(job)
    if tuned and job.job.mode == "adaptive":
        return BatchLimits(job.application.max_batch, times.low, times.high)
    return BatchLimits(job.job.batch_size, times.low, times.high, tuned=not tuned)


def first_times(job: JobView) -> StepTimes:
    """Step times on the first GPU model, by name."""
    app = job.application
    times = app.steps[min(app.steps)]
    if times.stages > 1:
        expected = "an application that trains on one GPU: Pollux knows no pipelines"
        raise InputError(f"application {app.name}", f"pipelines of {times.stages} GPUs", expected)
    return times


def keeping(jobs: Sequence[JobView]) -> Floats:
    """Part of each job's time in the system that remains for its work after another restart."""
    age = np.array([job.age_s for job in jobs])
    restarts = np.array([job.restarts for job in jobs])
    part: Floats = np.maximum(age - restarts * RESTART_S, 0.0) / (age + RESTART_S)
    return part
