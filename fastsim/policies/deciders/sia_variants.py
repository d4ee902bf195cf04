"""Sia that tells no GPU models apart: the program of one kind of GPUs on Pollux's virtual nodes, and back to real ones.

Jobs believe of all models what they saw on one, and use what Pollux lets them; restarts count as in Pollux. A job whose
GPUs are of two models keeps those of one. The published simulator has such a policy, with a price for every choice made
or given up, that no published table shows and nobody at hand ever ran. From a reading of it are the virtual nodes, the
program and that price; that a job whose size stays also stays where it is, if it lost nothing there, is of our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveView, JobView, Place
from fastsim.policies.deciders.configurations import Configurations, NodeGroup, placed
from fastsim.policies.deciders.goodput_table import KnownGoodput, goodput_row, grown_replicas
from fastsim.policies.deciders.pollux_decider import believed, first_times, keeping, limits_of
from fastsim.policies.deciders.pollux_virtual_nodes import Counts, VirtualNodes
from fastsim.policies.deciders.sia_decider import STAYING, SiaDecider
from fastsim.policies.deciders.sia_program import (
    DECIMALS,
    NONE,
    Floats,
    Ints,
    SiaInstance,
    Singles,
    best_choices,
    values,
)

RESTART_S, MOVE_S = 30.0, 45.0
"""What the program reckons with for a restart on the same GPU model and on another one, seconds."""
NEVER = 10.0
"""What a choice that nobody can make is worth, on the bad side of everything."""


@dataclass
class TypeBlindSiaDecider(SiaDecider):
    """What it remembers: what it chose, and the virtual nodes of those that had all of it on one model."""

    changed: float = 0.0
    """Price of each choice made or given up."""
    given: dict[int, Counts] = field(default_factory=dict)
    """GPUs of each virtual node, by job."""

    @cached_property
    def nodes(self) -> VirtualNodes:
        """The cluster as it sees it."""
        return VirtualNodes(self.setting)

    @cached_property
    def configurations(self) -> Configurations:
        """Sizes that jobs may have, on nodes of one kind."""
        group = NodeGroup("any", len(self.nodes), self.nodes.gpus)
        return Configurations((group,), self.nodes.most_replicas)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places of this round: jobs of fixed size come first."""
        rigid = [job for job in view.jobs if job.job.mode == "rigid"]
        loose = [job for job in view.jobs if job.job.mode != "rigid"]
        wishes = [self._drawn(wish) for wish in (self.fixed_wishes(rigid), self.loose_wishes(loose))]
        room, minimise = self.configurations.gpus__g, self.power < 0
        found = best_choices(wishes, room, self.unserved, self.solver, minimise, 2 * STAYING, self.changed)
        self.decided += 1
        chosen = [
            *zip(rigid, found.chosen[0].tolist(), strict=True),
            *zip(loose, found.chosen[1].tolist(), strict=True),
        ]
        self.chosen = {job.id: choice for job, choice in chosen if choice != NONE}
        return self._placed_on([job for job, choice in chosen if choice != NONE])

    def kept(self) -> dict[str, Any]:
        """What Sia keeps, and who was given what."""
        return {**super().kept(), "given": [[job, row.tolist()] for job, row in self.given.items()]}

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Take it back."""
        super().restored(kept)
        self.given = {job: np.array(row, np.int8) for job, row in kept["given"]}

    # ------------------------------------------------------------------ wishes

    def loose_wishes(self, jobs: Sequence[JobView]) -> SiaInstance:
        """Values of every configuration to jobs that may change their GPUs."""
        sizes = self.configurations
        rows = [goodput_row([self._known(job)], {}, sizes) for job in jobs]
        return self._worth(jobs, np.array(rows, np.float32).reshape(-1, len(sizes)), sizes.gpus__q)

    def fixed_wishes(self, jobs: Sequence[JobView]) -> SiaInstance:
        """Values of what jobs of fixed size ask for."""
        gpus: Ints = np.array([[self._gpus_of(job)] for job in jobs], np.int64).reshape(-1, 1)
        return self._worth(jobs, gpus.astype(np.float32), gpus)

    def _worth(self, jobs: Sequence[JobView], row__jq: Singles, gpus: Ints) -> SiaInstance:
        former, forced = self._former(jobs)
        value = values(row__jq, keeping(jobs), former, self.power)
        had = np.flatnonzero(former != NONE)
        value[had, former[had]] += np.float32(-STAYING if self.power < 0 else STAYING)
        return SiaInstance(value, np.zeros(row__jq.shape[1], np.int64), gpus, former, forced)

    def _known(self, job: JobView) -> KnownGoodput:
        """What a job knows of its goodput on any GPU."""
        limits, belief = limits_of(job, self.tuned)._replace(float32=True), next(iter(job.beliefs.values()), None)
        most = job.job.num_gpu
        if job.job.mode == "adaptive":
            low = first_times(job).low
            most = grown_replicas(belief.most_replicas if belief else 0, job.application.max_batch, low)
        return KnownGoodput(believed(job), limits, min(most, self.nodes.most_replicas))

    def _gpus_of(self, job: JobView) -> int:
        """GPUs of a job of fixed size."""
        return min(job.job.num_gpu, self.nodes.most_replicas)

    # ------------------------------------------------------------------ places

    def _placed_on(self, jobs: Sequence[JobView]) -> dict[int, Place]:
        """Real nodes of the jobs that run: who has as many GPUs as before stays, others go where there is room."""
        sizes = {job.id: self._size(job) for job in jobs}
        stay = {
            job: self.given[job] for job, gpus in sizes.items() if job in self.given and self.given[job].sum() == gpus
        }
        free = np.full(len(self.nodes), self.nodes.gpus) - np.sum([*stay.values()], axis=0, dtype=np.int64)
        others = [job.id for job in jobs if job.id not in stay]
        rings = placed([sizes[job] for job in others], free.tolist())
        count = len(self.nodes)
        fresh = {
            job: np.bincount(ring, minlength=count).astype(np.int8) for job, ring in zip(others, rings, strict=True)
        }
        given = {job.id: stay[job.id] if job.id in stay else fresh[job.id] for job in jobs}
        rows = [self.nodes.one_model(given[job.id], job.application.steps) for job in jobs]
        rows = self.nodes.whole(rows, [sizes[job.id] if job.job.mode == "rigid" else 0 for job in jobs])
        found = {job.id: self.nodes.place(row) for job, row in zip(jobs, rows, strict=True) if row.any()}
        # Who lost GPUs of a second model tries elsewhere next time.
        self.given = {job: given[job] for job, at in found.items() if len(at.nodes) == sizes[job]}
        return found

    def _size(self, job: JobView) -> int:
        """GPUs of what was chosen for a job."""
        if job.job.mode == "rigid":
            return self._gpus_of(job)
        return int(self.configurations.gpus__q[self.chosen[job.id]])


@dataclass
class RigidSiaDecider(SiaDecider):
    """What it remembers: what it chose, on which model each job was last, and how often that changed."""

    changed: float = 0.0
    """Price of each choice made or given up."""
    home: dict[int, int] = field(default_factory=dict)
    moves: dict[int, int] = field(default_factory=dict)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places of this round."""
        self._follow(view.jobs)
        wish = self._drawn(self.asked_wishes(view.jobs))
        room, minimise = self.configurations.gpus__g, self.power < 0
        found = best_choices([wish], room, self.unserved, self.solver, minimise, 2 * STAYING, self.changed)
        self.decided += 1
        chosen = found.chosen[0].tolist()
        self.chosen = {job.id: choice for job, choice in zip(view.jobs, chosen, strict=True) if choice != NONE}
        sizes = {job.id: self.gpus_of(job) for job in view.jobs}
        return self.placed([(job, group, sizes[job]) for job, group in self.chosen.items()])

    def kept(self) -> dict[str, Any]:
        """What Sia keeps, and where jobs have been."""
        return {**super().kept(), "home": list(self.home.items()), "moves": list(self.moves.items())}

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Take it back."""
        super().restored(kept)
        self.home, self.moves = dict(kept["home"]), dict(kept["moves"])

    @cached_property
    def most_gpus(self) -> int:
        """No job has more: as many as the scarcest model has."""
        return VirtualNodes(self.setting).most_replicas

    def gpus_of(self, job: JobView) -> int:
        """GPUs of a job that runs."""
        return min(job.job.num_gpu, self.most_gpus)

    def asked_wishes(self, jobs: Sequence[JobView]) -> SiaInstance:
        """Values of each GPU model (axis 1) to each job."""
        groups = len(self.setting.groups)
        former = np.array([self.chosen.get(job.id, NONE) for job in jobs], np.int64)
        gpus: Ints = np.array([self.gpus_of(job) for job in jobs], np.int64)[:, None].repeat(groups, axis=1)
        rows = [self.offers.asked_row(job, self.gpus_of(job)) for job in jobs]
        row = np.array(rows, np.float32).reshape(-1, groups)
        value = self._values(row, self.keeping(jobs))
        had = np.flatnonzero(former != NONE)
        value[had, former[had]] += np.float32(-STAYING if self.power < 0 else STAYING)
        return SiaInstance(value, np.arange(groups), gpus, former, np.zeros(len(jobs), np.bool_))

    def keeping(self, jobs: Sequence[JobView]) -> Floats:
        """Part of each job's life that it keeps on each GPU model; all of it for a job without GPUs."""
        found = np.ones((len(jobs), len(self.setting.groups)))
        for part, job in zip(found, jobs, strict=True):
            if job.place is not None:
                moves = self.moves.get(job.id, 0)
                left_s = max(job.age_s - RESTART_S * (job.restarts - moves) - MOVE_S * moves, 0.0)
                part[:] = left_s / (job.age_s + MOVE_S)
                part[job.place.group] = 1.0
        return found

    def _values(self, row__jg: Singles, keeping__jg: Floats) -> Singles:
        worth = row__jg * keeping__jg.astype(np.float32)
        able = worth > 0
        raised = np.power(worth, np.float32(self.power), out=np.zeros_like(worth), where=able)
        never = np.float32(NEVER + abs(self.unserved) + 2 * self.changed)  # worse than to wait, whatever that costs
        return np.where(able, np.round(raised, DECIMALS), never if self.power < 0 else -never)

    def _follow(self, jobs: Sequence[JobView]) -> None:
        """Count who has moved to another model since the last round."""
        for job in jobs:
            if job.place is not None:
                group = job.place.group
                if self.home.get(job.id, group) != group:
                    self.moves[job.id] = self.moves.get(job.id, 0) + 1
                self.home[job.id] = group
