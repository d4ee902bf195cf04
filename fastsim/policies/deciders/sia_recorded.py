"""Sia with the picks of its published simulator among equal choices: its program row by row, for the same solver.

    minimise sum of (value[j, q] - lambda) * x[j, q]             one column for each choice q of each job j
    x[j, former] = 1                                              jobs in a restart
    0 <= x,  x <= 1                                               a row for each column and bound
    sum of gpus * x <= there are,  sum of gpus * x >= 0           each GPU model
    sum over q of x[j, q] <= 1                                    each job

Choices come one after the other, each for all jobs; those of jobs that adapt before those of jobs of fixed size, whose
own rows come first. That order was found by trying: with it the solver picks what was recorded in every round of every
recorded run; without the rows that GPUs in use are not negative it does not in two of 3,498 rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fastsim.policies.deciders.sia_decider import SiaDecider
from fastsim.policies.deciders.sia_program import NONE, Floats, Ints, SiaChoices, SiaInstance, objective_of
from fastsim.policies.solvers.cbc import CbcSolver, FreeProgram


@dataclass
class RecordedSiaDecider(SiaDecider):
    """Sia that leaves it to CBC which of equal choices is picked."""

    staying: float = 0.0
    cbc: CbcSolver = field(default_factory=CbcSolver)

    @property
    def solver_s(self) -> float:
        """CPU seconds in the program."""
        return self.cbc.spent_s

    def best(self, wishes: Sequence[SiaInstance]) -> SiaChoices:
        """The best choices, CBC's among equal ones."""
        return recorded_choices(wishes, self.configurations.gpus__g, self.unserved, self.cbc, self.power < 0)

    def kept(self) -> dict[str, Any]:
        """What every job has, and the CPU seconds."""
        return {**super().kept(), "spent_s": self.cbc.spent_s}

    def restored(self, kept: Mapping[str, Any]) -> None:
        """Take it back."""
        super().restored(kept)
        self.cbc.spent_s = kept["spent_s"]


def recorded_choices(
    wishes: Sequence[SiaInstance], gpus__g: Ints, without: float, solver: CbcSolver, minimise: bool = True
) -> SiaChoices:
    """The choices that CBC makes for lists of jobs, those of fixed size first.

    ``without`` is what a job without one adds to the objective.
    """
    program = recorded_program(wishes, gpus__g, without, minimise)
    taken = solver.minimum(program, "Sia's choice of configurations") if len(program.cost) else np.zeros(0, np.int64)
    chosen = tuple(_first_taken(taken[columns]) for columns in _columns(wishes))
    objective = sum(objective_of(wish, found, without) for wish, found in zip(wishes, chosen, strict=True))
    return SiaChoices(chosen, objective)


def recorded_program(
    wishes: Sequence[SiaInstance], gpus__g: Ints, without: float, minimise: bool = True
) -> FreeProgram:
    """The program of lists of jobs, those of fixed size first."""
    columns = _columns(wishes)
    every = np.arange(sum(at.size for at in columns))
    cost, gpus, group = np.zeros(len(every)), np.zeros(len(every)), np.zeros(len(every), np.int64)
    for wish, at in zip(wishes, columns, strict=True):
        worth = wish.value__jq.astype(np.float64) - without
        cost[at], gpus[at], group[at] = worth if minimise else -worth, wish.gpus__jq, wish.group__q
    held = [at[wish.forced__j, wish.former__j[wish.forced__j]] for wish, at in zip(wishes, columns, strict=True)]
    kept = np.concatenate([np.zeros(0, np.int64), *held])
    rows = [
        _Rows(np.arange(len(kept)), kept, np.ones(len(kept)), np.ones(len(kept))),
        _Rows(every, every, -np.ones(len(every)), np.zeros(len(every))),
        _Rows(every, every, np.ones(len(every)), np.ones(len(every))),
        _Rows(group, every, gpus, gpus__g.astype(np.float64)),
        _Rows(group, every, -gpus, np.zeros(len(gpus__g))),
        *(_Rows(np.arange(len(at)).repeat(at.shape[1]), at.ravel(), np.ones(at.size), np.ones(len(at)))
          for at in columns),
    ]  # fmt: skip
    return _stacked(cost, rows, len(kept))


class _Rows(NamedTuple):
    """Rows of one kind: entries, and what each row is at most."""

    row: Ints
    column: Ints
    value: Floats
    high: Floats


def _stacked(cost: Floats, rows: Sequence[_Rows], equal: int) -> FreeProgram:
    """The program with these rows one below the other; the first ``equal`` are as much as they are at most."""
    first = np.cumsum([0, *(len(some.high) for some in rows)])
    high = np.concatenate([some.high for some in rows])
    return FreeProgram(
        cost,
        np.concatenate([some.row + start for some, start in zip(rows, first, strict=False)]).astype(np.int32),
        np.concatenate([some.column for some in rows]).astype(np.int32),
        np.concatenate([some.value for some in rows]),
        np.where(np.arange(len(high)) < equal, high, -np.inf),
        high,
    )


def _columns(wishes: Sequence[SiaInstance]) -> list[Ints]:
    """Of each list the columns of its jobs (axis 0) and choices: the last list comes first."""
    found: list[Ints] = []
    for wish in reversed(wishes):
        jobs, choices = wish.value__jq.shape
        start = sum(at.size for at in found)
        found.insert(0, start + np.arange(jobs * choices).reshape(choices, jobs).T)
    return found


def _first_taken(taken__jq: Ints) -> Ints:
    """The choice of each job."""
    return np.where(taken__jq.any(axis=1), taken__jq.argmax(axis=1), NONE)
