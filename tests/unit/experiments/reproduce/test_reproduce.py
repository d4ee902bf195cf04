"""Cells and their verdicts, and what is written of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fastsim.experiments.reproduce.reproduction import Measure, Reproduction, cell, cell_table, points

WHAT = Measure("1", "alloc_pct", "%", 0.01)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"published": 95.23}, "same"),
        ({"published": 95.22}, "outside"),
        ({"published": 95.2, "bar": 0.1}, "outside"),
        ({"published": 95.2, "bar": 0.1, "exact": False}, "within"),
        ({"published": 95.1, "bar": 0.1, "exact": False}, "outside"),
        ({"published": 90.0, "original": 95.23}, "same"),
        ({"published": 95.23, "comparable": False}, "indicative"),
        ({}, "no reference"),
    ],
)
def test_verdicts(given: dict[str, float], verdict: str) -> None:
    found = cell(WHAT, "default", "fgd", 100, 95.234, **given)  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert (found.deviation is None) == (verdict == "no reference")


def test_all_of_it_is_written(tmp_path: Path) -> None:
    cells = cell_table([cell(WHAT, "a<b", "fgd", 100, 1.0, published=1.0), cell(WHAT, "c", "fgd", None, 2.0)])
    curves = points("chart", "x", "y", "fgd", [1, 2], [3, 4])
    reproduction = Reproduction("x", "A paper", "generated", cells, curves, 3, 1.5, "@article{x}")
    assert reproduction.verdict == "2 cells: 1 same, 1 no reference"
    folder = reproduction.write(tmp_path / "out")
    assert pl.read_parquet(folder / "cells.parquet").equals(cells)
    assert pl.read_parquet(folder / "curves.parquet").equals(curves)
    assert "a&lt;b" in (folder / "index.html").read_text()


def test_cells_are_counted_by_figure() -> None:
    other = WHAT._replace(figure="2")
    cells = [cell(WHAT, "a", "fgd", 100, 1.0, published=1.0), cell(other, "a", "fgd", 100, 1.0)]
    made = Reproduction("x", "A paper", "generated", cell_table(cells), points("", "", "", "", [], []), 1, 1.0, "")
    assert made.counts.select("figure", "same", "no reference").rows() == [("1", 1, 0), ("2", 0, 1)]


def test_published_values_are_drawn_beside_ours(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    cells = [cell(WHAT, "default", "fgd", at, 1.0, published=2.0) for at in (1, 2, 3)]
    made = Reproduction("x", "A paper", "generated", cell_table(cells), points("", "", "", "", [], []), 1, 1.0, "")
    page = (made.write(tmp_path / "out") / "index.html").read_text()
    assert "1, default: published (lines), ours (marks)" in page
