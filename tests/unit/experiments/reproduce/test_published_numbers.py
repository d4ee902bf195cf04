"""The numbers that ship: complete, small, each of them once, their cells, and the list of their figures."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import polars as pl
import pytest

from fastsim.errors import ScenarioError
from fastsim.experiments.reproduce.papers import PAPERS, run_count
from fastsim.experiments.reproduce.published_numbers import (
    MADE,
    PUBLISHED,
    figure_table,
    made_figures,
    number,
    number_cell,
    published_numbers,
    published_value,
    recorded_numbers,
)

KEY = ("figure", "panel", "series", "x", "metric", "unit", "source", "conditions")
ROW = {
    "figure": "8", "panel": "a", "series": "allox", "x": "0.4", "metric": "jct_mean", "unit": "h", "value": 17.0,
    "digit": 0.01, "tolerance": 0.0,
}  # fmt: skip


def test_every_paper_has_whole_rows() -> None:
    sizes = [path.stat().st_size for path in PUBLISHED.glob("*.parquet")]
    assert len(sizes) == len(PAPERS) and sum(sizes) <= 400_000
    for paper in PAPERS:
        table = published_numbers(paper)
        assert table.null_count().sum_horizontal().item() == 0
        assert table["value"].is_finite().all() and (table["tolerance"] >= 0).all()
        assert table.filter((table["tolerance"] == 0) & (table["digit"] <= 0)).is_empty()
        assert table.unique(KEY).height == table.height, paper
    assert {paper: len(published_numbers(paper)) for paper in ("sia", "synergy")} == {"sia": 464, "synergy": 4}


def test_recorded_numbers_are_not_published_ones() -> None:
    assert recorded_numbers("pwr").columns == ["policy", "quantity", "demand", "value"]
    assert published_value("pollux", figure="abstract", metric="jct_mean_reduction_range_high") == 50


def test_errors_of_reading_are_small_parts_of_what_is_drawn() -> None:
    """Curves of power span 120 to 1,200 kW and are read to 20; others are read to a tenth of their span or better."""
    for paper in ("pwr", "sia", "monitor", "pollux"):
        read = published_numbers(paper).filter(pl.col("tolerance") > 0)
        spans = read.group_by("figure", "unit").agg(
            (pl.col("value").max() - pl.col("value").min()).alias("span"), pl.col("tolerance").median()
        )
        assert (spans["tolerance"] <= 0.1 * spans["span"]).all(), (paper, spans.rows())
    power = published_numbers("pwr").filter(figure="slides 14 (Fig. 1)", unit="W")
    assert power["tolerance"].unique().to_list() == [20_000.0]


GUIDE = (files("fastsim") / "guides/papers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("figure", [
    "11", "8", "9", "10", "13", "makespan (static-multiple)", "fifo-single (repository figure)",
    "fifo-multiple (repository figure)", "ftf-single (repository figure)",
])  # fmt: skip
def test_the_guide_counts_cells_as_the_list_does(figure: str) -> None:
    counted = figure_table("gavel").filter(figure=figure).row(0, named=True)
    cells = rf"\b{counted['cells']:,}: " + (rf"[^|]*?\b{counted['same']} the same" if counted["same"] else "")
    assert re.search(rf"{cells}[^|;]*?\b{counted['within']:,} within", GUIDE)
    if counted["outside"] and figure not in ("13", "makespan (static-multiple)"):  # in words
        assert re.search(rf"{cells}[^|]*?\b{counted['outside']} outside", GUIDE)


@pytest.mark.parametrize(
    ("change", "ours", "options", "verdict"),
    [
        ({}, 17.004, {"exact": True}, "same"),
        ({}, 17.2, {"exact": True, "bar": 1.0}, "outside"),
        ({}, 17.2, {"bar": 0.34}, "within"),
        ({}, 17.2, {}, "outside"),
        ({"tolerance": 0.3, "digit": 0.0}, 17.2, {"exact": True}, "within"),
        ({"tolerance": 0.3, "digit": 0.0}, 17.6, {"bar": 0.34}, "within"),
        ({"tolerance": 0.3, "digit": 0.0}, 17.7, {"bar": 0.34}, "outside"),
        ({}, 17.2, {"comparable": False}, "indicative"),
    ],
)
def test_the_error_of_reading_is_added_to_the_bar(
    change: dict[str, Any], ours: float, options: dict[str, Any], verdict: str
) -> None:
    found = number_cell(ROW | change, ours, **options)
    assert (found.verdict, found.published, found.original, found.at) == (verdict, 17.0, None, 0.4)


def test_words_on_the_axis_are_part_of_the_case() -> None:
    assert number("philly") is None and number("0.5") == 0.5
    assert number_cell(ROW | {"x": "A3C"}, 1.0).case == "a, A3C"
    assert number_cell(ROW | {"x": "a"}, 1.0).case == "a"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_is_listed_once(paper: str) -> None:
    table = figure_table(paper)
    assert set(table["figure"]) >= set(published_numbers(paper)["figure"])
    assert table["figure"].n_unique() == len(table) and set(table["status"]) <= {MADE, "impossible"}
    assert table["numbers"].sum() == len(published_numbers(paper))
    assert (table.filter(table["status"] != MADE)["reason"] != "").all()
    counted = table.drop_nulls("cells")
    assert (counted["cells"] >= counted["same"] + counted["within"] + counted["outside"]).all()
    assert set(counted["status"]) == {MADE} and (counted.filter(counted["outside"] > 0)["reason"] != "").all()


RUNLESS = {("gavel", "1"), ("gavel", "11"), ("sia", "text 5.3 GPT (unnumbered)")} | {
    ("synergy", name) for name in ("sensitivity", "profiling cost")
}
"""Figures of rates and measurements alone."""
OF_A_LOG = ("synergy", "6")
"""The figure whose jobs are in no generator."""


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_made_has_runs(paper: str) -> None:
    for figure in figure_table(paper).filter(status=MADE)["figure"]:
        if (paper, figure) == OF_A_LOG:
            continue
        assert (run_count(paper, quick=True, figures=[figure]) > 0) == ((paper, figure) not in RUNLESS)


def test_other_figures_are_refused() -> None:
    assert made_figures("fgd", ["9a", "9a"]) == ("9a",) and made_figures("fgd", []) == ()
    with pytest.raises(ScenarioError, match=r"--figure: found '9d', expected one of these: default trace; 7 \(ratio\)"):
        made_figures("fgd", ["9d"])
    with pytest.raises(ScenarioError, match=r"'12', which is impossible \(wall times.*expected one of these: 1; 8; 9"):
        made_figures("gavel", ["12"])
