"""Sia for jobs of fixed size: each has the GPUs its user asked for, all of one model, or none; batch sizes stay, too.

    row[g]     = goodput of the job's GPUs on model g, the worst of those it knows 1; as many as the GPUs if unknown
    keeping[g] = max(age - 30 restarts - 45 moves, 0) / (age + 45); 1 on the model it is on, and while it waits
    value      = round((row x keeping)^power, 2)

The program is Sia's with a price for every choice made or given up. A move is a restart on another model. The published
simulator has this as a policy of its own, and always maximises; here a power below 0 minimises, as it does in Sia.
Nobody at hand ever ran the original: this follows a reading of it. Whether it charges a job for what it has is not
clear from that; here it is free, as in Sia, or else running jobs would lose their GPUs to waiting ones in every round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveView, JobView, Place
from fastsim.policies.deciders.pollux_virtual_nodes import VirtualNodes
from fastsim.policies.deciders.sia_decider import STAYING, SiaDecider
from fastsim.policies.deciders.sia_program import SiaInstance, best_choices
from fastsim.policies.deciders.sia_values import DECIMALS, NONE, Floats, Ints, Singles

RESTART_S, MOVE_S = 30.0, 45.0
"""What the program reckons with for a restart on the same GPU model and on another one, seconds."""
NEVER = 10.0
"""What a choice that nobody can make is worth, on the bad side of everything."""


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
