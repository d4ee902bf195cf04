"""Sia with the picks of its published simulator among equal choices: its program row by row, for the same solver.

    minimise sum of (value[j, q] - lambda) * x[j, q]             one column for each choice q of each job j
    x[j, former] = 1                                              jobs in a restart
    0 <= x,  x <= 1                                               a row for each column and bound
    sum of gpus * x <= there are,  sum of gpus * x >= 0           each GPU model
    sum over q of x[j, q] <= 1                                    each job

Choices come one after the other, each for all jobs; those of jobs that adapt before those of jobs of fixed size, whose
own rows come first. That order was found by experiment: with it the solver picks the recorded choices in every round of
every recorded run; without the rows that keep GPUs in use non-negative it fails in two of 3,498 rounds.
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
    """Sia whose pick among equal choices is that of CBC."""

    staying: float = 0.0
    cbc: CbcSolver = field(default_factory=CbcSolver)

    @property
    def solver_s(self) -> float:
        """CPU seconds in the program."""
        return self.cbc.spent_s

    def best(self, instances: Sequence[SiaInstance]) -> SiaChoices:
        """The best choices, CBC's among equal ones."""
        return recorded_choices(instances, self.configurations.gpus__g, self.unserved, self.cbc, self.power < 0)

    def state(self) -> dict[str, Any]:
        """State of Sia, with the CPU seconds of CBC."""
        return {**super().state(), "spent_s": self.cbc.spent_s}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().restore(state)
        self.cbc.spent_s = state["spent_s"]


def recorded_choices(
    instances: Sequence[SiaInstance], gpus__g: Ints, without: float, solver: CbcSolver, minimise: bool = True
) -> SiaChoices:
    """The choices that CBC makes for instances, that of fixed sizes first.

    ``without`` is the term of a job without one in the objective.
    """
    program = recorded_program(instances, gpus__g, without, minimise)
    taken = solver.minimum(program, "Sia's choice of configurations") if len(program.cost) else np.zeros(0, np.int64)
    chosen = tuple(_first_taken(taken[columns]) for columns in _columns(instances))
    objective = sum(
        objective_of(instance, choices, without) for instance, choices in zip(instances, chosen, strict=True)
    )
    return SiaChoices(chosen, objective)


def recorded_program(
    instances: Sequence[SiaInstance], gpus__g: Ints, without: float, minimise: bool = True
) -> FreeProgram:
    """The program of instances, that of fixed sizes first."""
    columns = _columns(instances)
    every = np.arange(sum(at.size for at in columns))
    cost, gpus, group = np.zeros(len(every)), np.zeros(len(every)), np.zeros(len(every), np.int64)
    for instance, at in zip(instances, columns, strict=True):
        worth = instance.value__jq.astype(np.float64) - without
        cost[at], gpus[at], group[at] = worth if minimise else -worth, instance.gpus__jq, instance.group__q
    held = [
        at[instance.forced__j, instance.former__j[instance.forced__j]]
        for instance, at in zip(instances, columns, strict=True)
    ]
    fixed = np.concatenate([np.zeros(0, np.int64), *held])
    rows = [
        _Rows(np.arange(len(fixed)), fixed, np.ones(len(fixed)), np.ones(len(fixed))),
        _Rows(every, every, -np.ones(len(every)), np.zeros(len(every))),
        _Rows(every, every, np.ones(len(every)), np.ones(len(every))),
        _Rows(group, every, gpus, gpus__g.astype(np.float64)),
        _Rows(group, every, -gpus, np.zeros(len(gpus__g))),
        *(_Rows(np.arange(len(at)).repeat(at.shape[1]), at.ravel(), np.ones(at.size), np.ones(len(at)))
          for at in columns),
    ]  # fmt: skip
    return _stacked(cost, rows, len(fixed))


class _Rows(NamedTuple):
    """Rows of one kind: entries, and the upper bound of each row."""

    row: Ints
    column: Ints
    value: Floats
    high: Floats


def _stacked(cost: Floats, rows: Sequence[_Rows], equal: int) -> FreeProgram:
    """The program with these rows one below the other; the first ``equal`` rows equal their upper bounds."""
    first = np.cumsum([0, *(len(some.high) for some in rows)])
    high = np.concatenate([some.high for some in rows])
    return FreeProgram(
        cost=cost,
        row=np.concatenate([some.row + start for some, start in zip(rows, first, strict=False)]).astype(np.int32),
        column=np.concatenate([some.column for some in rows]).astype(np.int32),
        value=np.concatenate([some.value for some in rows]),
        row_low=np.where(np.arange(len(high)) < equal, high, -np.inf),
        row_high=high,
    )


def _columns(instances: Sequence[SiaInstance]) -> list[Ints]:
    """The columns of each instance, by job (axis 0) and choice: those of the last instance come first."""
    columns: list[Ints] = []
    for instance in reversed(instances):
        jobs, choices = instance.value__jq.shape
        start = sum(at.size for at in columns)
        columns.insert(0, start + np.arange(jobs * choices).reshape(choices, jobs).T)
    return columns


def _first_taken(taken__jq: Ints) -> Ints:
    """The choice of each job."""
    return np.where(taken__jq.any(axis=1), taken__jq.argmax(axis=1), NONE)
