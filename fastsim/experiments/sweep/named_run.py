"""A run of a sweep before it is played: its name, what distinguishes it, its scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fastsim.scenario.scenario import Scenario


class Run(NamedTuple):
    """One run of a sweep: its folder's name, its values of the listed keys, and the scenario."""

    name: str
    listed: dict[str, Any]
    scenario: Scenario
