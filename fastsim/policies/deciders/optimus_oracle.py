"""Optimus as in the simulator of the Pollux paper, with the true step times and steps left of every job.

    gain of a job = (seconds of a step with its GPUs - seconds with one more) x steps left

Jobs get one GPU each in the order of arrival; each further GPU goes to the largest gain, the earlier job among equal
ones. Steps left are those of whole epochs, 1 in the last epoch. Jobs whose size stays keep their nodes, the others
take the emptiest nodes, the smallest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastsim.engine.adaptive.plan import AdaptiveView, JobView, Place
from fastsim.performance.applications.application import Application
from fastsim.policies.deciders.emptiest_nodes import Nodes, emptiest_first
from fastsim.policies.deciders.optimus_decider import OptimusDecider, Size, Speeds
from fastsim.policies.deciders.pollux_decider import SINGLE_GPU


@dataclass
class OracleOptimusDecider(OptimusDecider):
    """Optimus in Pollux's simulator. State: sizes and nodes by job."""

    nodes_of: dict[int, tuple[int, Nodes]] = field(default_factory=dict)
    """Group of each job, and the node of each of its GPUs."""

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """Sizes anew in every round that is due; jobs that have ended leave their nodes."""
        here = {job.id for job in view.jobs}
        self.nodes_of = {job: at for job, at in self.nodes_of.items() if job in here}
        return super().decide(view)

    def state(self) -> dict[str, Any]:
        """Sizes and nodes, and when sizes are chosen anew."""
        return super().state() | {"nodes": [[job, *at] for job, at in self.nodes_of.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        self.nodes_of = {job: (group, tuple(nodes)) for job, group, nodes in state["nodes"]}

    # ------------------------------------------------------------------ sizes

    def least_s(self, _job: JobView) -> float:
        """The same for all jobs, so that the order of arrival decides."""
        return 0.0

    def work_left(self, job: JobView) -> float:
        """Steps of the epochs after this one, with the requested batch size."""
        curve, batch = job.application.curve, job.job.batch_size
        last = curve.epochs - 1
        return 1.0 if job.epoch >= last else curve.iteration(batch, last) - curve.iteration(batch, job.epoch)

    def grown(
        self, has: Sequence[Size], left: Sequence[float], speeds: Sequence[Speeds], free: Sequence[int]
    ) -> list[Size]:  # fmt: skip
        """The sizes after the free GPUs were given out one by one."""
        return one_by_one(has, left, speeds, free)

    def measured(self, app: Application, batch: int, fewest: int, most: int) -> Iterator[tuple[Size, float]]:
        """Sizes a job may have: one application never gets more than one GPU."""
        return super().measured(app, batch, fewest, 1 if app.name in SINGLE_GPU else most)

    def least_turns(self, _app: Application, gpus: int, _batch: int) -> int:
        """Turns before the one that updates: one at least on one GPU, whatever the batch size."""
        return int(gpus == 1)

    # ------------------------------------------------------------------ places

    def places(self) -> dict[int, Place]:
        """Nodes of each job."""
        for group, nodes in enumerate(self.setting.groups):
            sizes = [(job, size.gpus) for job, size in sorted(self.sizes.items()) if size.group == group]
            kept = {job: self.nodes_of[job][1] for job, gpus in sizes if self._stays(job, group, gpus)}
            placed = emptiest_first(sorted(sizes, key=lambda at: at[1]), kept, nodes.gpus__n)
            self.nodes_of |= {job: (group, at) for job, at in placed.items()}
        self.nodes_of = {job: at for job, at in self.nodes_of.items() if job in self.sizes}
        return {job: Place(*at) for job, at in self.nodes_of.items()}

    def _stays(self, job: int, group: int, gpus: int) -> bool:
        """Whether a job has its group and its size already."""
        at = self.nodes_of.get(job)
        return at is not None and at[0] == group and len(at[1]) == gpus


def one_by_one(
    has: Sequence[Size], left: Sequence[float], speeds: Sequence[Speeds], free: Sequence[int]
) -> list[Size]:  # fmt: skip
    """The size of each job after the free GPUs of each group went, one at a time, to the largest gain above 0."""
    sizes, rest = list(has), list(free)
    queue: list[tuple[float, int]] = []

    def push_gain(job: int) -> None:
        size = sizes[job]
        more = size._replace(gpus=size.gpus + 1)
        if more in speeds[job].unit_s:
            heapq.heappush(queue, ((speeds[job].seconds(more) - speeds[job].seconds(size)) * left[job], job))

    for job in range(len(sizes)):
        push_gain(job)
    while queue and queue[0][0] < 0:
        _, job = heapq.heappop(queue)
        group = sizes[job].group
        if rest[group]:
            rest[group] -= 1
            sizes[job] = sizes[job]._replace(gpus=sizes[job].gpus + 1)
            push_gain(job)
    return sizes
