"""Executors: order and failures."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from fastsim.errors import FastsimError, InputError
from fastsim.experiments.executors.executor import Serial, Threads


def fail_at_two(number: int) -> int:
    """Fails for one item."""
    if number == 2:
        raise InputError("pods.csv:3: gpu_milli", "-1", "1 to 1000")
    return number


def slow_name(number: int) -> tuple[int, str]:
    """The number, later for smaller ones, and in which thread."""
    time.sleep(0.05 if number == 0 else 0.0)
    return number, threading.current_thread().name


def test_serial_is_lazy_and_in_order() -> None:
    with Serial() as serial:
        answers = serial.map(fail_at_two, [0, 1, 2])
        assert [next(answers), next(answers)] == [0, 1]


@pytest.mark.parametrize("opened", [Serial(), Threads(2)], ids=["serial", "threads"])
def test_a_failure_is_an_outcome_among_others(opened: Any) -> None:
    with opened as spread:
        found = sorted(spread.completed(fail_at_two, range(5)), key=lambda outcome: outcome.at)
    assert [outcome.answer for outcome in found] == [0, 1, None, 3, 4]
    assert [outcome.error is not None for outcome in found] == [False, False, True, False, False]


def test_threads_answer_in_order() -> None:
    with Threads(2) as spread:
        answers = list(spread.map(slow_name, range(6)))
    assert [number for number, _ in answers] == list(range(6))
    assert {name.split("_")[0] for _, name in answers} == {"fastsim"}
    with pytest.raises(FastsimError, match="with"):
        next(Threads(2).map(fail_at_two, [0]))
