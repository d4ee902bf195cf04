"""Options of the rounds."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.engine.rounds.options import LATE_SHARES, QUIRKS, RoundOptions
from fastsim.engine.shares.plan import SharePlan
from fastsim.errors import ScenarioError
from fastsim.scenario.compat import SWITCHES
from tests.unit.reference.rounds.test_share_rounds import Fixed


@pytest.mark.parametrize(
    ("field", "value"),
    [("round_s", 0.0), ("round_s", float("inf")), ("realloc_s", -1.0), ("restart_s", 400.0), ("window", (5, 5))],
)
def test_options_without_sense_are_refused(field: str, value: object) -> None:
    with pytest.raises(ScenarioError, match=field):
        RoundOptions(**{field: value})  # type: ignore[arg-type]


def test_quirks_are_off_unless_asked_for() -> None:
    assert not any(RoundOptions().quirk(name) for name in QUIRKS)
    assert RoundOptions(compat=frozenset({"whole_steps"})).quirk("whole_steps")


def test_every_quirk_is_a_compat_switch() -> None:
    assert {*QUIRKS, LATE_SHARES} <= {switch.name for switch in SWITCHES if switch.system.startswith("gavel")}


@pytest.mark.parametrize(
    ("traits", "options", "expected"),
    [
        ({}, {}, 1920.0),
        ({"strict": True}, {}, 0.0),
        ({"prompt": True}, {}, 0.0),
        ({"strict": True}, {"compat": frozenset({LATE_SHARES})}, 1920.0),
        ({"strict": True}, {"realloc_s": 700.0}, 700.0),
        ({}, {"realloc_s": 0.0}, 0.0),
    ],
)
def test_allocations_are_apart_unless_somebody_would_wait_for_one(
    traits: dict[str, bool], options: dict[str, Any], expected: float
) -> None:
    plan = SharePlan(Fixed([1.0]), **traits)  # type: ignore[arg-type]
    assert RoundOptions(**options).gap_s(plan) == expected
