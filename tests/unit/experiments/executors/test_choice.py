"""Which executor a place and a number of workers mean."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.errors import ScenarioError
from fastsim.experiments.executors.choice import executor, executor_on
from fastsim.experiments.executors.executor import PLACES, Serial
from fastsim.experiments.executors.processes import Processes


def test_the_number_of_workers_decides() -> None:
    assert isinstance(executor(1), Serial) and isinstance(executor(4, items=1), Serial)
    spread = executor(4, items=3)
    assert isinstance(spread, Processes) and spread.workers == 3
    # One that can be ended needs a process of its own.
    assert isinstance(executor_on("processes", 1, most_s=1.0), Processes)
    wrong: Any
    for wrong in (0, -1, True, 1.5, "2", 5000):
        with pytest.raises(ScenarioError, match="workers"):
            executor(wrong)


def test_places_are_checked() -> None:
    for place in PLACES:
        assert executor_on(place, 2, 4).slots >= 1
    with pytest.raises(ScenarioError, match="on: found 'moon', expected one of processes, threads"):
        executor_on("moon")
    with pytest.raises(ScenarioError, match="address: found 'x:1', expected none: threads are on this machine"):
        executor_on("threads", 2, address="x:1")
