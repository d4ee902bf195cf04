"""Jobs of fixed size take turns, so that each has the share of time on each GPU model that a program of Gavel says.

The mechanism is that of Gavel's rounds inside the published Sia simulator: time is counted from a job's first round
on and never settled, and GPUs that nobody has a share of are given to whoever fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastsim.adaptive_plan import AdaptiveSetting, AdaptiveView, JobView, Place
from fastsim.apps.application import fixed_split
from fastsim.apps.step_times import packed
from fastsim.errors import InputError
from fastsim.oracle import Oracle
from fastsim.policies.adaptive.sia_decider import node_groups
from fastsim.round_plan import Allocator, Floats, RoundView, Setting

LEAST_RATE = 0.1
"""Steps/s of a job on a GPU model that is too small for it, as the original has it."""
DECIMALS = 5
"""Shares are rounded to so many."""
URGENT = 1e9
"""Priority of a share of 1 that has had no time at all."""

Kind = tuple[str, int, int]
"""Application, GPUs, batch size."""


@dataclass
class RotationDecider:
    """What the mechanism remembers: seconds on each group, by job and of all jobs, and who stands where."""

    setting: AdaptiveSetting
    allocator: Allocator
    rounded: bool = True
    """Whether shares are rounded, as the original does it for some programs."""
    received: dict[int, Floats] = field(default_factory=dict)
    total__g: Floats = field(init=False)
    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """By job: group, and its GPUs within the group."""
    rates: dict[Kind, Floats] = field(default_factory=dict)
    shares: tuple[tuple[int, ...], Floats] = ((), np.zeros((0, 0)))
    """The jobs of the last program, and its answer."""
    solver_s: float = 0.0

    def __post_init__(self) -> None:
        self.total__g = np.zeros(len(self.setting.groups))

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Those whose turn it is, on GPUs that they keep if they can."""
        half = self.setting.round_s / 2
        for job in view.jobs:
            if job.id not in self.received:
                self.received[job.id] = np.full(len(self.setting.groups), half)
                self.total__g += half
        chosen = self._chosen(view.jobs, self._shares(view))
        for number, group in chosen.items():
            self.received[number][group] += self.setting.round_s
            self.total__g[group] += self.setting.round_s
        sizes = {job.id: job.job.num_gpu for job in view.jobs}
        self.places = self._placed(chosen, sizes)
        return {job: Place(group, self._nodes(group, gpus)) for job, (group, gpus) in self.places.items()}

    def kept(self) -> dict[str, Any]:
        """The time that jobs have had, where they stand, and their shares; what the program remembers."""
        return {
            "received": [[job, seconds.tolist()] for job, seconds in self.received.items()],
            "total": self.total__g.tolist(), "places": [[job, *at] for job, at in self.places.items()],
            "shares": [self.shares[0], self.shares[1].tolist()], "solver_s": self.solver_s,
            "program": self.allocator.kept(),
        }  # fmt: skip

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Take it back."""
        groups = len(self.setting.groups)
        self.received = {job: np.array(seconds) for job, seconds in kept["received"]}
        self.total__g = np.array(kept["total"])
        self.places = {job: (group, tuple(gpus)) for job, group, gpus in kept["places"]}
        ids, shares = kept["shares"]
        self.shares = tuple(ids), np.array(shares).reshape(len(ids), groups)
        self.solver_s = kept["solver_s"]
        self.allocator.restored(kept["program"])

    # ------------------------------------------------------------------ turns

    def _chosen(self, jobs: Sequence[JobView], share__jg: Floats) -> dict[int, int]:
        """The group of each job that runs: most behind its share first, as long as there are GPUs."""
        queue = []
        for group in range(len(self.setting.groups)):
            for job, share in zip(jobs, share__jg[:, group].tolist(), strict=True):
                part = self.received[job.id][group] / self.total__g[group]
                queue.append((share / part if part > 0 else share * URGENT, share, group, job))
        free, chosen = [group.gpus for group in self.setting.groups], dict[int, int]()
        for _, _, group, job in sorted(queue, key=lambda entry: entry[:2], reverse=True):
            if job.id not in chosen and job.job.num_gpu <= free[group]:
                chosen[job.id] = group
                free[group] -= job.job.num_gpu
        return chosen

    def _placed(self, chosen: Mapping[int, int], sizes: Mapping[int, int]) -> dict[int, tuple[int, tuple[int, ...]]]:
        """GPUs of each job: large jobs first, within a size those that stay where they are."""
        found: dict[int, tuple[int, tuple[int, ...]]] = {}
        for group, nodes in enumerate(self.setting.groups):
            free = dict.fromkeys(range(nodes.gpus))
            here = [job for job, at in chosen.items() if at == group]
            for size in sorted({sizes[job] for job in here}, reverse=True):
                alike = [job for job in here if sizes[job] == size]
                for job in alike:
                    before = self.places.get(job)
                    if before is not None and before[0] == group and all(gpu in free for gpu in before[1]):
                        found[job] = before
                        for gpu in before[1]:
                            del free[gpu]
                for job in alike:
                    if job not in found:
                        found[job] = group, tuple(list(free)[:size])
                        for gpu in found[job][1]:
                            del free[gpu]
        return found

    def _nodes(self, group: int, gpus: Sequence[int]) -> tuple[int, ...]:
        owner = [node for node, count in enumerate(self.setting.groups[group].gpus__n) for _ in range(count)]
        return tuple(owner[gpu] for gpu in gpus)

    # ------------------------------------------------------------------ shares

    def _shares(self, view: AdaptiveView) -> Floats:
        """Share of the time of each job on each group; the same jobs have the same shares."""
        ids = tuple(job.id for job in view.jobs)
        if not ids:
            return np.zeros((0, len(self.setting.groups)))
        if self.shares[0] != ids:
            answer = self.allocator.allocate(self._round_view(view))
            assert answer is not None
            self.solver_s += answer.solver_s
            share__jg = np.zeros((len(ids), len(self.setting.groups)))
            share__jg[np.searchsorted(ids, answer.first)] = answer.share__rg
            self.shares = ids, np.clip(np.round(share__jg, DECIMALS) if self.rounded else share__jg, 0.0, 1.0)
        return self.shares[1]

    def _round_view(self, view: AdaptiveView) -> RoundView:
        """The jobs as programs of Gavel see them: one rate for each GPU model."""
        kinds = [(job.job.application, job.job.num_gpu, job.job.batch_size) for job in view.jobs]
        for kind, job in zip(kinds, view.jobs, strict=True):
            if kind not in self.rates:
                groups = range(len(self.setting.groups))
                self.rates[kind] = np.array([self._rate(job, group) for group in groups])
        known = sorted(set(kinds))
        models = tuple(group.gpu_model for group in self.setting.groups)
        alone, named = np.array([self.rates[kind] for kind in known]), tuple((f"{a} {b}", n) for a, n, b in known)
        oracle = Oracle(named, models, alone, np.zeros((len(known), *alone.shape)))
        gpus = np.array([group.gpus for group in self.setting.groups], np.int64)
        told = Setting(models, gpus, oracle, alone.max(axis=1), self.setting.seed)
        left = [job.application.curve.progress(job.application.curve.epochs) - job.progress for job in view.jobs]
        return RoundView(
            told, view.now_s, np.array([job.id for job in view.jobs]), np.array([known.index(kind) for kind in kinds]),
            np.array([job.job.num_gpu for job in view.jobs]), np.ones(len(kinds)),
            np.array([job.job.submit_s for job in view.jobs]), np.array(left), np.full(len(kinds), np.inf),
            np.zeros(len(models)),
        )  # fmt: skip

    def _rate(self, job: JobView, group: int) -> float:
        """Updates/s of a job on the nodes of one model; one GPU always takes two turns, to learn the noise."""
        nodes, app, num_gpu = node_groups(self.setting)[group], job.application, job.job.num_gpu
        if num_gpu > min(nodes.nodes, nodes.max_nodes) * nodes.gpus_per_node or nodes.gpu_model not in app.steps:
            return LEAST_RATE
        ring, times = packed(num_gpu, nodes.gpus_per_node), app.on(nodes.gpu_model)
        try:
            least = int(num_gpu == 1)
            atomic, accum = fixed_split(job.job.batch_size, num_gpu, times.largest(ring), app.max_batch, least)
            step = times.seconds(ring, atomic)
        except InputError:  # never measured there
            return LEAST_RATE
        return 1.0 / (step.step_s + step.turn_s * accum) / app.slowdown
