"""Habits: what a column would save, from how often and how dearly something is asked for."""

from __future__ import annotations

import pytest

from fastsim_ext.select.class_frequency import FrequencyTable


def test_a_steady_habit_saves_its_cost_by_frequency() -> None:
    habit = FrequencyTable()
    for change in range(0, 100_000, 50):  # every 50 changes, at 1,000 ns: 20 ns a change
        habit.charge(change, 4096, 1000)
    assert habit.rate(100_000, 4096) == pytest.approx(20, rel=0.02)


def test_the_first_questions_are_not_taken_for_rare() -> None:
    habit = FrequencyTable()
    for change in (100, 200, 300):  # the window is far from full, yet one question in 100 changes is seen
        habit.charge(change, 32768, 1000)
    assert habit.rate(300, 32768) == pytest.approx(10, rel=0.1)


def test_questions_answered_by_a_column_keep_what_it_saves() -> None:
    habit = FrequencyTable()
    habit.charge(10, 4096, 800)
    before = habit.rate(10, 4096)
    habit.charge(10, 4096, 0)
    assert habit.rate(10, 4096) == pytest.approx(2 * before)


def test_a_habit_nobody_keeps_fades_by_half_in_a_window() -> None:
    habit = FrequencyTable()
    habit.charge(10**6, 4096, 1000)
    assert habit.rate(10**6 + 4096, 4096) == pytest.approx(habit.rate(10**6, 4096) / 2)


def test_three_questions_make_a_habit() -> None:
    habit, seen = FrequencyTable(), []
    for _ in range(4):
        habit.charge(1, 4096, 1000)
        seen.append(habit.settled)
    assert seen == [False, False, True, True]
