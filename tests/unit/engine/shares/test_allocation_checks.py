"""Answers of allocators: valid ones become columns, all others one error that says what, where and what is allowed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fastsim.engine.shares.allocation_checks import checked_allocation
from fastsim.engine.shares.plan import ALONE, Allocation, RoundView, SharePlan
from fastsim.errors import PolicyError
from tests.views import setting, view

WHERE = setting((2, 1), [[1.0, 2.0], [1.0, 0.0]], sizes=(1, 2))
IDS = (3, 5, 8)
Returned: Any = Allocation
EACH: Any = np.array(IDS)
"""Any type, since some answers are no allocations for type checkers either."""


def jobs() -> RoundView:
    """Two jobs of one GPU, and one of two GPUs that makes no progress on the second model."""
    return dataclasses.replace(view(WHERE, [0, 0, 1], ids=IDS), now_s=360.0)


class Fixed:
    """One answer for everything."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def allocate(self, view: RoundView) -> Any:
        """It."""
        return self.said

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Any) -> None:
        """Nothing."""


def checked(said: Any, **rules: Any) -> Allocation | None:
    return checked_allocation(SharePlan(Fixed(said), policy="mine", **rules), jobs())


def plain(said: Any, **rules: Any) -> tuple[Any, Allocation | None]:
    """An answer in the view's own column of ids, as most allocators write it, and what the check returns."""
    seen = jobs()
    if isinstance(said, Allocation) and said.first is EACH:
        said = dataclasses.replace(said, first=seen.job_id)
    return said, checked_allocation(SharePlan(Fixed(said), policy="mine", **rules), seen)


def singles(*rows: list[float]) -> Any:
    return Returned.of_singles(EACH, np.array(rows))


def pairs(first: Any, second: Any, *rows: list[float]) -> Any:
    return Returned(np.array(first), np.array(second), np.array(rows))


THIRDS = [[0.3, 0.3]] * 3
WRONG: dict[str, tuple[Any, str, str]] = {
    "an array": (
        np.zeros((3, 2)),
        "allocate(): found an array of float64 with shape (3, 2)",
        "write Allocation.of_singles",
    ),
    "a list": (THIRDS, "allocate(): found [[0.3, 0.3],", "an Allocation or None"),
    "a number": (0.5, "allocate(): found 0.5 (float)", "an Allocation or None"),
    "a dict": ({3: 1.0}, "allocate(): found {3: 1.0} (dict)", "an Allocation or None"),
    "all below 0": (singles(*[[-1.0, -1.0]] * 3), "found share -1 of job 3 on a", "a part of the time, 0 to 1"),
    "all too large": (singles(*[[5.0, 5.0]] * 3), "found share 5 of job 3 on a", "a part of the time, 0 to 1"),
    "one below 0": (singles([0, 0], [0, -2e-6], [0, 0]), "found share -2e-06 of job 5 on b", "0 to 1"),
    "one above 1": (singles([0, 0], [0, 0], [1.001, 0]), "found share 1.001 of job 8 on a", "0 to 1"),
    "no number": (singles([0, 0], [0, np.nan], [0, 0]), "found share nan of job 5 on b", "0 to 1"),
    "without end": (singles([np.inf, 0], [0, 0], [0, 0]), "found share inf of job 3 on a", "0 to 1"),
    "the time": (singles([0.7, 0.31], [0, 0], [0, 0]), "found shares of job 3 that sum to 1.01", "at most 1"),
    "the GPUs": (
        singles([0.5, 0], [0.5, 0], [0.75, 0]),
        "found shares x GPUs of the jobs on a that sum to 2.5",
        "at most its 2 GPUs; a policy that promises more on purpose",
    ),
    "missing rows": (
        pairs([3, 5], [ALONE, ALONE], [0.1, 0.1]),
        "found 2 first jobs, 2 second jobs, shares of shape (1, 2)",
        "shares of shape (2, 2)",
    ),
    "missing columns": (singles(*[[0.1]] * 3), "shares of shape (3, 1)", "shares of shape (3, 2)"),
    "a table for a model": (
        Returned.of_singles(EACH, np.zeros(3)),
        "found an array of float64 with shape (3,)",
        "numbers in an array of 2 dimensions",
    ),
    "ragged": (
        Returned(EACH, np.full(3, ALONE), [[1.0], [0.0, 1.0], []]),
        "share__rg: found [[1.0],",
        "numbers in an array of 2 dimensions",
    ),
    "words": (
        Returned.of_singles(EACH, np.full((3, 2), "0.1")),
        "found an array of <U3 with shape (3, 2)",
        "numbers",
    ),
    "objects": (Returned.of_singles(EACH, np.full((3, 2), None)), "found an array of object", "numbers"),
    "complex": (Returned.of_singles(EACH, np.full((3, 2), 1j)), "found an array of complex128", "numbers"),
    "masked": (
        Returned(EACH, np.full(3, ALONE), np.ma.masked_equal(np.zeros((3, 2)), 0.0)),
        "share__rg: found an array with masked values",
        "fill them: .filled(0.0)",
    ),
    "nothing": (Returned.of_singles(EACH, None), "share__rg: found None", "numbers"),
    "ids of floats": (
        Returned.of_singles(EACH + 0.5, np.array(THIRDS)),
        "first: found an array of float64",
        "whole numbers in an array of 1 dimension",
    ),
    "a job that is not there": (pairs([4], [ALONE], [0.1, 0.1]), "found job 4, which is not active", "view.job_id"),
    "a later job": (pairs([9], [ALONE], [0.1, 0.1]), "found job 9, which is not active", "view.job_id"),
    "a partner that is not there": (pairs([3], [7], [0.1, 0.1]), "found job 7, which is not active", "view.job_id"),
    "a job twice": (pairs([3, 5, 3], [ALONE] * 3, *THIRDS), "found job 3 twice", "one row for each"),
    "a pair twice": (pairs([3, 3], [5, 5], *THIRDS[:2]), "found jobs 3 and 5 twice", "one row for each"),
    "a pair of one": (pairs([3], [3], [0.1, 0.1]), "found first=3, second=3", "another job second"),
    "a pair the other way": (pairs([5], [3], [0.1, 0.1]), "found first=5, second=3", "the smaller id first"),
    "the time of pairs": (
        pairs([3, 3], [ALONE, 5], [0.5, 0.1], [0.3, 0.2]),
        "found shares of job 3 that sum to 1.1",
        "a sum over GPU models and partners of at most 1",
    ),
    "the time of partners": (
        pairs([5, 3], [ALONE, 5], [0.5, 0.1], [0.3, 0.2]),
        "found shares of job 5 that sum to 1.1",
        "at most 1",
    ),
    "a share of a pair": (
        pairs([3, 3], [ALONE, 5], [0.0, 0.0], [-0.5, 0.0]),
        "found share -0.5 of jobs 3 and 5 on a",
        "0 to 1",
    ),
    "seconds of a solver": (
        dataclasses.replace(singles(*THIRDS), solver_s="fast"),
        "solver_s: found 'fast'",
        "a number",
    ),
}
"""Answers that are wrong, with what was found and a part of what is expected."""


@pytest.mark.parametrize("check", [checked, plain])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_one_error_with_policy_and_time(case: str, check: Any) -> None:
    said, found, expected = WRONG[case]
    with pytest.raises(PolicyError) as caught:
        check(said)
    text = str(caught.value)
    assert text.startswith("policy mine at 360 s: ") and found in text and expected in text.partition(", expected ")[2]


def test_the_policy_has_the_name_of_its_allocator_otherwise() -> None:
    with pytest.raises(PolicyError, match=r"^policy Fixed at 360 s: "):
        checked_allocation(SharePlan(Fixed(1)), jobs())


def test_a_plain_answer_is_taken_as_it_is() -> None:
    for shares in ([[0.5, 0.5], [0.0, 0.0], [0.5, 0.0]], [[0.25 + 1e-7, 0.75], [0.0, 0.0], [0.0, 0.0]]):
        said, kept = plain(singles(*shares))
        assert kept is said
    said, kept = plain(singles([1.0, 0], [1.0, 0], [1.0, 0]), overcommitted=True)
    assert kept is said


@pytest.mark.parametrize(
    "change",
    [
        {"share__rg": np.array(THIRDS, np.float32)},
        {"share__rg": np.asfortranarray(THIRDS)},
        {"share__rg": np.array([[-1e-7, 0.0], [0.0, 0.0], [0.0, 0.0]])},
        {"share__rg": np.array([[0.0, 0.5], [0.0, 0.5], [0.0, 1.0]])},
        {"share__rg": THIRDS},
        {"second": [ALONE] * 3},
        {"second": np.full(6, ALONE)[::2]},
        {"solver_s": np.float32(2)},
    ],
)
def test_an_answer_that_is_right_but_not_plain_becomes_columns(change: dict[str, Any]) -> None:
    said, kept = plain(dataclasses.replace(singles(*THIRDS), **change))
    assert kept is not None and kept is not said
    assert kept.share__rg.flags.c_contiguous and kept.share__rg.dtype == np.float64 and kept.share__rg.min() >= 0
    assert kept.second.tolist() == [ALONE] * 3 and kept.second.flags.c_contiguous and type(kept.solver_s) is float


def test_noise_of_solvers_is_no_error() -> None:
    kept = checked(pairs([3, 5, 3], [ALONE, ALONE, 5], [1e-7, -1e-7], [0.5 + 3e-7, 0], [0.5, 3e-7]))
    assert kept is not None
    assert kept.share__rg.tolist() == [[1e-7, 0.0], [0.5 + 3e-7, 0], [0.5, 3e-7]]
    clipped = checked(singles([1 + 1e-7, -1e-7], [0, 0], [0, 0]))
    assert clipped is not None and clipped.share__rg[0].tolist() == [1.0, 0.0]


def test_models_that_a_job_cannot_use_do_not_count() -> None:
    said = singles([0, 0.5], [0, 0.5], [0, 1.0])  # the last job needs two GPUs of b, which has one
    assert checked(said) is not None


def test_promises_beyond_the_gpus_are_a_property_of_the_plan() -> None:
    said = singles([0.5, 0], [0.5, 0], [0.75, 0])
    kept = checked(said, overcommitted=True)
    assert kept is not None and kept.share__rg.tolist() == said.share__rg.tolist()
    with pytest.raises(PolicyError, match=r"that sum to 1\.01"):
        checked(singles([0.7, 0.31], [0, 0], [0, 0]), overcommitted=True)


def test_rows_may_stand_in_any_order_and_some_be_missing() -> None:
    kept = checked(pairs([8, 3], [ALONE, ALONE], [0.5, 0.0], [0.5, 0.5]))
    assert kept is not None and kept.first.tolist() == [8, 3]
    none = checked(Returned(np.zeros(0), np.zeros(0), np.zeros((0, 2))))
    assert none is not None and none.first.dtype == np.int64


def test_an_answer_comes_as_columns() -> None:
    kept = checked(Returned([3], [-1], [[1, 0]], 0.5))
    assert kept is not None
    assert [str(column.dtype) for column in (kept.first, kept.second, kept.share__rg)] == ["int64", "int64", "float64"]
    assert kept.solver_s == 0.5
    assert checked(None) is None
