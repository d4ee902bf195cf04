"""When an exporter looks, and what one who asks in between is told: the last thing it saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import ScenarioError
from fastsim.foundation.random_streams import Stream

Floats = npt.NDArray[np.float64]
STALE_S = 300.0
"""Seconds for which Prometheus repeats the last value."""


def refresh_times(begin_s: float, end_s: float, every_s: Sequence[float] = (1.0,), seed: int = 0) -> Floats:
    """Seconds at which an exporter looks, from `begin_s` to after `end_s`; of several gaps one is drawn each time."""
    if not every_s or min(every_s) <= 0 or not begin_s <= end_s:
        raise ScenarioError("exporter: every_s", f"{list(every_s)}", "gaps of more than 0 s, an end after the start")
    count = int((end_s - begin_s) // min(every_s)) + 1
    drawn = (Stream(seed, "exporter.refresh").uniform(count) * len(every_s)).astype(np.int64)
    times = begin_s + np.concatenate(([0.0], np.cumsum(np.array(every_s, np.float64)[drawn])))
    kept: Floats = times[: int(np.searchsorted(times, end_s, side="right")) + 1]
    return kept


def refresh_gaps(every_s: Sequence[float], seed: int = 0) -> Iterator[float]:
    """The gaps between the looks of `refresh_times`, one after another, without end."""
    stream = Stream(seed, "exporter.refresh")
    while every_s:
        for draw in stream.uniform(1024).tolist():
            yield float(every_s[int(draw * len(every_s))])


def seen_s(asked_s: Any, refreshed_s: Floats) -> Floats:
    """For each second at which somebody asks, the second of which it is told: the last look, if there was any."""
    asked = np.asarray(asked_s, np.float64)
    place = np.searchsorted(refreshed_s, asked, side="right") - 1
    found: Floats = np.where(place < 0, np.nan, refreshed_s[np.maximum(place, 0)])
    return found


def window(
    times_s: Floats, values: Floats, start_s: int, end_s: int, step_s: int = 1, stale_s: float = STALE_S
) -> Floats:
    """What Prometheus answers for a range, both ends included: the last sample at each step, unless it is too old.

    Steps without an answer are left out, as they are in its answer. Samples stand in order of time.
    """
    steps = np.arange(start_s, end_s + 1, step_s, dtype=np.float64)
    place = np.searchsorted(times_s, steps, side="right") - 1
    if not len(times_s):
        return np.zeros(0)
    good = (place >= 0) & (steps - times_s[np.maximum(place, 0)] <= stale_s)
    found: Floats = values[place[good]]
    return found[~np.isnan(found)]
