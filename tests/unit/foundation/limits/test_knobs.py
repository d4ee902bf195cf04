"""Tests of the options that multiply work: formulas by hand, and refusals before a run and in it."""

from __future__ import annotations

import math

import pytest

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import FAILURES, INFLATION, KNOBS, READINGS, SAMPLE_S
from fastsim.foundation.limits.work_budget import Work


def test_amounts_by_hand() -> None:
    assert SAMPLE_S.amount(10.0, 0.5) == 20
    assert SAMPLE_S.amount(10.0, 5e-324) == math.inf
    assert READINGS.amount(10.0, 0.5, 3, 7) == 420
    assert FAILURES.amount(100.0, 4, 9.0, 1.0) == 80
    assert INFLATION.amount(4, 1.5) == 6


def test_work_is_refused_by_the_name_of_its_option_before_it_begins_and_in_between() -> None:
    SAMPLE_S.refuse(1e9, 1.0)
    with pytest.raises(ScenarioError, match=r"sample_s: found 2,000,000,000 samples of .*; a longer sample_s"):
        SAMPLE_S.refuse(2e9, 1.0)
    with pytest.raises(ScenarioError, match="sample_s: found 100,000,000 rows of the timeline in memory"):
        SAMPLE_S.refuse(1e8, 1.0, work=Work.HELD_ROWS)
    with pytest.raises(ScenarioError, match=r"failures: found .* until_s ends a run earlier"):
        FAILURES.refuse(1e9, 1e9, 1.0, 1.0)
    with pytest.raises(ScenarioError, match=r"failures: found .* until_s ends a run with what it did"):
        FAILURES.count(1e9)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: f"{knob.name} {knob.work.name}")
def test_every_option_has_a_budget(knob: object) -> None:
    assert getattr(knob, "options", ()) and isinstance(getattr(knob, "work", None), Work)
