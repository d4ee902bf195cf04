"""The page of a reproduction."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from fastsim.errors import FastsimError
from fastsim.experiments.reproduce import reproduction as reproduction_page
from fastsim.experiments.reproduce.reproduction import (
    Measure,
    Reproduction,
    cell,
    cell_table,
    figure_text,
    page,
    points,
)
from tests.browser import BRIGHT_AND_LAST_PIXELS, Page, browser
from tests.needs import needed


def made() -> Reproduction:
    """Two cells and a line."""
    what = Measure("1", "alloc_pct", "%", 0.01)
    cells = [cell(what, "default", "</script>", 100, 1.0, published=1.0), cell(what, "c", "fgd", None, 2.0)]
    curves = points("chart", "x", "y", "</script>", [1, 2], [3, 4])
    return Reproduction("x", "A paper", "generated", cell_table(cells), curves, 3, 1.5, "@article{x}")


def test_the_page_has_everything_and_needs_no_network() -> None:
    needed("altair")
    text = page(made())
    for part in ("A paper", "2 cells: 1 same, 1 no reference", 'class="no-reference"', "@article{x}", "vegaEmbed"):
        assert part in text
    assert "<script src" not in text and text.count("</script>") == 3 and "&lt;/script&gt;" in text


def test_columns_that_say_nothing_are_left_out() -> None:
    heads = page(made()).partition("<thead>")[2].partition("</thead>")[0]
    assert ">at<" in heads and ">published<" in heads and "original" not in heads


@pytest.mark.parametrize(("many", "last", "axis"), [(11, 100.0, True), (10, 4.0, False)])
def test_no_look_stands_for_two_and_no_curve_at_the_edge(many: int, last: float, axis: bool) -> None:
    needed("altair")
    lines = [points("chart", "x", "y", f"policy {i}", [1, 2, last], [3, 4, 5]) for i in range(many)]
    text = page(replace(made(), curves=pl.concat(lines)))
    spec = json.loads(text.partition('id="specs">')[2].partition("</script>")[0])[0]
    ranges = [spec["encoding"][channel]["scale"]["range"] for channel in ("color", "strokeDash")]
    assert len({json.dumps(look) for look in zip(*ranges, strict=True)}) == many
    assert ('"type": "log"' in text) == axis


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1200, True)])
def test_charts_have_the_colours_of_the_page_and_are_not_cut(width: int, dark: bool, tmp_path: Path) -> None:
    needed("altair")
    program = browser()
    if program is None:
        pytest.skip("no Chromium on this machine")
    lines = [points("chart", "x", "y", f"max_min_fairness_water_filling {i}", [1, 2], [3, 4]) for i in range(7)]
    file = tmp_path / "index.html"
    file.write_text(page(replace(made(), curves=pl.concat(lines))), encoding="utf-8")
    shown = Page(program, tmp_path / "profile")
    try:
        shown.open(file, width, dark=dark)
        shown.wait(f"document.querySelector('.chart').dataset.ready === '{'dark' if dark else 'light'}'")
        assert shown.value("document.documentElement.scrollWidth") <= width
        assert 200 < shown.value("document.querySelector('canvas').clientWidth") < width
        corner = "[...document.querySelector('canvas').getContext('2d').getImageData(1, 1, 1, 1).data]"
        assert shown.value(corner) == [0, 0, 0, 0]  # nothing is painted behind a chart
        assert shown.complaints == []
        [[bright, edge]] = shown.value(BRIGHT_AND_LAST_PIXELS)
        assert (bright > 500) == dark and edge == 0
    finally:
        shown.close()


def test_published_values_are_lines_and_ours_marks() -> None:
    needed("altair")
    what = Measure("1", "alloc_pct", "%", 0.01)
    cells = [cell(what, "default", "fgd", at, 1.0, published=2.0) for at in (1, 2, 3)]
    text = page(
        Reproduction("x", "A paper", "generated", cell_table(cells), points("", "", "", "", [], []), 1, 1.0, "")
    )
    spec = json.loads(text.partition('id="specs">')[2].partition("</script>")[0])[0]
    drawn = [(layer["mark"]["type"], layer["encoding"]["y"]["field"]) for layer in spec["layer"]]
    assert drawn == [("line", "published"), ("point", "ours")]


def test_a_line_of_one_point_has_a_mark() -> None:
    needed("altair")
    alone = points("chart", "x", "y", "fgd", [1], [3])
    assert '"point": true' in page(replace(made(), curves=alone)) and '"point": true' not in page(made())


def test_charts_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise FastsimError("charts need the report extra")

    monkeypatch.setattr("fastsim.reports.charts.chart_files.charting", missing)
    assert "Charts need the report extra" in reproduction_page.page(made())


def test_figures_as_papers_print_them() -> None:
    assert [figure_text(value) for value in (None, "a", 1_408_628.0, 0.95221, 95.234, 0.0, 42.0, 2516.5, -100.0)] == [
        "", "a", "1,408,628", "0.9522", "95.23", "0", "42", "2,516.5", "-100",
    ]  # fmt: skip
