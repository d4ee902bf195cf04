"""One chart of one object, for notebooks and scripts: runs, a comparison, a report or a cluster as an altair chart.

``plot(result, "waits")`` is the same as ``result.plot("waits")``. Charts of runs are those of a report, by the same
names. A chart shows itself in Jupyter, VS Code and Colab, and ``chart.save("file.png")`` writes it, as .svg and .pdf
as well. Needs the extra ``report``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.result import Result
from fastsim.errors import ScenarioError, kind_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.reports.charts.chart_files import charting, displayed
from fastsim.reports.charts.job_charts import CHARTS
from fastsim.reports.charts.series import WIDTH, series_of
from fastsim.reports.comparison import Comparison, compare
from fastsim.reports.report import Report, named_runs
from fastsim.reports.report_charts import KEYS, job_figure
from fastsim.reports.series_plots import drawn, of_series, whole_name

if TYPE_CHECKING:
    import altair as alt

CLUSTER = ("gpus", "nodes")
"""Charts of a cluster: GPUs by model, nodes by kind."""
ROW_HEIGHT = 22
"""Height of a bar with its gap, pixels."""


@whole_process
def plot(shown: Any, chart: str | None = None, **options: Any) -> alt.TopLevelMixin:
    """The named chart of runs, a comparison, a report or a cluster; without a name its first one.

    Names are those of `KEYS`, and for a cluster of `CLUSTER`. ``options`` are those of
    :meth:`fastsim.reports.comparison.Comparison.plot`.
    """
    if not (chart is None or isinstance(chart, str)):
        raise ScenarioError("plot: chart", kind_of(chart), "the name of a chart")
    if isinstance(shown, list | tuple | str | os.PathLike):
        shown = compare(shown)
    if isinstance(shown, Comparison):
        return shown.plot(chart or KEYS[0], **options)
    if options:
        raise ScenarioError("plot", f"the option {next(iter(options))!r}", "options for a comparison only")
    if isinstance(shown, Result):
        return of_series(series_of([shown]), chart)
    if isinstance(shown, Report):
        return of_series(shown.series, chart, shown.window)
    if isinstance(shown, Cluster):
        return _of_cluster(shown, chart)
    raise ScenarioError("plot", kind_of(shown), "results, a comparison, a report or a cluster")


@whole_process
def job_chart(
    results: Sequence[Result], chart: str = "jct_cdf", *, names: Sequence[str] | None = None,
    loads: Sequence[float] | None = None, gpus: int | None = None,
) -> alt.LayerChart:  # fmt: skip
    """A chart of jobs over completion time or load; save it with ``.save("file.png")``.

    Runs of several seeds are one curve, their mean with its interval. The options are those of
    :func:`fastsim.reports.charts.job_charts.job_points`.
    """
    charting()
    return drawn(job_figure(results, chart, names=names, loads=loads, gpus=gpus))


def saved_chart(
    results: Sequence[Result], chart: str, *, names: Sequence[str] | None = None,
    loads: Sequence[float] | None = None, gpus: int | None = None,
) -> alt.LayerChart:  # fmt: skip
    """Any chart of these runs; ``loads`` and ``gpus`` as in :func:`job_chart`, for charts over load only."""
    key = whole_name(chart, KEYS)
    if key in CHARTS:
        return job_chart(results, key, names=names, loads=loads, gpus=gpus)
    for option, value in (("loads", loads), ("gpus", gpus)):
        if value is not None:
            raise ScenarioError(f"{key}: {option}", "a value", f"one for {', '.join(CHARTS)} only")
    runs, named = named_runs("plot", results, names)
    return of_series(series_of(runs, named), key)


def _of_cluster(cluster: Cluster, chart: str | None) -> alt.TopLevelMixin:
    altair, key = charting(), whole_name(chart or CLUSTER[0], CLUSTER)
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
