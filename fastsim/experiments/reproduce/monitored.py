"""Reproduction of the experiments with a monitored GPU: mechanisms over the memory that jobs declare beyond need."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    cell,
    cell_table,
    points,
    published_table,
)
from fastsim.policies.monitored.knots import KUBE_KNOTS
from fastsim.scenario.scenario import Scenario

LEVELS = (0, 50, 100, 150, 200, 250)
"""Per cent of memory that jobs declare beyond what they need."""
POLICIES = {
    "exclusive": ("exclusive", "mib", "monitored"), "gpushare": ("gpushare", "gib", "monitored"),
    "monitored": ("monitored", "mib", "monitored"), "monitored, no quirks": ("monitored", "mib", ""),
}  # fmt: skip
"""Policy, unit of declared memory and compat by name in the table; the last one has no recorded runs."""
MECHANISMS = {"DEFAULT": "exclusive", "ALIBABA": "gpushare", "CUSTSCHED": "monitored"}
"""Policies by their names in the recordings."""
CLUSTER = "uniform?nodes=1&gpu=V100M32&gpus=1"
BAR, DRIFT = 0.15, 0.2
"""The published bar of closed loops, and the difference between equal runs of the original."""
WHOLE_PCT = 2.0
"""Utilisation is recorded in whole per cent, so small means differ by up to this."""


class Figure(NamedTuple):
    """A quantity: title of its chart, measure, column in the recordings, allowed relative deviation (0: indicative),
    and least allowed deviation."""

    title: str
    measure: Measure
    column: str
    part: float
    least: float = 0.0


FIGURES = (
    Figure("Makespan", Measure("runs", "makespan_s", "s", 1.0), "overall_duration_s", BAR),
    Figure("Mean completion time", Measure("runs", "jct_mean_s", "s", 1.0), "mean_jct_s", DRIFT),
    Figure("Mean wait", Measure("runs", "queue_mean_s", "s", 0.1), "mean_wait_s", 0.0),
    Figure("Restarts", Measure("runs", "restarts", "restarts", 1.0), "restarts", 0.0),
    Figure("Mean utilisation", Measure("telemetry", "util_pct", "%", 0.1), "mean_util_pct", BAR, WHOLE_PCT),
    Figure("Mean memory in use", Measure("telemetry", "memory_used_mib", "MiB", 1.0), "mean_fb_used_mib", BAR),
    Figure("Mean power", Measure("telemetry", "power_w", "W", 0.1), "mean_power_w", BAR),
)
RECORDED = "golden/k8s-gpu/runs.csv"

Known = Mapping[tuple[int, str], Mapping[str, float]]


def run_count(_data: Path | None, _paper: str, quick: bool) -> int:
    """Number of runs of a reproduction."""
    return len(_points(quick))


def _points(quick: bool) -> list[tuple[int, str]]:
    return [(level, name) for level in (LEVELS[:1] if quick else LEVELS) for name in POLICIES]


def monitor_reproduction(
    data: Path | None, quick: bool, workers: int, tell: Callable[[int], None] | None = None
) -> Reproduction:
    """Every policy at every level, with simulated readings. ``data`` may hold further recorded levels."""
    began, runs, recorded = time.perf_counter(), _points(quick), _recorded(data)
    results = simulate_many([_scenario(*point) for point in runs], workers, tell)
    quantities = {point: _quantities(result) for point, result in zip(runs, results, strict=True)}
    cells = [one for point, values in quantities.items() for one in _cells(point, values, recorded.get(point, {}))]
    source = "jobs as the experiments' generator makes them, readings of a modelled V100"
    title = "A monitored GPU: mechanisms over declared memory (NTUA 2020)"
    wall_s = time.perf_counter() - began
    return Reproduction("monitor", title, source, cell_table(cells), _curves(quantities), len(runs), wall_s, KUBE_KNOTS)


def _scenario(level: int, name: str) -> Scenario:
    policy, unit, compat = POLICIES[name]
    return Scenario(CLUSTER, f"synth:detectors?over={level}&unit={unit}", policy, compat=compat, telemetry=1)


def _quantities(result: Result) -> dict[str, float]:
    """The quantities of a run."""
    row = result.summary.row(0, named=True)
    means = dict(result.telemetry.group_by("metric").agg(pl.mean("value")).rows())
    return {name: float(means[name] if name in means else row[name])
            for name in (figure.measure.quantity for figure in FIGURES)}  # fmt: skip


def _recorded(data: Path | None) -> Known:
    """Recorded figures by level and policy: from ``data``, or from fastsim's table with fewer digits."""
    path = Path() if data is None else data / RECORDED
    if not path.is_file():
        rows = published_table("monitor").rows(named=True)
        return {(row["over_pct"], row["policy"]): row for row in rows}
    with open(path, encoding="utf-8", newline="") as text:
        runs = list(csv.DictReader(text))
    return {
        (int(row["overprov_pct"]), MECHANISMS[row["mechanism"]]): {
            figure.measure.quantity: float(row[figure.column]) for figure in FIGURES
        }
        for row in runs
    }


def _cells(point: tuple[int, str], values: Mapping[str, float], recorded: Mapping[str, Any]) -> list[Cell]:
    level, name = point
    cells = []
    for figure in FIGURES:
        reference = recorded.get(figure.measure.quantity)
        bar = None if reference is None else max(figure.part * reference, figure.least)
        cells.append(cell(figure.measure, f"{level} % more", name, level, values[figure.measure.quantity],
                         original=reference, bar=bar, exact=False, comparable=figure.part > 0))  # fmt: skip
    return cells


def _curves(quantities: Mapping[tuple[int, str], Mapping[str, float]]) -> pl.DataFrame:
    lines = []
    for figure in FIGURES:
        quantity = figure.measure.quantity
        for name in POLICIES:
            mine = {level: values[quantity] for (level, policy), values in quantities.items() if policy == name}
            axis = f"{figure.title.lower()} ({figure.measure.unit})".removesuffix(" (restarts)")
            lines.append(points(figure.title, "declared beyond need (%)", axis, name, list(mine), list(mine.values())))
    return pl.concat(lines)
