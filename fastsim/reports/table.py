"""The summary table of a report: one row for each series, means over its seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from fastsim.engine.result import Result
from fastsim.reports.charts.series import Series
from fastsim.reports.line_points import over_time

Choice = tuple[str, str, float, int]

FILLING: tuple[Choice, ...] = (
    ("pods", "pods", 1, 0),
    ("at_capacity_gpu_alloc_pct", "GPU allocated at 100 % demand, %", 1, 2),
    ("gpu_alloc_pct", "GPU allocated at the end, %", 1, 2),
    ("pods_unplaced", "fitted nowhere", 1, 0),
    ("frag_pct", "fragmented GPU at the end, %", 1, 2),
    ("eopc_w", "power at the end, kW", 1000, 1),
    ("grar", "allocated over arrived GPU", 1, 4),
)
"""Columns of runs in which pods stay: summary column, heading, divisor, decimals."""
PASSING: tuple[Choice, ...] = (
    ("pods", "pods or jobs", 1, 0),
    ("pods_finished", "done", 1, 0),
    ("pods_unplaced", "given up", 1, 0),
    ("jct_mean_s", "mean completion, h", 3600, 3),
    ("jct_p95_s", "95 % done within, h", 3600, 3),
    ("wait_mean_s", "mean wait, h", 3600, 3),
    ("makespan_s", "simulated, h", 3600, 1),
    ("mean_gpu_alloc_pct", "mean GPU allocation, %", 1, 2),
    ("utilization_pct", "GPUs at work, %", 1, 2),
    ("mean_power_w", "mean power, kW", 1000, 1),
    ("energy_kwh", "energy, kWh", 1, 1),
    ("cost", "cost, $", 1, 2),
    ("slo_violations", "deadlines missed", 1, 0),
    ("preemptions", "preemptions", 1, 0),
)
"""Columns of runs in which pods or jobs end."""
SPEED: Choice = ("pods_per_s", "simulated pods/s", 1, 0)


class Cell(NamedTuple):
    """One figure: its text, and what it is sorted by (None: unknown)."""

    text: str
    value: float | None


class Table(NamedTuple):
    """Headings, and a name with cells for each series."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def report_table(series: Sequence[Series]) -> Table:
    """Means of the figures that say something, with the spread of the seeds where there are several."""
    results = [run for one in series for run in one.runs]
    choices = [*(PASSING if over_time(results) else FILLING), SPEED]
    values = {choice[0]: [[_figure(run, choice[0]) for run in one.runs] for one in series] for choice in choices}
    kept = [choice for choice in choices if any(value for runs in values[choice[0]] for value in runs)]
    several = any(len(one.runs) > 1 for one in series)
    rows = []
    for place, one in enumerate(series):
        seeds = (Cell(str(len(one.runs)), len(one.runs)),) if several else ()
        figures = tuple(_cell(values[choice[0]][place], choice) for choice in kept)
        rows.append((one.name, (*seeds, *figures)))
    headings = (*(("runs",) if several else ()), *(choice[1] for choice in kept))
    return Table(headings, tuple(rows))


def table_markdown(table: Table) -> str:
    """The table in Markdown."""
    lines = ["| run | " + " | ".join(table.headings) + " |", "|---|" + "---:|" * len(table.headings)]
    for name, cells in table.rows:
        told = [name.replace("|", "\\|"), *(cell.text for cell in cells)]
        lines.append("| " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


def _figure(run: Result, column: str) -> float | None:
    if column == SPEED[0]:
        return run.timing.get(column)
    if column not in run.summary.columns:
        return None
    value = run.summary[column][0]
    return None if value is None else float(value)


def _cell(values: Sequence[float | None], choice: Choice) -> Cell:
    _, _, divisor, places = choice
    known = [value / divisor for value in values if value is not None]
    if not known:
        return Cell("-", None)
    mean = statistics.fmean(known)
    text = f"{mean:,.{places}f}"
    if len(set(known)) > 1 and choice is not SPEED:
        text += f" ± {statistics.stdev(known):,.{max(places, 1)}f}"
    return Cell(text, mean)
