"""Results of reproducing a paper: a cell for every figure, ours beside the published one, with a verdict; their page.

=================  ================================================================================================
``same``           the same at every printed digit
``within``         within the bar that the figure's own spread justifies
``outside``        beyond that bar
``indicative``     the published figure is of other pods or other seeds: no test
``no reference``   no published figure
=================  ================================================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import polars as pl

from fastsim.errors import FastsimError
from fastsim.foundation.parquet import replacing_folder
from fastsim.reports.charts import html_page
from fastsim.reports.charts.series_looks import channels

VERDICTS = ("same", "within", "outside", "indicative", "no reference")
FLOAT_NOISE = 1e-9
"""Tolerance for the rounding of half a printed digit."""
STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3f; --bad: #b3261e; --dim: #666; }
@media (prefers-color-scheme: dark) { :root { --good: #6fcf8a; --bad: #ff8a80; --dim: #a0a0a0; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .55rem; text-align: right; border-bottom: 1px solid var(--line); }
.words, td:last-child { text-align: left; }
.same, .within { color: var(--good); } .outside { color: var(--bad); font-weight: 600; }
.indicative, .no-reference { color: var(--dim); } pre { overflow-x: auto; font-size: 12px; }
.charts { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); }
figure { margin: 0; min-width: 0; } figcaption { font-size: 13px; font-weight: 600; }
.chart { width: 100%; min-height: 300px; }
@media (max-width: 480px) { body { margin: 1rem auto; padding: 0 .7rem; } h1 { font-size: 1.2rem; } }
"""
HEADS = {
    "figure": "figure", "case": "case", "policy": "policy", "quantity": "quantity", "at": "at", "unit": "unit",
    "published": "published", "original": "original, run", "ours": "ours", "deviation": "deviation", "bar": "bar",
    "verdict": "verdict",
}  # fmt: skip
WORDS = ("figure", "case", "policy", "quantity", "unit", "verdict")
"""Columns of words; other columns are shown unless they are empty."""
FEW = 3
"""Positions from which on published values are drawn."""
SKEWED = 8.0
"""Largest ratio of the last to the middle point of a chart on a linear axis."""
DRAW = """
const specs = JSON.parse(document.getElementById("specs").textContent);
const media = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const ink = getComputedStyle(document.body).color, line = "#8884";
  const text = { labelColor: ink, titleColor: ink, titleFontWeight: 500 };
  const axis = { ...text, gridColor: line, domainColor: line, tickColor: line };
  const tooltip = { theme: media.matches ? "dark" : "light" };
  document.querySelectorAll(".chart").forEach((place, number) => {
    const legend = { ...text, columns: Math.max(1, Math.floor(place.clientWidth / 230)) };
    const config = { background: "transparent", view: { stroke: null }, legend, axis };
    vegaEmbed(place, specs[number], { actions: false, renderer: "canvas", config, tooltip })
      .then(() => { place.dataset.ready = tooltip.theme; }, (problem) => console.error(problem));
  });
}
media.addEventListener("change", draw);
draw();
"""
"""Draws the charts in the colours of the page, and again when these change."""


class Cell(NamedTuple):
    """One figure of a paper.

    ``published`` is the printed value, ``original`` that of a run of the authors' code; ``deviation`` is ours less
    the original, or less the published value if there is no run. ``bar`` is the allowed deviation.
    """

    figure: str
    case: str
    policy: str
    quantity: str
    at: float | None
    unit: str
    published: float | None
    original: float | None
    ours: float
    deviation: float | None
    bar: float | None
    verdict: str


SCHEMA = {
    name: pl.String if name in ("figure", "case", "policy", "quantity", "unit", "verdict") else pl.Float64
    for name in Cell._fields
}


class Measure(NamedTuple):
    """The measured quantity of a cell."""

    figure: str
    quantity: str
    unit: str
    printed: float
    """The last digit that was printed."""


def cell(
    measure: Measure, case: str, policy: str, at: float | None, ours: float, *, published: float | None = None,
    original: float | None = None, bar: float | None = None, exact: bool = True, comparable: bool = True,
) -> Cell:  # fmt: skip
    """A cell with its verdict; ``exact``: equal digits are expected; ``comparable``: inputs are those of the paper."""
    reference = published if original is None else original
    deviation = None if reference is None else ours - reference
    fields: Any = (
        measure.figure,
        case,
        policy,
        measure.quantity,
        at,
        measure.unit,
        published,
        original,
        ours,
        deviation,
    )
    if deviation is None:
        return Cell._make((*fields, None, "no reference"))
    digit = measure.printed / 2 + FLOAT_NOISE
    if not comparable:
        return Cell._make((*fields, None, "indicative"))
    if abs(deviation) <= digit:
        return Cell._make((*fields, bar or digit, "same"))
    within = bar is not None and not exact and abs(deviation) <= bar and not math.isnan(bar)
    return Cell._make((*fields, digit if exact else bar, "within" if within else "outside"))


@dataclass(frozen=True)
class Reproduction:
    """The reproduced figures of a paper."""

    name: str
    title: str
    source: str
    """Origin of the pods or jobs."""
    cells: pl.DataFrame
    curves: pl.DataFrame
    """Points of charts: chart, x_title, y_title, policy, x, y."""
    runs: int
    wall_s: float
    citation: str
    cpu_s: float | None = None
    """CPU seconds of the runs."""

    def count(self, verdict: str) -> int:
        """Cells with this verdict."""
        return int((self.cells["verdict"] == verdict).sum())

    @property
    def counts(self) -> pl.DataFrame:
        """Cells by figure: a column for each verdict."""
        each = [(pl.col("verdict") == name).sum().alias(name) for name in VERDICTS]
        return self.cells.group_by("figure", maintain_order=True).agg(*each)

    @property
    def verdict(self) -> str:
        """One line about all cells."""
        counts = [f"{self.count(name):,} {name}" for name in VERDICTS if self.count(name)]
        return f"{len(self.cells):,} cells: {', '.join(counts)}"

    @property
    def effort(self) -> str:
        """Runs and seconds."""
        spent = "" if self.cpu_s is None else f", {self.cpu_s:,.1f} s of CPU time in them"
        return f"{self.runs:,} run{'' if self.runs == 1 else 's'} in {self.wall_s:,.1f} s{spent}"

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Cells and curves as Parquet, and a page, in a folder that appears complete or not at all."""

        target = Path(folder)
        with replacing_folder(target) as partial:
            self.cells.write_parquet(partial / "cells.parquet")
            self.curves.write_parquet(partial / "curves.parquet")
            (partial / "index.html").write_text(page(self), encoding="utf-8")
        return target


def cell_table(cells: list[Cell]) -> pl.DataFrame:
    """Cells as a table."""
    return pl.DataFrame(cells, schema=SCHEMA, orient="row")


TYPES = {"policy": pl.String, "x": pl.Float64, "y": pl.Float64}


def points(chart: str, x_title: str, y_title: str, policy: str, x: Any, y: Any) -> pl.DataFrame:
    """The points of one line of a chart."""
    frame = pl.DataFrame({"policy": policy, "x": x, "y": y}, schema_overrides=TYPES)
    names = {"chart": chart, "x_title": x_title, "y_title": y_title}
    return frame.select(*(pl.lit(text).alias(name) for name, text in names.items()), "policy", "x", "y")


class PolicyCase(Protocol):
    """A run or row of runs under one policy."""

    @property
    def policy(self) -> str:
        """The policy as the paper's table spells it."""


Case = TypeVar("Case", bound=PolicyCase)


def of_policies(items: Sequence[Case], policies: Sequence[str]) -> list[Case]:
    """The items with one of these policies in any spelling; all items without policies."""
    selected = {plain_name(text) for text in policies}
    return [item for item in items if not selected or plain_name(item.policy) in selected]


def beyond(items: Sequence[PolicyCase], policies: Sequence[str]) -> list[str]:
    """The policies that no item has."""
    present = {plain_name(item.policy) for item in items}
    return [text for text in policies if plain_name(text) not in present]


@cache
def plain_name(policy: str) -> str:
    """The canonical spelling of a policy."""
    from fastsim.policies.registry import parse

    return str(parse(policy))


def page(reproduction: Reproduction) -> str:
    """HTML with verdicts, charts (where the report extra is installed) and every cell."""
    scripts, body = _charts(reproduction.curves, reproduction.cells)
    source = reproduction.source[:1].upper() + reproduction.source[1:]
    content = "".join((
        f"<h1>{escape(reproduction.title)}</h1>",
        f"<p>{escape(reproduction.verdict)}.</p><p>{escape(source)}. {escape(reproduction.effort)}.</p>",
        body,
        f'<h2>Every cell</h2><div class="wide">{_table(reproduction.cells)}</div>',
        f"<h2>Please cite</h2><pre>{escape(reproduction.citation)}</pre>",
    ))  # fmt: skip
    return html_page.page(f"fastsim: {reproduction.title}", content, head=scripts, style=STYLE)


def _table(cells: pl.DataFrame) -> str:
    shown = [name for name in HEADS if cells[name].null_count() < len(cells) or name in WORDS]
    kinds = {name: ' class="words"' if name in WORDS else "" for name in shown}
    heads = [f"<th{kinds[name]}>{escape(HEADS[name])}</th>" for name in shown]
    rows = ["<table><thead><tr>", *heads, "</tr></thead><tbody>"]
    for row in cells.iter_rows(named=True):
        cells_html = [f"<td{kinds[name]}>{escape(figure_text(row[name]))}</td>" for name in shown[:-1]]
        kind = str(row["verdict"]).replace(" ", "-")
        rows.append(f'<tr>{"".join(cells_html)}<td class="{kind}">{escape(row["verdict"])}</td></tr>')
    return "".join([*rows, "</tbody></table>"])


def figure_text(value: Any) -> str:
    """A number in the style of the papers."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) < 10 else f"{value:,.2f}".rstrip("0").rstrip(".")


def _across(altair: Any, part: pl.DataFrame) -> Any:
    """The scale of the horizontal axis: logarithmic if most points would be at its left end."""
    ends = sorted(part["x"].to_list())
    skewed = len(ends) > 2 and ends[0] > 0 and ends[-1] > SKEWED * ends[len(ends) // 2]
    return altair.Scale(type="log", nice=False) if skewed else altair.Scale(nice=False)


def _beside(cells: pl.DataFrame) -> list[pl.DataFrame]:
    """The cells of a chart each: published values of one quantity at several positions of an axis."""
    drawn = cells.filter(pl.col("published").is_not_null(), pl.col("at").is_not_null())
    parts = drawn.partition_by("figure", "case", "quantity", maintain_order=True)
    return [part for part in parts if part["at"].n_unique() >= FEW]


def _channels(altair: Any, policies: Sequence[str]) -> dict[str, Any]:
    """Colour, stroke and mark of each policy, and one legend below, which is never wider than the page."""
    legend = altair.Legend(labelLimit=320, orient="bottom")
    kinds = {"color": altair.Color, "strokeDash": altair.StrokeDash, "shape": altair.Shape}
    return {
        name: kinds[name]("policy:N", title=None, scale=altair.Scale(**channel["scale"]), legend=legend)
        for name, channel in channels(policies, "policy").items()
    }


def _beside_chart(altair: Any, part: pl.DataFrame) -> tuple[str, Any]:
    """Title, and published values as lines with ours as marks."""
    first, columns = part.row(0, named=True), ("policy", "at", "published", "ours")
    policies = part["policy"].unique(maintain_order=True).to_list()
    looks = _channels(altair, policies)
    base = altair.Chart(part.select(*columns).to_arrow(compat_level=pl.CompatLevel.oldest())).encode(
        x=altair.X("at:Q", title=None, scale=altair.Scale(nice=False)), color=looks["color"],
        tooltip=["policy:N", *(altair.Tooltip(f"{name}:Q", format=",.4g") for name in columns[1:])],
    )  # fmt: skip
    quantity = first["quantity"].replace("_", " ")
    y_title = f"{quantity} ({first['unit']})" if first["unit"] else quantity
    y = {"title": y_title, "scale": altair.Scale(zero=False)}
    line = base.mark_line(strokeWidth=1.2).encode(y=altair.Y("published:Q", **y), strokeDash=looks["strokeDash"])
    marks = base.mark_point(size=32, filled=True, opacity=1).encode(y=altair.Y("ours:Q", **y), shape=looks["shape"])
    where = f", {first['case']}" if first["case"] else ""
    return f"{first['figure']}{where}: published (lines), ours (marks)", line + marks


def _curve_chart(altair: Any, part: pl.DataFrame) -> Any:
    """The curves of our runs."""
    x_title, y_title = part["x_title"][0], part["y_title"][0]
    policies = part["policy"].unique(maintain_order=True).to_list()
    looks = _channels(altair, policies)
    encoded = altair.Chart(part.select("policy", "x", "y").to_arrow(compat_level=pl.CompatLevel.oldest())).encode(
        x=altair.X("x:Q", title=x_title, scale=_across(altair, part)),
        y=altair.Y("y:Q", title=y_title, scale=altair.Scale(zero=False)),
        color=looks["color"], strokeDash=looks["strokeDash"],
        tooltip=["policy:N", altair.Tooltip("x:Q", format=".2f"), altair.Tooltip("y:Q", format=",.3f")],
    )  # fmt: skip
    few = part.group_by("policy", maintain_order=True).len()["len"].min() == 1  # a line of one point draws nothing
    return encoded.mark_line(strokeWidth=1.6, point=few)


def _charts(curves: pl.DataFrame, cells: pl.DataFrame) -> tuple[str, str]:
    """Scripts and body of the charts; a note without the report extra."""
    beside = _beside(cells)
    if curves.is_empty() and not beside:
        return "", ""
    from fastsim.reports.charts.chart_files import charting, page_scripts
    from fastsim.reports.charts.series import HEIGHT

    try:
        altair, scripts = charting(), page_scripts()
    except FastsimError:
        return "", "<p>Charts need the report extra.</p>"
    charts = [_beside_chart(altair, part) for part in beside]
    parts = curves.partition_by("chart", as_dict=True, maintain_order=True)
    charts += [(str(name[0]), _curve_chart(altair, part)) for name, part in parts.items()]
    specs = [chart.properties(width="container", height=HEIGHT).to_json(indent=None) for _, chart in charts]
    figures = "".join(
        f'<figure><figcaption>{escape(title)}</figcaption><div class="chart"></div></figure>' for title, _ in charts
    )
    data = html_page.data_script(f"[{','.join(specs)}]", "specs")
    return html_page.code_script(scripts), f'<div class="charts">{figures}</div>{data}{html_page.code_script(DRAW)}'
