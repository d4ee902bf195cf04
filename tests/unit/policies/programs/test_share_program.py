"""The program behind all these policies: its rows by hand, and what rates are compared with."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.policies.programs.job_classes import grouped
from fastsim.policies.programs.share_program import Shares, inverse, isolated_rate, proportional_rate
from fastsim.policies.solvers.highs import Program
from tests.rounds import oracle, setting, view


def dense(program: Program) -> list[list[float]]:
    """The matrix, row after row."""
    rows = program.rows()
    matrix = np.zeros((len(rows.low), len(program.cost)))
    for column in range(len(program.cost)):
        entries = slice(rows.start[column], rows.start[column + 1])
        matrix[rows.row[entries], column] = rows.value[entries]
    found: list[list[float]] = matrix.tolist()
    return found


def test_rows_of_a_program_with_pairs() -> None:
    rates = oracle([[4.0], [8.0]], [[[2.0], [1.0]], [[3.0], [0.0]]], num_gpu=[2, 2])
    seen = view(setting(rates, [6]), [0, 0, 0, 1, 1])
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    program = Shares(seen, groups).program(np.array([1.0, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 0.25]))
    # Three jobs of kind 0, two of kind 1. Columns: alone 0, alone 1, within 0 (mass 1.5), between (mass 2), level.
    assert dense(program) == [
        [4, 0, 2, pytest.approx(1 * 2 / 3), -1],
        [0, 4, 0, 1.5, 0],
        [1, 0, 1, pytest.approx(2 / 3), 0],
        [0, 1, 0, 1, 0],
        [6, 4, 3, 4, 0],
    ]
    assert program.rows().low.tolist() == [0, 0.25, -np.inf, -np.inf, -np.inf]
    assert program.rows().high.tolist() == [np.inf, np.inf, 1, 1, 6]
    assert program.cost.tolist() == [0, 0, 0, 0, 1]
    assert program.high.tolist() == [np.inf] * 5  # the rows of time are bounds enough


def test_a_model_on_which_a_job_does_not_run_is_closed_to_it() -> None:
    seen = view(setting(oracle([[1.0, 0.0]]), [1, 1]), [0])
    groups = grouped(seen, seen.rate__jg, seen.kind)
    program = Shares(seen, groups).program(np.ones(1), np.zeros(1), np.ones(1), np.array([[3.0, 0.0]]))
    assert program.high.tolist() == [np.inf, 0, 0]
    assert program.cost.tolist() == [3, 0, 0]


def test_what_rates_are_compared_with() -> None:
    rate, gpus = np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([3, 1])
    assert proportional_rate(rate, gpus).tolist() == [1.5, 2]
    # Each of two jobs has 1.5 and 0.5 GPUs: as shares of one job with 1 GPU 0.75 and 0.25, with 4 GPUs 0.375 and 0.125.
    assert isolated_rate(rate, np.array([1, 4]), gpus).tolist() == [1.5, 1]
    assert inverse(np.array([4.0, 0.5, 0.0])).tolist() == [0.25, 2, 0]


def test_without_a_rise_and_a_cost_there_is_nothing_to_maximise() -> None:
    seen = view(setting(oracle([[1.0]]), [1]), [0])
    program = Shares(seen, grouped(seen, seen.rate__jg, seen.kind)).program(np.ones(1), np.zeros(1), np.ones(1))
    assert (program.cost.tolist(), program.high.tolist()) == ([0, 0], [np.inf, 0])


def test_a_pair_in_which_one_member_stands_still_is_open() -> None:
    rates = oracle([[1.0], [1.0]], [[[0.0], [0.0]], [[0.5], [0.0]]])
    seen = view(setting(rates, [2]), [0, 1])
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    assert (groups.rate__rg[2:].tolist(), groups.partner_rate__rg[2:].tolist()) == ([[0]], [[0.5]])
    program = Shares(seen, groups).program(np.ones(2), np.ones(2), np.zeros(2))
    assert program.high.tolist() == [np.inf] * 4
