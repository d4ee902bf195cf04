"""One chart of one object, for notebooks and scripts: a run, a comparison or a cluster as an altair chart.

``plot(result, "waits")`` is the same as ``result.plot("waits")``. Charts of a run are those of a report. A chart shows
itself in Jupyter, VS Code and Colab, and ``chart.save("file.png")`` writes it. Needs the extra ``report``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.result import Result
from fastsim.errors import ResultError, ScenarioError, kind_of, suggestion
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.reports.charts.chart_files import charting, displayed
from fastsim.reports.charts.gpu_occupancy import STEPS
from fastsim.reports.charts.series import WIDTH, series_of
from fastsim.reports.comparison import METRICS, Comparison
from fastsim.reports.report import still
from fastsim.reports.report_charts import KEYS, figures

if TYPE_CHECKING:
    import altair as alt

RESULT = KEYS
"""Charts of a run; a space in a name, as in "nodes power", may stand for an underscore."""
CLUSTER = ("gpus", "nodes")
"""Charts of a cluster: GPUs by model, nodes by kind."""
PLURALS = {"waits": "wait", "jcts": "jct"}
ROW_HEIGHT = 22
"""Height of a bar with its gap, pixels."""


@whole_process
def plot(shown: Any, chart: str | None = None, **options: Any) -> alt.TopLevelMixin:
    """The named chart of a run, comparison or cluster; without a name its first one.

    Names are those of `RESULT`, :data:`fastsim.reports.comparison.METRICS` and `CLUSTER`. ``options`` are those of
    :meth:`fastsim.reports.comparison.Comparison.plot`.
    """
    if not (chart is None or isinstance(chart, str)):
        raise ScenarioError("plot: chart", kind_of(chart), "the name of a chart")
    if isinstance(shown, Comparison):
        return shown.plot(chart or next(iter(METRICS)), **options)
    if options:
        raise ScenarioError("plot", f"the option {next(iter(options))!r}", "options for a comparison only")
    if isinstance(shown, Result):
        return _of_result(shown, chart)
    if isinstance(shown, Cluster):
        return _of_cluster(shown, chart)
    raise ScenarioError("plot", kind_of(shown), "a result, a comparison or a cluster")


def _of_result(result: Result, chart: str | None) -> alt.TopLevelMixin:
    altair, key = charting(), None if chart is None else PLURALS.get(chart, chart).replace(" ", "_")
    if key is not None:
        _known(key, RESULT)
    charts = figures(series_of([result]), keys=() if key is None else (key,))
    if not charts:
        present = ", ".join(figure.key for figure in figures(series_of([result])))
        whole = result.provenance.get("options", {}).get("record", "all") == "all"
        expected = ", or ".join(
            [f"one of {present}"] * bool(present) + ["a run with record='all'"] * (not whole or not present)
        )
        raise ResultError(f"plot: found nothing recorded for {key or 'a chart'}, expected {expected}")
    spec = json.loads(still(charts[0]))
    del spec["$schema"]  # altair names its own
    for param in spec["params"]:
        if param["name"] == "moment":
            param |= {"value": 0, "bind": {"input": "range", "min": 0, "max": STEPS - 1, "step": 1, "name": "step "}}
    drawn: alt.TopLevelMixin = displayed(altair.LayerChart.from_dict(spec))  # Chart would try every kind of chart
    return drawn


def _of_cluster(cluster: Cluster, chart: str | None) -> alt.TopLevelMixin:
    altair, key = charting(), chart or CLUSTER[0]
    _known(key, CLUSTER)
    kinds = pl.DataFrame(cluster.kinds())
    model = pl.col("gpu_model").fill_null("no GPU")
    if key == "gpus":
        each, title = pl.col("nodes") * pl.col("num_gpu"), "GPUs"
        bars = kinds.filter(pl.col("num_gpu") > 0).select(model.alias("kind"), each.alias("count"))
    else:
        text = pl.format("{} {}, {} CPUs, {} GiB", "num_gpu", model, pl.col("cpu_milli") / 1000,
                         (pl.col("memory_mib") / 1024).round(0).cast(pl.Int64))  # fmt: skip
        bars, title = kinds.select(text.alias("kind"), pl.col("nodes").alias("count")), "nodes"
    bars = bars.group_by("kind", maintain_order=True).sum().sort("count", descending=True, maintain_order=True)
    encoded = altair.Chart(bars.to_arrow(compat_level=pl.CompatLevel.oldest())).encode(
        x=altair.X("count:Q", title=title),
        y=altair.Y("kind:N", title=None, sort=None, axis=altair.Axis(labelLimit=260)),
        tooltip=["kind:N", altair.Tooltip("count:Q", title=title, format=",")],
    )
    size = {"width": WIDTH, "height": ROW_HEIGHT * max(len(bars), 1)}
    named = encoded.mark_bar().properties(title=f"{cluster.name}: {title}", **size)
    drawn: alt.TopLevelMixin = displayed(named)
    return drawn


def _known(chart: str, names: Iterable[str]) -> None:
    if chart not in names:
        raise ScenarioError("chart", repr(chart), f"one of {', '.join(names)}", suggestion(chart, tuple(names)))
