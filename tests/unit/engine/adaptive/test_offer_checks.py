"""Offers of deciders: plain numbers, and one error for each wrong one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastsim.engine.adaptive.offer_checks import checked_offers
from fastsim.engine.adaptive.plan import Offer
from fastsim.errors import PolicyError

VIEW: Any = SimpleNamespace(now_s=60.0, jobs=[SimpleNamespace(id=3)])
SETTING: Any = SimpleNamespace(groups=(None, None))
GOOD = Offer(3, 1, 2, 8, 1.5, 0.5)


def test_numbers_of_numpy_become_plain_ones() -> None:
    offer = Offer(np.int64(3), np.int32(1), np.int8(2), np.int64(8), np.float32(1.5), np.float64(0.5))  # type: ignore[arg-type]
    (found,) = checked_offers((offer,), VIEW, SETTING, "mine")
    assert found == GOOD and {type(value) for value in found} == {int, float, bool}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"job": 4}, "job: found 4, expected the id of an active job"),
        ({"group": 2}, "group: found 2, expected a number of -1 to 1"),
        ({"nodes": 0}, "nodes: found 0, expected a number of 1 or more"),
        ({"gpus": 1.5}, "gpus: found 1.5, expected a number of 1 or more"),
        ({"value": float("nan")}, "value: found nan, expected a finite number"),
        ({"goodput": "a"}, "goodput: found 'a', expected a finite number"),
    ],
)
def test_wrong_offers_are_named(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(PolicyError, match=f"policy mine at 60 s: offers\\(\\): offer 0: {expected}"):
        checked_offers([GOOD._replace(**changed)], VIEW, SETTING, "mine")
