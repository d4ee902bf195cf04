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
from fastsim.policies.deciders.configurations import Configurations, NodeGroup
from fastsim.policies.deciders.goodput_by_hand import KnownGoodput, goodput_row, grown_replicas
from fastsim.policies.deciders.node_placement import placed
from fastsim.policies.deciders.pollux_speedups import believed, first_times, keeping, limits_of
from fastsim.policies.deciders.pollux_virtual_nodes import Counts, VirtualNodes
from fastsim.policies.deciders.sia_decider import STAYING, SiaDecider
from fastsim.policies.deciders.sia_program import SiaInstance, best_choices
from fastsim.policies.deciders.sia_values import NONE, Ints, Singles, values


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
