"""Sia's program: one choice for each job, or none, so that their values add up best and GPUs suffice.

    minimise sum of value[j, q] * x[j, q] + lambda * (jobs without a choice) + changed * (choices made or given up)

(maximise, and subtract the last term, if large values are good.)

What cannot be part of a best answer is left out: choices no better than none, and more GPUs of one model for no better
value. Jobs whose choices are worth the same are one class with a count, which is exact; who of a class gets what is
decided after: first those who have it already, then in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
NONE = -1
"""Position of no choice at all."""


class SiaInstance(NamedTuple):
    """Jobs with the same list of choices; on each GPU model more GPUs come later in the list.

    ``gpus`` are those of each choice (an entry for all jobs, or a row for each), ``group`` its GPU model. ``former`` is
    the choice a job has (NONE without one); ``forced`` jobs keep it.
    """

    value__jq: Worth
    group__q: Ints
    gpus__jq: Ints
    former__j: Ints
    forced__j: Flags


class SiaChoices(NamedTuple):
    """For each list of wishes the choice of each job, NONE for nothing; and the objective."""

    chosen: tuple[Ints, ...]
    objective: float


class _Part(NamedTuple):
    """The classes of one list of wishes: their jobs, and columns of the program."""

    members: tuple[Ints, ...]
    forced__c: Flags
    width__c: Ints
    choice__x: Ints
    cost__x: Floats
    gpus__x: Ints
    group__x: Ints


def best_choices(
    wishes: Iterable[SiaInstance],
    gpus__g: Ints,
    without: float,
    solver: ChoiceSolver,
    minimise: bool = True,
    staying: float = 0.0,
    changed: float = 0.0,
) -> SiaChoices:
    """The best choices; ``without`` is what a job without one adds to the objective.

    ``staying`` is the most that a value was moved off its two decimals; ``changed`` is what it costs to make a choice
    that a job does not have, and to give up the one it has.
    """
    sign = 1.0 if minimise else -1.0
    wishes = tuple(_charged(wish, sign * changed) if changed else wish for wish in wishes)
    had = sum(int((wish.former__j != NONE).sum()) for wish in wishes)
    if sum(len(wish.former__j) for wish in wishes) == 1:  # nobody to share with: no program
        chosen = tuple(_lone(wish, sign, without, gpus__g) for wish in wishes)
    else:
        # Where something is no whole number of steps, objectives are anywhere.
        whole_steps = all(abs(value / STEP - round(value / STEP)) < 1e-9 for value in (without, changed))
        chosen = _shared(wishes, sign, without, gpus__g, solver, (staying, STEP if whole_steps else 0.0))
    objective = sum(objective_of(wish, found, without) for wish, found in zip(wishes, chosen, strict=True))
    return SiaChoices(chosen, sign * changed * had + objective)


def _shared(
    wishes: Sequence[SiaInstance], sign: float, without: float, gpus__g: Ints, solver: ChoiceSolver,
    exact: tuple[float, float],
) -> tuple[Ints, ...]:  # fmt: skip
    """The choices of all jobs; ``exact`` are how far values are off their step, and the step."""
    parts = [_classes(wish, sign, without, gpus__g) for wish in wishes]
    counts = solver.minimum(_program(parts, gpus__g, exact[0]), exact[1], "Sia's choice of configurations")
    chosen, start = [], 0
    for wish, part in zip(wishes, parts, strict=True):
        count__x = counts[start : start + len(part.cost__x)]
        start += len(part.cost__x)
        chosen.append(_handed_out(part, count__x, wish.former__j))
    return tuple(chosen)


def _lone(wish: SiaInstance, sign: float, without: float, gpus__g: Ints) -> Ints:
    """The choice of a job that has the cluster for itself."""
    if not len(wish.former__j) or wish.forced__j[0]:
        return wish.former__j.copy()
    cost = sign * (wish.value__jq[0].astype(np.float64) - without)
    fits = np.broadcast_to(wish.gpus__jq, wish.value__jq.shape)[0] <= gpus__g[wish.group__q]
    best = int(np.argmin(np.where(fits, cost, np.inf)))
    return np.array([best if fits[best] and cost[best] < 0 else NONE], np.int64)


def objective_of(wish: SiaInstance, chosen: Ints, without: float) -> float:
    """What these choices add to the objective."""
    some = np.flatnonzero(chosen != NONE)
    value = wish.value__jq[some, chosen[some]].astype(np.float64)
    return float(value.sum()) + without * (len(chosen) - len(some))


def _charged(wish: SiaInstance, change: float) -> SiaInstance:
    """The same with ``change`` for choices that are not the former one.

    Every job that has a choice is charged for giving it up, in the objective; who keeps it gets that back.
    """
    value = wish.value__jq.astype(np.float64) + change
    had = np.flatnonzero(wish.former__j != NONE)
    value[had, wish.former__j[had]] -= 2 * change
    return wish._replace(value__jq=value.astype(np.float32))


def _classes(wish: SiaInstance, sign: float, without: float, gpus__g: Ints) -> _Part:
    jobs, width = wish.value__jq.shape
    gpus = np.broadcast_to(wish.gpus__jq, (jobs, width))
    cost = sign * (wish.value__jq.astype(np.float64) - without)
    useful = (cost < 0) & (gpus <= gpus__g[wish.group__q]) & _better_than_smaller(cost, wish.group__q)
    rows = np.flatnonzero(wish.forced__j)
    useful[rows] = False
    useful[rows, wish.former__j[rows]] = True
    members = _alike(np.where(useful, cost, np.inf), np.where(useful, gpus, 0), wish.forced__j)
    example = np.array([alike[0] for alike in members], np.int64)
    of_class, choice = np.nonzero(useful[example])
    job = example[of_class]
    return _Part(
        tuple(np.array(alike, np.int64) for alike in members), wish.forced__j[example], useful[example].sum(axis=1),
        choice, cost[job, choice], gpus[job, choice], wish.group__q[choice],
    )  # fmt: skip


def _alike(cost__jq: Floats, gpus__jq: Ints, forced__j: Flags) -> list[list[int]]:
    """Jobs whose choices are worth the same, class by class, in order of the first of each."""
    classes: dict[bytes, list[int]] = {}
    for job, forced in enumerate(forced__j.tolist()):
        key = cost__jq[job].tobytes() + gpus__jq[job].tobytes() + bytes([forced])
        classes.setdefault(key, []).append(job)
    return list(classes.values())


def _better_than_smaller(cost: Floats, group__q: Ints) -> Flags:
    """Whether a choice beats all smaller ones of its GPU model."""
    better = np.ones(cost.shape, np.bool_)
    for group in np.unique(group__q):
        columns = np.flatnonzero(group__q == group)
        least = np.minimum.accumulate(cost[:, columns], axis=1)
        better[:, columns[1:]] = cost[:, columns[1:]] < least[:, :-1]
    return better


def _program(parts: Sequence[_Part], gpus__g: Ints, staying: float) -> ChoiceProgram:
    width = _joined([part.width__c for part in parts])
    return ChoiceProgram(
        np.concatenate([np.zeros(0), *(part.cost__x for part in parts)]),
        _joined([part.gpus__x for part in parts]),
        _joined([part.group__x for part in parts]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(width)]),
        np.array([len(jobs) for part in parts for jobs in part.members], np.int64),
        np.concatenate([np.zeros(0, np.bool_), *(part.forced__c for part in parts)]),
        np.asarray(gpus__g, np.int64),
        staying,
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _handed_out(part: _Part, count__x: Ints, former__j: Ints) -> Ints:
    """The choice of each job, from how often each class makes it."""
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
    """Part of a job's life that another restart leaves to its work; 1 for jobs younger than one restart.

    ``restart_s`` is what the scheduler believes a restart takes; ``service_s`` is what jobs are as young as, if not
    their age.
    """
    young = (age_s if service_s is None else service_s) < restart_s
    kept = np.maximum(age_s - restarts * restart_s, 0.0) / (age_s + restart_s)
    return np.where(young, 1.0, kept)


def values(goodput__jq: npt.ArrayLike, keeping__j: npt.ArrayLike, former__j: Ints, power: float) -> Worth:
    """Worth of each choice, as exact as goodput.

    ``former`` is the position of what the job has, NONE if it has nothing or is new.
    """
    worth: Worth = np.asarray(goodput__jq)
    exact = worth.dtype.type
    had = former__j != NONE
    factor = np.where(had, np.array(keeping__j, exact), exact(1.0))[:, None].repeat(worth.shape[1], axis=1)
    factor[had, former__j[had]] = 1.0
    with np.errstate(divide="ignore"):  # a negative power of no goodput is cut
        raised = (worth * factor) ** exact(power)
    return np.minimum(np.round(raised, DECIMALS), exact(LARGEST))


def only_former(goodput__jq: Worth, former__j: Ints, forced__j: Flags) -> Worth:
    """The same goodput with nothing but what they have for jobs that must keep it."""
    kept = np.zeros_like(goodput__jq)
    rows = np.flatnonzero(forced__j)
    kept[rows, former__j[rows]] = goodput__jq[rows, former__j[rows]]
    return np.where(forced__j[:, None], kept, goodput__jq)
