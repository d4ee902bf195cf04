"""Jobs at their requested size: GPUs of each job, given the GPU model it runs on; and the orders of ``served``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastsim.engine.adaptive.place_checks import checked_groups
from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, JobView, Place
from fastsim.errors import InputError
from fastsim.performance.applications.application import fixed_split
from fastsim.performance.applications.step_times import packed
from fastsim.policies.deciders.emptiest_nodes import emptiest_first
from fastsim.policies.deciders.sia_decider import node_groups

LEAST_RATE = 0.1
"""Steps/s of a job on a GPU model that is too small for it, as in the original."""
Kind = tuple[str, int, int]
"""Application, GPUs, batch size."""


@dataclass
class FixedSizeDecider:
    """Places jobs of fixed size; subclasses choose the jobs that run and their GPU models (:meth:`chosen`)."""

    setting: AdaptiveSetting
    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict, init=False)
    """By job: group, and its GPUs within the group."""
    rates: dict[Kind, list[float]] = field(default_factory=dict, init=False)
    solver_s: float = field(default=0.0, init=False)

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Places of the chosen jobs; a job keeps its GPUs if it can."""
        sizes = {job.id: job.job.num_gpu for job in view.jobs}
        chosen = checked_groups(self.chosen(view), view, self.setting, type(self).__qualname__)
        self.places = self._placed(chosen, sizes)
        return {job: Place(group, self._nodes(group, gpus)) for job, (group, gpus) in self.places.items()}

    def chosen(self, view: AdaptiveView) -> Mapping[int, int]:
        """The group of each job that runs."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """The GPUs of each job; rates are computed again."""
        return {"places": [[job, *at] for job, at in self.places.items()], "solver_s": self.solver_s}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.places = {job: (group, tuple(gpus)) for job, group, gpus in state["places"]}
        self.solver_s = state["solver_s"]

    def _placed(self, chosen: Mapping[int, int], sizes: Mapping[int, int]) -> dict[int, tuple[int, tuple[int, ...]]]:
        """GPUs of each job: large jobs first, within a size those that keep their GPUs."""
        gpus__j: dict[int, tuple[int, tuple[int, ...]]] = {}
        for group, nodes in enumerate(self.setting.groups):
            free = dict.fromkeys(range(nodes.gpus))
            here = [job for job, at in chosen.items() if at == group]
            for size in sorted({sizes[job] for job in here}, reverse=True):
                alike = [job for job in here if sizes[job] == size]
                for job in alike:
                    before = self.places.get(job)
                    if before is not None and before[0] == group and all(gpu in free for gpu in before[1]):
                        gpus__j[job] = before
                        for gpu in before[1]:
                            del free[gpu]
                for job in alike:
                    if job not in gpus__j:
                        gpus__j[job] = group, tuple(list(free)[:size])
                        for gpu in gpus__j[job][1]:
                            del free[gpu]
        return gpus__j

    def _nodes(self, group: int, gpus: Sequence[int]) -> tuple[int, ...]:
        owner = [node for node, count in enumerate(self.setting.groups[group].gpus__n) for _ in range(count)]
        return tuple(owner[gpu] for gpu in gpus)

    def rates_of(self, job: JobView) -> list[float]:
        """Updates/s of a job on each group."""
        kind = job.job.application, job.job.num_gpu, job.job.batch_size
        if kind not in self.rates:
            self.rates[kind] = [self._rate(job, group) for group in range(len(self.setting.groups))]
        return self.rates[kind]

    def _rate(self, job: JobView, group: int) -> float:
        """Updates/s of a job on the nodes of one model; one GPU always accumulates two steps, to measure the noise."""
        nodes, app, num_gpu = node_groups(self.setting)[group], job.application, job.job.num_gpu
        if num_gpu > min(nodes.nodes, nodes.max_nodes) * nodes.gpus_per_node or nodes.gpu_model not in app.steps:
            return LEAST_RATE
        ring, times = packed(num_gpu, nodes.gpus_per_node), app.on(nodes.gpu_model)
        try:
            least = int(num_gpu == 1)
            atomic, accum = fixed_split(job.job.batch_size, num_gpu, times.largest(ring), app.max_batch, least)
            step = times.seconds(ring, atomic)
        except InputError:  # no measurement of this size on the model
            return LEAST_RATE
        return 1.0 / (step.step_s + step.turn_s * accum) / app.slowdown


def updates_left(job: JobView) -> float:
    """Updates left of a job, with its requested batch size."""
    curve, batch = job.application.curve, job.job.batch_size
    return curve.iteration(batch, curve.epochs - 1) - curve.iteration_at(batch, job.epoch, job.progress)


@dataclass
class ServedDecider(FixedSizeDecider):
    """Serves jobs by arrival, by GPU seconds received (in queues that end at ``level_s``), or by remaining time."""

    order: str
    level_s: tuple[float, ...] = ()
    emptiest: bool = False
    """Whether jobs keep their nodes and others take the emptiest ones (:func:`emptiest_first`)."""
    demoted: dict[int, float] = field(default_factory=dict)
    """Of order demotion: place of each job in the second queue, by its entry."""

    def state(self) -> dict[str, Any]:
        """The GPUs of each job, and the second queue."""
        return super().state() | {"demoted": [[job, at] for job, at in self.demoted.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        self.demoted = {job: float(at) for job, at in state["demoted"]}

    def chosen(self, view: AdaptiveView) -> Mapping[int, int]:
        """The model of each job that fits, in the order; a running job stays on its model if that still has room."""
        if self.order == "demotion":
            self._demote(view.jobs)
        free, chosen = [group.gpus for group in self.setting.groups], dict[int, int]()
        for job in sorted(view.jobs, key=self.key):
            group = self._group(job, free)
            if group is not None:
                chosen[job.id] = group
                free[group] -= job.job.num_gpu
        return chosen

    def _demote(self, jobs: Sequence[JobView]) -> None:
        """Move jobs to the end of the second queue that have received enough; those that ended leave it."""
        here = {job.id for job in jobs}
        self.demoted = {job: at for job, at in self.demoted.items() if job in here}
        last = max(self.demoted.values(), default=-1.0)
        for job in jobs:
            if job.id not in self.demoted and job.service_s >= self.level_s[0]:
                last += 1.0
                self.demoted[job.id] = last

    def _placed(self, chosen: Mapping[int, int], sizes: Mapping[int, int]) -> dict[int, tuple[int, tuple[int, ...]]]:
        """GPUs of each job."""
        if not self.emptiest:
            return super()._placed(chosen, sizes)
        gpus__j: dict[int, tuple[int, tuple[int, ...]]] = {}
        for group, nodes in enumerate(self.setting.groups):
            here = [(job, sizes[job]) for job, at in chosen.items() if at == group]
            former_gpus = {job: self.places[job][1] for job, _ in here if self.places.get(job, (None,))[0] == group}
            gpus__j |= {job: (group, at) for job, at in emptiest_first(here, former_gpus, nodes.gpus__n).items()}
        return gpus__j

    def _nodes(self, group: int, gpus: Sequence[int]) -> tuple[int, ...]:
        """Nodes of GPUs; places on the emptiest nodes are nodes already."""
        return tuple(gpus) if self.emptiest else super()._nodes(group, gpus)

    def key(self, job: JobView) -> tuple[float, float, int]:
        """Sort key of a job."""
        if self.order == "demotion":
            return self.demoted.get(job.id, -1.0), job.job.submit_s, job.id
        if self.order == "srtf":
            first = updates_left(job) / max(self.rates_of(job)) * job.job.num_gpu
        elif self.order == "las":
            first = job.service_s
        else:
            first = float(bisect_right(self.level_s, job.service_s)) if self.order == "tiresias" else 0.0
        return first, job.job.submit_s, job.id

    def _group(self, job: JobView, free: list[int]) -> int | None:
        """The group on which a job runs; None if it fits on none."""
        size, rates = job.job.num_gpu, self.rates_of(job)
        known = [g for g, group in enumerate(self.setting.groups) if group.gpu_model in job.application.steps]
        room = [g for g in known if size <= free[g]]
        here = None if job.place is None else job.place.group
        return here if here in room else max(room, key=lambda g: rates[g], default=None)
