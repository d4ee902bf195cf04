"""What reproducing a paper leaves: a cell for every figure, ours beside the published one, and a verdict.

=================  ================================================================================================
``same``           the same at every printed digit
``within``         within the bar that the figure's own spread justifies
``outside``        further away
``indicative``     the published figure is of other pods or of other seeds: a glance, no test
``no reference``   nothing was published of this cell
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

TABLES = Path(__file__).parents[1] / "published"
VERDICTS = ("same", "within", "outside", "indicative", "no reference")
FLOAT_NOISE = 1e-9
"""Half a printed digit is a float, too."""
STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3f; --bad: #b3261e; --dim: #777; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .55rem; text-align: right; border-bottom: 1px solid var(--line); }
.words, td:last-child { text-align: left; }
.same, .within { color: var(--good); } .outside { color: var(--bad); font-weight: 600; }
.indicative, .no-reference { color: var(--dim); } pre { overflow-x: auto; font-size: 12px; }
.charts { background: #fff; }
"""
HEADS = {
    "figure": "figure", "case": "case", "policy": "policy", "quantity": "quantity", "at": "at", "unit": "unit",
    "published": "published", "original": "original, run", "ours": "ours", "deviation": "deviation", "bar": "bar",
    "verdict": "verdict",
}  # fmt: skip
WORDS = ("figure", "case", "policy", "quantity", "unit", "verdict")
"""Columns of words; of the others, those are shown that say something."""
TEN = 10
"""Colours of the usual palette."""
SKEWED = 8.0
"""How many times the middle of a chart's points the last one may be on a linear axis."""
EMBED = '{"actions": false}'


class Cell(NamedTuple):
    """One figure of a paper.

    ``published`` is what the authors printed, ``original`` what their code gives when it is run; ``deviation`` is ours
    less the original, or less the published where nobody ran it. ``bar`` is the deviation that is allowed.
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
    """What a cell is of."""

    figure: str
    quantity: str
    unit: str
    printed: float
    """The last digit that was printed."""


def cell(
    what: Measure, case: str, policy: str, at: float | None, ours: float, *, published: float | None = None,
    original: float | None = None, bar: float | None = None, exact: bool = True, comparable: bool = True,
) -> Cell:  # fmt: skip
    """A cell with its verdict; ``exact`` if equal digits may be expected, ``comparable`` if it is the same at all."""
    reference = published if original is None else original
    deviation = None if reference is None else ours - reference
    told: Any = (what.figure, case, policy, what.quantity, at, what.unit, published, original, ours, deviation)
    if deviation is None:
        return Cell._make((*told, None, "no reference"))
    digit = what.printed / 2 + FLOAT_NOISE
    if not comparable:
        return Cell._make((*told, None, "indicative"))
    if abs(deviation) <= digit:
        return Cell._make((*told, bar or digit, "same"))
    within = bar is not None and not exact and abs(deviation) <= bar and not math.isnan(bar)
    return Cell._make((*told, digit if exact else bar, "within" if within else "outside"))


@dataclass(frozen=True)
class Reproduction:
    """A paper's figures, made again."""

    name: str
    title: str
    source: str
    """Where pods or jobs came from."""
    cells: pl.DataFrame
    curves: pl.DataFrame
    """Points of charts: chart, x_title, y_title, policy, x, y."""
    runs: int
    wall_s: float
    citation: str
    cpu_s: float | None = None
    """CPU seconds of the runs themselves."""

    def count(self, verdict: str) -> int:
        """Cells with this verdict."""
        return int((self.cells["verdict"] == verdict).sum())

    @property
    def verdict(self) -> str:
        """One line about all cells."""
        told = [f"{self.count(name):,} {name}" for name in VERDICTS if self.count(name)]
        return f"{len(self.cells):,} cells: {', '.join(told)}"

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


@cache
def published_table(name: str) -> pl.DataFrame:
    """A table of published figures that ships with the package."""
    return pl.read_csv(TABLES / f"{name}.csv")


def points(chart: str, x_title: str, y_title: str, policy: str, x: Any, y: Any) -> pl.DataFrame:
    """The points of one line of a chart."""
    frame = pl.DataFrame({"policy": policy, "x": x, "y": y}, schema_overrides={"x": pl.Float64, "y": pl.Float64})
    names = {"chart": chart, "x_title": x_title, "y_title": y_title}
    return frame.select(*(pl.lit(text).alias(name) for name, text in names.items()), "policy", "x", "y")


class Played(Protocol):
    """What is to be played with a policy."""

    @property
    def policy(self) -> str:
        """As the paper's table says it."""


Some = TypeVar("Some", bound=Played)


def of_policies(items: Sequence[Some], policies: Sequence[str]) -> list[Some]:
    """The items with one of these policies, however it is spelled; all of them if none is named."""
    wanted = {plain_name(text) for text in policies}
    return [item for item in items if not wanted or plain_name(item.policy) in wanted]


def beyond(items: Sequence[Played], policies: Sequence[str]) -> list[str]:
    """The policies that no item has."""
    known = {plain_name(item.policy) for item in items}
    return [text for text in policies if plain_name(text) not in known]


@cache
def plain_name(policy: str) -> str:
    """One text for all spellings of a policy."""
    from fastsim.policies.registry import parse

    return str(parse(policy))


def page(made: Reproduction) -> str:
    """HTML with verdicts, charts (where the report extra is installed) and every cell."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    scripts, body = _charts(made.curves)
    source = made.source[:1].upper() + made.source[1:]
    return "".join((
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>fastsim: {escape(made.title)}</title>',
        f"<style>{STYLE}</style>{scripts}</head><body><h1>{escape(made.title)}</h1>",
        f"<p>{escape(made.verdict)}.</p><p>{escape(source)}. {made.effort}.</p>",
        body,
        f'<h2>Every cell</h2><div class="wide">{_table(made.cells)}</div>',
        f"<h2>Please cite</h2><pre>{escape(made.citation)}</pre></body></html>\n",
    ))  # fmt: skip


def _table(cells: pl.DataFrame) -> str:
    shown = [name for name in HEADS if cells[name].null_count() < len(cells) or name in WORDS]
    kinds = {name: ' class="words"' if name in WORDS else "" for name in shown}
    heads = [f"<th{kinds[name]}>{escape(HEADS[name])}</th>" for name in shown]
    rows = ["<table><thead><tr>", *heads, "</tr></thead><tbody>"]
    for row in cells.iter_rows(named=True):
        told = [f"<td{kinds[name]}>{escape(figure_text(row[name]))}</td>" for name in shown[:-1]]
        kind = str(row["verdict"]).replace(" ", "-")
        rows.append(f'<tr>{"".join(told)}<td class="{kind}">{escape(row["verdict"])}</td></tr>')
    return "".join([*rows, "</tbody></table>"])


def figure_text(value: Any) -> str:
    """A figure as the papers print them."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) < 10 else f"{value:,.2f}".rstrip("0").rstrip(".")


def _across(altair: Any, part: pl.DataFrame) -> Any:
    """Where nearly all points would stand at the left edge, equal steps are equal factors."""
    ends = sorted(part["x"].to_list())
    skewed = len(ends) > 2 and ends[0] > 0 and ends[-1] > SKEWED * ends[len(ends) // 2]
    return altair.Scale(type="log", nice=False) if skewed else altair.Scale(nice=False)


def _charts(curves: pl.DataFrame) -> tuple[str, str]:
    """The scripts of the charts and where they stand; nothing without the report extra."""
    if curves.is_empty():
        return "", ""
    from fastsim.reports.charts.chart_files import charting, page_scripts
    from fastsim.reports.charts.series import HEIGHT, WIDTH

    try:
        altair, scripts = charting(), page_scripts()
    except FastsimError:
        return "", "<p>Charts need the report extra.</p>"
    # Ten colours are told apart best, but none may stand for two policies.
    palette = {"scale": altair.Scale(scheme="tableau20")} if curves["policy"].n_unique() > TEN else {}
    drawn = []
    for name, part in curves.partition_by("chart", as_dict=True, maintain_order=True).items():
        x_title, y_title = part["x_title"][0], part["y_title"][0]
        data = part.select("policy", "x", "y").to_arrow(compat_level=pl.CompatLevel.oldest())
        order = part["policy"].unique(maintain_order=True).to_list()
        encoded = altair.Chart(data).encode(
            x=altair.X("x:Q", title=x_title, scale=_across(altair, part)),
            y=altair.Y("y:Q", title=y_title, scale=altair.Scale(zero=False)),
            color=altair.Color("policy:N", title=None, sort=order, legend=altair.Legend(labelLimit=320), **palette),
            tooltip=["policy:N", altair.Tooltip("x:Q", format=".2f"), altair.Tooltip("y:Q", format=",.3f")],
        )  # fmt: skip
        drawn.append(encoded.mark_line(strokeWidth=1.6).properties(title=str(name[0]), width=WIDTH, height=HEIGHT))
    told = altair.concat(*drawn, columns=2).to_json(indent=None).replace("<", "\\u003c")
    body = '<div class="wide"><div class="charts" id="charts"></div></div>'
    body += f'<script>vegaEmbed("#charts", {told}, {EMBED})</script>'
    return f"<script>{scripts}</script>", body
