"""Compat switches: behaviours of an original system that a clean design would not choose.

A switch is a named boolean that is off by default; ``compat="gavel"`` turns on a system's set. The
FGD and PWR simulators need none: everything they do that changes a placement is part of the
published definition of their policies and is what fastsim does without being asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastsim.errors import ScenarioError


@dataclass(frozen=True)
class Switch:
    """One behaviour: its name, the system it comes from, what it does, and whether it is on by default."""

    name: str
    system: str
    what: str
    default: bool = False


SYSTEMS = ("fgd", "pwr")
"""Systems whose name ``compat=`` accepts, with or without switches of their own."""

SWITCHES: tuple[Switch, ...] = ()
"""Every switch the engine honours."""


def switches_on(compat: str) -> frozenset[str]:
    """Names of the switches that ``compat`` turns on: systems and switch names, separated by commas."""
    asked = [word.strip() for word in compat.split(",") if word.strip()]
    known = {*SYSTEMS, *(switch.name for switch in SWITCHES)}
    for word in asked:
        if word not in known:
            raise ScenarioError("compat", repr(word), f"one of {', '.join(sorted(known))}")
    chosen = {switch.name for switch in SWITCHES if switch.default or {switch.name, switch.system} & set(asked)}
    return frozenset(chosen)
