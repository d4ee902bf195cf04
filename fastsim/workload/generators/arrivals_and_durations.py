"""Arrival times: a Poisson process at a constant rate, or at one that follows the hour and a random hourly factor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from fastsim.errors import ScenarioError
from fastsim.foundation.draws.random_streams import Floats, Ints, Stream, normal_quantile
from fastsim.foundation.limits.knobs import RATE_PER_HOUR

_NANO = 1_000_000_000
_BLOCK = 1024
LEAST_PER_HOUR, MOST_PER_HOUR = 1e-6, 4_000_000
"""Bounds of mean rates: with the largest, a block of hours in billionths of a mean gap stays inside 64 bits."""


def refuse_rate(rate_per_hour: float, arrivals: float) -> None:
    """ScenarioError unless so many arrivals can be drawn at this mean rate (per hour)."""
    if not LEAST_PER_HOUR <= rate_per_hour <= MOST_PER_HOUR:
        expected = f"{LEAST_PER_HOUR:g} to {MOST_PER_HOUR:,} arrivals per hour"
        raise ScenarioError("synth.rate_per_hour", rate_per_hour, expected)
    RATE_PER_HOUR.refuse(arrivals, rate_per_hour)


class PoissonClock:
    """Arrivals at a constant rate (per hour); times are seconds, whole microseconds.

    The time to the next arrival is counted in billionths of a mean gap, an integer, so sums are exact and the same
    on every machine.
    """

    def __init__(self, seed: int, rate_per_hour: float, same_instant: float = 0.0) -> None:
        self.rate_per_hour = rate_per_hour
        self._stretch = _NANO / (1.0 - same_instant)
        self._gaps = Stream(seed, "arrival.gap")
        self._now = 0

    def times(self, together: np.ndarray[Any, np.dtype[np.bool_]]) -> Floats:
        """Times of the next arrivals, seconds, one per flag; a set flag means at the same instant as the one before."""
        gaps = np.rint(self._gaps.exponential(len(together)) * self._stretch).astype(np.int64)
        counted = self._now + np.cumsum(np.where(together, 0, gaps))
        self._now = int(counted[-1]) if len(counted) else self._now
        return _whole_microseconds(self._seconds(counted))

    def _seconds(self, counted: Ints) -> Floats:
        return counted / self.rate_per_hour * (3600.0 / _NANO)


def _whole_microseconds(seconds: Floats) -> Floats:
    exact: Floats = np.rint(seconds * 1e6) / 1e6
    return exact


class SeasonalClock(PoissonClock):
    """Arrivals whose rate follows the hour of the day times a lognormal AR(1) factor that changes every hour."""

    def __init__(
        self,
        seed: int,
        rate_per_hour: float,
        table: Mapping[str, Any],
        same_instant: float = 0.0,
        clip: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(seed, rate_per_hour, same_instant)
        self._day = np.array(table["hour_factor"]) / np.mean(table["hour_factor"])
        self._sd, self._memory = table["hour_log_sd"], table["hour_correlation"]
        self._clip = clip
        self._factors = Stream(seed, "arrival.hour")
        self._log_factor = self._sd * float(self._factors.normal(1)[0])
        self._knots: Ints = np.zeros(1, np.int64)

    def _seconds(self, counted: Ints) -> Floats:
        if len(counted):
            self._add_hours(int(counted[-1]))
        hour = np.searchsorted(self._knots, counted, side="right") - 1
        start, rate = self._knots[hour], np.diff(self._knots)[hour]
        seconds: Floats = 3600.0 * hour + (counted - start) / rate * 3600.0
        return seconds

    def _add_hours(self, counted: int) -> None:
        """Go on by blocks of hours until the arrivals up to this count lie inside one."""
        pieces, hours, last = [self._knots], len(self._knots) - 1, int(self._knots[-1])
        while last <= counted:
            factor = np.exp(self._walk() - self._sd**2 / 2) * self._day[(hours + np.arange(_BLOCK)) % 24]
            if self._clip:
                factor = np.clip(factor, *self._clip)
            rates = np.maximum(np.rint(factor * self.rate_per_hour * _NANO), 1).astype(np.int64)
            pieces.append(last + np.cumsum(rates))
            hours, last = hours + _BLOCK, int(pieces[-1][-1])
        self._knots = np.concatenate(pieces)

    def _walk(self) -> Floats:
        """The logarithm of the hourly factor: each hour keeps a part of the one before."""
        steps = (self._sd * math.sqrt(1 - self._memory**2) * self._factors.normal(_BLOCK)).tolist()
        memory = self._memory
        factors = list(accumulate(steps, lambda factor, step: memory * factor + step, initial=self._log_factor))[1:]
        self._log_factor = factors[-1]
        return np.array(factors)


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
