"""The numbers that ship: complete, small, each of them once, and their cells."""

from __future__ import annotations

from typing import Any

import pytest

from fastsim.experiments.reproduce.papers import PAPERS
from fastsim.experiments.reproduce.published_numbers import (
    PUBLISHED,
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
