"""Sia's program: at most one choice for each job, with the best sum of values, within the GPUs of the cluster.

    minimise sum of value[j, q] * x[j, q] + lambda * (jobs without a choice) + changed * (choices made or given up)

(maximise if large values are good; lambda and changed are then below 0.)

A value is min(round((normalised goodput * keeping) ** p, 2), 3000), in single precision for jobs that adapt and in
double for jobs of fixed size, as published. ``keeping`` is 1 for the choice a job has, else the part of its age that
was not spent in restarts. With a negative p small values are good. Rounding makes many large values equal.

Choices that cannot be optimal are left out: those no better than none, and more GPUs of one model for no better
value. Jobs with equal values are one class with a count, which is exact. Within a class a choice goes first to jobs
that have it already, then to the others in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.policies.solvers.multiple_choice import ChoiceProgram, ChoiceSolver

Floats = npt.NDArray[np.float64]
DECIMALS = 2
"""Values are rounded to so many."""
STEP = 10.0**-DECIMALS
"""Values are multiples of this."""
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Worth = npt.NDArray[np.floating[Any]]
"""Of single or double precision."""
LARGEST = 3000.0
"""Values are cut here."""
SHORTEST_S = float(np.finfo(np.float64).tiny)
"""Restarts that take no time count as so long, seconds: less than the age of any job that has one, more than none."""
NONE = -1
"""Position of no choice at all."""


class SiaInstance(NamedTuple):
    """Jobs with one list of choices, sorted by GPUs within each GPU model.

    ``gpus`` are those of each choice (an entry for all jobs, or a row for each), ``group`` its GPU model. ``former`` is
    the choice a job has (NONE without one); ``forced`` jobs keep it.
    """

    value__jq: Worth
    group__q: Ints
    gpus__jq: Ints
    former__j: Ints
    forced__j: Flags


class SiaChoices(NamedTuple):
    """The choice of each job of each instance, NONE without one; and the objective."""

    chosen: tuple[Ints, ...]
    objective: float


class _Part(NamedTuple):
    """The classes of one instance: their jobs, and columns of the program."""

    members: tuple[Ints, ...]
    forced__c: Flags
    width__c: Ints
    choice__x: Ints
    cost__x: Floats
    gpus__x: Ints
    group__x: Ints


def best_choices(
    instances: Iterable[SiaInstance],
    gpus__g: Ints,
    without: float,
    solver: ChoiceSolver,
    minimise: bool = True,
    staying: float = 0.0,
    changed: float = 0.0,
) -> SiaChoices:
    """The best choices; ``without`` is the term of a job without one in the objective.

    ``staying`` is the most that a value was moved off its two decimals; ``changed`` is the term of making a choice
    that a job does not have, and of giving up the one it has: above 0 if ``minimise``, else below.
    """
    sign = 1.0 if minimise else -1.0
    instances = tuple(charged(instance, changed) if changed else instance for instance in instances)
    had = sum(int((instance.former__j != NONE).sum()) for instance in instances)
    if sum(len(instance.former__j) for instance in instances) == 1:  # a single job needs no program
        chosen = tuple(_lone(instance, sign, without, gpus__g) for instance in instances)
    else:
        # Objectives are multiples of the step only if every term is.
        whole_steps = all(abs(value / STEP - round(value / STEP)) < 1e-9 for value in (without, changed))
        chosen = _shared(
            instances=instances,
            sign=sign,
            without=without,
            gpus__g=gpus__g,
            solver=solver,
            exact=(staying, STEP if whole_steps else 0.0),
        )
    objective = sum(
        objective_of(instance, choices, without) for instance, choices in zip(instances, chosen, strict=True)
    )
    return SiaChoices(chosen, changed * had + objective)


def _shared(
    instances: Sequence[SiaInstance], sign: float, without: float, gpus__g: Ints, solver: ChoiceSolver,
    exact: tuple[float, float],
) -> tuple[Ints, ...]:  # fmt: skip
    """The choices of all jobs; ``exact`` are how far values are off their step, and the step."""
    parts = [_classes(instance, sign, without, gpus__g) for instance in instances]
    counts = solver.minimum(_program(parts, gpus__g, exact[0]), exact[1], "Sia's choice of configurations")
    chosen, start = [], 0
    for instance, part in zip(instances, parts, strict=True):
        count__x = counts[start : start + len(part.cost__x)]
        start += len(part.cost__x)
        chosen.append(_choices(part, count__x, instance.former__j))
    return tuple(chosen)


def _lone(instance: SiaInstance, sign: float, without: float, gpus__g: Ints) -> Ints:
    """The choice of a job that has the cluster to itself."""
    if not len(instance.former__j) or instance.forced__j[0]:
        return instance.former__j.copy()
    cost = sign * (instance.value__jq[0].astype(np.float64) - without)
    fits = np.broadcast_to(instance.gpus__jq, instance.value__jq.shape)[0] <= gpus__g[instance.group__q]
    best = int(np.argmin(np.where(fits, cost, np.inf)))
    return np.array([best if fits[best] and cost[best] < 0 else NONE], np.int64)


def objective_of(instance: SiaInstance, chosen: Ints, without: float) -> float:
    """Part of these choices in the objective."""
    some = np.flatnonzero(chosen != NONE)
    value = instance.value__jq[some, chosen[some]].astype(np.float64)
    return float(value.sum()) + without * (len(chosen) - len(some))


def charged(instance: SiaInstance, change: float) -> SiaInstance:
    """The same with ``change`` for choices that are not the former one.

    The objective charges every job that has a choice for giving it up; a job that keeps it gets that back.
    """
    value = instance.value__jq.astype(np.float64) + change
    had = np.flatnonzero(instance.former__j != NONE)
    value[had, instance.former__j[had]] -= 2 * change
    return instance._replace(value__jq=value.astype(np.float32))


def _classes(instance: SiaInstance, sign: float, without: float, gpus__g: Ints) -> _Part:
    jobs, width = instance.value__jq.shape
    gpus = np.broadcast_to(instance.gpus__jq, (jobs, width))
    cost = sign * (instance.value__jq.astype(np.float64) - without)
    useful = (cost < 0) & (gpus <= gpus__g[instance.group__q]) & _better_than_smaller(cost, instance.group__q)
    rows = np.flatnonzero(instance.forced__j)
    useful[rows] = False
    useful[rows, instance.former__j[rows]] = True
    members = _alike(np.where(useful, cost, np.inf), np.where(useful, gpus, 0), instance.forced__j)
    example = np.array([alike[0] for alike in members], np.int64)
    of_class, choice = np.nonzero(useful[example])
    job = example[of_class]
    return _Part(
        members=tuple(np.array(alike, np.int64) for alike in members),
        forced__c=instance.forced__j[example],
        width__c=useful[example].sum(axis=1),
        choice__x=choice,
        cost__x=cost[job, choice],
        gpus__x=gpus[job, choice],
        group__x=instance.group__q[choice],
    )


def _alike(cost__jq: Floats, gpus__jq: Ints, forced__j: Flags) -> list[list[int]]:
    """Jobs with equal values, class by class, in order of the first of each."""
    classes: dict[bytes, list[int]] = {}
    for job, forced in enumerate(forced__j.tolist()):
        key = cost__jq[job].tobytes() + gpus__jq[job].tobytes() + bytes([forced])
        classes.setdefault(key, []).append(job)
    return list(classes.values())


def _better_than_smaller(cost: Floats, group__q: Ints) -> Flags:
    """Whether a choice beats all smaller ones of its GPU model; choices of a model stand together, smallest first."""
    better = np.ones(cost.shape, np.bool_)
    ends = [*(np.flatnonzero(group__q[1:] != group__q[:-1]) + 1).tolist(), len(group__q)]
    for first, end in pairwise([0, *ends]):
        least = np.minimum.accumulate(cost[:, first : end - 1], axis=1)
        better[:, first + 1 : end] = cost[:, first + 1 : end] < least
    return better


def _program(parts: Sequence[_Part], gpus__g: Ints, staying: float) -> ChoiceProgram:
    width = _joined([part.width__c for part in parts])
    return ChoiceProgram(
        cost__x=np.concatenate([np.zeros(0), *(part.cost__x for part in parts)]),
        gpus__x=_joined([part.gpus__x for part in parts]),
        group__x=_joined([part.group__x for part in parts]),
        first__c=np.concatenate([np.zeros(1, np.int64), np.cumsum(width)]),
        count__c=np.array([len(jobs) for part in parts for jobs in part.members], np.int64),
        forced__c=np.concatenate([np.zeros(0, np.bool_), *(part.forced__c for part in parts)]),
        room__g=np.asarray(gpus__g, np.int64),
        staying=staying,
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _choices(part: _Part, count__x: Ints, former__j: Ints) -> Ints:
    """The choice of each job, from the number of jobs of each class that make it."""
    chosen = np.full(len(former__j), NONE, np.int64)
    ends = np.cumsum(part.width__c).tolist()
    for jobs, width, end in zip(part.members, part.width__c.tolist(), ends, strict=True):
        columns = end - width + np.flatnonzero(count__x[end - width : end])
        waiting = jobs.tolist()
        left = {int(part.choice__x[x]): int(count__x[x]) for x in columns}
        for job in jobs.tolist():
            if left.get(int(former__j[job]), 0):
                chosen[job] = former__j[job]
                left[int(former__j[job])] -= 1
                waiting.remove(job)
        for choice, count in left.items():
            for job in waiting[:count]:
                chosen[job] = choice
            waiting = waiting[count:]
    return chosen


def keeping(age_s: Floats, restarts: Ints, restart_s: Floats, service_s: Floats | None = None) -> Floats:
    """Part of a job's age that another restart leaves to its work; 1 for jobs younger than one restart, and where a
    restart takes no time.

    ``restart_s`` is the scheduler's estimate of a restart; ``service_s`` replaces the age of jobs when young ones are
    found.
    """
    restart_s = np.maximum(restart_s, SHORTEST_S)
    young = (age_s if service_s is None else service_s) < restart_s
    part = np.maximum(age_s - restarts * restart_s, 0.0) / (age_s + restart_s)
    return np.where(young, 1.0, part)


def values(goodput__jq: npt.ArrayLike, keeping__j: npt.ArrayLike, former__j: Ints, power: float) -> Worth:
    """Value of each choice, in the precision of goodput.

    ``former`` is the position of the choice a job has, NONE without one.
    """
    worth: Worth = np.asarray(goodput__jq)
    exact = worth.dtype.type
    had = former__j != NONE
    factor = np.where(had, np.array(keeping__j, exact), exact(1.0))[:, None].repeat(worth.shape[1], axis=1)
    factor[had, former__j[had]] = 1.0
    with np.errstate(divide="ignore"):  # a negative power of no goodput is cut
        raised = powers(worth * factor, power)
    return np.minimum(np.round(raised, DECIMALS), exact(LARGEST))


def powers(worth: Worth, power: float) -> Worth:
    """Powers in the precision of ``worth``, rounded from double precision.

    NumPy's powers in single precision are others with AVX-512 than without: a fifth differs in the last bit.
    """
    exact = worth.dtype.type
    raised: Worth = (worth.astype(np.float64) ** float(exact(power))).astype(exact)
    return raised


def only_former(goodput__jq: Worth, former__j: Ints, forced__j: Flags) -> Worth:
    """The same goodput, with 0 for all but the former choice of forced jobs."""
    former__jq = np.zeros_like(goodput__jq)
    rows = np.flatnonzero(forced__j)
    former__jq[rows, former__j[rows]] = goodput__jq[rows, former__j[rows]]
    return np.where(forced__j[:, None], former__jq, goodput__jq)
