"""The jobs of the published experiments with the metric-driven scheduler: gaps between arrivals, and what jobs declare.

A job needs a known amount of memory and declares more by so many per cent, up to what the device has. The gaps are the
draws of Python 2.7's `randint`, whole seconds between two bounds, both included.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import DETECTORS
from fastsim.workload import schema as s
from fastsim.workload.generators.python_random import Twister

if TYPE_CHECKING:
    from fastsim.workload.pod_rows import PodRows

SEED = 2020
"""Seed of the published experiments."""
LARGEST_MIB, LARGEST_GB = 32_510, 31
"""Most that a job may declare."""
NEEDED_MIB, NEEDED_GB = 6994, 7
"""Memory that the published detector needs, and declares by default."""


MOST_PCT = 1e12
"""Largest declaration over the need, per cent."""


def gaps_s(jobs: int, least_s: int = 20, most_s: int = 40, seed: int = SEED) -> list[int]:
    """Seconds after each of so many submissions."""
    if jobs < 0 or not 0 <= least_s <= most_s:
        raise ScenarioError("monitored jobs", f"{jobs} jobs, {least_s} to {most_s} s", "0 or more, bounds in order")
    DETECTORS.refuse(jobs)
    width = most_s - least_s + 1
    return [least_s + int(draw * width) for draw in Twister(seed).floats(jobs).tolist()]


def declared(base: int, over_pct: float, largest: int = LARGEST_MIB) -> int:
    """Declaration of a job that needs `base`, in the same unit: `over_pct` per cent more, whole, at most `largest`."""
    if base < 0 or not 0 <= over_pct <= MOST_PCT:
        raise ScenarioError(
            "monitored jobs: declared", f"{base} and {over_pct} per cent more", f"0 or more, at most {MOST_PCT:g} %"
        )
    return min(int(base + over_pct / 100 * base), largest)


def slots(request: int, capacity: int = LARGEST_GB) -> int:
    """How many jobs that declare so much share a device at once, if declarations are what counts."""
    if request < 1:
        raise ScenarioError("monitored jobs: request", request, "1 or more")
    return capacity // request


def detectors(
    jobs: int = 30, over: float = 0, unit: str = "mib", run_s: float = 145.0, least_s: int = 20, most_s: int = 40,
    seed: int = SEED,
) -> PodRows:  # fmt: skip
    """Equal jobs that run the detector for `run_s` seconds alone and declare `over` per cent more than they need.

    They declare MiB, or with `unit` "gib" whole GiB, as for a device that is shared in GiB.
    """
    import polars as pl

    from fastsim.foundation.parquet import arrow_table
    from fastsim.workload.pod_rows import Held, PodRows

    if unit not in ("mib", "gib") or not run_s > 0:
        raise ScenarioError("monitored jobs", f"unit={unit}, run_s={run_s}", "mib or gib, more than 0 s")
    memory_mib = declared(NEEDED_MIB, over) if unit == "mib" else 1024 * declared(NEEDED_GB, over, LARGEST_GB)
    submit_s = [float(time) for time in accumulate(gaps_s(jobs, least_s, most_s, seed), initial=0)][:jobs]
    rows = {
        s.POD_ID: range(jobs), s.SUBMIT_S: submit_s, s.DURATION_S: [run_s] * jobs,
        s.CPU_MILLI: [1000] * jobs, s.MEMORY_MIB: [0] * jobs, s.NUM_GPU: [1] * jobs, s.GPU_MILLI: [1000] * jobs,
        s.GPU_MEMORY_MIB: [memory_mib] * jobs, s.WORKLOAD: ["detector"] * jobs,
    }  # fmt: skip
    table = arrow_table(pl.DataFrame(rows), "detectors")
    return PodRows(Held(table), table.column_names, name="detectors", rows=table.num_rows)
