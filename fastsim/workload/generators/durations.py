"""Service times: truncated mixtures of lognormals, their means, and what is left of them for pods already running."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastsim.foundation.random_streams import Floats, normal_quantile


@dataclass(frozen=True)
class Mixture:
    """Lognormal components (of seconds, natural logarithm) that together stay below `limit_s`.

    `weight` is the share of each component before truncation.
    """

    weight: tuple[float, ...]
    mu: tuple[float, ...]
    sigma: tuple[float, ...]
    limit_s: float

    @classmethod
    def of(cls, table: Mapping[str, Any], limit_s: float) -> Mixture:
        """A mixture from a table with the lists weight, mu and sigma."""
        return cls(tuple(table["weight"]), tuple(table["mu"]), tuple(table["sigma"]), limit_s)

    def mean(self) -> float:
        """Mean in seconds."""
        return sum(share * mean for share, mean in zip(self._shares(), self._means(), strict=True))

    def length_biased(self) -> Mixture:
        """Total durations of the pods found running at a random instant: long ones are met more often."""
        biased = [w * math.exp(m + s * s / 2) for w, m, s in zip(self.weight, self.mu, self.sigma, strict=True)]
        whole = sum(biased)
        moved = tuple(m + s * s for m, s in zip(self.mu, self.sigma, strict=True))
        return Mixture(tuple(b / whole for b in biased), moved, self.sigma, self.limit_s)

    def at(self, which: Floats, where: Floats) -> Floats:
        """Durations in seconds for uniform numbers: `which` picks the component, `where` the place inside it."""
        component = np.searchsorted(np.cumsum(self._shares())[:-1], which, side="right")
        mu, sigma = np.array(self.mu)[component], np.array(self.sigma)[component]
        seconds: Floats = np.exp(mu + sigma * normal_quantile(where * np.array(self._below())[component]))
        return np.minimum(seconds, self.limit_s)

    def _below(self) -> list[float]:
        """Chance that each component is below the limit."""
        pairs = zip(self.mu, self.sigma, strict=True)
        return [normal_cdf((math.log(self.limit_s) - m) / s) for m, s in pairs]

    def _shares(self) -> list[float]:
        mass = [w * below for w, below in zip(self.weight, self._below(), strict=True)]
        return [m / sum(mass) for m in mass]

    def _means(self) -> list[float]:
        log_limit = math.log(self.limit_s)
        return [
            math.exp(m + s * s / 2) * normal_cdf((log_limit - m - s * s) / s) / below
            for m, s, below in zip(self.mu, self.sigma, self._below(), strict=True)
        ]


def normal_cdf(x: float) -> float:
    """The chance that a standard normal variable stays below `x`."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
