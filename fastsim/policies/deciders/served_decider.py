"""Jobs of fixed size served in an order: each takes the fastest GPU model that has room for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from fastsim.engine.adaptive.plan import AdaptiveView, JobView
from fastsim.policies.deciders.fixed_size_decider import FixedSizeDecider, updates_left


@dataclass
class ServedDecider(FixedSizeDecider):
    """Serves by arrival, by GPU seconds had (in queues that end at ``level_s``), or by what is left."""

    order: str
    level_s: tuple[float, ...] = ()

    def chosen(self, view: AdaptiveView) -> Mapping[int, int]:
        """First who comes first in the order; a job that runs stays on its model, if that has room still."""
        free, chosen = [group.gpus for group in self.setting.groups], dict[int, int]()
        for job in sorted(view.jobs, key=self.key):
            group = self._group(job, free)
            if group is not None:
                chosen[job.id] = group
                free[group] -= job.job.num_gpu
        return chosen

    def key(self, job: JobView) -> tuple[float, float, int]:
        """A job's place in the order."""
        if self.order == "srtf":
            first = updates_left(job) / max(self.rates_of(job)) * job.job.num_gpu
        elif self.order == "las":
            first = job.service_s
        else:
            first = float(bisect_right(self.level_s, job.service_s)) if self.order == "tiresias" else 0.0
        return first, job.job.submit_s, job.id

    def _group(self, job: JobView, free: list[int]) -> int | None:
        """Where a job runs; None if it does not fit anywhere."""
        size, rates = job.job.num_gpu, self.rates_of(job)
        known = [g for g, group in enumerate(self.setting.groups) if group.gpu_model in job.application.steps]
        room = [g for g in known if size <= free[g]]
        here = None if job.place is None else job.place.group
        return here if here in room else max(room, key=lambda g: rates[g], default=None)
