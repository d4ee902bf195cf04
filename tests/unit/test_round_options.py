"""Options of the rounds."""

from __future__ import annotations

import pytest

from fastsim.compat import SWITCHES
from fastsim.errors import ScenarioError
from fastsim.round_options import QUIRKS, RoundOptions


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
    assert set(QUIRKS) <= {switch.name for switch in SWITCHES if switch.system == "gavel"}
