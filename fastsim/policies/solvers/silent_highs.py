"""The solver HiGHS: silent from its first moment, and ended by Ctrl-C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from fastsim.errors import SolverError
from fastsim.foundation import interrupts

LARGE = 1000
"""Columns from which on a linear program checks for Ctrl-C between two steps, which costs some microseconds."""


def silent_highs(options: Mapping[str, Any]) -> Any:
    """A solver with these options; SolverError if the installed one does not know them."""
    import highspy

    highs = _silent_class()()
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            found = f"an installation that does not know {name}={value}"
            raise SolverError(f"HiGHS {highs.version()}: found {found}, expected 1.12 or newer")
    highs.cbMipInterrupt.subscribe(_end_if_pending)
    return highs


def solve(highs: Any) -> None:
    """Run the solver on the program that it was given; Ctrl-C ends it between two steps."""
    if highs.getNumCol() >= LARGE and not highs.watched:
        highs.watched = True
        highs.cbSimplexInterrupt.subscribe(_end_if_pending)
    highs.run()
    interrupts.check()


def _end_if_pending(event: Any) -> None:
    if interrupts.pending():
        event.interrupt()


@cache
def _silent_class() -> Any:
    import highspy

    base: Any = highspy.Highs

    class SilentHighs(base):  # type: ignore[misc]
        """Prints nothing on standard output, which belongs to results."""

        watched = False
        """Whether linear programs check for Ctrl-C between two steps."""

        def enableCallbacks(self) -> Any:
            # From 1.16 on the constructor comes by here, and prints a banner unless the flag is off by then.
            self.setOptionValue("output_flag", False)
            return super().enableCallbacks()

    return SilentHighs
