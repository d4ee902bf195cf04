"""Optimus's decisions: the least that works for each job, further GPUs by the largest gain.

    gain of a job = (seconds left with its GPUs - seconds left with more) / further GPUs

Every larger size counts, not only the next one, and every GPU model. Batch sizes stay as requested. Step times and
steps left are those measured for the application; the publication fits them while jobs run.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, JobView, Place
from fastsim.errors import InputError
from fastsim.performance.applications.application import Application, fixed_split
from fastsim.performance.applications.step_times import MICRO_BATCHES, Placement, packed
from fastsim.policies.deciders.configurations import MOST_GPUS, NodeShape, placed
from fastsim.policies.deciders.sia_decider import node_groups

Kind = tuple[str, int, int, int]
"""Application, batch size, fewest and most GPUs."""


@dataclass
class OptimusDecider:
    """Optimus. State: sizes by job, and speeds by kind of job."""

    setting: AdaptiveSetting
    interval_s: float
    sizes: dict[int, Size] = field(default_factory=dict)
    next_s: float = -math.inf
    """When sizes are chosen anew."""
    known: dict[Kind, Speeds] = field(default_factory=dict)
    solver_s: float = 0.0

    @cached_property
    def groups(self) -> tuple[NodeShape, ...]:
        """Nodes of each GPU model."""
        return node_groups(self.setting)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Sizes anew if it is time, else only for jobs that have none."""
        anew = view.now_s >= self.next_s
        former = {job.id: self.sizes[job.id] for job in view.jobs if job.id in self.sizes}
        chosen, free = self.started(view.jobs, {} if anew else former)
        if anew:
            self.next_s = view.now_s + self.interval_s
            here = [job for job in view.jobs if job.id in chosen]
            left = [self.work_left(job) for job in here]
            sizes = self.grown([chosen[job.id] for job in here], left, [self.speeds(job) for job in here], free)
            chosen = {job.id: size for job, size in zip(here, sizes, strict=True)}
        self.sizes = chosen
        return self.places()

    def state(self) -> dict[str, Any]:
        """Sizes, and when they are chosen anew; speeds are found again."""
        sizes = [[job, *size] for job, size in self.sizes.items()]
        return {"sizes": sizes, "next_s": self.next_s if math.isfinite(self.next_s) else None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.sizes = {job: Size(*size) for job, *size in state["sizes"]}
        self.next_s = -math.inf if state["next_s"] is None else state["next_s"]

    # ------------------------------------------------------------------ sizes

    def started(self, jobs: Sequence[JobView], kept: Mapping[int, Size]) -> tuple[dict[int, Size], list[int]]:
        """The least each job can do with, the one with the shortest time left first; and the GPUs that are left.

        A job stays on its GPU model if it can; else it goes where it is fastest.
        """
        found = dict(kept)
        free = [group.gpus for group in self.groups]
        for size in kept.values():
            free[size.group] -= size.gpus
        waiting = [job for job in jobs if job.id not in kept]
        for _, number, job in sorted((self.least_s(job), job.id, job) for job in waiting):
            fits = [size for size in self.speeds(job).least.values() if size.gpus <= free[size.group]]
            if fits:
                before = self.sizes.get(number)
                stays = [size for size in fits if before is not None and size.group == before.group]
                found[number] = (stays or fits)[0]
                free[found[number].group] -= found[number].gpus
        return found, free

    def least_s(self, job: JobView) -> float:
        """Seconds left with the least the job can do with, on the GPU model where that is fastest."""
        known = self.speeds(job)
        return min((self.work_left(job) * known.seconds(size) for size in known.least.values()), default=math.inf)

    def work_left(self, job: JobView) -> float:
        """Iterations that are left, with the requested batch size."""
        curve, batch = job.application.curve, job.job.batch_size
        if job.epoch >= curve.epochs:
            return 0.0
        return curve.iteration(batch, curve.epochs - 1) - curve.iteration_at(batch, job.epoch, job.progress)

    def grown(
        self, has: Sequence[Size], left: Sequence[float], speeds: Sequence[Speeds], free: Sequence[int]
    ) -> list[Size]:  # fmt: skip
        """The size of each job after the free GPUs were given out."""
        return grown(has, left, speeds, free)

    # ------------------------------------------------------------------ speeds

    def speeds(self, job: JobView) -> Speeds:
        """Sizes the job may have, and seconds of an iteration with each."""
        fewest = job.job.num_gpu if job.job.mode == "rigid" else 1
        most = job.job.num_gpu if job.job.mode != "adaptive" else MOST_GPUS
        key = job.job.application, job.job.batch_size, fewest, most
        if key not in self.known:
            self.known[key] = Speeds(dict(self.measured(job.application, *key[1:])))
        return self.known[key]

    def measured(self, app: Application, batch: int, fewest: int, most: int) -> Iterator[tuple[Size, float]]:
        """Sizes at which the application was measured, and seconds of an iteration."""
        for group, nodes in enumerate(self.groups):
            if nodes.gpu_model not in app.steps:
                continue
            room = min(nodes.nodes, nodes.max_nodes) * nodes.gpus_per_node
            for gpus in range(fewest, min(most, room) + 1):
                with suppress(InputError):  # never measured there
                    ring, least = packed(gpus, nodes.gpus_per_node), self.least_turns(app, gpus, batch)
                    yield Size(group, gpus), iteration_s(app, nodes.gpu_model, ring, batch, least)

    def least_turns(self, app: Application, gpus: int, batch: int) -> int:
        """Fewest turns before the one that updates: one GPU takes one to learn the noise, above the initial size."""
        return int(gpus == 1 and batch > app.init_batch)

    # ------------------------------------------------------------------ places

    def places(self) -> dict[int, Place]:
        """Nodes of each job, the largest first: a job of unchanged size mostly keeps as good a place."""
        placements: dict[int, Place] = {}
        for group, nodes in enumerate(self.setting.groups):
            here = [(job, size.gpus) for job, size in sorted(self.sizes.items()) if size.group == group]
            rings = placed([gpus for _, gpus in here], nodes.gpus__n)
            placements |= {job: Place(group, tuple(ring)) for (job, _), ring in zip(here, rings, strict=True)}
        return placements


def iteration_s(app: Application, gpu_model: str, ring: Placement, batch: int, least: int = 0) -> float:
    """Seconds of an iteration with the requested batch size; InputError where nothing was measured.

    ``least`` turns at least come before the one that updates.
    """
    times, gpus = app.on(gpu_model), sum(ring)
    if gpus % times.stages or batch < gpus * times.low:
        raise InputError(f"application {app.name}", f"{gpus} GPUs", "whole replicas, each with samples enough")
    if times.stages > 1:  # the batch of pipelines is what they hold, so it grows with them
        held = MICRO_BATCHES * (gpus // times.stages)
        return times.seconds(ring, MICRO_BATCHES).step_s * batch / held * app.slowdown
    atomic, accum = fixed_split(batch, gpus, times.largest(ring), app.max_batch, least)
    seconds = times.seconds(ring, atomic)
    return (seconds.step_s + seconds.turn_s * accum) * app.slowdown


class Size(NamedTuple):
    """GPUs of one group of nodes."""

    group: int
    gpus: int


@dataclass(frozen=True)
class Speeds:
    """Sizes that one kind of job may have, and seconds for a unit of its work with each of them."""

    unit_s: dict[Size, float]

    def seconds(self, size: Size) -> float:
        """For a unit of work with this size; for ever with one that is not listed."""
        return self.unit_s.get(size, math.inf)

    @cached_property
    def least(self) -> dict[int, Size]:
        """The smallest size on each group where there is one, the fastest first."""
        sizes: dict[int, Size] = {}
        for size in sorted(self.unit_s):
            sizes.setdefault(size.group, size)
        return dict(sorted(sizes.items(), key=lambda entry: (self.unit_s[entry[1]], entry[0])))

    def steps(self, has: Size, free: Sequence[int]) -> Iterator[tuple[float, int, int]]:
        """(seconds that each further GPU saves for a unit of work, -GPUs, -group) of each size that is faster."""
        now_s = self.seconds(has)
        for (group, gpus), unit_s in self.unit_s.items():
            more = gpus - has.gpus
            if unit_s < now_s and (more if group == has.group else gpus) <= free[group]:
                yield (now_s - unit_s) / more if more > 0 else math.inf, -gpus, -group


def grown(
    has: Sequence[Size], left: Sequence[float], speeds: Sequence[Speeds], free: Sequence[int]
) -> list[Size]:  # fmt: skip
    """The size of each job after the free GPUs of each group were given out; ``left`` is work in units of its speeds.

    Among equal gains the first job comes first. A step that is too large for what is left becomes the best smaller one.
    """
    sizes, rest = list(has), list(free)
    queue: list[tuple[float, int, Size]] = []

    def push_best_step(job: int) -> None:
        step = max(speeds[job].steps(sizes[job], rest), default=None)
        if step is not None and left[job] > 0:
            heapq.heappush(queue, (-step[0] * left[job], job, Size(-step[2], -step[1])))

    def push_all() -> None:
        queue.clear()
        for job in range(len(sizes)):
            push_best_step(job)

    push_all()
    while queue:
        _, job, wanted = heapq.heappop(queue)
        before = sizes[job]
        more = wanted.gpus - before.gpus if wanted.group == before.group else wanted.gpus
        if more > rest[wanted.group]:
            push_best_step(job)
            continue
        rest[wanted.group] -= more
        sizes[job] = wanted
        if wanted.group == before.group:
            push_best_step(job)
        else:  # GPUs have come free, for which there may be others
            rest[before.group] += before.gpus
            push_all()
    return sizes
