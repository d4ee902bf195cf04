"""Charts of a report as altair charts: one chart of series of runs, by its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastsim.errors import ResultError, ScenarioError, suggestion
from fastsim.reports.charts.chart_files import charting, displayed
from fastsim.reports.charts.gpu_occupancy import STEPS, Window
from fastsim.reports.charts.series import RunSeries
from fastsim.reports.report import still
from fastsim.reports.report_charts import KEYS, ReportChart, figures

if TYPE_CHECKING:
    import altair as alt

PLURALS = {"waits": "wait", "jcts": "jct"}


def whole_name(chart: str, names: Sequence[str]) -> str:
    """The chart of this name, which may be a plural or have spaces or hyphens; ScenarioError if there is none."""
    key = PLURALS.get(chart, chart).replace(" ", "_").replace("-", "_")
    if key not in names:
        raise ScenarioError("chart", repr(chart), f"one of {', '.join(names)}", suggestion(key, tuple(names)))
    return key


def of_series(series: Sequence[RunSeries], chart: str | None = None, window: Window | None = None) -> alt.LayerChart:
    """A chart of a report of these series; the first one without a name."""
    charting()
    key = None if chart is None else whole_name(chart, KEYS)
    charts = figures(series, window, () if key is None else (key,))
    if not charts:
        present = ", ".join(figure.key for figure in figures(series))
        whole = all(
            run.provenance.get("options", {}).get("record", "all") == "all" for one in series for run in one.runs
        )
        expected = ", or ".join(
            [f"one of {present}"] * bool(present) + ["a run with record='all'"] * (not whole or not present)
        )
        raise ResultError(f"plot: found nothing recorded for {key or 'a chart'}, expected {expected}")
    return drawn(charts[0])


def drawn(figure: ReportChart) -> alt.LayerChart:
    """One chart of a report."""
    altair = charting()
    spec = json.loads(still(figure))
    del spec["$schema"]  # altair names its own
    for param in spec["params"]:
        if param["name"] == "moment":
            param |= {"value": 0, "bind": {"input": "range", "min": 0, "max": STEPS - 1, "step": 1, "name": "step "}}
    with altair.utils.schemapi.debug_mode(False):  # altair looks at the whole chart again when it is written
        chart = altair.LayerChart.from_dict(spec, validate=False)  # Chart would try every kind of chart
    drawn: alt.LayerChart = displayed(chart)
    return drawn
