"""Shares of a few values: one uniform number picks one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fastsim.errors import ScenarioError

Given = Mapping[float, float] | Mapping[int, float] | str
"""Value -> share, or the same as text: `1:0.7,2:0.3`."""


@dataclass(frozen=True)
class Mix:
    """Values and the upper ends of their shares of the unit interval; the last end is 1 and not written."""

    values: tuple[float, ...]
    edges: tuple[float, ...]

    @classmethod
    def of(cls, given: Given, where: str) -> Mix:
        """The mix somebody asked for; shares must be positive and add up to 1, `where` names the option."""
        if not isinstance(given, str | Mapping):
            raise ScenarioError(where, repr(given), "values and their shares, such as 1:0.7,2:0.3")
        shares = _parsed(given, where) if isinstance(given, str) else dict(given)
        # Decimal arithmetic: 0.7 + 0.1 is to be the float 0.8, as a reader of the shares expects.
        exact = [Fraction(str(share)) for share in shares.values()]
        if not shares or min(exact) <= 0 or sum(exact) != 1:
            raise ScenarioError(where, dict(shares), "positive shares that add up to 1")
        edges = [float(sum(exact[: i + 1])) for i in range(len(exact) - 1)]
        return cls(tuple(shares), tuple(edges))

    def picks(self, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Position of the value that each uniform number picks.

        An edge belongs to the value above it. The original gives some edges to the value below, a difference that one
        draw in 2**53 can show.
        """
        found: npt.NDArray[np.int64] = np.searchsorted(self.edges, uniform, "right")
        return found

    def at(self, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The value that each uniform number picks."""
        return np.array(self.values, np.float64)[self.picks(uniform)]

    def shares(self) -> dict[str, float]:
        """Value -> upper end of its share, as JSON takes it."""
        return {f"{value:g}": edge for value, edge in zip(self.values, (*self.edges, 1.0), strict=True)}


def _parsed(text: str, where: str) -> dict[float, float]:
    try:
        pairs = [word.split(":") for word in text.split(",")]
        found = {float(value): float(share) for value, share in pairs}
    except ValueError:
        raise ScenarioError(where, repr(text), "value:share, more of them after a comma") from None
    if len(found) < len(pairs):
        raise ScenarioError(where, repr(text), "every value once")
    return found
