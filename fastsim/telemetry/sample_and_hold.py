"""Times at which an exporter refreshes its readings; between them it repeats the last ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import ScenarioError
from fastsim.foundation.draws.random_streams import Stream

Floats = npt.NDArray[np.float64]
STALE_S = 300.0
"""Seconds for which Prometheus repeats the last value."""


def refresh_times(begin_s: float, end_s: float, every_s: Sequence[float] = (1.0,), seed: int = 0) -> Floats:
    """Times of an exporter's refreshes from `begin_s` to after `end_s`, seconds; each gap is drawn from `every_s`."""
    if not every_s or min(every_s) <= 0 or not begin_s <= end_s:
        raise ScenarioError("exporter: every_s", f"{list(every_s)}", "gaps of more than 0 s, an end after the start")
    count = int((end_s - begin_s) // min(every_s)) + 1
    drawn = (Stream(seed, "exporter.refresh").uniform(count) * len(every_s)).astype(np.int64)
    times = begin_s + np.concatenate(([0.0], np.cumsum(np.array(every_s, np.float64)[drawn])))
    refreshes: Floats = times[: int(np.searchsorted(times, end_s, side="right")) + 1]
    return refreshes


def refresh_gaps(every_s: Sequence[float], seed: int = 0) -> Iterator[float]:
    """The endless sequence of gaps between `refresh_times`, seconds."""
    stream = Stream(seed, "exporter.refresh")
    while every_s:
        for draw in stream.uniform(1024).tolist():
            yield float(every_s[int(draw * len(every_s))])


def seen_s(asked_s: Any, refreshed_s: Floats) -> Floats:
    """For each query time the time of the last refresh, seconds; NaN before the first."""
    queried = np.asarray(asked_s, np.float64)
    place = np.searchsorted(refreshed_s, queried, side="right") - 1
    held: Floats = np.where(place < 0, np.nan, refreshed_s[np.maximum(place, 0)])
    return held


def window(
    times_s: Floats, values: Floats, start_s: int, end_s: int, step_s: int = 1, stale_s: float = STALE_S
) -> Floats:
    """Prometheus' answer for a range, both ends included: the last sample at each step, unless it is too old.

    Steps without an answer are left out, as they are in its answer. Samples stand in order of time.
    """
    steps = np.arange(start_s, end_s + 1, step_s, dtype=np.float64)
    place = np.searchsorted(times_s, steps, side="right") - 1
    if not len(times_s):
        return np.zeros(0)
    good = (place >= 0) & (steps - times_s[np.maximum(place, 0)] <= stale_s)
    samples: Floats = values[place[good]]
    return samples[~np.isnan(samples)]
