"""The page of a reproduction."""

from __future__ import annotations

from dataclasses import replace

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
    assert "<script src" not in text and text.count("</script>") == 2 and "&lt;/script&gt;" in text


def test_columns_that_say_nothing_are_left_out() -> None:
    heads = page(made()).partition("<thead>")[2].partition("</thead>")[0]
    assert ">at<" in heads and ">published<" in heads and "original" not in heads


@pytest.mark.parametrize(("many", "last", "palette", "axis"), [(11, 100.0, True, True), (10, 4.0, False, False)])
def test_no_colour_stands_for_two_and_no_curve_at_the_edge(many: int, last: float, palette: bool, axis: bool) -> None:
    needed("altair")
    lines = [points("chart", "x", "y", f"policy {i}", [1, 2, last], [3, 4, 5]) for i in range(many)]
    text = page(replace(made(), curves=pl.concat(lines)))
    assert ('"scheme": "tableau20"' in text, '"type": "log"' in text) == (palette, axis)


def test_charts_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise FastsimError("charts need the report extra")

    monkeypatch.setattr("fastsim.reports.charts.chart_files.charting", missing)
    assert "Charts need the report extra" in reproduction_page.page(made())


def test_figures_as_papers_print_them() -> None:
    assert [figure_text(value) for value in (None, "a", 1_408_628.0, 0.95221, 95.234, 0.0, 42.0, 2516.5, -100.0)] == [
        "", "a", "1,408,628", "0.9522", "95.23", "0", "42", "2,516.5", "-100",
    ]  # fmt: skip
