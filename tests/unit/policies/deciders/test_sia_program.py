"""Sia's program: as good as trying everything, never more GPUs than there are."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.policies.deciders.sia_program import (
    LARGEST,
    NONE,
    SiaInstance,
    best_choices,
    keeping,
    objective_of,
    only_former,
    values,
)
from fastsim.policies.solvers.multiple_choice import ChoiceSolver

SOLVER = ChoiceSolver()
GROUP = np.array([0, 0, 1, 1])
GPUS = np.array([1, 2, 1, 4])


@st.composite
def wish(draw: st.DrawFn, width: int = 4) -> SiaInstance:
    """A few jobs, some of them alike."""
    rows = draw(st.lists(st.lists(st.integers(1, 30), min_size=width, max_size=width), min_size=1, max_size=2))
    picked = draw(st.lists(st.sampled_from(rows), min_size=1, max_size=4))
    former = draw(st.lists(st.integers(-1, width - 1), min_size=len(picked), max_size=len(picked)))
    value = (np.array(picked) / 10).astype(np.float32)
    return SiaInstance(value, GROUP, GPUS, np.array(former, np.int64), np.zeros(len(picked), np.bool_))


def exhaustive(wish: SiaInstance, capacity: list[int], without: float, minimise: bool) -> float:
    """The best objective of all choices there are."""
    found = []
    for choice in product(range(-1, wish.value__jq.shape[1]), repeat=len(wish.value__jq)):
        used = [sum(GPUS[q] for q in choice if q >= 0 and GROUP[q] == g) for g in range(len(capacity))]
        if all(u <= c for u, c in zip(used, capacity, strict=True)):
            found.append(objective_of(wish, np.array(choice), without))
    return min(found) if minimise else max(found)


@given(wish(), st.integers(0, 4), st.integers(0, 6), st.sampled_from([-1.0, 0.5, 1.1]), st.booleans())
@settings(max_examples=60)
def test_as_good_as_trying_everything(one: SiaInstance, a: int, b: int, without: float, minimise: bool) -> None:
    found = best_choices([one], np.array([a, b]), without, SOLVER, minimise)
    assert found.objective == pytest.approx(exhaustive(one, [a, b], without, minimise), abs=1e-6)
    (chosen,) = found.chosen
    used = np.zeros(2, np.int64)
    some = chosen != NONE
    np.add.at(used, GROUP[chosen[some]], GPUS[chosen[some]])
    assert (used <= [a, b]).all()


def test_who_has_a_choice_keeps_it_among_equals() -> None:
    value = np.full((3, 1), 0.5, np.float32)
    wish = SiaInstance(value, np.array([0]), np.array([1]), np.array([NONE, NONE, 0]), np.zeros(3, np.bool_))
    assert best_choices([wish], np.array([1]), 1.1, SOLVER).chosen[0].tolist() == [NONE, NONE, 0]
    assert best_choices([wish], np.array([2]), 1.1, SOLVER).chosen[0].tolist() == [0, NONE, 0]


def test_forced_jobs_keep_what_they_have_at_any_price() -> None:
    value = np.array([[0.1, 9.0], [0.1, 0.2]], np.float32)
    forced = np.array([True, False])
    wish = SiaInstance(value, np.array([0, 0]), np.array([1, 2]), np.array([1, NONE]), forced)
    assert best_choices([wish], np.array([2]), 1.1, SOLVER).chosen[0].tolist() == [1, NONE]
    assert best_choices([wish], np.array([3]), 1.1, SOLVER).chosen[0].tolist() == [1, 0]


def test_jobs_of_fixed_size_have_gpus_of_their_own() -> None:
    value = np.array([[0.5, 0.4], [0.5, 0.4]], np.float32)
    gpus = np.array([[3, 3], [2, 2]])
    wish = SiaInstance(value, np.array([0, 1]), gpus, np.full(2, NONE), np.zeros(2, np.bool_))
    found = best_choices([wish], np.array([3, 2]), 1.1, SOLVER)
    assert found.chosen[0].tolist() == [0, 1]
    assert found.objective == pytest.approx(0.9)


def test_no_jobs_are_no_choice() -> None:
    empty = SiaInstance(np.zeros((0, 4), np.float32), GROUP, GPUS, np.zeros(0, np.int64), np.zeros(0, np.bool_))
    found = best_choices([empty], np.array([1, 1]), 1.1, SOLVER)
    assert (found.chosen[0].tolist(), found.objective) == ([], 0.0)


def test_another_restart_costs_less_the_longer_a_job_ran() -> None:
    age, restarts, restart = np.array([10.0, 100.0, 1000.0, 50.0]), np.array([0, 0, 0, 9]), np.full(4, 30.0)
    assert keeping(age, restarts, restart).tolist() == [1.0, 100 / 130, 1000 / 1030, 0.0]
    served = np.array([40.0, 20.0, 40.0, 40.0])
    assert keeping(age, restarts, restart, served).tolist() == [10 / 40, 1.0, 1000 / 1030, 0.0]


def test_restarts_that_take_no_time_cost_nothing_at_any_age() -> None:
    age, restarts = np.array([0.0, 0.0, 1e-9, 1e9]), np.array([0, 2, 2, 2])
    assert keeping(age, restarts, np.zeros(4)).tolist() == [1.0] * 4
    assert keeping(age, restarts, np.zeros(4), age).tolist() == [1.0] * 4


def test_only_what_a_job_has_is_free_of_a_restart() -> None:
    found = values([[1.0, 4.0], [1.0, 4.0]], [0.25, 0.25], np.array([1, NONE]), -0.5)
    assert found.tolist() == [[2.0, 0.5], [1.0, 0.5]]
    assert values([[4.0, 9.0]], [1.0], np.array([0]), 0.5).tolist() == [[2.0, 3.0]]


def test_large_choices_tie_and_no_goodput_is_cut() -> None:
    found = values([[400.0, 450.0, 0.0]], [1.0], np.array([NONE]), -0.5)
    assert found[0, 0] == found[0, 1] and found[0, 2] == LARGEST


def test_values_are_as_exact_as_goodput() -> None:
    goodput, alone = np.array([[3.0, 7.0]]), (np.array([1.0]), np.array([NONE]), -0.5)
    assert values(goodput, *alone).tolist() == [[0.58, 0.38]]
    single = values(goodput.astype(np.float32), *alone)
    assert single.dtype == np.float32 and (single == np.array([[0.58, 0.38]], np.float32)).all()


def test_values_are_the_same_on_every_cpu() -> None:
    # Powers whose last bit decides the second decimal, and is another with AVX-512: 28.8850010, 36.8349972, 0.95499995.
    goodput = np.array([float.fromhex(text) for text in ("0x1.3a3128p-10", "0x1.826906p-11", "0x1.18b1b0p+0")])
    single = values(goodput.astype(np.float32)[:, None], np.ones(3), np.full(3, NONE), -0.5)
    assert single.ravel() == pytest.approx([28.88, 36.84, 0.95], abs=1e-6)


def test_forced_jobs_have_no_other_choice() -> None:
    goodput = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    found = only_former(goodput, np.array([1, NONE]), np.array([True, False]))
    assert found.tolist() == [[0.0, 2.0], [3.0, 4.0]]
