"""Reports of saved runs: one HTML file that needs no network, Markdown, and pictures of its charts.

Runs that differ in their seeds only are one line of every chart and one row of the table. Charts depend on the recorded
tables: lines need a timeline, distributions jobs, charts of one run placements.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import polars as pl

from fastsim.engine.result import Result
from fastsim.errors import ResultError, ScenarioError, suggestion
from fastsim.reports.charts.chart_files import page_scripts, picturing, written_file
from fastsim.reports.charts.gpu_occupancy import Window
from fastsim.reports.charts.series import RunSeries, seed_text, series_of
from fastsim.reports.line_points import over_time
from fastsim.reports.markdown_text import code, code_block, plain
from fastsim.reports.report_charts import KEYS, ReportChart, figures
from fastsim.reports.report_page import provenance_rows, report_page

PICTURE_WIDTH = 640
"""Width of a picture in its own pixels."""
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


@dataclass(frozen=True)
class Report:
    """Several runs in one page; ``wanted`` names the charts (default: all that have data)."""

    series: tuple[RunSeries, ...]
    window: Window | None = None
    wanted: tuple[str, ...] = ()

    @cached_property
    def table(self) -> Table:
        """One row for each series."""
        return report_table(self.series)

    @cached_property
    def figures(self) -> list[ReportChart]:
        """The charts that have data."""
        return figures(self.series, self.window, self.wanted)

    @property
    def title(self) -> str:
        """Title: the compared policies or variants."""
        if len(self.series) == 1:
            return f"{self.series[0].name}: one policy on one workload"
        policies = {str(run.provenance.get("policy", "?")) for _, run in self.labelled_runs}
        return f"{len(policies)} policies compared" if len(policies) > 1 else f"{len(self.series)} variants compared"

    @property
    def subtitle(self) -> str:
        """Number of runs, nodes, and versions of fastsim."""
        runs = [run for _, run in self.labelled_runs]
        clusters = {str(run.provenance.get("cluster", {}).get("nodes", "?")) for run in runs}
        versions = {str(run.provenance.get("versions", {}).get("fastsim", "?")) for run in runs}
        counted = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
        return f"{counted} on {' and '.join(sorted(clusters))} nodes, fastsim {' and '.join(sorted(versions))}"

    @property
    def labelled_runs(self) -> list[tuple[str, Result]]:
        """Every run with the name of its series and its seed."""
        return [(f"{one.name}, seed {seed_text(run)}", run) for one in self.series for run in one.runs]

    @property
    def citations(self) -> str:
        """BibTeX entries of all runs, each once."""
        return "\n\n".join(dict.fromkeys(text for _, run in self.labelled_runs for text in run.citations))

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """The page: table, charts, provenance and citations in one file."""
        scripts = page_scripts() if self.figures else ""
        return written_file(path, report_page(self, scripts).encode())

    def to_markdown(self, path: str | os.PathLike[str], pictures: Sequence[str | os.PathLike[str]] = ()) -> Path:
        """Table, provenance and citations as Markdown; ``pictures`` are linked relative to its folder."""
        lines = [f"# {plain(self.title)}\n", f"{plain(self.subtitle)}\n", table_markdown(self.table)]
        folder = Path(path).absolute().parent
        for picture in pictures:
            place = quote(os.path.relpath(Path(picture).absolute(), folder).replace(os.sep, "/"), safe=" /:()'")
            lines.append(f"![{plain(Path(picture).stem)}](<{place}>)\n")
        lines.append("## Where this comes from\n")
        for label, run in self.labelled_runs:
            rows = provenance_rows(run)
            lines += [f"- **{plain(label)}**", *(f"  - {plain(name)}: {code(text)}" for name, text in rows)]
        if self.citations:
            lines.append(f"\n## Please cite\n\n{code_block(self.citations, 'bibtex')}")
        return written_file(path, ("\n".join(lines) + "\n").encode())

    def to_pictures(self, folder: str | os.PathLike[str], suffix: str = ".png", scale: float = 2.0) -> list[Path]:
        """Each chart as a picture in a folder, .png or .svg; charts of one run show the first."""
        if suffix not in (".png", ".svg"):
            raise ScenarioError("suffix", repr(suffix), ".png or .svg")
        target, maker = Path(folder), picturing()
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultError(f"{target}: cannot be made: {error.strerror or error}") from error
        paths = []
        for figure in self.figures:
            spec = still(figure)
            content = maker.vegalite_to_png(spec, scale=scale) if suffix == ".png" else maker.vegalite_to_svg(spec)
            content = content if isinstance(content, bytes) else content.encode()
            paths.append(written_file(target / f"{figure.key}{suffix}", content))
        return paths


def report(
    results: Sequence[Result], names: Sequence[str] | None = None, *, window: tuple[float, float] | None = None,
    charts: Sequence[str] = (),
) -> Report:  # fmt: skip
    """A report of these runs; a series are runs of equal ``names``, or without names runs that differ in the seed.

    ``window`` bounds the bars of single GPUs, in seconds of simulated time; ``charts`` selects charts by name.
    """
    if not results:
        raise ScenarioError("report", "no results", "at least one")
    if names is not None and len(names) != len(results):
        raise ScenarioError("report: names", f"{len(names)} names", f"{len(results)}, one for each result")
    for chart in charts:
        if chart not in KEYS:
            raise ScenarioError("chart", repr(chart), f"one of {', '.join(KEYS)}", suggestion(chart, KEYS))
    return Report(tuple(series_of(results, names)), window_of(window), tuple(charts))


def window_of(bounds: tuple[float, float] | None) -> Window | None:
    """The window; ScenarioError if its end is not after its beginning."""
    if bounds is None:
        return None
    begin_s, end_s = bounds
    if not begin_s < end_s:
        raise ScenarioError("window", f"{begin_s:g}:{end_s:g}", "a beginning and a later end, in seconds")
    return Window(float(begin_s), float(end_s))


def loaded_runs(folders: Sequence[str | os.PathLike[str]]) -> list[Result]:
    """The runs in these folders; each is the folder of a run, or has folders of runs in it, as that of a sweep."""
    return [Result.load(folder) for folder in run_folders(folders)]


def run_folders(folders: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The folders of runs that these are or have in them at any depth, such as a level for each axis of a sweep."""
    runs: list[Path] = []
    for folder in map(Path, folders):
        inside = [] if (folder / "run.json").exists() else sorted(folder.rglob("run.json"))
        # Unfinished folders have names with a leading dot.
        whole = [path.parent for path in inside if not any(part[0] == "." for part in path.relative_to(folder).parts)]
        runs += whole or [folder]
    return runs


def still(figure: ReportChart) -> str:
    """A chart as Vega-Lite outside of a page: with data, a title, a fixed width and a legend."""
    data = figure.data
    spec = dict(figure.spec)
    title = figure.title
    if figure.single:
        first = data["run"][0]
        data, title = data.filter(pl.col("run") == first), f"{title}: {first}"
        spec["params"] = [{"name": "chosen", "value": first}]
    text = json.dumps(spec | {"data": {"values": data.to_dicts()}, "title": title, "width": PICTURE_WIDTH,
                              "background": "white"})  # fmt: skip
    names = data["run"].unique(maintain_order=True).to_list()
    if figure.single or len(names) < 2:
        return text
    shown = json.dumps({"orient": "right", "labelLimit": 260, "title": None, "symbolType": "stroke"})
    return text.replace('"legend": null', f'"legend": {shown}')


class TableCell(NamedTuple):
    """One figure: its text, and its sort key (None: unknown)."""

    text: str
    value: float | None


class Table(NamedTuple):
    """Headings, and a name with cells for each series."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]


def report_table(series: Sequence[RunSeries]) -> Table:
    """Means of the figures that are not zero or unknown everywhere, with the standard deviation over seeds."""
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
    return Table(headings, tuple(rows))


def table_markdown(table: Table) -> str:
    """The table in Markdown."""
    lines = ["| run | " + " | ".join(table.headings) + " |", "|---|" + "---:|" * len(table.headings)]
    for name, cells in table.rows:
        texts = [plain(name), *(cell.text for cell in cells)]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _figure(run: Result, column: str) -> float | None:
    if column == SPEED[0]:
        return run.timing.get(column)
    if column not in run.summary.columns:
        return None
    value = run.summary[column][0]
    return None if value is None else float(value)


def _cell(values: Sequence[float | None], choice: Choice) -> TableCell:
    _, _, divisor, places = choice
    scaled = [value / divisor for value in values if value is not None]
    if not scaled:
        return TableCell("-", None)
    mean = statistics.fmean(scaled)
    text = f"{mean:,.{places}f}"
    if len(set(scaled)) > 1 and choice is not SPEED:
        text += f" ± {statistics.stdev(scaled):,.{max(places, 1)}f}"
    return TableCell(text, mean)
