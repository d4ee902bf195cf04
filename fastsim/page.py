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


def report_page(comparison: Comparison, charts: Any) -> str:
    """HTML with the comparison's table, its charts (scripts included, no network) and citations."""
    drawn = charts.to_html(
        inline=True, embed_options={"actions": {"source": False, "compiled": False, "editor": False}}
    )
    head = f"<title>fastsim: {escape(', '.join(comparison.names))}</title><style>{STYLE}</style>"
    above = (
        f"<h1>Placement policies compared</h1>{table_html(comparison.table)}<h2>Over the demand that has arrived</h2>"
    )
    below = f"<h2>Runs</h2>{_runs(comparison)}<h2>Please cite</h2><pre>{escape(_citations(comparison))}</pre>"
    page: str = drawn.replace("</head>", f"{head}</head>", 1)
    page = page.replace("<body>", f"<body>{above}", 1)
    before, end, after = page.rpartition("</body>")
    return f"{before}{below}{end}{after}"


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
