"""First come, first served with two jobs on the same GPUs, as a plain loop over rounds.

All jobs are there at once. A job takes the fastest GPU model with room; the first for which no model has room ends the
queue, and is passed over unless every GPU is taken. Of those behind it each joins the running job of as many GPUs with
which it gains the most, until one gains too little. In a round, every job does the whole steps that fit into it, and
the round ends with the last of them. Who runs is chosen anew when a job is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Together = Mapping[tuple[str, str], tuple[float, float]]


class QueuedJob(NamedTuple):
    """A job: its workload, GPUs and steps."""

    workload: str
    num_gpu: int
    steps: float


class GpuModel(NamedTuple):
    """A GPU model: how many there are, steps a second of each workload alone, and of two on the same GPUs."""

    gpus: int
    alone: Mapping[str, float]
    together: Together


def ends_s(jobs: Sequence[QueuedJob], models: Mapping[str, GpuModel], round_s: float) -> dict[int, float]:
    """End of each job by its place in the queue."""
    left, now, ends, running = {place: job.steps for place, job in enumerate(jobs)}, 0.0, {}, None
    while left:
        running = running or chosen({place: jobs[place] for place in left}, models)
        finishes, done = [], []
        for group, name in running.items():
            rates = rates_of([jobs[place].workload for place in group], models[name])
            steps = [min(float(int(rate * round_s)), left[place]) for place, rate in zip(group, rates, strict=True)]
            finishes.append(now + max(count / rate for count, rate in zip(steps, rates, strict=True)))
            for place, count in zip(group, steps, strict=True):
                left[place] -= count
                if left[place] <= 0:
                    ends[place] = finishes[-1]
                    done.append(place)
        now = max(finishes)
        for place in done:
            del left[place]
        running = None if done else running
    return ends


def chosen(queue: Mapping[int, QueuedJob], models: Mapping[str, GpuModel]) -> dict[tuple[int, ...], str]:
    """GPU model of each job that runs, and of each two that share GPUs."""
    free = {name: models[name].gpus for name in sorted(models)}
    running: dict[tuple[int, ...], str] = {}
    waiting = list(queue)
    while waiting and any(free.values()):
        place = waiting.pop(0)
        job = queue[place]
        roomy = [name for name, gpus in free.items() if gpus >= job.num_gpu]
        if not roomy:
            break
        name = max(roomy, key=lambda model: models[model].alone[job.workload])
        running[place,] = name
        free[name] -= job.num_gpu
    for place in waiting:
        gains = {
            group: gain([queue[group[0]].workload, queue[place].workload], models[name])
            for group, name in running.items()
            if len(group) == 1 and queue[group[0]].num_gpu == queue[place].num_gpu
        }
        best = max(gains, key=lambda group: gains[group], default=())
        if not best or gains[best] <= 1.5:
            break
        running[best[0], place] = running.pop(best)
    return running


def rates_of(workloads: Sequence[str], model: GpuModel) -> tuple[float, ...]:
    """Steps a second of one workload, or of two on the same GPUs."""
    if len(workloads) == 1:
        return (model.alone[workloads[0]],)
    return model.together[workloads[0], workloads[1]]


def gain(workloads: Sequence[str], model: GpuModel) -> float:
    """Rate together over rate alone, summed over both."""
    rates = rates_of(workloads, model)
    return sum(rate / model.alone[workload] for rate, workload in zip(rates, workloads, strict=True))
