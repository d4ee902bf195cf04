"""What policies see and what may be answered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastsim.engine.rounds.records import GANG
from fastsim.engine.shares.dialogue import answer, view_of
from fastsim.engine.shares.plan import Allocation, SharePlan
from fastsim.errors import PolicyError
from tests.views import setting, view

WHERE = setting((2, 1), [[1.0, 2.0]])


class Fixed:
    """One answer for everything."""

    def __init__(self, said: Allocation | None) -> None:
        self.said = said

    def allocate(self, view: Any) -> Allocation | None:
        """It."""
        return self.said

    def kept(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restored(self, kept: Any) -> None:
        """Nothing."""


def rows() -> Any:
    made = np.zeros(3, GANG)
    made["id"], made["total"], made["run"], made["tenant"] = [4, 5, 9], 10, [0, 3, 10], [1, -1, 0]
    return made


def test_a_view_does_not_change_with_the_loop() -> None:
    records = rows()
    price = np.array([1.0, 2.0])
    seen = view_of(records, WHERE, 7.0, price, ["red", "blue"])
    records["id"] = price[:] = 0
    assert seen.job_id.tolist() == [4, 5, 9]
    assert seen.steps_left.tolist() == [10, 7, 0]
    assert seen.price__g.tolist() == [1, 2]
    assert seen.tenant == ("blue", "", "red")
    assert view_of(records, WHERE, 7.0, price, ()).tenant == ()


def test_an_answer_comes_as_columns() -> None:
    said = Allocation([0], [-1], [[1, 0]], 0.5)  # type: ignore[arg-type]
    found = answer(SharePlan(Fixed(said)), view(WHERE, [0]))
    assert found is not None
    columns = (found.first, found.second, found.share__rg)
    assert [str(column.dtype) for column in columns] == [
        "int64",
        "int64",
        "float64",
    ]
    assert found.solver_s == 0.5
    assert answer(SharePlan(Fixed(None)), view(WHERE, [0])) is None


@pytest.mark.parametrize("share", [[[1.0]], [[-0.1, 0.0]], [[np.inf, 0.0]], [[np.nan, 0.0]], [[0, 1], [0, 1]]])
def test_shares_that_are_none_are_refused(share: list[list[float]]) -> None:
    said = Allocation(np.array([0]), np.array([-1]), np.array(share))
    with pytest.raises(PolicyError, match="allocation: found shares that are no numbers of 0 or more"):
        answer(SharePlan(Fixed(said)), view(WHERE, [0]))
