"""Whether a pod may join a GPU, decided in three stages: by declared memory, by memory in use, by a forecast.

A pod declares the most memory it may need, and usually needs less. It is admitted if the GPU has so much undeclared
memory. Otherwise the GPU's readings decide. If free memory varies little (a small deviation divided by the mean), the
memory above a percentile of the readings of used memory is available. If it varies but repeats itself, free memory a
few seconds ahead is forecast by a line through the readings and those a lag earlier.

After the published idea of Kube-Knots (Thinakaran et al., "Kube-Knots: Resource Harvesting through Dynamic Container
Orchestration in GPU-based Datacenters", CLUSTER 2019) as a scheduler of the Microlab, NTUA, decides; every number here
equals the one in its logs. Each GPU is judged by its own readings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

from fastsim.errors import PolicyError

OUTCOMES = ("direct", "correlation", "peak", "reject", "not_enough_values")
"""Outcomes: admitted by stage 0, 1 or 2, or not admitted."""


class LinearFit(NamedTuple):
    """A fit `offset + slope * x`."""

    offset: float
    slope: float

    def at(self, x: float) -> float:
        """The value at ``x``."""
        return self.offset + self.slope * x


@dataclass(frozen=True)
class AdmissionOutcome:
    """One of `OUTCOMES`, and every number that led to it; None where a stage was not reached."""

    outcome: str
    variation: float | None = None
    index: int | None = None
    percentile_mib: float | None = None
    harvested_mib: int | None = None
    autocorrelation: float | None = None
    line: LinearFit | None = None
    forecast_mib: int | None = None

    def __bool__(self) -> bool:
        """Whether the pod may join."""
        return self.outcome in OUTCOMES[:3]


@dataclass(frozen=True)
class Admission:
    """The rule and its constants.

    ``capacity_mib`` is the GPU's memory in MiB. Free memory that varies less than ``variation`` lets the
    ``percentile`` of used memory count as use; otherwise it has to repeat itself after ``lag`` readings by more than
    ``autocorrelation``. Readings are ``step_s`` seconds apart; fewer than ``samples`` of them are not enough.
    """

    capacity_mib: int = 32_510
    variation: float = 0.5
    percentile: float = 0.8
    lag: int = 10
    autocorrelation: float = 0.35
    samples: int = 20
    window_s: int = 20
    step_s: int = 1

    def __post_init__(self) -> None:
        bounds = (
            ("capacity_mib", self.capacity_mib >= 1, "1 or more"),
            ("percentile", 0 <= self.percentile < 1, "0 or more, less than 1"),
            ("lag", self.lag >= 1, "1 or more"),
            ("samples", self.samples > 0, "1 or more"),
            ("window_s", self.window_s >= 0, "0 or more"),
            ("step_s", self.step_s >= 1, "1 or more"),
        )
        for name, good, expected in bounds:
            if not good:
                raise PolicyError(f"admission.{name}", getattr(self, name), expected)

    def window(self, now_s: float, placed_s: int) -> tuple[int, int]:
        """First and last second of the readings to look at, both included, given the second of the last placement.

        They reach back to that placement, and at least `window_s`; there is no other bound.
        """
        end = int(now_s)
        return (end - self.window_s if end - placed_s < self.window_s else placed_s), end

    def __call__(
        self, request_mib: int, available_mib: int, free_mib: Sequence[float] = (), used_mib: Sequence[float] = ()
    ) -> AdmissionOutcome:
        """The outcome for a pod that declares `request_mib` on a GPU where `available_mib` are undeclared.

        Readings of free and used memory are in order of time; they may be left out if the first stage is enough.
        """
        if request_mib <= available_mib:
            return AdmissionOutcome("direct")
        if min(len(free_mib), len(used_mib)) < self.samples:
            return AdmissionOutcome("not_enough_values")
        by_use = self._by_use(request_mib, free_mib, used_mib)
        return by_use if by_use else self._by_forecast(request_mib, free_mib, by_use)

    def _by_use(self, request_mib: int, free_mib: Sequence[float], used_mib: Sequence[float]) -> AdmissionOutcome:
        variation = relative_deviation(free_mib)
        if not variation < self.variation:
            return AdmissionOutcome("reject", variation)
        index = int(len(used_mib) * self.percentile)
        used = sorted(used_mib)[index]
        harvested = self.capacity_mib - int(used)
        outcome = "correlation" if request_mib <= harvested else "reject"
        return AdmissionOutcome(outcome, variation, index, used, harvested)

    def _by_forecast(self, request_mib: int, free_mib: Sequence[float], before: AdmissionOutcome) -> AdmissionOutcome:
        known = (before.variation, before.index, before.percentile_mib, before.harvested_mib)
        repeated = autocorrelation(free_mib, self.lag)
        if not repeated > self.autocorrelation:
            return AdmissionOutcome("reject", *known, repeated)
        line = lagged_line(free_mib, self.lag)
        ahead = line.at(free_mib[-1])
        # Readings that do not differ have no line, and so no forecast.
        forecast = int(ahead) if math.isfinite(ahead) else None
        outcome = "peak" if forecast is not None and request_mib <= forecast else "reject"
        return AdmissionOutcome(outcome, *known, repeated, line, forecast)


def total(values: Iterable[float]) -> float:
    """The plain sum from left to right: `sum` compensates for rounding since Python 3.12, the original does not."""
    return reduce(add, values, 0.0)


def quotient(above: float, below: float) -> float:
    """Division as in IEEE 754: 0 / 0 is NaN, other values over 0 are infinite."""
    if below:
        return above / below
    return math.copysign(math.inf, above) * math.copysign(1.0, below) if above and not math.isnan(above) else math.nan


def relative_deviation(values: Sequence[float]) -> float:
    """Standard deviation of all the values, divided by their mean."""
    mean = total(values) / len(values)
    square = total(value * value for value in values) / len(values)
    # Rounding may leave a little less than 0.
    return quotient(math.sqrt(max(square - mean * mean, 0.0)), mean)


def autocorrelation(values: Sequence[float], lag: int) -> float:
    """How much the values repeat those `lag` earlier, at most 1; not a number if they do not differ at all."""
    mean = total(values) / len(values)
    above = total((a - mean) * (b - mean) for a, b in zip(values, values[lag:], strict=False))
    return quotient(above, total((value - mean) * (value - mean) for value in values))


def lagged_line(values: Sequence[float], lag: int) -> LinearFit:
    """The line of least squares from each value to the one `lag` later."""
    pairs = list(zip(values, values[lag:], strict=False))
    count = len(pairs)
    mean_x, mean_y = total(x for x, _ in pairs) / count, total(y for _, y in pairs) / count
    above = total(x * y for x, y in pairs) - count * mean_x * mean_y
    slope = quotient(above, total(x * x for x, _ in pairs) - count * mean_x * mean_x)
    return LinearFit(mean_y - slope * mean_x, slope)
