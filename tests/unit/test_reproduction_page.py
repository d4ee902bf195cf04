"""The page of a reproduction."""

from __future__ import annotations

import pytest

from fastsim import reproduction_page
from fastsim.errors import FastsimError
from fastsim.reproduction import Measure, Reproduction, cell, cell_table, points
from fastsim.reproduction_page import figure_text, page


def made() -> Reproduction:
    """Two cells and a line."""
    what = Measure("1", "alloc_pct", "%", 0.01)
    cells = [cell(what, "default", "</script>", 100, 1.0, published=1.0), cell(what, "c", "fgd", None, 2.0)]
    curves = points("chart", "x", "y", "</script>", [1, 2], [3, 4])
    return Reproduction("x", "A paper", "generated", cell_table(cells), curves, 3, 1.5, "@article{x}")


def test_the_page_has_everything_and_needs_no_network() -> None:
    pytest.importorskip("altair", reason="the report extra is not installed")
    text = page(made())
    for part in ("A paper", "2 cells: 1 same, 1 no reference", 'class="no-reference"', "@article{x}", "vegaEmbed"):
        assert part in text
    assert "<script src" not in text and text.count("</script>") == 2 and "&lt;/script&gt;" in text


def test_charts_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise FastsimError("charts need the report extra")

    monkeypatch.setattr("fastsim.drawing.charting", missing)
    assert "Charts need the report extra" in reproduction_page.page(made())


def test_figures_as_papers_print_them() -> None:
    assert [figure_text(value) for value in (None, "a", 1_408_628.0, 0.95221, 95.234, 0.0)] == [
        "", "a", "1,408,628", "0.9522", "95.23", "0",
    ]  # fmt: skip
