"""Orders as data: which terms there are, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.orders.plan import MECHANISMS, OrderPlan
from fastsim.errors import PolicyError
from fastsim.scenario.sort_keys import MOST_TERMS, TERMS


def test_terms_have_numbers_and_signs() -> None:
    assert OrderPlan(("-starving", "remaining", "arrival")).terms == [(1, -1.0), (2, 1.0), (0, 1.0)]


def test_the_compiled_loop_knows_as_many() -> None:
    from fastsim_ext.rounds.ordered_jobs import OrderedJobTable

    OrderedJobTable([(0, 1.0)] * MOST_TERMS, memoryview(b"").cast("d"))
    with pytest.raises(ValueError, match="5 terms, expected 1 to 4"):
        OrderedJobTable([(0, 1.0)] * (MOST_TERMS + 1), memoryview(b"").cast("d"))
    assert len(set(TERMS)) == 13 and len(MECHANISMS) == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"order": ("age",)}, "order: found 'age', expected 1 to 4 of arrival, starving"),
        ({"order": ("-priority", "arrival")}, r"found '-priority', .*; the values of a column are column\(priority\)"),
        ({"order": ()}, "order: found 0 terms"),
        ({"order": ("arrival",) * 5}, "order: found 5 terms"),
        ({"mechanism": "half"}, "mechanism: found 'half', expected one of fair, greedy, tune, opt"),
        ({"starving_s": 0.0}, "starving_s: found 0.0, expected seconds above 0"),
        ({"skewed": ("vgg16",)}, "skewed: found vgg16, expected place"),
        ({"admit": 0.0}, "admit: found 0.0, expected a number above 0"),
        ({"level_s": (5.0, 5.0)}, "expected rising GPU seconds"),
    ],
)
def test_nonsense_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        OrderPlan(**{"order": ("arrival",)} | given)


def test_a_checkpoint_tells_all_that_decides() -> None:
    plan = OrderPlan(("arrival",), "fair", True, (1.0,), 5.0, True, True, True, 2.0, None, ("vgg16",))
    assert plan.identity == [["arrival"], "fair", True, [1.0], 5.0, True, True, True, "2.0", ["vgg16"]]
