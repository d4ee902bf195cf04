"""Variants of Sia: one for which all GPU models are equal, and one for jobs of fixed size.

The first solves the program for one kind of GPUs on Pollux's virtual nodes. Measurements on one model count for all;
limits and restarts are Pollux's. A job whose GPUs are of two models keeps those of one.

In the second each job has its requested GPUs, all of one model, or none; batch sizes stay, too.

    row[g]     = goodput of the job's GPUs on model g, the worst known one 1; the number of GPUs if unknown
    keeping[g] = max(age - 30 restarts - 45 moves, 0) / (age + 45); 1 on its current model, and while it waits
    value      = round((row x keeping)^power, 2)

Both have a term for every choice made or given up; a move is a restart on another model. The published simulator has
both as policies, which no published table shows; these are written after a reading of it. It always maximises the
second, here a power below 0 minimises, as in Sia. It leaves open whether a job pays for what it has; here that is
free, or running jobs would lose their GPUs to waiting ones in every round. That jobs of unchanged size keep their
nodes, if they lost none, is an addition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveView, JobView, Offer, Place
from fastsim.policies.deciders.configurations import Configurations, NodeShape, placed
from fastsim.policies.deciders.goodput_table import LEAST, KnownGoodput, goodput_row, grown_replicas
from fastsim.policies.deciders.pollux_decider import first_times, keeping, learned_goodput, limits_of
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
    charged,
    powers,
    values,
)

RESTART_S, MOVE_S = 30.0, 45.0
"""Assumed time of a restart on the same GPU model and on another one, seconds."""
NEVER = 10.0
"""Magnitude of the value of an impossible choice, worse than every other."""


@dataclass
class TypeBlindSiaDecider(SiaDecider):
    """Sia for which GPU models are equal. State: choices, and the virtual nodes of jobs with GPUs of one model."""

    changed: float = 0.0
    """Term of each choice made or given up, of the sign of ``unserved``."""
    held: dict[int, Counts] = field(default_factory=dict)
    """GPUs of each virtual node, by job."""

    @cached_property
    def nodes(self) -> VirtualNodes:
        """The cluster as virtual nodes of one size."""
        return VirtualNodes(self.setting)

    @cached_property
    def configurations(self) -> Configurations:
        """Sizes that jobs may have, on nodes of one kind."""
        group = NodeShape("any", len(self.nodes), self.nodes.gpus)
        return Configurations((group,), self.nodes.most_replicas)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places of this round: jobs of fixed size come first."""
        rigid = [job for job in view.jobs if job.job.mode == "rigid"]
        loose = [job for job in view.jobs if job.job.mode != "rigid"]
        instances = [self._drawn(instance) for instance in (self.fixed_instance(rigid), self.loose_instance(loose))]
        room, minimise = self.configurations.gpus__g, self.power < 0
        best = best_choices(
            instances=instances,
            gpus__g=room,
            without=self.unserved,
            solver=self.solver,
            minimise=minimise,
            staying=2 * STAYING,
            changed=self.changed,
        )
        self.decided += 1
        chosen = [
            *zip(rigid, best.chosen[0].tolist(), strict=True),
            *zip(loose, best.chosen[1].tolist(), strict=True),
        ]
        self.chosen = {job.id: choice for job, choice in chosen if choice != NONE}
        return self._placed_on([job for job, choice in chosen if choice != NONE])

    def offers(self, view: AdaptiveView) -> list[Offer]:
        """The configurations of known goodput on nodes of one kind, by job."""
        rigid = [job for job in view.jobs if job.job.mode == "rigid"]
        loose = [job for job in view.jobs if job.job.mode != "rigid"]
        sizes = self.configurations
        fixed = charged(self.fixed_instance(rigid), self.changed)
        free = charged(self.loose_instance(loose), self.changed)
        rows = [goodput_row([self._known(job)], {}, sizes) for job in loose]
        goodput = np.array(rows, np.float64).reshape(-1, len(sizes))
        found = self.offered(rigid, fixed, np.asarray(fixed.gpus__jq, np.float64), [self.nodes.gpus])
        found += self.offered(loose, free, np.where(goodput > LEAST, goodput, 0.0), [self.nodes.gpus] * len(sizes))
        return sorted((offer._replace(group=-1) for offer in found), key=lambda offer: offer.job)

    def state(self) -> dict[str, Any]:
        """State of Sia, and the virtual nodes of jobs."""
        return {**super().state(), "given": [[job, row.tolist()] for job, row in self.held.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        self.held = {job: np.array(row, np.int8) for job, row in state["given"]}

    # ------------------------------------------------------------------ program

    def loose_instance(self, jobs: Sequence[JobView]) -> SiaInstance:
        """Values of every configuration to jobs that may change their GPUs."""
        sizes = self.configurations
        rows = [goodput_row([self._known(job)], {}, sizes) for job in jobs]
        return self._worth(jobs, np.array(rows, np.float32).reshape(-1, len(sizes)), sizes.gpus__q)

    def fixed_instance(self, jobs: Sequence[JobView]) -> SiaInstance:
        """Values of the requests of jobs of fixed size."""
        gpus: Ints = np.array([[self._gpus_of(job)] for job in jobs], np.int64).reshape(-1, 1)
        return self._worth(jobs, gpus.astype(np.float32), gpus)

    def _worth(self, jobs: Sequence[JobView], row__jq: Singles, gpus: Ints) -> SiaInstance:
        former, forced = self._former(jobs)
        value = values(row__jq, keeping(jobs), former, self.power)
        had = np.flatnonzero(former != NONE)
        value[had, former[had]] += np.float32(-STAYING if self.power < 0 else STAYING)
        return SiaInstance(value, np.zeros(row__jq.shape[1], np.int64), gpus, former, forced)

    def _known(self, job: JobView) -> KnownGoodput:
        """Knowledge of a job about its goodput on any GPU."""
        limits, estimate = limits_of(job, self.tuned)._replace(float32=True), next(iter(job.estimates.values()), None)
        most = job.job.num_gpu
        if job.job.mode == "adaptive":
            low = first_times(job).low
            most = grown_replicas(estimate.most_replicas if estimate else 0, job.application.max_batch, low)
        return KnownGoodput(learned_goodput(job), limits, min(most, self.nodes.most_replicas))

    def _gpus_of(self, job: JobView) -> int:
        """GPUs of a job of fixed size."""
        return min(job.job.num_gpu, self.nodes.most_replicas)

    # ------------------------------------------------------------------ places

    def _placed_on(self, jobs: Sequence[JobView]) -> dict[int, Place]:
        """Real nodes of the jobs that run: a job of unchanged size keeps its nodes, others take free ones."""
        sizes = {job.id: self._size(job) for job in jobs}
        stay = {job: self.held[job] for job, gpus in sizes.items() if job in self.held and self.held[job].sum() == gpus}
        free = np.full(len(self.nodes), self.nodes.gpus) - np.sum([*stay.values()], axis=0, dtype=np.int64)
        others = [job.id for job in jobs if job.id not in stay]
        rings = placed([sizes[job] for job in others], free.tolist())
        count = len(self.nodes)
        fresh = {
            job: np.bincount(ring, minlength=count).astype(np.int8) for job, ring in zip(others, rings, strict=True)
        }
        nodes = {job.id: stay[job.id] if job.id in stay else fresh[job.id] for job in jobs}
        rows = [self.nodes.one_model(nodes[job.id], job.application.steps) for job in jobs]
        rows = self.nodes.whole(rows, [sizes[job.id] if job.job.mode == "rigid" else 0 for job in jobs])
        places = {job.id: self.nodes.place(row) for job, row in zip(jobs, rows, strict=True) if row.any()}
        # A job that lost GPUs of a second model is placed anew next time.
        self.held = {job: nodes[job] for job, at in places.items() if len(at.nodes) == sizes[job]}
        return places

    def _size(self, job: JobView) -> int:
        """GPUs of a job in its configuration."""
        if job.job.mode == "rigid":
            return self._gpus_of(job)
        return int(self.configurations.gpus__q[self.chosen[job.id]])


@dataclass
class RigidSiaDecider(SiaDecider):
    """Sia for jobs of fixed size. State: choices, the last GPU model of each job, and how often it changed."""

    changed: float = 0.0
    """Term of each choice made or given up, of the sign of ``unserved``."""
    home: dict[int, int] = field(default_factory=dict)
    moves: dict[int, int] = field(default_factory=dict)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places of this round."""
        self._follow(view.jobs)
        instance = self._drawn(self.request_instance(view.jobs))
        room, minimise = self.configurations.gpus__g, self.power < 0
        best = best_choices(
            instances=[instance],
            gpus__g=room,
            without=self.unserved,
            solver=self.solver,
            minimise=minimise,
            staying=2 * STAYING,
            changed=self.changed,
        )
        self.decided += 1
        chosen = best.chosen[0].tolist()
        self.chosen = {job.id: choice for job, choice in zip(view.jobs, chosen, strict=True) if choice != NONE}
        sizes = {job.id: self.gpus_of(job) for job in view.jobs}
        return self.placed([(job, group, sizes[job]) for job, group in self.chosen.items()])

    def offers(self, view: AdaptiveView) -> list[Offer]:
        """The request of each job on each GPU model that can host it."""
        self._follow(view.jobs)  # as the decision does; a second time changes nothing
        rows = [self.goodputs.requested_row(job, self.gpus_of(job)) for job in view.jobs]
        goodput = np.array(rows, np.float64).reshape(-1, len(self.setting.groups))
        nodes = [group.gpus_per_node for group in self.configurations.groups]
        return self.offered(view.jobs, charged(self.request_instance(view.jobs), self.changed), goodput, nodes)

    def state(self) -> dict[str, Any]:
        """State of Sia, and the last GPU model and moves of each job."""
        return {**super().state(), "home": list(self.home.items()), "moves": list(self.moves.items())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        self.home, self.moves = dict(state["home"]), dict(state["moves"])

    @cached_property
    def most_gpus(self) -> int:
        """No job has more: as many as the scarcest model has."""
        return VirtualNodes(self.setting).most_replicas

    def gpus_of(self, job: JobView) -> int:
        """GPUs of a job that runs."""
        return min(job.job.num_gpu, self.most_gpus)

    def request_instance(self, jobs: Sequence[JobView]) -> SiaInstance:
        """Values of each GPU model (axis 1) to each job."""
        groups = len(self.setting.groups)
        former = np.array([self.chosen.get(job.id, NONE) for job in jobs], np.int64)
        gpus: Ints = np.array([self.gpus_of(job) for job in jobs], np.int64)[:, None].repeat(groups, axis=1)
        rows = [self.goodputs.requested_row(job, self.gpus_of(job)) for job in jobs]
        row = np.array(rows, np.float32).reshape(-1, groups)
        value = self._values(row, self.keeping(jobs))
        had = np.flatnonzero(former != NONE)
        value[had, former[had]] += np.float32(-STAYING if self.power < 0 else STAYING)
        return SiaInstance(value, np.arange(groups), gpus, former, np.zeros(len(jobs), np.bool_))

    def keeping(self, jobs: Sequence[JobView]) -> Floats:
        """Part of each job's life that it keeps on each GPU model; all of it for a job without GPUs."""
        keeping__jg = np.ones((len(jobs), len(self.setting.groups)))
        for part, job in zip(keeping__jg, jobs, strict=True):
            if job.place is not None:
                moves = self.moves.get(job.id, 0)
                left_s = max(job.age_s - RESTART_S * (job.restarts - moves) - MOVE_S * moves, 0.0)
                part[:] = left_s / (job.age_s + MOVE_S)
                part[job.place.group] = 1.0
        return keeping__jg

    def _values(self, row__jg: Singles, keeping__jg: Floats) -> Singles:
        worth = row__jg * keeping__jg.astype(np.float32)
        able = worth > 0
        raised = np.where(able, powers(np.where(able, worth, np.float32(1.0)), self.power), np.float32(0.0))
        never = np.float32(NEVER + abs(self.unserved) + 2 * self.changed)  # worse than waiting at any price
        return np.where(able, np.round(raised, DECIMALS), never if self.power < 0 else -never)

    def _follow(self, jobs: Sequence[JobView]) -> None:
        """Count jobs that moved to another model since the last round."""
        for job in jobs:
            if job.place is not None:
                group = job.place.group
                if self.home.get(job.id, group) != group:
                    self.moves[job.id] = self.moves.get(job.id, 0) + 1
                self.home[job.id] = group
