"""All figures into one folder: the order, what is skipped, what fails, and the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.errors import FastsimError
from fastsim.experiments import all_figures as whole
from fastsim.experiments.reproduce import papers
from fastsim.experiments.reproduce.published_numbers import MADE


def gavel_1() -> whole.Figure:
    return next(one for one in whole.all_figures() if (one.paper, one.figure) == ("gavel", "1"))


def test_the_cheapest_figures_come_first() -> None:
    order = whole.in_order_of_cost()
    costs = [one.cpu_s for one in order if one.cpu_s is not None]
    assert costs == sorted(costs) and {one.status for one in order} == {MADE}
    unknown = [one.cpu_s is None for one in order]
    assert unknown == sorted(unknown)


def test_folders_are_of_one_figure_each() -> None:
    folders = [one.folder for one in whole.all_figures()]
    assert len(set(folders)) == len(folders) and all(len(folder.parts) == 2 for folder in folders)


def test_a_figure_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[whole.FigureOutcome] = []
    table = whole.made_into(tmp_path / "all", None, True, 1, told.append, [gavel_1()])
    (row,) = table.filter(paper="gavel", figure="1").iter_rows(named=True)
    assert row["cells"] == len(told[0].cells) > 0 and row["status"] == MADE and told[0].left == 0
    assert {"to do", "impossible"} <= set(table["status"])
    page = (tmp_path / "all/index.html").read_text()
    assert '<a href="gavel/1/index.html">1</a>' in page and f"{row['cells']} cells" in page
    assert pl.read_parquet(tmp_path / "all/figures.parquet").equals(table)
    monkeypatch.delattr(papers, "reproduce")
    assert whole.made_into(tmp_path / "all", None, True, 1, told.append, [gavel_1()]).equals(table)
    assert len(told) == 1


def test_a_figure_that_fails_takes_no_other_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = papers.reproduce

    def reproduce(paper: str, *given: Any, **options: Any) -> Any:
        if paper == "fgd":
            raise FastsimError("no lists")
        return real(paper, *given, **options)

    monkeypatch.setattr(papers, "reproduce", reproduce)
    broken = next(one for one in whole.in_order_of_cost() if one.paper == "fgd")
    table = whole.made_into(tmp_path / "all", None, True, 1, lambda _: None, [broken, gavel_1()])
    assert table.filter(status="failed").select("paper", "figure", "reason").rows() == [
        ("fgd", broken.figure, "no lists")
    ]
    assert table.filter(paper="gavel", figure="1")["cells"][0] > 0


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    next(whole.reproduce_all(tmp_path / "all", None, quick=True, figures=[gavel_1()]))
    with pytest.raises(FastsimError, match="another folder"):
        next(whole.reproduce_all(tmp_path / "all", None, quick=False, figures=[gavel_1()]))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(FastsimError, match="found other files"):
        next(whole.reproduce_all(tmp_path / "mine", None, quick=True, figures=[gavel_1()]))
