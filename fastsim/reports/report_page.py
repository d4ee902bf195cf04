"""The report page: one HTML file that contains its data, scripts and styles, and needs no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import polars as pl

from fastsim.reports.charts.gpu_occupancy import STEPS
from fastsim.reports.charts.html_page import code_script, data_script, page
from fastsim.reports.charts.series_looks import Look, looks

if TYPE_CHECKING:
    from fastsim.engine.result import Result
    from fastsim.reports.charts.series import RunSeries
    from fastsim.reports.report_charts import ReportChart
    from fastsim.reports.report_table import Table

SHOWN = 12
"""Lines that are visible at first."""
FIRST = (
    "pod_id", "native_id", "attempt", "round", "t_s", "from_s", "until_s", "state", "outcome", "node", "gpu_model",
    "chosen", "why",
)  # fmt: skip
"""Columns of explanations that come first on a page."""
RANKED, MOST_ROWS = 10, 200
"""Nodes of a decision, and rows of an explanation, that a page shows at most."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'none'"
)
"""Content security policy: the page runs its own scripts, which evaluate formulas of charts, and has no network."""


class Explained(NamedTuple):
    """A table of ``explain`` on a page: heading, names of the columns with a value, texts of rows, a note below."""

    title: str
    names: list[str]
    rows: list[list[str]]
    note: str


def explained_table(title: str, frame: pl.DataFrame) -> Explained:
    """The table of an explanation; of each decision about a pod the nodes that rank first."""
    shown = frame
    if "rank" in frame.columns:
        shown = frame.sort("pod_id", "attempt", "rank", nulls_last=True, maintain_order=True)
        shown = shown.group_by("pod_id", "attempt", maintain_order=True).head(RANKED)
    shown = shown.head(MOST_ROWS)
    filled = [name for name in shown.columns if shown[name].null_count() < shown.height]
    names = sorted(filled, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    note = "" if shown.height == frame.height else f"{shown.height:,} of {frame.height:,} rows."
    return Explained(title, names, [[_cell(value) for value in row] for row in shown.select(names).iter_rows()], note)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.5g}" if isinstance(value, float) else str(value)


class PageContent(Protocol):
    """The content of a page, as :class:`fastsim.reports.report.Report` has it."""

    @property
    def title(self) -> str:
        """Heading."""

    @property
    def subtitle(self) -> str:
        """Line below the heading."""

    @property
    def series(self) -> Sequence[RunSeries]:
        """Runs by policy; those that differ in their seeds only are one series."""

    @property
    def table(self) -> Table:
        """The summary."""

    @property
    def figures(self) -> Sequence[ReportChart]:
        """Charts."""

    @property
    def explained(self) -> Sequence[Explained]:
        """Explanations of decisions."""

    @property
    def labelled_runs(self) -> Sequence[tuple[str, Result]]:
        """Every run with its name."""

    @property
    def citations(self) -> str:
        """BibTeX entries; empty without any."""


def report_page(report: PageContent, scripts: str) -> str:
    """The page of a report; ``scripts`` is the JavaScript that draws its charts."""
    names = [one.name for one in report.series]
    several = [figure for figure in report.figures if not figure.single]
    single = [figure for figure in report.figures if figure.single]
    numbered = {figure.key: place for place, figure in enumerate(report.figures)}
    parts = [
        f'<header><div><h1>{escape(report.title)}</h1><p class="soft">{escape(report.subtitle)}</p></div>',
        '<button id="theme" class="switch" type="button" aria-pressed="false">Dark colours</button></header><main>',
        '<h2 id="figures-of-runs">Summary</h2>', _table(report.table, names),
        '<p class="soft">A heading sorts by its column. ± is half the 95 % interval of the mean over seeds; '
        'in parentheses are its ends, where the quantity ends within it.</p>',
    ]  # fmt: skip
    parts += [_explained(one) for one in report.explained]
    if several:
        parts += ["<h2>Runs side by side</h2>", _switches(names), _charts(several, numbered)]
    if single:
        parts += ["<h2>One run in detail</h2>", _choice(single), _charts(single, numbered)]
    parts += ["<h2>Where this comes from</h2>", *(_provenance(*one) for one in report.labelled_runs)]
    if report.citations:
        parts += ["<h2>Please cite</h2>", f'<pre tabindex="0">{escape(report.citations)}</pre>']
    parts += [
        "</main>", data_script(_data(report.figures), "figures"), code_script(scripts) if report.figures else "",
        code_script(_text("report.js")),
    ]  # fmt: skip
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return page(report.title, "".join(parts), head=policy, style=_text("report.css"))


def column_json(frame: pl.DataFrame) -> dict[str, Any]:
    """A table by columns; columns of texts as levels and codes."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype == pl.String:
            levels = values.unique(maintain_order=True)
            number = {level: place for place, level in enumerate(levels)}
            columns[name] = {"levels": levels.to_list(), "codes": [number[value] for value in values]}
        else:
            columns[name] = [_short(value) for value in values]
    return {"length": len(frame), "columns": columns}


def _short(value: Any) -> Any:
    """Whole numbers without a decimal point, as digits are a third of the file."""
    return int(value) if isinstance(value, float) and value == int(value) and abs(value) < 2**53 else value


def _data(figures: Sequence[ReportChart]) -> str:
    first: dict[int, int] = {}  # charts of the same data have it once
    listed = []
    for place, figure in enumerate(figures):
        same = first.setdefault(id(figure.data), place)
        data = {"data": column_json(figure.data)} if same == place else {"same": same}
        listed.append({"key": figure.key, "spec": figure.spec} | data)
    document = {"figures": listed}
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def _text(name: str) -> str:
    return (files("fastsim.reports") / "web" / name).read_text(encoding="utf-8")


def _table(table: Table, names: Sequence[str]) -> str:
    heads = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{escape(heading)}</button></th>'
        for heading in ("run", *table.headings)
    )
    drawn = dict(zip(names, looks(names), strict=True))
    rows = "".join(
        f'<tr><th scope="row">{_swatch(drawn[name])}{escape(name)}</th>'
        + "".join(
            f'<td data-value="{"" if cell.value is None else repr(cell.value)}">{escape(cell.text)}</td>'
            for cell in cells
        )
        + "</tr>"
        for name, cells in table.rows
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Summary table"><table id="summary"><thead><tr>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _explained(one: Explained) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in one.names)
    classes = [' class="text"' if name == "why" else "" for name in one.names]
    rows = "".join(
        "<tr>" + "".join(f"<td{kind}>{escape(text)}</td>" for kind, text in zip(classes, row, strict=True)) + "</tr>"
        for row in one.rows
    )
    return (
        f'<h2>{escape(one.title)}</h2><div class="scroll why" tabindex="0" role="region" '
        f'aria-label="{escape(one.title)}"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="soft">{escape(one.note)}</p>'
    )


SYMBOLS = {
    "circle": '<circle cx="11" cy="5" r="3.4"/>', "square": '<path d="M8 2h6v6H8z"/>',
    "triangle-up": '<path d="M11 1.2 15 8.4H7z"/>', "diamond": '<path d="M11 .8 14.6 5 11 9.2 7.4 5z"/>',
    "cross": '<path d="M9.7 1.2h2.6v2.5h2.5v2.6h-2.5v2.5H9.7V6.3H7.2V3.7h2.5z"/>',
    "triangle-down": '<path d="M11 8.8 7 1.6h8z"/>',
}  # fmt: skip
"""Marks in a field of 22 by 10."""


def _swatch(one: Look) -> str:
    stroke = "" if one.dash[1] == 0 else f' stroke-dasharray="{" ".join(map(str, one.dash))}"'
    line = f'<line x1="0" y1="5" x2="22" y2="5" stroke="{one.colour}" stroke-width="2"{stroke}/>'
    mark = f'<g fill="{one.colour}">{SYMBOLS[one.mark]}</g>'
    return f'<svg class="swatch" viewBox="0 0 22 10" aria-hidden="true">{line}{mark}</svg>'


def _switches(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" data-run value="{escape(name)}"{" checked" if place < SHOWN else ""}>'
        f"{_swatch(look)}{escape(name)}</label>"
        for place, (name, look) in enumerate(zip(names, looks(names), strict=True))
    )
    both = '<button type="button" data-all="yes">all</button><button type="button" data-all="no">none</button>'
    return f'<div class="runs" role="group" aria-label="Runs shown">{both}{boxes}</div>'


def _choice(figures: Sequence[ReportChart]) -> str:
    runs = list(dict.fromkeys(run for figure in figures for run in figure.data["run"].unique(maintain_order=True)))
    options = "".join(f'<option value="{escape(run)}">{escape(run)}</option>' for run in runs)
    slider = ""
    if any(param["name"] == "moment" for figure in figures for param in figure.spec["params"]):
        slider = (
            '<span class="wide"><label for="moment">Moment</label> '
            f'<input type="range" id="moment" min="0" max="{STEPS - 1}" '
            f'value="{STEPS // 2}"> <output id="at" for="moment"></output></span>'
        )
    run = f'<span><label for="chosen">Run shown</label> <select id="chosen">{options}</select></span>'
    return f'<p class="one">{run}{_quantities(figures)}{slider}</p>'


def _quantities(figures: Sequence[ReportChart]) -> str:
    """The choice among charts that stand in the same place; none if there is one."""
    choices = _choices(figures)
    if len(choices) < 2:
        return ""
    options = "".join(f'<option value="{escape(choice)}">{escape(choice)}</option>' for choice in choices)
    return f'<span><label for="quantity">Nodes by</label> <select id="quantity">{options}</select></span>'


def _choices(figures: Sequence[ReportChart]) -> list[str]:
    return list(dict.fromkeys(figure.choice for figure in figures if figure.choice))


def _charts(figures: Sequence[ReportChart], numbered: dict[str, int]) -> str:
    first = _choices(figures)[:1]
    items = "".join(
        f"<figure{_place(figure, first)}><figcaption><h3>{escape(figure.title)}</h3>"
        f'<p class="soft">{escape(figure.note)}</p></figcaption>'
        f'<div class="chart{" tall" if figure.key == "window" else ""}" id="chart-{figure.key}" '
        f'data-figure="{numbered[figure.key]}" role="group" aria-label="{escape(figure.title)}"></div></figure>'
        for figure in figures
    )
    return f'<div class="charts">{items}</div>'


def _place(figure: ReportChart, first: Sequence[str]) -> str:
    """Attributes of a chart that is one choice of several: the first is seen."""
    if not figure.choice:
        return ""
    return f' data-choice="{escape(figure.choice)}"{"" if figure.choice in first else " hidden"}'


def _provenance(label: str, result: Result) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in provenance_rows(result))
    return f"<details><summary>{escape(label)}</summary><dl>{rows}</dl></details>"


def provenance_rows(result: Result) -> list[tuple[str, str]]:
    """Name and text of a run's scenario, seed, checksums, versions and build."""
    provenance = result.provenance
    cluster, workload = provenance.get("cluster", {}), provenance.get("workload", {})
    rows = [
        (f"{name}", str(value)) for name, value in sorted((provenance.get("scenario") or {}).items()) if name != "out"
    ]
    rows += [
        ("policy", str(provenance.get("policy", "?"))), ("seed", str(provenance.get("options", {}).get("seed", "?"))),
        ("scenario id", str(provenance.get("scenario_id", "?"))),
        ("cluster sha256", f"{cluster.get('sha256', '?')} ({cluster.get('nodes', '?')} nodes)"),
        ("workload sha256", str(workload.get("sha256", "?"))),
        ("versions", ", ".join(f"{name} {text}" for name, text in provenance.get("versions", {}).items())),
        ("build", str(provenance.get("build", {}).get("flags", "?"))),
    ]  # fmt: skip
    return list(dict(rows).items())
