"""Jobs of fixed size planned some rounds ahead, in the style of Shockwave: progress of all, and an early end.

    maximise  mean of weight * log(part of the job that will be done)
              - makespan * (rounds that are left after)/(rounds before)

Each job has so many of the next rounds on one GPU model, the first of which a restart takes where it does not run
already. The longest job that is left bounds the rounds after. A job has the weight max(1, rho)^fairness, where

    rho = (age + left * contention) / (whole * mean contention)

is its expected completion time over the fair one: ``left`` and ``whole`` are seconds alone on its fastest model, and
the contention is the number of active jobs over that of GPUs, at least 1. GPUs that the plan leaves idle go to the
longest jobs that fit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.plan import AdaptiveView, JobView
from fastsim.errors import SolverError
from fastsim.policies.deciders.fixed_size_decider import FixedSizeDecider, updates_left
from fastsim.policies.solvers.silent_highs import silent_highs, solve

Floats = npt.NDArray[np.float64]

LEAST_PART = 1e-3
"""Of a job that has done nothing: the logarithm ends here."""
GAP = 1e-3
"""Relative distance from the best plan at which the search ends, as in the original."""
OPTIONS = {"output_flag": False, "threads": 1, "parallel": "off", "mip_rel_gap": GAP, "mip_max_nodes": 2000}
"""One thread and a limit in nodes, not in seconds: equal bytes everywhere."""
COLUMNWISE, MAXIMISE = 1, -1


class Prospect(NamedTuple):
    """One job as the plan sees it: GPUs, part that is done, and the part that a round on each group adds.

    ``restart__g`` are the rounds, not whole ones, that it would restart on each group before it trains. ``weight`` is
    that of its progress.
    """

    gpus: int
    done: float
    gain__g: Sequence[float]
    restart__g: Sequence[float]
    weight: float = 1.0

    def added(self, group: int, rounds: int) -> float:
        """The part that so many of the next rounds on a group add."""
        return self.gain__g[group] * max(rounds - self.restart__g[group], 0.0)


def planned_rounds(
    jobs: Sequence[Prospect], gpus__g: Sequence[int], ahead: int, makespan: float, highs: Any
) -> list[tuple[int, int]]:
    """For each job the group and how many of the next ``ahead`` rounds it has there; (0, 0) for none."""
    columns = [
        (j, g, n) for j, job in enumerate(jobs) for g, room in enumerate(gpus__g)
        for n in range(1, ahead + 1) if job.gpus <= room and job.added(g, n) > 0
    ]  # fmt: skip
    if not columns:
        return [(0, 0)] * len(jobs)
    taken = _solution(jobs=jobs, columns=columns, gpus__g=gpus__g, ahead=ahead, makespan=makespan, highs=highs)
    rounds = [(0, 0)] * len(jobs)
    for (j, g, n), part in zip(columns, taken, strict=True):
        if part > 0.5:
            rounds[j] = g, n
    return rounds


def _solution(
    jobs: Sequence[Prospect], columns: Sequence[tuple[int, int, int]], gpus__g: Sequence[int], ahead: int,
    makespan: float, highs: Any,
) -> list[float]:  # fmt: skip
    """Columns of the plan: rows are GPU rounds of each group, one choice a job, and what is left of each job."""
    groups, count = len(gpus__g), len(jobs)
    left = np.array([(1.0 - job.done) / max(job.gain__g) if max(job.gain__g) > 0 else 0.0 for job in jobs])
    longest = max(float(left.max()), 1.0)
    value: list[float] = []
    index: list[int] = []
    worth = []
    for j, g, n in columns:
        job = jobs[j]
        added = job.added(g, n)
        index += [g, groups + j, groups + count + j]
        value += [float(job.gpus * n), 1.0, added / max(job.gain__g)]
        worth.append((_log_part(job.done + added) - _log_part(job.done)) * job.weight / count)
    worth.append(-makespan / longest)  # the last column: rounds left after the plan
    index += list(range(groups + count, groups + 2 * count))
    value += [1.0] * count
    starts = [*range(0, 3 * len(columns) + 1, 3), 3 * len(columns) + count]
    rows = groups + 2 * count
    low = np.concatenate([np.full(groups + count, -np.inf), left])
    high = np.concatenate([ahead * np.array(gpus__g, np.float64), np.ones(count), np.full(count, np.inf)])
    total = len(columns) + 1
    highs.passModel(
        total, rows, len(value), COLUMNWISE, MAXIMISE, 0.0, np.array(worth), np.zeros(total),
        np.append(np.ones(len(columns)), np.inf), low, high, np.array(starts, np.int32), np.array(index, np.int32),
        np.array(value), np.append(np.ones(len(columns)), 0).astype(np.int32),
    )  # fmt: skip
    solve(highs)
    if not highs.getInfo().primal_solution_status:
        raise SolverError("plan of rounds: HiGHS found no point, expected one: no job running is one")
    return list(highs.getSolution().col_value)[:-1]


def _log_part(part: float) -> float:
    return float(np.log(min(max(part, LEAST_PART), 1.0)))


@dataclass
class PlannedDecider(FixedSizeDecider):
    """Plans anew when a job came or went, or the last plan is at its end."""

    ahead: int
    makespan: float
    fairness: float
    contention__j: dict[int, tuple[int, float]] = field(default_factory=dict, init=False)
    """By job: its rounds so far, waiting or running, and the sum of the contention in them."""
    plan: dict[int, tuple[int, int]] = field(default_factory=dict, init=False)
    """By job: group, and rounds there that are still to come."""
    rounds_left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._highs = silent_highs(OPTIONS)

    def chosen(self, view: AdaptiveView) -> Mapping[int, int]:
        """Planned jobs, first the running ones and those with most rounds; then those that fit, the longest first.

        A job has its rounds of a plan in a row. One that fits besides stays on its group if it can.
        """
        contention = self._count_contention(view.jobs)
        if not self.rounds_left or {job.id for job in view.jobs} != self.plan.keys():
            self._plan(view.jobs, contention)
        self.rounds_left -= 1
        free, chosen = [group.gpus for group in self.setting.groups], dict[int, int]()
        for job in sorted(view.jobs, key=self._planned_order):
            group, rounds = self.plan[job.id]
            if rounds and job.job.num_gpu <= free[group]:
                chosen[job.id] = group
                free[group] -= job.job.num_gpu
                self.plan[job.id] = group, rounds - 1
        for job in sorted(view.jobs, key=lambda job: (-self._left_s(job), job.id)):
            rates, here = self._steps(job), _group(job)
            room = [g for g, rate in enumerate(rates) if rate > 0 and job.job.num_gpu <= free[g]]
            if job.id not in chosen and room:
                chosen[job.id] = here if here in room else max(room, key=rates.__getitem__)
                free[chosen[job.id]] -= job.job.num_gpu
        return chosen

    def state(self) -> dict[str, Any]:
        """GPUs of each job, the rest of the plan, and the contention so far."""
        plan = [[job, *at] for job, at in self.plan.items()]
        contention = [[job, *at] for job, at in self.contention__j.items()]
        return super().state() | {"plan": plan, "rounds_left": self.rounds_left, "contention": contention}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        self.plan = {job: (group, rounds) for job, group, rounds in state["plan"]}
        self.rounds_left = state["rounds_left"]
        self.contention__j = {job: (rounds, float(total)) for job, rounds, total in state["contention"]}

    def _count_contention(self, jobs: Sequence[JobView]) -> float:
        """The contention of this round, which is added to what each job has seen."""
        now, before = max(len(jobs) / self.setting.gpus, 1.0), self.contention__j
        seen = [before.get(job.id, (0, 0.0)) for job in jobs]
        self.contention__j = {
            job.id: (rounds + 1, total + now) for job, (rounds, total) in zip(jobs, seen, strict=True)
        }
        return now

    def _plan(self, jobs: Sequence[JobView], contention: float) -> None:
        start_s = time.thread_time()
        gpus = [group.gpus for group in self.setting.groups]
        late = [self._lateness(job, contention) for job in jobs]
        latest = max(late, default=1.0)

        def weight(rho: float) -> float:  # all are scaled to the largest, so that none overflows
            return float((rho / latest) ** self.fairness)

        seen = [
            Prospect(job.job.num_gpu, _done(job), self._gains(job), self._restarts(job), weight(rho))
            for job, rho in zip(jobs, late, strict=True)
        ]
        rounds = planned_rounds(seen, gpus, self.ahead, self.makespan * weight(1.0), self._highs)
        self.plan = {job.id: at for job, at in zip(jobs, rounds, strict=True)}
        self.rounds_left = self.ahead
        self.solver_s += time.thread_time() - start_s

    def _lateness(self, job: JobView, contention: float) -> float:
        """Expected over fair completion time of a job, at least 1; 1 if it cannot run."""
        left_s, part, (rounds, total) = self._left_s(job), 1.0 - _done(job), self.contention__j[job.id]
        if not 0 < left_s < math.inf or part <= 0:
            return 1.0
        return max(1.0, (job.age_s + left_s * contention) / (left_s / part * total / rounds))

    def _left_s(self, job: JobView) -> float:
        """Seconds of training that are left on the fastest model."""
        fastest = max(self._steps(job))
        return updates_left(job) / fastest if fastest > 0 else math.inf

    def _steps(self, job: JobView) -> list[float]:
        """Updates/s on each group, 0 where the job cannot run."""
        known = [group.gpu_model in job.application.steps for group in self.setting.groups]
        return [rate if here else 0.0 for rate, here in zip(self.rates_of(job), known, strict=True)]

    def _gains(self, job: JobView) -> list[float]:
        """Part of the whole job that a round on each group adds."""
        curve = job.application.curve
        total = curve.iteration(job.job.batch_size, curve.epochs - 1)
        return [rate * self.setting.round_s / total for rate in self._steps(job)]

    def _restarts(self, job: JobView) -> list[float]:
        """Rounds that it would restart on each group: the rest of its restart where it runs, else a whole one."""
        here, whole_s = _group(job), job.application.believed_restart_s
        seconds = [job.restart_left_s if g == here else whole_s for g in range(len(self.setting.groups))]
        return [second / self.setting.round_s for second in seconds]

    def _planned_order(self, job: JobView) -> tuple[bool, int, int]:
        group, rounds = self.plan[job.id]
        return _group(job) != group, -rounds, job.id


def _group(job: JobView) -> int | None:
    """The group on which a job runs; None if it waits."""
    return None if job.place is None else job.place.group


def _done(job: JobView) -> float:
    """Part of a job that is done."""
    curve = job.application.curve
    return 1.0 - updates_left(job) / curve.iteration(job.job.batch_size, curve.epochs - 1)
