"""The report page: one HTML file with everything in it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from fastsim.show import table_html

if TYPE_CHECKING:
    from fastsim.plots import Comparison

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; vertical-align: bottom; max-width: 9rem; }
pre { font-size: 12px; background: #f6f6f6; padding: 1rem; overflow-x: auto; }
"""


EMBED = '{"actions": {"export": true, "source": false, "compiled": false, "editor": false}}'


def report_page(comparison: Comparison, charts: Any, scripts: str) -> str:
    """HTML with the comparison's table, its charts and citations; ``scripts`` draw them without a network."""
    title = "Placement policies compared"
    # Names are the user's: a "</script>" in one must not end the script it stands in.
    drawn = charts.to_json(indent=None).replace("<", "\\u003c")
    return "".join((
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>fastsim: {title}</title>',
        f"<style>{STYLE}</style><script>{scripts}</script></head><body><h1>{title}</h1>",
        table_html(comparison.table),
        '<h2>Over the demand that has arrived</h2><div id="charts"></div>',
        f"<h2>Runs</h2>{_runs(comparison)}",
        f"<h2>Please cite</h2><pre>{escape(_citations(comparison))}</pre>",
        f'<script>vegaEmbed("#charts", {drawn}, {EMBED})</script></body></html>\n',
    ))  # fmt: skip


def _runs(comparison: Comparison) -> str:
    items = []
    for name, result in zip(comparison.names, comparison.results, strict=True):
        known = result.provenance
        cluster, workload = known.get("cluster", {}), known.get("workload", {})
        words = (
            f"{name}: policy {known.get('policy', '?')}, seed {known.get('options', {}).get('seed', '?')}, "
            f"{cluster.get('nodes', '?')} nodes (sha256 {str(cluster.get('sha256', '?'))[:12]}), "
            f"{workload.get('pods', '?')} pods (sha256 {str(workload.get('sha256', '?'))[:12]}), "
            f"fastsim {known.get('versions', {}).get('fastsim', '?')}"
        )
        items.append(f"<li>{escape(words)}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _citations(comparison: Comparison) -> str:
    return "\n\n".join(dict.fromkeys(text for result in comparison.results for text in result.citations))
