"""Names in charts: what is cut and wrapped; every chart of a report with few and many policies, of long names."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastsim as fs
from fastsim.engine.audit.metric_definitions import possible
from fastsim.reports.charts.job_charts import CHARTS
from fastsim.reports.charts.legends import legend, lines_of, relabelled, shortened, text_width
from fastsim.reports.charts.series import RunSeries
from fastsim.reports.charts.series_looks import COLOURS
from fastsim.reports.report import PAPER_WIDTH, PICTURE_WIDTH, still
from fastsim.reports.report_charts import KEYS, ReportChart, figures
from tests import reports
from tests.needs import needed

COUNTS = ((1, 30), (2, 1), (8, 1), (24, 30))
"""Policies and seeds of each."""
PLOT = 0.5
"""Part of a picture's width, and of its height without the names below, that the plot has at least."""


@settings(max_examples=25)
@given(st.lists(st.text(max_size=90), max_size=6, unique=True), st.floats(40, 300))
def test_names_that_are_cut_fit(names: list[str], width: float) -> None:
    short = shortened(names, width, 8)
    assert all(name == cut or text_width(cut, 8) <= width for name, cut in zip(names, short, strict=True))


def test_different_names_stay_different() -> None:
    alike = [f"a long name of a policy, its cluster and its queue, {place} and much more" for place in range(24)]
    for width in (60, 100, 200):
        assert len(set(shortened(alike, width, 8))) == 24
    [label] = json.loads(relabelled(alike[:1], 100, 8)["labelExpr"].split(" : ")[1].split("[index")[0])
    assert label == shortened(alike[:1], 100, 8)[0] and "…" in label
    assert relabelled(["fgd", "random"], 100, 8) == {}


def test_titles_have_as_many_lines_as_they_need() -> None:
    assert lines_of("allocated", 100, 8) == "allocated"
    assert lines_of("allocated (% of capacity)", 60, 8) == ["allocated (% of", "capacity)"]
    assert len(lines_of("x" * 100, 100, 10)) > 3


def test_a_legend_of_few_short_names_stands_beside_its_plot() -> None:
    assert legend(["fgd", "random"], 640)["orient"] == "right"
    assert legend(["fgd"] * 13, 640)["orient"] == "bottom" == legend(["a name of many letters " * 3], 640)["orient"]
    paper = legend(["max_min_fairness", "random"], 238, 8)  # a column of a paper has less room beside
    assert paper["orient"] == "bottom" and paper["columns"] == 2


@cache
def base(kind: str) -> tuple[fs.Result, ...]:
    """Some small runs of a kind, which stand for those of many policies and seeds."""
    if kind == "full":
        return reports.filling()
    if kind == "gone":
        texts = [f"synth:openb?pods={pods}&seed={pods}" for pods in (30, 40, 50)]
        return tuple(fs.simulate("openb:5", text, "best_fit", queue="fifo_skip", record="all") for text in texts)
    if kind == "jobs":
        texts = [f"synth:gavel?jobs={jobs}&rate_per_hour=4&seed={jobs}" for jobs in (6, 9, 12)]
        return tuple(fs.simulate("gavel:2:2:2", text, "max_min_fairness", record="all") for text in texts)
    one = "uniform?nodes=1&gpu=V100M32&gpus=1"
    return tuple(fs.simulate(one, f"synth:detectors?jobs={jobs}", "exclusive", telemetry=60) for jobs in (2, 3))


def drawn(kind: str, policies: int, seeds: int) -> list[ReportChart]:
    """Every chart of policies whose names have 80 letters, and of which two are fastsim's and many the user's."""
    names = ["max_min_fairness", "sia", *(f"my order {place}" for place in range(22))]
    long = [f"{name}, cluster=uniform?nodes=200&gpu=A100&gpus=8, queue=fifo_skip"[:80].ljust(80, ".") for name in names]
    runs = base(kind)
    seeds = min(seeds, 3) if kind == "read" else seeds  # readings are many
    series = [
        RunSeries(name, tuple(runs[(place + seed) % len(runs)] for seed in range(seeds)), named=True)
        for place, name in enumerate(long[:policies])
    ]
    of_jobs = set(CHARTS) if kind != "jobs" or policies * seeds > 30 else set()  # those take longest
    return figures(series, keys=() if kind == "gone" and policies > 2 else [key for key in KEYS if key not in of_jobs])


def channels_of(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for layer in spec["layer"]:
        yield from layer["encoding"].items()


@pytest.mark.parametrize(("policies", "seeds"), COUNTS)
def test_no_chart_has_a_colour_twice_or_a_band_beyond_what_can_be(policies: int, seeds: int) -> None:
    looks: dict[str, set[str]] = {}
    for kind in ("full", "gone", "jobs", "read"):
        for figure in drawn(kind, policies, seeds):
            for name, channel in channels_of(figure.spec):
                if name == "color" and channel["type"] == "nominal":
                    colours, names = channel["scale"]["range"], channel["scale"]["domain"]
                    assert len(set(colours)) == len(colours) == len(names), figure.key
                    for run, colour in zip(names, colours, strict=True) if not figure.single else ():
                        looks.setdefault(run, set()).add(colour)
            least, most = possible("charts", figure.key)
            for column in {"y", "low", "high"} & set(figure.data.columns) if figure.key != "window" else ():
                values = figure.data[column].drop_nulls()
                assert ((values >= least) & (values <= most)).all(), (figure.key, column)
            if figure.single:
                assert all("one run of" in run for run in figure.data["run"].unique()) == (seeds > 1), figure.key
    assert len(looks) == policies and all(len(colours) == 1 for colours in looks.values())
    assert len({next(iter(colours)) for colours in looks.values()}) == policies <= len(COLOURS)


def test_all_charts_are_looked_at() -> None:
    assert {figure.key for kind in ("full", "gone", "jobs", "read") for figure in drawn(kind, 2, 1)} == set(KEYS)


DRAWN = (("full", "allocation", 24), ("jobs", "jct", 8), ("jobs", "shares", 2), ("jobs", "window", 1))
"""Kind of run, chart and number of policies of pictures that are drawn."""


@pytest.mark.parametrize("columns", [None, 1])
def test_legends_leave_the_plot_its_room(columns: int | None) -> None:
    picture = needed("vl_convert").vegalite_to_svg
    whole = PICTURE_WIDTH if columns is None else PAPER_WIDTH[columns]
    for kind, key, policies in DRAWN:
        [figure] = [one for one in drawn(kind, policies, 1) if one.key == key]
        spec = json.loads(still(figure, columns))
        svg = picture(json.dumps(spec))
        width, height = map(float, re.findall(r'class="background"[^>]*d="M[\d.,]*h([\d.]+)v([\d.]+)h', svg)[0])
        assert width >= PLOT * whole and height == spec["height"], (key, columns)
        assert float(re.findall(r'<svg[^>]* width="([\d.]+)"', svg)[0]) <= whole + 1, (key, columns)
        first = figure.data["run"][0]
        assert not figure.single or first.split(",")[0] in svg, key
        shown = re.findall(r'class="mark-text role-legend-label"', svg)
        assert len(shown) == (policies if not figure.single else len(shown))
        texts = re.findall(r'role-axis-title.*?<text[^>]*transform="[^"]*rotate\(-90\)[^"]*"[^>]*>(.*?)</text>', svg)
        assert all(text_width(re.sub("<[^>]*>", "", text), 8) < 1.5 * spec["height"] for text in texts)


def cut_letter_by_letter(name: str, width: float, size: float) -> str:
    """The longest cut that fits, found from the whole name downwards."""
    letters, cut = len(name), name
    while text_width(cut, size) > width and letters > 3:
        letters -= 1
        cut = f"{name[: (letters + 1) // 2]}…{name[len(name) - letters // 2 :]}"
    return cut


def test_names_are_cut_to_the_longest_that_fits_however_long_they_are() -> None:
    draw = random.Random(1)
    for _ in range(200):
        name = "".join(draw.choices("il.mW@aZ字", k=draw.randint(1, 60)))
        width = draw.uniform(-5.0, 300.0)
        assert shortened([name], width, 11) == [cut_letter_by_letter(name, width, 11)]
    assert len(shortened(["i" * 1_000_000], 200.0, 11)[0]) < 60
