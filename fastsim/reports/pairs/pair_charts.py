"""A picture of paired differences: parts of the mean difference by group, and the distribution of all differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fastsim.reports.charts.chart_files import charting
from fastsim.reports.charts.series import HEIGHT, POINTS, WIDTH
from fastsim.reports.charts.series_looks import COLOURS
from fastsim.reports.pairs.completion_parts import PARTS

if TYPE_CHECKING:
    import altair as alt


MOST_BARS = 24
"""Groups that are drawn: those that contribute most to the whole difference."""


def difference_chart(
    names: tuple[str, str], group: str, by_group: pl.DataFrame, differences: pl.Series
) -> alt.TopLevelMixin:
    """Bars of the mean difference of each group, stacked by part, beside the distribution over jobs.

    ``by_group`` is the table of :meth:`fastsim.reports.pairs.paired_jobs.PairedJobs.by`.
    """
    altair = charting()
    a, b = names
    chart: alt.TopLevelMixin = altair.hconcat(_bars(by_group, group), _distribution(differences)).properties(
        title=f"Completion time: {a} - {b}"
    )
    return chart


def _bars(by_group: pl.DataFrame, group: str) -> alt.LayerChart:
    altair = charting()
    table = by_group.sort(pl.col("total").abs(), descending=True).head(MOST_BARS).sort(group, nulls_last=True)
    name = pl.col(group).cast(pl.String).fill_null("none")
    long = table.select(name.alias("group"), *PARTS).unpivot(index="group", variable_name="part", value_name="seconds")
    order = long["group"].unique(maintain_order=True).to_list()
    x = altair.X("group:N", sort=order, title=group, axis=altair.Axis(labelAngle=0 if len(order) <= 12 else -60))
    bars = altair.Chart(long.to_arrow(compat_level=pl.CompatLevel.oldest())).mark_bar().encode(
        x=x, y=altair.Y("seconds:Q", title="mean difference (s)"),
        color=altair.Color("part:N", sort=list(PARTS), title=None, legend=altair.Legend(orient="bottom"),
                           scale=altair.Scale(domain=list(PARTS), range=list(COLOURS[: len(PARTS)]))),
        order=altair.Order("part:N"),
        tooltip=["group:N", "part:N", altair.Tooltip("seconds:Q", format=",.1f")],
    )  # fmt: skip
    whole = table.select(name.alias("group"), "difference", "jobs").to_arrow(compat_level=pl.CompatLevel.oldest())
    marks = altair.Chart(whole).mark_tick(color="black", thickness=2).encode(
        x=x, y="difference:Q", tooltip=["group:N", "jobs:Q", altair.Tooltip("difference:Q", format=",.1f")]
    )  # fmt: skip
    drawn: alt.LayerChart = altair.layer(bars, marks).properties(width=WIDTH, height=HEIGHT)
    return drawn


def _distribution(differences: pl.Series) -> alt.Chart:
    altair = charting()
    ordered = differences.sort()
    count = len(ordered)
    frame = pl.DataFrame({"x": ordered, "y": [100 * (row + 1) / count for row in range(count)]})
    step = pl.int_range(pl.len()) * POINTS // count
    thinned = frame.group_by(step.alias("step"), maintain_order=True).last() if count > POINTS else frame
    drawn: alt.Chart = altair.Chart(thinned.to_arrow(compat_level=pl.CompatLevel.oldest())).mark_line(
        interpolate="step-after", color=COLOURS[0]
    ).encode(
        x=altair.X("x:Q", title="difference of a job (s)", scale=altair.Scale(type="symlog", nice=False)),
        y=altair.Y("y:Q", title="jobs (%)", scale=altair.Scale(domain=[0, 100])),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    return drawn
