"""Options that are lengths of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

BOUNDS: dict[str, Callable[[float], bool]] = {
    "": lambda seconds: True, "of 0 or more": lambda seconds: seconds >= 0, "above 0": lambda seconds: seconds > 0,
}  # fmt: skip
"""Which lengths an option takes; without bounds, what takes the option refuses others."""


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, or a length of time with units, within ``bounds``."""

    name = "duration"

    def __init__(self, bounds: str = "") -> None:
        self.bounds = bounds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The seconds."""
        from fastsim.foundation.limits.quantities import WITH_UNITS, seconds_of

        seconds: float | None
        try:
            seconds = float(value)
        except ValueError:
            seconds = seconds_of(value)
        if seconds is None or not BOUNDS[self.bounds](seconds):
            expected = " ".join(filter(None, ("seconds", self.bounds)))
            self.fail(f"{value!r} is no such length of time: expected {expected}, or {WITH_UNITS}", param, ctx)
        return seconds


DURATION = Duration()
"""The type of options without bounds."""
