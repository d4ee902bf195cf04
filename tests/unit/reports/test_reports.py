"""Which charts a report has, that each can be drawn, and that none has many points."""

from __future__ import annotations

import re

import pytest

import fastsim as fs
from fastsim.reports.charts import gpu_reading_charts
from fastsim.reports.charts.job_charts import CHARTS
from fastsim.reports.charts.series import series_of
from fastsim.reports.report import still
from fastsim.reports.report_charts import KEYS, LINES, ON_DEMAND, figures
from tests import reports
from tests.needs import needed

FULL = ["allocation", "fragmentation", "power", "failed", "classes"]


def keys(*results: fs.Result, wanted: tuple[str, ...] = ()) -> list[str]:
    return [figure.key for figure in figures(series_of(results), keys=wanted)]


def test_what_runs_recorded_decides_what_is_drawn() -> None:
    assert keys(*reports.filling()) == FULL
    passing = keys(reports.passing())
    assert {"jct", "nodes", "window"} < set(passing) and "failed" not in passing and "shares" not in passing
    assert {"pending", "jct", "wait", "shares", "nodes", "window"} < set(keys(reports.jobs()))
    bare = fs.simulate("openb:20", "synth:openb?pods=3&seed=1", record="summary")
    assert keys(bare) == []


def test_some_are_drawn_only_where_they_are_asked_for() -> None:
    wanted = tuple(line[0] for line in ON_DEMAND)
    assert keys(reports.filling()[0], wanted=(*wanted, "power")) == ["power", *wanted]
    assert len(set(KEYS)) == len(KEYS) == len(LINES) + len(ON_DEMAND) + 11 + len(gpu_reading_charts.KEYS) + len(CHARTS)


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", ["pods", "gone", "jobs"])
def test_every_chart_can_be_drawn(kind: str) -> None:
    result = {"pods": reports.filling()[0], "gone": reports.passing(), "jobs": reports.jobs()}[kind]
    converter = needed("vl_convert")
    for figure in figures(series_of([result])):
        assert len(figure.data) <= 12 * 2500, figure.key
        assert figure.data.columns[0] == "run" and all(figure.data.null_count().row(0)) is False
        picture = converter.vegalite_to_svg(still(figure))
        assert "<svg" in picture and "NaN" not in picture, figure.key


def test_seeds_are_a_band_behind_their_mean() -> None:
    chart = figures(series_of(reports.filling()))[1]
    assert chart.data.columns == ["run", "x", "y", "low", "high"] and "seeds" in chart.note
    assert (chart.data["low"] <= chart.data["high"]).all()
    assert chart.spec["layer"][0]["mark"]["type"] == "area"
    alone = figures(series_of(reports.filling()[:1]))[1]
    assert alone.data.columns == ["run", "x", "y"] and len(alone.spec["layer"]) == 3


def test_a_picture_has_a_legend_that_is_not_pale() -> None:
    svg = needed("vl_convert").vegalite_to_svg(still(figures(series_of(reports.filling()))[0]))
    symbols = re.findall(r"mark-symbol role-legend-symbol.*?</g>", svg, re.DOTALL)
    assert symbols and all('opacity="0.16"' not in symbol for symbol in symbols)
