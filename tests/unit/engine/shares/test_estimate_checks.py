"""Answers of estimates: right ones become numbers; what is refused is in tests/unit/test_returned_answers."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.engine.shares.estimate_checks import checked_kind, checked_pair_rates
from fastsim.errors import PolicyError


def test_any_whole_number_of_a_kind_is_one() -> None:
    assert [type(checked_kind(kind, 3, "mine")) for kind in (0, np.int8(2))] == [int, int]
    with pytest.raises(PolicyError, match=r"^mine: arrive\(\): found 3 \(int\), expected a kind .*, 0 to 2$"):
        checked_kind(3, 3, "mine")


def test_tables_of_numbers_are_rates() -> None:
    own = np.ones((2, 3))
    one, two = checked_pair_rates((own, [[1, 0, 2]] * 2), 2, 3, "mine")
    assert one is own and two.dtype == np.float64 and two.tolist() == [[1.0, 0.0, 2.0]] * 2
    none, _ = checked_pair_rates((np.zeros((0, 3)),) * 2, 0, 3, "mine")
    assert none.shape == (0, 3)
    with pytest.raises(PolicyError, match=r"^mine: found a rate of -2 steps/s, expected two tables"):
        checked_pair_rates((own, -2 * own), 2, 3, "mine")
