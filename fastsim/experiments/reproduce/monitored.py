"""Reproduction of the experiments with a monitored GPU: mechanisms over the memory that jobs declare beyond need."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    cell,
    cell_table,
    points,
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


RUNS, TELEMETRY, JOBS = (
    "runs (makespan, waits, restarts)", "telemetry (utilisation, memory, power)", "per job",
)  # fmt: skip
"""Figures of the recorded runs."""


class Quantity(NamedTuple):
    """A quantity: figure, title of its chart, metric in the published numbers, unit, column in further recordings,
    allowed relative deviation (0: indicative), and least allowed deviation."""

    figure: str
    title: str
    metric: str
    unit: str
    column: str
    part: float
    least: float = 0.0


QUANTITIES = {
    "makespan_s": Quantity(RUNS, "Makespan", "makespan", "s", "overall_duration_s", BAR),
    "jct_mean_s": Quantity(RUNS, "Mean completion time", "jct_mean", "s", "mean_jct_s", DRIFT),
    "queue_mean_s": Quantity(RUNS, "Mean wait", "wait_mean", "s", "mean_wait_s", 0.0),
    "restarts": Quantity(RUNS, "Restarts", "restarts", "count", "restarts", 0.0),
    "util_pct": Quantity(TELEMETRY, "Mean utilisation", "gpu_utilisation_mean", "%", "mean_util_pct", BAR, WHOLE_PCT),
    "memory_used_mib": Quantity(
        TELEMETRY, "Mean memory in use", "gpu_memory_used_mean", "MiB", "mean_fb_used_mib", BAR
    ),
    "power_w": Quantity(TELEMETRY, "Mean power", "power_mean", "W", "mean_power_w", BAR),
}  # fmt: skip
"""Quantities by their names in the results."""
SURE = ("exclusive", "gpushare")
"""Mechanisms under which no job runs out of memory, so that restarts are compared."""
SECOND = 1.0
"""Resolution of recorded waits and arrivals, seconds."""
RECORDED = "golden/k8s-gpu/runs.csv"

Known = Mapping[tuple[int, str], Mapping[str, float]]


def run_count(_data: Path | None, _paper: str, quick: bool, figures: Sequence[str] = ()) -> int:
    """Number of runs of a reproduction, the same for all figures."""
    return len(_points(quick))


def _points(quick: bool) -> list[tuple[int, str]]:
    return [(level, name) for level in (LEVELS[:1] if quick else LEVELS) for name in POLICIES]


def monitor_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    figures: Sequence[str] = (),
) -> Reproduction:  # fmt: skip
    """Every policy at every level, with simulated readings. ``data`` may hold recordings of further levels."""
    began, runs, recorded = time.perf_counter(), _points(quick), _recorded(data)
    results = simulate_many([_scenario(*point) for point in runs], workers, progress)
    wanted = figures or (RUNS, TELEMETRY, JOBS)
    quantities = {point: _quantities(result) for point, result in zip(runs, results, strict=True)}
    cells = [
        one for point, values in quantities.items() for one in _cells(point, values, recorded.get(point, {}))
        if one.figure in wanted
    ]  # fmt: skip
    for point, result in zip(runs, results, strict=True) if JOBS in wanted else ():
        cells += _job_cells(point, result)
    source = "jobs as the experiments' generator makes them, readings of a modelled V100"
    title = "A monitored GPU: mechanisms over declared memory (NTUA 2020)"
    wall_s, cpu_s = time.perf_counter() - began, sum(result.timing["cpu_s"] for result in results)
    curves = _curves(quantities, wanted)
    return Reproduction("monitor", title, source, cell_table(cells), curves, len(runs), wall_s, KUBE_KNOTS, cpu_s)


def _scenario(level: int, name: str) -> Scenario:
    policy, unit, compat = POLICIES[name]
    return Scenario(CLUSTER, f"synth:detectors?over={level}&unit={unit}", policy, compat=compat, telemetry=1)


def _quantities(result: Result) -> dict[str, float]:
    """The quantities of a run."""
    row = result.summary.row(0, named=True)
    # Sums of groups depend on the number of threads, exact ones do not.
    readings = result.telemetry.group_by("metric", maintain_order=True).agg("value").rows()
    means = {metric: math.fsum(values) / len(values) for metric, values in readings}
    return {name: float(means[name] if name in means else row[name]) for name in QUANTITIES}


def _published(point: tuple[int, str]) -> dict[str, dict[str, Any]]:
    """Published numbers of a level and policy, by metric."""
    level, name = point
    rows = published_numbers("monitor").filter(panel=f"over-provisioning {level} %", series=name)
    return {row["metric"]: row for row in rows.iter_rows(named=True) if row["figure"] != JOBS}


def _recorded(data: Path | None) -> Known:
    """Recorded quantities of levels that are not published, by level and policy."""
    path = Path() if data is None else data / RECORDED
    if not path.is_file():
        return {}
    with open(path, encoding="utf-8", newline="") as text:
        runs = list(csv.DictReader(text))
    return {
        (int(row["overprov_pct"]), MECHANISMS[row["mechanism"]]): {
            name: float(row[quantity.column]) for name, quantity in QUANTITIES.items()
        }
        for row in runs
    }


def _cells(point: tuple[int, str], values: Mapping[str, float], recorded: Mapping[str, float]) -> Iterator[Cell]:
    level, name = point
    published = _published(point)
    for key, quantity in QUANTITIES.items():
        row, original = published.get(quantity.metric), recorded.get(key)
        reference = original if row is None else row["value"]
        bar = None if reference is None else max(quantity.part * reference, quantity.least)
        case, comparable = f"{level} % more", quantity.part > 0
        if row is not None:
            yield number_cell(row, values[key], case=case, policy=name, bar=bar, comparable=comparable)
        else:
            measure = Measure(quantity.figure, quantity.metric, quantity.unit, 0.1)
            yield cell(measure, case, name, level, values[key], original=original, bar=bar, exact=False,
                       comparable=comparable)  # fmt: skip


def _job_cells(point: tuple[int, str], result: Result) -> Iterator[Cell]:
    """Starts, waits and restarts of jobs, each in rising order: which waiting job is next was chance in the recordings.

    So starts are compared, the sums of a published wait and its job's arrival, and waits stand beside.
    """
    level, name = point
    rows = published_numbers("monitor").filter(figure=JOBS, panel=f"over-provisioning {level} %", series=name)
    if rows.is_empty():
        return
    waits, restarts = (rows.filter(metric=metric) for metric in ("wait", "restarts"))
    jobs = result.jobs.sort("pod_id").with_columns(first_s=pl.col("submit_s") + pl.col("queue_s"))
    starts = waits.with_columns(metric=pl.lit("start"), value=pl.col("value") + jobs["submit_s"])
    for published, column in ((starts, "first_s"), (waits, "queue_s"), (restarts, "restarts")):
        pairs = zip(published.sort("value").iter_rows(named=True), jobs[column].sort(), strict=True)
        for place, (row, ours) in enumerate(pairs):
            label = {**row, "x": f"value {place} in rising order"}
            bar = max(BAR * row["value"], 2 * SECOND) if column == "first_s" else None
            comparable = column == "first_s" or (column == "restarts" and name in SURE)
            yield number_cell(label, float(ours), case=f"{level} % more", policy=name, bar=bar, comparable=comparable)


def _curves(quantities: Mapping[tuple[int, str], Mapping[str, float]], wanted: Sequence[str]) -> pl.DataFrame:
    lines = [points("", "", "", "", [], [])]
    for key, quantity in QUANTITIES.items():
        for name in POLICIES if quantity.figure in wanted else ():
            mine = {level: values[key] for (level, policy), values in quantities.items() if policy == name}
            axis = f"{quantity.title.lower()} ({quantity.unit})".removesuffix(" (count)")
            lines.append(
                points(quantity.title, "declared beyond need (%)", axis, name, list(mine), list(mine.values()))
            )
    return pl.concat(lines)
