"""Descheduling steps written as text."""

from __future__ import annotations

from typing import Any

from fastsim.engine.online.closing_stages import Deschedule
from fastsim.errors import PolicyError, ScenarioError, suggestion
from fastsim.policies.deschedule import DESCHEDULERS


def deschedule_from(step: Any) -> Deschedule:
    """The step ``"frag_one_pod:0.05"`` (after the run) or ``"cos_sim:0.1@3600"`` (at a time in seconds)."""
    if isinstance(step, Deschedule):
        return step
    expected = "a text such as 'frag_one_pod:0.05' or 'cos_sim:0.1@3600'"
    name, _, rest = str(step).partition(":")
    ratio, at, when = rest.partition("@")
    try:
        share, at_s = float(ratio), float(when) if at else None
    except ValueError:
        raise ScenarioError("deschedule", repr(step), expected) from None
    if not 0 <= share <= 1 or (at_s is not None and not 0 <= at_s < float("inf")):
        raise ScenarioError("deschedule", repr(step), "a ratio from 0 to 1 and a time of 0 or more")
    return Deschedule(_descheduler(name.strip()), share, at_s)


def _descheduler(name: str) -> Any:
    if name not in DESCHEDULERS:
        raise PolicyError(f"deschedule {name!r}", "an unknown name", f"one of {', '.join(DESCHEDULERS)}",
                          suggestion(name, DESCHEDULERS))  # fmt: skip
    return DESCHEDULERS[name]()
