"""The solver HiGHS, silent from its first moment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from fastsim.errors import SolverError


def silent_highs(options: Mapping[str, Any]) -> Any:
    """A solver with these options; SolverError if the installed one does not know them."""
    import highspy

    highs = _silent_class()()
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            found = f"an installation that does not know {name}={value}"
            raise SolverError(f"HiGHS {highs.version()}: found {found}, expected 1.12 or newer")
    return highs


@cache
def _silent_class() -> Any:
    import highspy

    base: Any = highspy.Highs

    class SilentHighs(base):  # type: ignore[misc]
        """Says nothing on standard output, which belongs to results."""

        def enableCallbacks(self) -> Any:
            # From 1.16 on the constructor comes by here, and prints a banner unless the flag is off by then.
            self.setOptionValue("output_flag", False)
            return super().enableCallbacks()

    return SilentHighs
