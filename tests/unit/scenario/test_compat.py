"""Compat switches: systems turn on their own, names turn on one, and anything else is named."""

from __future__ import annotations

import pytest

from fastsim.errors import ScenarioError
from fastsim.scenario import compat
from fastsim.scenario.compat import Switch, switches_on


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three switches of two systems, one of them on by default."""
    known = (Switch("late", "pwr", "x"), Switch("round_down", "fgd", "x"), Switch("strict", "fgd", "x", default=True))
    monkeypatch.setattr(compat, "SWITCHES", known)


@pytest.mark.usefixtures("switches")
@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("", {"strict"}),
        ("pwr", {"strict", "late"}),
        ("fgd", {"strict", "round_down"}),
        (" late , round_down,", {"strict", "late", "round_down"}),
        ("late,late", {"strict", "late"}),
    ],
)
def test_systems_and_names_turn_switches_on(text: str, on: set[str]) -> None:
    assert switches_on(text) == on


@pytest.mark.usefixtures("switches")
def test_an_unknown_word_is_told_what_there_is() -> None:
    with pytest.raises(ScenarioError) as error:
        switches_on("fgd, slurm")
    assert str(error.value) == (
        "compat: found 'slurm', expected one of fgd, gavel, gavel-2020-05, monitored, pwr, synergy, or a switch: "
        "SWITCHES of fastsim.scenario.compat"
    )


def test_the_published_placement_simulators_need_no_switch() -> None:
    assert switches_on("fgd, pwr") == frozenset()


def test_gavel_of_may_2020_differs_in_three_switches() -> None:
    last, printed = switches_on("gavel"), switches_on("gavel-2020-05")
    assert last ^ printed == {"gang_last_chunk_failure", "unowed_pairs", "munkres_ties"}
