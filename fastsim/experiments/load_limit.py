"""The largest stable load of a policy: beyond it, the number of jobs in the system grows without end.

One run measures a load: the mean number of jobs that an arrival meets in the system, over the last third of the
arrivals and over the third before (the first fills the empty system). Their difference over the arrivals of a third
is the ``growth``; above a limit, the load is not stable. Bisection between a stable and an unstable load, for all
policies of a sweep at once, ends when the interval is narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastsim.errors import ScenarioError
from fastsim.experiments.executors.choice import executor
from fastsim.experiments.sweep.sweep import refuse_sweep_code, sweep_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.knobs import KNEE
from fastsim.simulation.simulate import played

if TYPE_CHECKING:
    import polars as pl

    from fastsim.scenario.scenario import Scenario

FEWEST = 30
"""Least number of jobs for a measurement."""


class Growth(NamedTuple):
    """Growth of the number of jobs as a part of the arrivals, and the mean numbers in both thirds."""

    part: float
    before: float
    late: float


def growth_of(jobs: pl.DataFrame) -> Growth:
    """Growth from a table of jobs."""
    if len(jobs) < FEWEST:
        raise ScenarioError("knee", f"{len(jobs)} jobs", f"at least {FEWEST}: more jobs, or a wider window")
    submit_s = np.sort(jobs["submit_s"].to_numpy())
    end_s = np.sort(jobs["end_s"].fill_null(np.inf).to_numpy())
    active = np.arange(len(submit_s)) - np.searchsorted(end_s, submit_s, side="right")
    third = len(active) // 3
    before, late = float(active[third:-third].mean()), float(active[-third:].mean())
    return Growth((late - before) / third, before, late)


def growth_in(scenario: Scenario) -> Growth:
    """Growth in a run of this scenario; the task of a worker."""
    return growth_of(played(scenario)[0].jobs)


class _Search:
    """The interval of one candidate, in units of the load."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.runs = 0
        self.ends: dict[float, bool] = {}
        self.growth: dict[float, float] = {}

    def next_load(self, tolerance: float) -> float | None:
        """The load to try next; None when the interval is narrow enough."""
        for end in (self.low, self.high):
            if end not in self.ends:
                return end
        if not self.ends[self.low] or self.ends[self.high] or self.high - self.low <= tolerance * self.high:
            return None
        load = self.low + (self.high - self.low) / 2
        return load if self.low < load < self.high else None  # no number lies between neighbours

    def learn(self, load: float, growth: float, most: float) -> None:
        """Record the growth at a load and narrow the interval."""
        stable = growth <= most
        self.ends[load], self.growth[load] = stable, growth
        if self.low < load < self.high:
            if stable:
                self.low = load
            else:
                self.high = load

    def answer(self) -> dict[str, Any]:
        """The largest load that was stable, the smallest that was not, and the growth at both."""
        below = self.low if self.ends[self.low] else None
        above = None if self.ends[self.high] else self.high
        if below is None:
            above = self.low
        elif above is None:
            below = self.high
        growth = {"growth_stable": self.growth.get(below or -1.0), "growth_unstable": self.growth.get(above or -1.0)}
        return {"stable": below, "unstable": above, **growth, "loads": len(self.growth)}


@whole_process
def knees(
    values: Mapping[str, Any], low: float, high: float, *, key: str = "rate_per_hour", tolerance: float = 0.05,
    growth: float = 0.05, workers: int = 1, where: str = "sweep", allow_code: bool = True,
) -> pl.DataFrame:  # fmt: skip
    """The largest stable load of each combination in a sweep, which lies between ``stable`` and ``unstable``.

    ``values`` are the keys of a sweep; loads that it has under ``key`` are not looked at, nor loads from which on a
    policy is left out. The growth is the mean over seeds. ``stable`` is null if even ``low`` is not stable,
    ``unstable`` if ``high`` is.
    """
    import polars as pl

    if not 0 < low < high < math.inf or not 0 < tolerance < 1 or not 0 < growth < 1:
        arguments = f"low {low:g}, high {high:g}, tolerance {tolerance:g}, growth {growth:g}"
        raise ScenarioError("knee", arguments, "0 < low < high, 0 < tolerance < 1, 0 < growth < 1")
    values = {name: value for name, value in values.items() if name not in (key, "cutoff_rates")}
    refuse_sweep_code(sweep_of({**values, key: low}, where), where, allow_code)
    cases = _scenarios(values, key, low, where)
    KNEE.refuse(sum(map(len, cases.values())), low, high, tolerance)
    searches = {case: _Search(low, high) for case in cases}
    while True:
        due = {case: load for case in cases if (load := searches[case].next_load(tolerance)) is not None}
        if not due:
            break
        scenarios = [_scenarios(values, key, load, where)[case] for case, load in due.items()]
        flat = [scenario for group in scenarios for scenario in group]
        with executor(workers, len(flat)) as pool:
            growths = iter(list(pool.map(growth_in, flat)))
        for (case, load), group in zip(due.items(), scenarios, strict=True):
            parts = [next(growths).part for _ in group]
            searches[case].learn(load, reduce(add, parts) / len(parts), growth)
    rows = [dict(case) | searches[case].answer() for case in cases]
    return pl.DataFrame(rows, infer_schema_length=None)


Case = tuple[tuple[str, str], ...]


def _scenarios(values: Mapping[str, Any], key: str, load: float, where: str) -> dict[Case, list[Scenario]]:
    """The scenarios of one load by the values in which they differ, apart from the seed."""
    groups: dict[Case, list[Scenario]] = {}
    for run in sweep_of({**values, key: load, "record": values.get("record", "all")}, where):
        case = tuple((name, str(value)) for name, value in run.listed.items() if name != "seed")
        groups.setdefault(case, []).append(run.scenario)
    return groups


def knees_text(limits: pl.DataFrame, key: str) -> str:
    """The answer as a table for the terminal."""
    from fastsim.reports.text_tables import text_table

    figures = ("stable", "unstable", "growth_stable", "growth_unstable", "loads")
    names = [name for name in limits.columns if name not in figures]
    heads = {"stable": f"stable\n{key}", "unstable": "not any\nmore", "growth_stable": "growth\nthere",
             "growth_unstable": "growth\nthere", "loads": "loads\ntried"}  # fmt: skip
    return text_table(limits, [(name, name) for name in names] + list(heads.items()), left=names)
