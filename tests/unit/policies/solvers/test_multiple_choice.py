"""Programs of choices: the search and HiGHS agree, forced classes keep theirs, programs are solved once."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.errors import SolverError
from fastsim.policies.solvers.multiple_choice import ChoiceProgram, ChoiceSolver

GPUS = [1, 2, 4, 8]


@st.composite
def program(draw: st.DrawFn) -> ChoiceProgram:
    """Classes of jobs with sizes that double, on two GPU models; costs in hundredths."""
    classes = draw(st.integers(0, 12))
    cost, gpus, group, width, forced = [], [], [], [], []
    for _ in range(classes):
        held = draw(st.integers(0, 9)) == 0
        options = draw(st.integers(1, 1 if held else 6))
        at = draw(st.permutations(range(8)))[:options]
        width.append(options)
        forced.append(held)
        cost += [draw(st.integers(-110, -1)) / 100 for _ in at]
        gpus += [GPUS[option % 4] for option in at]
        group += [option // 4 for option in at]
    count = [draw(st.integers(1, 3)) for _ in range(classes)]
    first = np.cumsum([0, *width])
    room = np.array(draw(st.tuples(st.integers(24, 60), st.integers(24, 60))), np.int64)
    return ChoiceProgram(
        np.array(cost, np.float64), np.array(gpus, np.int64), np.array(group, np.int64), first,
        np.array(count, np.int64), np.array(forced, np.bool_), room,
    )  # fmt: skip


def used(p: ChoiceProgram, taken: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    return [int((p.gpus__x * taken)[p.group__x == g].sum()) for g in range(len(p.room__g))]


@given(program(), st.sampled_from([0.01, 0.0]))
@settings(max_examples=60, deadline=None)
def test_the_search_is_as_good_as_highs(p: ChoiceProgram, step: float) -> None:
    needed = [int(n) * int(p.gpus__x[x]) for n, x, f in zip(p.count__c, p.first__c, p.forced__c, strict=False) if f]
    if sum(needed) > p.room__g.min():
        return
    solver, highs = ChoiceSolver(), ChoiceSolver(searched=False)
    found, theirs = solver.minimum(p, step), highs.minimum(p, step)
    assert p.cost__x @ found == pytest.approx(p.cost__x @ theirs, abs=1e-6)
    crowded = 2 * len(set(p.cost__x.tolist())) <= len(p.cost__x)  # so many equals may be too many to search
    assert (crowded or solver.given_up == 0) and highs.given_up == 1
    assert all(u <= r for u, r in zip(used(p, found), p.room__g, strict=True))
    for c, n in enumerate(p.count__c):
        taken = int(found[p.first__c[c] : p.first__c[c + 1]].sum())
        assert taken == n if p.forced__c[c] else taken <= n


def forced(room: int) -> ChoiceProgram:
    """A forced job of 2 GPUs that is worth little, and one that is worth more."""
    return ChoiceProgram(
        np.array([-0.1, -0.9]), np.array([2, 2]), np.array([0, 0]), np.array([0, 1, 2]), np.array([1, 1]),
        np.array([True, False]), np.array([room]),
    )  # fmt: skip


def test_forced_classes_come_first() -> None:
    assert ChoiceSolver().minimum(forced(2), 0.01).tolist() == [1, 0]
    assert ChoiceSolver().minimum(forced(4), 0.01).tolist() == [1, 1]
    with pytest.raises(SolverError, match="sample: found no feasible point"):
        ChoiceSolver().minimum(forced(1), 0.01, "sample")


def test_costs_moved_off_their_step_break_ties() -> None:
    p = ChoiceProgram(
        np.array([-0.5, -0.5 - 1e-6]), np.array([1, 1]), np.array([0, 0]), np.array([0, 1, 2]), np.array([1, 1]),
        np.array([False, False]), np.array([1]), 1e-6,
    )  # fmt: skip
    assert ChoiceSolver().minimum(p, 0.01).tolist() == [0, 1]


def test_a_program_is_solved_once() -> None:
    solver = ChoiceSolver(searched=False)
    assert np.array_equal(solver.minimum(forced(4), 0.01), solver.minimum(forced(4), 0.01))
    assert (solver.given_up, len(solver.known)) == (1, 1)
