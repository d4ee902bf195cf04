"""Jobs of fixed size take turns, so that each gets its share of time on each GPU model by a program of Gavel.

The mechanism is that of Gavel's rounds inside the published Sia simulator: time is counted from a job's first round
on and never settled, and GPUs without a share go to any job that fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveView, JobView
from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import Floats, RoundView, ShareAllocator
from fastsim.performance.oracle import Oracle
from fastsim.policies.deciders.fixed_size_decider import FixedSizeDecider, updates_left

DECIMALS = 5
"""Shares are rounded to so many."""
UNSERVED = 1e9
"""Priority of a share of 1 that has had no time at all."""


@dataclass
class RotationDecider(FixedSizeDecider):
    """Rotation. State: seconds on each group, by job and of all jobs, and the GPUs of each job."""

    allocator: ShareAllocator
    rounded: bool = True
    """Whether shares are rounded, as the original does it for some programs."""
    steady: bool = True
    """Whether the same jobs have the same shares, however far they have progressed."""
    received: dict[int, Floats] = field(default_factory=dict)
    total__g: Floats = field(init=False)
    shares: tuple[tuple[int, ...], Floats] = ((), np.zeros((0, 0)))
    """The jobs of the last program, and its allocation."""

    def __post_init__(self) -> None:
        self.total__g = np.zeros(len(self.setting.groups))

    def chosen(self, view: AdaptiveView) -> Mapping[int, int]:
        """The jobs that are most behind their share of the time, and their groups."""
        half = self.setting.round_s / 2
        for job in view.jobs:
            if job.id not in self.received:
                self.received[job.id] = np.full(len(self.setting.groups), half)
                self.total__g += half
        chosen = self._chosen(view.jobs, self._shares(view))
        for number, group in chosen.items():
            self.received[number][group] += self.setting.round_s
            self.total__g[group] += self.setting.round_s
        return chosen

    def state(self) -> dict[str, Any]:
        """Time received by jobs, their GPUs and shares; the state of the program."""
        return super().state() | {
            "received": [[job, seconds.tolist()] for job, seconds in self.received.items()],
            "total": self.total__g.tolist(), "shares": [self.shares[0], self.shares[1].tolist()],
            "program": self.allocator.state(),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        groups = len(self.setting.groups)
        self.received = {job: np.array(seconds) for job, seconds in state["received"]}
        self.total__g = np.array(state["total"])
        ids, shares = state["shares"]
        self.shares = tuple(ids), np.array(shares).reshape(len(ids), groups)
        self.allocator.restore(state["program"])

    # ------------------------------------------------------------------ turns

    def _chosen(self, jobs: Sequence[JobView], share__jg: Floats) -> dict[int, int]:
        """The group of each job that runs: most behind its share first, as long as there are GPUs."""
        queue = []
        for group in range(len(self.setting.groups)):
            for job, share in zip(jobs, share__jg[:, group].tolist(), strict=True):
                part = self.received[job.id][group] / self.total__g[group]
                queue.append((share / part if part > 0 else share * UNSERVED, share, group, job))
        free, chosen = [group.gpus for group in self.setting.groups], dict[int, int]()
        for _, _, group, job in sorted(queue, key=lambda entry: entry[:2], reverse=True):
            if job.id not in chosen and job.job.num_gpu <= free[group]:
                chosen[job.id] = group
                free[group] -= job.job.num_gpu
        return chosen

    # ------------------------------------------------------------------ shares

    def _shares(self, view: AdaptiveView) -> Floats:
        """Share of the time of each job on each group; the same jobs have the same shares."""
        ids = tuple(job.id for job in view.jobs)
        if not ids:
            return np.zeros((0, len(self.setting.groups)))
        if self.shares[0] != ids or not self.steady:
            allocation = self.allocator.allocate(self._round_view(view))
            assert allocation is not None
            self.solver_s += allocation.solver_s
            share__jg = np.zeros((len(ids), len(self.setting.groups)))
            share__jg[np.searchsorted(ids, allocation.first)] = allocation.share__rg
            self.shares = ids, np.clip(np.round(share__jg, DECIMALS) if self.rounded else share__jg, 0.0, 1.0)
        return self.shares[1]

    def _round_view(self, view: AdaptiveView) -> RoundView:
        """The jobs as programs of Gavel see them: one rate for each GPU model."""
        kinds = [(job.job.application, job.job.num_gpu, job.job.batch_size) for job in view.jobs]
        rates = {kind: self.rates_of(job) for kind, job in zip(kinds, view.jobs, strict=True)}
        known = sorted(rates)
        models = tuple(group.gpu_model for group in self.setting.groups)
        alone, named = np.array([rates[kind] for kind in known]), tuple((f"{a} {b}", n) for a, n, b in known)
        oracle = Oracle(named, models, alone, np.zeros((len(known), *alone.shape)))
        gpus = np.array([group.gpus for group in self.setting.groups], np.int64)
        setting = Setting(models, gpus, oracle, alone.max(axis=1), self.setting.seed)
        left = [updates_left(job) for job in view.jobs]
        return RoundView(
            setting=setting,
            now_s=view.now_s,
            job_id=np.array([job.id for job in view.jobs]),
            kind=np.array([known.index(kind) for kind in kinds]),
            num_gpu=np.array([job.job.num_gpu for job in view.jobs]),
            weight=np.ones(len(kinds)),
            submit_s=np.array([job.job.submit_s for job in view.jobs]),
            steps_left=np.array(left),
            deadline_s=np.full(len(kinds), np.inf),
            price__g=np.zeros(len(models)),
        )
