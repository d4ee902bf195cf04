"""Sia's decisions in a round: rows of goodput, reduced by the cost of a restart; the program; places on nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, JobView, Offer, Place
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.draws.random_streams import Stream
from fastsim.performance.applications.step_times import packed
from fastsim.policies.deciders.configurations import Configurations, NodeShape, placed
from fastsim.policies.deciders.goodput_table import LEAST, GoodputTable
from fastsim.policies.deciders.sia_program import (
    NONE,
    Flags,
    Floats,
    Ints,
    SiaChoices,
    SiaInstance,
    best_choices,
    keeping,
    only_former,
    values,
)
from fastsim.policies.solvers.multiple_choice import ChoiceSolver

STAYING = 1e-6
"""Bonus of the current choice: a job keeps it among choices that rounding made equal."""


@dataclass
class SiaDecider:
    """Sia. State between rounds: the choices, and the number of decisions so far."""

    setting: AdaptiveSetting
    power: float
    unserved: float
    project: bool
    tuned: bool
    ties: int = 0
    """Seed of the draw among equal choices."""
    staying: float = STAYING
    """Bonus of the current choice."""
    solver: ChoiceSolver = field(default_factory=ChoiceSolver)
    decided: int = 0
    """Decisions so far. Draws depend on it and not on the clock, so that runs may begin at any time."""
    chosen: dict[int, int] = field(default_factory=dict)
    """By job: its configuration; of a rigid job its group."""
    rates: dict[tuple[str, int, int], Floats] = field(default_factory=dict)
    last: bool = False
    """Whether the last of equal choices is taken, by GPU model and size, instead of a drawn one."""

    @property
    def solver_s(self) -> float:
        """CPU seconds in the program."""
        return self.solver.spent_s

    @cached_property
    def configurations(self) -> Configurations:
        """Sizes that jobs may have."""
        return Configurations(node_groups(self.setting))

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """The places of this round: rigid jobs come first, each kind in order of the ids."""
        rigid = [job for job in view.jobs if job.job.mode == "rigid"]
        loose = [job for job in view.jobs if job.job.mode != "rigid"]
        both = (rigid, self._rigid_instance), (loose, self._adaptive_instance)
        kinds = [(jobs, instance_of) for jobs, instance_of in both if jobs]
        instances = [instance_of(jobs) for jobs, instance_of in kinds]
        best = self.best(instances)
        self.decided += 1
        choices = [(job, int(choice)) for (jobs, _), part in zip(kinds, best.chosen, strict=True)
                   for job, choice in zip(jobs, part, strict=True) if choice != NONE]  # fmt: skip
        self.chosen = {job.id: choice for job, choice in choices}
        return self._places(choices)

    def offers(self, view: AdaptiveView) -> list[Offer]:
        """The configurations of known goodput, by job; rigid jobs have their size on each group."""
        found: list[Offer] = []
        rigid = [job for job in view.jobs if job.job.mode == "rigid"]
        loose = [job for job in view.jobs if job.job.mode != "rigid"]
        if rigid:
            nodes = [self.configurations.groups[group].gpus_per_node for group in range(len(self.setting.groups))]
            found += self.offered(rigid, self._rigid_instance(rigid), self._rigid_rows(rigid), nodes)
        if loose:
            nodes = [self.configurations.groups[group].gpus_per_node for group in self.configurations.group__q.tolist()]
            rows = self.goodputs.rows(loose)
            found += self.offered(loose, self._adaptive_instance(loose), np.where(rows > LEAST, rows, 0.0), nodes)
        return sorted(found, key=lambda offer: offer.job)

    def offered(
        self, jobs: Sequence[JobView], instance: SiaInstance, goodput__jq: Any, per_node__q: Sequence[int]
    ) -> list[Offer]:  # fmt: skip
        """The offers of an instance, without those of goodput 0; nodes of a choice have so many GPUs each."""
        sign = 1.0 if self.power < 0 else -1.0
        gain__jq = sign * (self.unserved - instance.value__jq.astype(np.float64))
        gpus__jq = np.broadcast_to(instance.gpus__jq, instance.value__jq.shape)
        return [
            Offer(
                job=jobs[j].id,
                group=int(instance.group__q[q]),
                nodes=-(-int(gpus__jq[j, q]) // per_node__q[q]),
                gpus=int(gpus__jq[j, q]),
                goodput=float(goodput__jq[j, q]),
                value=float(gain__jq[j, q]),
                kept=bool(instance.forced__j[j]),
            )
            for j, q in zip(*map(np.ndarray.tolist, np.nonzero(goodput__jq > 0)), strict=True)
        ]

    def best(self, instances: Sequence[SiaInstance]) -> SiaChoices:
        """The best choices of jobs; those of fixed size come first."""
        drawn = [self._drawn(instance) for instance in instances]
        room, minimise = self.configurations.gpus__g, self.power < 0
        return best_choices(
            instances=drawn,
            gpus__g=room,
            without=self.unserved,
            solver=self.solver,
            minimise=minimise,
            staying=2 * self.staying,
        )

    def state(self) -> dict[str, Any]:
        """The choice of each job, the number of decisions, and the CPU seconds."""
        return {"chosen": list(self.chosen.items()), "decided": self.decided, "spent_s": self.solver.spent_s}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.chosen, self.decided, self.solver.spent_s = dict(state["chosen"]), state["decided"], state["spent_s"]

    # ------------------------------------------------------------------ goodput

    @cached_property
    def goodputs(self) -> GoodputTable:
        """Rows of goodput of adaptive jobs."""
        return GoodputTable(self.setting, self.configurations, self.project, self.tuned)

    def _rigid_rows(self, jobs: Sequence[JobView]) -> Floats:
        """Samples/s of each job on each group, the slowest of them as many as GPUs."""
        return np.array([self._rigid_row(job) for job in jobs], np.float64).reshape(-1, len(self.setting.groups))

    def _rigid_row(self, job: JobView) -> Floats:
        key = job.application.name, job.job.num_gpu, job.job.batch_size
        if key not in self.rates:
            rates = np.array([self._rate(job, group) for group in range(len(self.setting.groups))])
            some = rates > 0
            self.rates[key] = rates * (job.job.num_gpu / rates[some].min()) if some.any() else rates
        return self.rates[key]

    def _rate(self, job: JobView, group: int) -> float:
        """Samples/s of a job of fixed size; 0 where it does not fit."""
        nodes = self.configurations.groups[group]
        if job.job.num_gpu > nodes.gpus:
            return 0.0
        try:
            ring = packed(job.job.num_gpu, nodes.gpus_per_node)
            steps = job.application.steps_per_s(nodes.gpu_model, ring, job.job.batch_size)
        except InputError:  # never measured there
            return 0.0
        return steps * job.job.batch_size / job.application.slowdown

    # ------------------------------------------------------------------ instances

    def _adaptive_instance(self, jobs: Sequence[JobView]) -> SiaInstance:
        sizes, (former, forced) = self.configurations, self._former(jobs)
        value = values(self.goodputs.rows(jobs), _kept(jobs), former, self.power)
        had = np.flatnonzero(former != NONE)
        value[had, former[had]] += np.float32(-self.staying if self.power < 0 else self.staying)
        return SiaInstance(value, sizes.group__q, sizes.gpus__q, former, forced)

    def _drawn(self, instance: SiaInstance) -> SiaInstance:
        """The same with a bonus for each choice, drawn or of its place, smaller than that of staying.

        A fixed order among equal choices would always favour one GPU model or size, and jobs would have fewer GPUs.
        """
        width = instance.value__jq.shape[1]
        if self.last:
            bonus = (0.5 - np.arange(width) / width) * (1.0 if self.power < 0 else -1.0)
        else:
            bonus = Stream(self.ties, f"sia.ties.{self.decided}.{width}").uniform(width) - 0.5
        return instance._replace(value__jq=instance.value__jq + (STAYING * bonus).astype(np.float32))

    def _rigid_instance(self, jobs: Sequence[JobView]) -> SiaInstance:
        former, forced = self._former(jobs)
        factors = np.where(forced, 1.0, _kept(jobs, served=True))
        value = values(only_former(self._rigid_rows(jobs), former, forced), factors, former, self.power)
        groups = len(self.setting.groups)
        gpus: Ints = np.array([job.job.num_gpu for job in jobs], np.int64)[:, None].repeat(groups, axis=1)
        return SiaInstance(value, np.arange(groups), gpus, former, forced)

    def _former(self, jobs: Sequence[JobView]) -> tuple[Ints, Flags]:
        """The choice that each job has, and whether it is forced: a restart is not cut short."""
        former = np.array([self.chosen.get(job.id, NONE) for job in jobs], np.int64)
        return former, np.array([job.restart_left_s > 0 for job in jobs], np.bool_) & (former != NONE)

    # ------------------------------------------------------------------ places

    def _places(self, choices: Sequence[tuple[JobView, int]]) -> dict[int, Place]:
        group__q, gpus__q = self.configurations.group__q.tolist(), self.configurations.gpus__q.tolist()
        sized = [
            (job.id, choice, job.job.num_gpu)
            if job.job.mode == "rigid"
            else (job.id, group__q[choice], gpus__q[choice])
            for job, choice in choices
        ]
        return self.placed(sized)

    def placed(self, sized: Sequence[tuple[int, int, int]]) -> dict[int, Place]:
        """Places of jobs, of each its id, its group, and its GPUs."""
        places: dict[int, Place] = {}
        here: list[list[tuple[int, int]]] = [[] for _ in self.setting.groups]
        for job, group, gpus in sized:
            here[group].append((job, gpus))
        for group, nodes in enumerate(self.setting.groups):
            rings = placed([gpus for _, gpus in here[group]], nodes.gpus__n)
            places |= {job: Place(group, tuple(ring)) for (job, _), ring in zip(here[group], rings, strict=True)}
        return places


def node_groups(setting: AdaptiveSetting) -> tuple[NodeShape, ...]:
    """The nodes of each GPU model, which must all be of one size."""
    groups = []
    for group in setting.groups:
        model, sizes = group.gpu_model, set(group.gpus__n)
        if len(sizes) > 1:
            raise ScenarioError(f"cluster: nodes of {model}", f"{sorted(sizes)} GPUs", "as many GPUs on each of them")
        measured = [app.on(model).max_nodes for app in setting.applications.values() if model in app.steps]
        most = min(measured, default=0)
        groups.append(NodeShape(model, len(group.gpus__n), max(sizes), most))
    return tuple(groups)


def _kept(jobs: Sequence[JobView], served: bool = False) -> Floats:
    """Part of each job's life that a restart leaves; ``served``: young is a job of few GPU seconds."""
    age, restarts, restart, service = (
        np.array(column, np.float64)
        for column in (
            [job.age_s for job in jobs],
            [job.restarts for job in jobs],
            [job.application.believed_restart_s for job in jobs],
            [job.service_s for job in jobs],
        )
    )
    return keeping(age, restarts.astype(np.int64), restart, service if served else None)
