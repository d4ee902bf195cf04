"""Values of choices: restarts cost, rounding ties, forced jobs keep what they have."""

from __future__ import annotations

import numpy as np

from fastsim.policies.deciders.sia_values import LARGEST, NONE, keeping, only_former, values


def test_another_restart_costs_less_the_longer_a_job_ran() -> None:
    age, restarts, restart = np.array([10.0, 100.0, 1000.0, 50.0]), np.array([0, 0, 0, 9]), np.full(4, 30.0)
    assert keeping(age, restarts, restart).tolist() == [1.0, 100 / 130, 1000 / 1030, 0.0]
    served = np.array([40.0, 20.0, 40.0, 40.0])
    assert keeping(age, restarts, restart, served).tolist() == [10 / 40, 1.0, 1000 / 1030, 0.0]


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


def test_forced_jobs_have_no_other_choice() -> None:
    goodput = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    found = only_former(goodput, np.array([1, NONE]), np.array([True, False]))
    assert found.tolist() == [[0.0, 2.0], [3.0, 4.0]]
