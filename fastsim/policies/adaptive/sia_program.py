"""Sia's program: one choice for each job, or none, so that their values add up best and GPUs suffice.

    minimise sum of value[j, q] * x[j, q] + lambda * (jobs without a choice)     (maximise if large values are good)

What cannot be part of a best answer is left out: choices no better than none, and more GPUs of one model for no better
value. Jobs whose choices are worth the same are one class with a count, which is exact; who of a class gets what is
decided after: first those who have it already, then in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.policies.adaptive.sia_values import DECIMALS, NONE, Flags, Ints, Singles
from fastsim.policies.adaptive.whole import WholeProgram, WholeSolver

Floats = npt.NDArray[np.float64]

STEP = 10.0**-DECIMALS
"""Values are multiples of this."""


class Wishes(NamedTuple):
    """Jobs with the same list of choices; on each GPU model more GPUs come later in the list.

    ``gpus`` are those of each choice (an entry for all jobs, or a row for each), ``group`` its GPU model. ``former`` is
    the choice a job has (NONE without one); ``forced`` jobs keep it.
    """

    value__jq: Singles
    group__q: Ints
    gpus__jq: Ints
    former__j: Ints
    forced__j: Flags


class Choices(NamedTuple):
    """For each list of wishes the choice of each job, NONE for nothing; and the objective."""

    chosen: tuple[Ints, ...]
    objective: float


class _Part(NamedTuple):
    """The classes of one list of wishes: their jobs, and columns of the program."""

    members: tuple[Ints, ...]
    least__c: Ints
    of_class__x: Ints
    choice__x: Ints
    cost__x: Floats
    gpus__x: Ints
    group__x: Ints


def best_choices(
    wishes: Iterable[Wishes], gpus__g: Ints, without: float, solver: WholeSolver, minimise: bool = True
) -> Choices:
    """The best choices; ``without`` is what a job without one adds to the objective."""
    wishes = tuple(wishes)
    sign = 1.0 if minimise else -1.0
    parts = [_classes(wish, sign, without, gpus__g) for wish in wishes]
    whole_steps = abs(without / STEP - round(without / STEP)) < 1e-9  # else objectives are anywhere
    program = _program(parts, gpus__g)
    counts = solver.minimum(program, STEP if whole_steps else 0.0, "Sia's choice of configurations")
    chosen, objective, start = [], 0.0, 0
    for wish, part in zip(wishes, parts, strict=True):
        count__x = counts[start : start + len(part.cost__x)]
        start += len(part.cost__x)
        found = _handed_out(part, count__x, wish.former__j)
        chosen.append(found)
        objective += objective_of(wish, found, without)
    return Choices(tuple(chosen), objective)


def objective_of(wish: Wishes, chosen: Ints, without: float) -> float:
    """What these choices add to the objective."""
    some = np.flatnonzero(chosen != NONE)
    value = wish.value__jq[some, chosen[some]].astype(np.float64)
    return float(value.sum()) + without * (len(chosen) - len(some))


def _classes(wish: Wishes, sign: float, without: float, gpus__g: Ints) -> _Part:
    jobs, width = wish.value__jq.shape
    gpus = np.broadcast_to(wish.gpus__jq, (jobs, width))
    cost = sign * (wish.value__jq.astype(np.float64) - without)
    useful = (cost < 0) & (gpus <= gpus__g[wish.group__q]) & _better_than_smaller(cost, wish.group__q)
    rows = np.flatnonzero(wish.forced__j)
    useful[rows] = False
    useful[rows, wish.former__j[rows]] = True
    shown = np.where(useful, cost, np.inf)
    keys = np.concatenate([shown, np.where(useful, gpus, 0), wish.forced__j[:, None]], axis=1)
    _, first, member = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    member = member.reshape(-1)
    members = tuple(np.flatnonzero(member == c) for c in range(len(first)))
    of_class, choice = np.nonzero(useful[first])
    example = first[of_class]
    least = np.array([len(jobs) if wish.forced__j[jobs[0]] else 0 for jobs in members], np.int64)
    group = wish.group__q[choice]
    return _Part(members, least, of_class, choice, cost[example, choice], gpus[example, choice], group)


def _better_than_smaller(cost: Floats, group__q: Ints) -> Flags:
    """Whether a choice beats all smaller ones of its GPU model."""
    better = np.ones(cost.shape, np.bool_)
    for group in np.unique(group__q):
        columns = np.flatnonzero(group__q == group)
        least = np.minimum.accumulate(cost[:, columns], axis=1)
        better[:, columns[1:]] = cost[:, columns[1:]] < least[:, :-1]
    return better


def _program(parts: Sequence[_Part], gpus__g: Ints) -> WholeProgram:
    """A row for each GPU model, then one for each class; every column stands in one of both."""
    sizes, row = [], len(gpus__g)
    index, value = [], []
    for part in parts:
        index.append(np.stack([part.group__x, row + part.of_class__x], axis=1))
        value.append(np.stack([part.gpus__x, np.ones_like(part.gpus__x)], axis=1))
        sizes.append(np.array([len(jobs) for jobs in part.members], np.float64))
        row += len(part.members)
    columns = sum(len(part.cost__x) for part in parts)
    least = [part.least__c.astype(np.float64) for part in parts]
    return WholeProgram(
        _joined([part.cost__x for part in parts]),
        _joined([size[part.of_class__x] for size, part in zip(sizes, parts, strict=True)]),
        _joined([np.zeros(len(gpus__g)), *least]),
        _joined([gpus__g.astype(np.float64), *sizes]),
        np.arange(0, 2 * columns + 1, 2, dtype=np.int32),
        _joined(index).astype(np.int32).ravel(),
        _joined(value).astype(np.float64).ravel(),
    )


def _joined(parts: Sequence[npt.NDArray[np.float64] | Ints]) -> Floats:
    return np.concatenate([np.zeros((0, *parts[0].shape[1:])), *parts]) if parts else np.zeros(0)


def _handed_out(part: _Part, count__x: Ints, former__j: Ints) -> Ints:
    """The choice of each job, from how often each class makes it."""
    chosen = np.full(len(former__j), NONE, np.int64)
    for c, jobs in enumerate(part.members):
        columns = np.flatnonzero((part.of_class__x == c) & (count__x > 0))
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
