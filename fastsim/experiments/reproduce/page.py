"""The page of a reproduction: one HTML file that needs no network, with a table of all cells and its charts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from fastsim.errors import FastsimError

if TYPE_CHECKING:
    import polars as pl

    from fastsim.experiments.reproduce.reproduction import Reproduction

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
    import polars as pl

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
