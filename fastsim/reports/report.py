"""Reports of saved runs: one HTML file that needs no network, Markdown, and pictures of its charts.

Runs that differ in their seeds only are one line of every chart and one row of the table. Charts depend on the recorded
tables: lines need a timeline, distributions jobs, charts of one run placements.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from fastsim.engine.result import Result
from fastsim.errors import ResultError, ScenarioError, kind_of, reading, short, suggestion
from fastsim.foundation.csv_table import without_formulas
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements, names_file, names_folder
from fastsim.reports.charts.chart_files import drawn_picture, page_scripts, picturing, written_file
from fastsim.reports.charts.gpu_occupancy import STEPS, Window
from fastsim.reports.charts.legends import legend, lines_of
from fastsim.reports.charts.series import RunSeries, seed_text, series_of
from fastsim.reports.markdown_text import code, code_block, plain
from fastsim.reports.report_charts import KEYS, NODES, ReportChart, figures
from fastsim.reports.report_page import Explained, explained_table, provenance_rows, report_page
from fastsim.reports.report_table import Table, report_table, table_frame, table_latex, table_markdown

PICTURE_WIDTH = 640
"""Width of a picture in its own pixels."""
PICTURES = (".png", ".svg", ".pdf")
"""Formats of pictures."""
PAPER_WIDTH = {1: 238, 2: 504}
"""Width of a picture for one or two columns of a paper, points: 3.3 and 7 inches."""
PAPER_HEIGHT = 110
"""Height of the plot in a paper, points; its axis and legend are added to it."""
LETTER, TITLE, PAPER_LETTER = 10, 15, 8
"""Letters of pictures, of their titles, which are bold and therefore broader, and of those in a paper."""
MAPS = tuple(key for key, *_ in NODES)
RUNS = "a list of results, or of folders of saved runs"
Runs = Result | str | os.PathLike[str] | Sequence[Result | str | os.PathLike[str]]
"""Results and folders of saved runs, one or several."""
FAILED = "failed.json"
"""The file of a sweep's folder that lists its failed runs; a copy, because the sweep would load the engine."""
NO_MOMENT = -1
"""Step of time in pictures of nodes over time, the ``MAPS``: no line stands there."""


@whole_process
@dataclass(frozen=True)
class Report:
    """Several runs in one page; ``wanted`` names the charts (default: all that have data)."""

    series: tuple[RunSeries, ...]
    window: Window | None = None
    wanted: tuple[str, ...] = ()
    explained: tuple[Explained, ...] = ()

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
        for picture in elements("pictures", pictures, "a list of paths", alone=(str, os.PathLike)):
            place = quote(os.path.relpath(Path(picture).absolute(), folder).replace(os.sep, "/"), safe=" /:()'")
            lines.append(f"![{plain(Path(picture).stem)}](<{place}>)\n")
        lines += [_explained_markdown(one) for one in self.explained]
        lines.append("## Where this comes from\n")
        for label, run in self.labelled_runs:
            rows = provenance_rows(run)
            lines += [f"- **{plain(label)}**", *(f"  - {plain(name)}: {code(text)}" for name, text in rows)]
        if self.citations:
            lines.append(f"\n## Please cite\n\n{code_block(self.citations, 'bibtex')}")
        return written_file(path, ("\n".join(lines) + "\n").encode())

    def to_latex(self, path: str | os.PathLike[str]) -> Path:
        """The table as a LaTeX ``tabular`` for the package booktabs: means ± half their 95 % intervals over seeds."""
        return written_file(path, table_latex(self.table).encode())

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """The table as CSV, a row for each series: means by summary column, and ``_ci95``, half their intervals."""
        return written_file(path, without_formulas(table_frame(self.table)).write_csv().encode())

    def to_pictures(
        self, folder: str | os.PathLike[str], suffix: str = ".png", scale: float = 2.0, columns: int | None = None
    ) -> list[Path]:
        """Each chart as a picture in a folder, .png, .svg or .pdf; charts of one run show the first.

        ``columns``: fitted to one (3.3 inches) or two (7 inches) columns of a paper, with letters of 8 points.
        """
        if suffix not in PICTURES:
            raise ScenarioError("suffix", repr(suffix), f"one of {', '.join(PICTURES)}")
        picturing()  # raises before there is a folder if the extra is missing
        target, options = Path(folder), {"scale": scale} if suffix == ".png" else {}
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultError(f"{target}: cannot be made: {error.strerror or error}") from error
        paths = []
        for figure in self.figures:
            content = drawn_picture(still(figure, columns), suffix, **options)
            paths.append(written_file(target / f"{figure.key}{suffix}", content))
        return paths


@whole_process
def report(
    results: Runs, names: Sequence[str] | None = None, *, window: tuple[float, float] | None = None,
    charts: Sequence[str] = (), explained: Mapping[str, pl.DataFrame] | None = None,
) -> Report:  # fmt: skip
    """A report of these runs; a series are runs of equal ``names``, or without names runs that differ in the seed.

    ``window`` bounds the bars of single GPUs, in seconds of simulated time; ``charts`` selects charts by name.
    ``explained`` are tables of :func:`fastsim.explain` by heading, such as ``{"Job 3": fs.explain(run, jobs=[3])}``.
    """
    runs, named = named_runs("report", results, names)
    charts = elements("report: charts", charts, "a list of names of charts", alone=(str,))
    for chart in charts:
        if chart not in KEYS:
            raise ScenarioError("chart", repr(chart), f"one of {', '.join(KEYS)}", suggestion(chart, KEYS))
    return Report(tuple(series_of(runs, named)), window_of(window), tuple(charts), _explained(explained))


def _explained(tables: Any) -> tuple[Explained, ...]:
    """The tables as pages show them."""
    expected = "a mapping of headings to tables of explain"
    if tables is not None and not isinstance(tables, Mapping):
        raise ScenarioError("report: explained", kind_of(tables), expected)
    for title, frame in (tables or {}).items():
        if not isinstance(title, str) or not isinstance(frame, pl.DataFrame):
            raise ScenarioError("report: explained", f"{kind_of(title)}: {kind_of(frame)}", expected)
    return tuple(explained_table(title, frame) for title, frame in (tables or {}).items())


def _explained_markdown(one: Explained) -> str:
    lines = [f"## {plain(one.title)}\n", f"| {' | '.join(map(plain, one.names))} |", "|---" * len(one.names) + "|"]
    lines += [f"| {' | '.join(map(plain, row))} |" for row in one.rows]
    return "\n".join(lines) + f"\n\n{one.note}\n"


def named_runs(
    verb: str, results: Any, names: Sequence[str] | None
) -> tuple[tuple[Result, ...], tuple[str, ...] | None]:
    """The runs and their names; a text or path among the runs is a folder, see :func:`loaded_runs`."""
    runs: list[Result] = []
    for run in elements(verb, results, RUNS, alone=(str, os.PathLike, Result)):
        if not isinstance(run, Result | str | os.PathLike):
            raise ScenarioError(verb, kind_of(run), RUNS)
        runs += [run] if isinstance(run, Result) else loaded_runs([run])
    if not runs:
        raise ScenarioError(verb, "no results", "at least one")
    if names is None:
        return tuple(runs), None
    listed = elements(f"{verb}: names", names, "a list of names, one for each result")
    if len(listed) != len(runs):
        raise ScenarioError(f"{verb}: names", f"{len(listed)} names", f"{len(runs)}, one for each result")
    return tuple(runs), tuple(map(str, listed))


def window_of(bounds: tuple[float, float] | None) -> Window | None:
    """The window; ScenarioError if its end is not after its beginning."""
    if bounds is None:
        return None
    ends = elements("window", bounds, "a beginning and an end, in seconds")
    if len(ends) != 2 or not all(isinstance(end, int | float) for end in ends):
        raise ScenarioError("window", short(list(ends)), "a beginning and an end, in seconds")
    begin_s, end_s = ends
    if not begin_s < end_s:
        raise ScenarioError("window", f"{begin_s:g}:{end_s:g}", "a beginning and a later end, in seconds")
    return Window(float(begin_s), float(end_s))


class RunsFailed(UserWarning):
    """Runs of a sweep failed, so that they are in no table, mean or chart."""


def loaded_runs(folders: Sequence[str | os.PathLike[str]]) -> list[Result]:
    """The runs in these folders; each is the folder of a run, or has folders of runs in it, as that of a sweep."""
    return [Result.load(folder) for folder in run_folders(folders)]


def run_folders(folders: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The folders of runs that these are or have in them at any depth, such as a level for each axis of a sweep."""
    runs: list[Path] = []
    for folder in map(Path, folders):
        _warn_of_failed(folder / FAILED)
        alone = names_file(folder / "run.json") or not names_folder(folder)
        inside = [] if alone else sorted(folder.rglob("run.json"))
        # Unfinished folders have names with a leading dot.
        whole = [path.parent for path in inside if not any(part[0] == "." for part in path.relative_to(folder).parts)]
        runs += whole or [folder]
    return runs


def _warn_of_failed(path: Path) -> None:
    """Warn of the runs that the file of failed runs in a sweep's folder lists, if it is there."""
    if path.is_file():
        with reading(str(path), "what a sweep wrote", (TypeError, AttributeError)):
            count = len(json.loads(path.read_text()))
        runs = "1 run" if count == 1 else f"{count:,} runs"
        warnings.warn(f"{runs} of {path.parent} failed, see {path}; no mean has them", RunsFailed, stacklevel=2)


def still(figure: ReportChart, columns: int | None = None) -> str:
    """A chart as Vega-Lite outside of a page: with data, a title, a fixed width and a legend.

    ``columns``: without a title, fitted to one or two columns of a paper; a chart of one run says which.
    """
    if columns is not None and columns not in PAPER_WIDTH:
        raise ScenarioError("columns", columns, "1 or 2")
    data, title = figure.data, figure.title if columns is None else ""
    spec = dict(figure.spec)
    if figure.single:
        data = data.drop_nulls(spec["layer"][0]["encoding"]["color"]["field"])  # runs that did not record it
        first = data["run"][0]
        data, title = data.filter(pl.col("run") == first), f"{title}: {first}".removeprefix(": ")
        values = {"chosen": first, "moment": NO_MOMENT if figure.key in MAPS else STEPS // 2}
        spec["params"] = [param | {"value": values[param["name"]]} for param in spec["params"]]
    width = PICTURE_WIDTH if columns is None else PAPER_WIDTH[columns]
    spec |= {"data": {"values": data.to_dicts()}, "background": "white", "width": width}
    spec |= {} if columns is None else _printed()
    if title:
        lines = lines_of(title, width, TITLE if columns is None else PAPER_LETTER)
        spec["title"] = {"text": lines, "anchor": "start", "frame": "bounds"}
    size = LETTER if columns is None else PAPER_LETTER
    spec["layer"] = [_legible(layer, figure.single, width, spec["height"], size) for layer in spec["layer"]]
    return json.dumps(spec)


def _legible(layer: dict[str, Any], single: bool, width: float, height: float, size: float) -> dict[str, Any]:
    """The layer with legends of names that fit, and with titles of the upright axis as long as the axis."""
    encoding = dict(layer["encoding"])
    for name in {"color", "strokeDash", "shape"} & set(encoding):
        channel, own = encoding[name], encoding[name].get("legend") or {}
        names = channel.get("scale", {}).get("domain", ())
        if channel["type"] == "nominal" and (own if single else len(names) > 1):
            # The shade of an interval would be the colour of the legend without the opacity.
            shown = {"title": None, "symbolOpacity": 1, "symbolSize": 6 * size} | legend(names, width, size)
            encoding[name] = channel | {"legend": shown | {key: own[key] for key in own if key == "symbolType"}}
    upright = encoding.get("y", {})
    if upright.get("title"):
        encoding["y"] = upright | {"title": lines_of(upright["title"], height, size)}
    return layer | {"encoding": encoding}


def _printed() -> dict[str, Any]:
    """Height and letters of a chart in a paper; a picture has as many points as pixels."""
    letters = {"labelFontSize": PAPER_LETTER, "titleFontSize": PAPER_LETTER}
    return {
        "height": PAPER_HEIGHT, "padding": 2,
        "config": {"axis": letters | {"titleFontWeight": "normal"}, "legend": letters,
                   "title": {"fontSize": PAPER_LETTER, "fontWeight": "normal"}},
    }  # fmt: skip
