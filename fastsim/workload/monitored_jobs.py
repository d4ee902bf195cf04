"""The jobs of the published experiments with the metric-driven scheduler: gaps between arrivals, and what jobs declare.

A job needs a known amount of memory and declares more by so many per cent, up to what the device has. The gaps are the
draws of Python 2.7's `randint`, whole seconds between two bounds, both included.
"""

from __future__ import annotations

from fastsim.errors import ScenarioError
from fastsim.workload.twister import Twister

SEED = 2020
"""Seed of the published experiments."""
LARGEST_MIB, LARGEST_GB = 32_510, 31
"""Most that a job may declare."""


def gaps_s(jobs: int, least_s: int = 20, most_s: int = 40, seed: int = SEED) -> list[int]:
    """Seconds after each of so many submissions."""
    if jobs < 0 or not 0 <= least_s <= most_s:
        raise ScenarioError("monitored jobs", f"{jobs} jobs, {least_s} to {most_s} s", "0 or more, bounds in order")
    width = most_s - least_s + 1
    return [least_s + int(draw * width) for draw in Twister(seed).floats(jobs).tolist()]


def declared(base: int, over_pct: float, largest: int = LARGEST_MIB) -> int:
    """What a job declares that needs `base`, in the same unit, cut to a whole number and to the largest."""
    if base < 0 or not over_pct >= 0:
        raise ScenarioError("monitored jobs: declared", f"{base} and {over_pct} per cent more", "0 or more of each")
    return min(int(base + over_pct / 100 * base), largest)


def slots(request: int, capacity: int = LARGEST_GB) -> int:
    """How many jobs that declare so much share a device at once, if declarations are what counts."""
    if request < 1:
        raise ScenarioError("monitored jobs: request", request, "1 or more")
    return capacity // request
