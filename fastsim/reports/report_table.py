"""The table of a report: a row for each series, in HTML, Markdown, LaTeX and CSV.

Figures are means over seeds; ± is half the 95 % confidence interval of the mean (Student's t). An interval that a
quantity ends in, as 100 % does, is written by its ends instead.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from fastsim.engine.audit.metric_definitions import possible
from fastsim.engine.result import Result
from fastsim.reports.charts.line_points import over_time
from fastsim.reports.charts.seed_intervals import half_width
from fastsim.reports.charts.series import RunSeries
from fastsim.reports.markdown_text import plain

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
    ("co2_kg", "CO2, kg", 1, 1),
    ("cost", "cost, $", 1, 2),
    ("slo_violations", "deadlines missed", 1, 0),
    ("preemptions", "preemptions", 1, 0),
)
"""Columns of runs in which pods or jobs end."""
SPEED: Choice = ("pods_per_s", "simulated pods/s", 1, 0)


class TableCell(NamedTuple):
    """One figure: its text, its sort key (None: unknown), and half its interval (None: a single value)."""

    text: str
    value: float | None
    half: float | None = None


class Table(NamedTuple):
    """Headings, a name with cells for each series, and the columns of the summary with their divisors."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]
    columns: tuple[tuple[str, float], ...] = ()


def report_table(series: Sequence[RunSeries]) -> Table:
    """Means of the figures that are not zero or unknown everywhere, with half their 95 % intervals over seeds."""
    results = [run for one in series for run in one.runs]
    choices = [*(PASSING if over_time(results) else FILLING), SPEED]
    values = {choice[0]: [[_figure(run, choice[0]) for run in one.runs] for one in series] for choice in choices}
    columns = [choice for choice in choices if any(value for runs in values[choice[0]] for value in runs)]
    several = any(len(one.runs) > 1 for one in series)
    rows = []
    for place, one in enumerate(series):
        seeds = (TableCell(str(len(one.runs)), len(one.runs)),) if several else ()
        figures = tuple(_cell(values[choice[0]][place], choice) for choice in columns)
        rows.append((one.name, (*seeds, *figures)))
    headings = (*(("runs",) if several else ()), *(choice[1] for choice in columns))
    named = (*((("runs", 1.0),) if several else ()), *((choice[0], choice[2]) for choice in columns))
    return Table(headings, tuple(rows), named)


def table_markdown(table: Table) -> str:
    """The table in Markdown."""
    lines = ["| run | " + " | ".join(table.headings) + " |", "|---|" + "---:|" * len(table.headings)]
    for name, cells in table.rows:
        texts = [plain(name), *(cell.text for cell in cells)]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def table_latex(table: Table) -> str:
    """The table as a LaTeX ``tabular`` with the rules of booktabs."""
    lines = [
        "% needs \\usepackage{booktabs}; figures are means, \\pm is half the 95 % interval of the mean over seeds,",
        "% in parentheses are its ends where the quantity ends within it",
        f"\\begin{{tabular}}{{l{'r' * len(table.headings)}}}", "\\toprule",
        " & ".join(latex_text(heading) for heading in ("run", *table.headings)) + " \\\\", "\\midrule",
    ]  # fmt: skip
    for name, cells in table.rows:
        texts = [latex_text(name), *(latex_text(cell.text) for cell in cells)]
        lines.append(" & ".join(texts) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "<": r"$<$", ">": r"$>$",
    "|": r"\textbar{}",
})  # fmt: skip
_UNPRINTED = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def latex_text(text: str) -> str:
    """A text on one line that LaTeX prints as it is; signs without a letter, which end LaTeX, are spelled."""
    line = _UNPRINTED.sub(lambda sign: ascii(sign[0])[1:-1], " ".join(text.split()))
    return line.translate(_LATEX)


def table_frame(table: Table) -> pl.DataFrame:
    """The table by columns of the summary, in their units; ``_ci95`` is half the interval of the column before it."""
    columns: dict[str, list[Any]] = {"run": [name for name, _ in table.rows]}
    for place, (column, divisor) in enumerate(table.columns):
        cells = [cells[place] for _, cells in table.rows]
        columns[column] = [None if cell.value is None else cell.value * divisor for cell in cells]
        if any(cell.half is not None for cell in cells):
            columns[f"{column}_ci95"] = [None if cell.half is None else cell.half * divisor for cell in cells]
    return pl.DataFrame(columns, infer_schema_length=None)


def _figure(run: Result, column: str) -> float | None:
    if column == SPEED[0]:
        return run.timing.get(column)
    if column not in run.summary.columns:
        return None
    value = run.summary[column][0]
    return None if value is None else float(value)


def _cell(values: Sequence[float | None], choice: Choice) -> TableCell:
    column, _, divisor, places = choice
    scaled = [value / divisor for value in values if value is not None]
    if not scaled:
        return TableCell("-", None)
    mean = statistics.fmean(scaled)
    text = f"{mean:,.{places}f}"
    if len(scaled) < 2 or choice is SPEED:
        return TableCell(text, mean)
    half = float(half_width(scaled))
    if not half > 0:
        return TableCell(text, mean, half)
    least, most = (end / divisor for end in possible("summary", column))
    within = least <= mean - half and mean + half <= most
    ends = [f"{end:,.{max(places, 1)}f}" for end in (max(mean - half, least), min(mean + half, most))]
    return TableCell(
        f"{text} ± {half:,.{max(places, 1)}f}" if within else f"{text} ({ends[0]} to {ends[1]})", mean, half
    )
