"""Jobs of the experiments with the metric-driven scheduler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fastsim.errors import ScenarioError
from fastsim.workload.monitored_jobs import LARGEST_GB, declared, gaps_s, slots


def test_gaps_are_whole_seconds_between_both_bounds() -> None:
    assert gaps_s(6) == [33, 23, 36, 39, 29, 39]
    assert {*gaps_s(500)} == set(range(20, 41)) and gaps_s(0) == []
    assert {*gaps_s(50, 5, 5)} == {5} and gaps_s(9, seed=1) != gaps_s(9)


def test_declarations_are_cut() -> None:
    assert [declared(6994, over) for over in (0, 50, 250, 400)] == [6994, 10491, 24479, 32510]
    assert [declared(7, over, LARGEST_GB) for over in (50, 150, 400)] == [10, 17, 31]
    assert [slots(request) for request in (7, 10, 17, 31, 32)] == [4, 3, 1, 1, 0]


@pytest.mark.parametrize(
    "ask",
    [lambda: gaps_s(-1), lambda: gaps_s(1, 40, 20), lambda: declared(-1, 0), lambda: declared(1, -5), lambda: slots(0)],
)
def test_bad_numbers_are_named(ask: Callable[[], object]) -> None:
    with pytest.raises(ScenarioError, match="monitored jobs"):
        ask()
