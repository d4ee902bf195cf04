"""The numbers that a paper prints, plots or records, those of recorded runs that only this project has, and figures.

The former are one Parquet file a paper in ``fastsim/experiments/published``, a row a number: ``figure``, ``panel``,
``series`` (a policy, or a setting of one), ``x_name``, ``x``, ``metric``, ``unit``, ``value``, ``digit`` (the last one
that is printed; 0 if the value was read from a drawing), ``tolerance`` (error of reading, in the row's unit; 0 for
printed values), ``source`` and ``conditions``. The latter stand in ``recorded``; they are runs of the original
programs, and no paper prints them. ``published/figures.csv`` has a row a figure: its status (made, impossible), its
cells by verdict and its CPU seconds as last measured with all data, and a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.errors import ScenarioError, suggestion
from fastsim.experiments.reproduce.reproduction import Cell, Measure, cell

PUBLISHED, RECORDED = (Path(__file__).parents[1] / name for name in ("published", "recorded"))
MADE = "made"
"""Status of a figure that is reproduced; others are ``impossible``."""
COUNTS = ("cells", "same", "within", "outside")
"""Columns of the cells of a figure, in all and by verdict, as last counted with all data."""
SCHEMA = {
    "paper": pl.String, "figure": pl.String, "status": pl.String, **dict.fromkeys(COUNTS, pl.Int64),
    "cpu_s": pl.Float64, "reason": pl.String,
}  # fmt: skip


@cache
def published_numbers(paper: str) -> pl.DataFrame:
    """The published numbers of a paper, one of ``PAPERS``."""
    return pl.read_parquet(PUBLISHED / f"{paper}.parquet")


@cache
def recorded_numbers(paper: str) -> pl.DataFrame:
    """Quantities of recorded runs of a paper's program."""
    return pl.read_csv(RECORDED / f"{paper}.csv")


def published_value(paper: str, **keys: str) -> float:
    """The one published number with these values in its columns."""
    return float(published_numbers(paper).filter(**keys)["value"].item())


def number_cell(
    row: Mapping[str, Any], ours: float, *, case: str | None = None, policy: str | None = None,
    bar: float | None = None, exact: bool = False, comparable: bool = True, digit: float | None = None,
) -> Cell:  # fmt: skip
    """The cell of a published number; ``bar`` is what our value may be off, to which the error of reading is added.

    ``case`` and ``policy`` are those of the run, by default the number's panel and series; ``digit`` replaces the
    printed one where our value is rounded otherwise.
    """
    at = number(row["x"])
    place = row["panel"] if case is None else case
    if at is None and row["x"] and row["x"] != place:
        place = f"{place}, {row['x']}" if place else row["x"]
    allowed = None if bar is None and not row["tolerance"] else (bar or 0.0) + row["tolerance"]
    measure = Measure(row["figure"], row["metric"], row["unit"], row["digit"] if digit is None else digit)
    return cell(
        measure, place, policy or row["series"], at, ours, published=row["value"], bar=allowed,
        exact=exact and not row["tolerance"], comparable=comparable,
    )  # fmt: skip


def number(text: str) -> float | None:
    """The number that a text is; None for words."""
    try:
        return float(text)
    except ValueError:
        return None


def figure_table(paper: str) -> pl.DataFrame:
    """A row a figure.

    ``figure``, ``status``; ``numbers``: published ones; ``cells``, ``same``, ``within``, ``outside``: null if they were
    not counted; ``cpu_s``: null if not measured; ``reason``: why a figure is not made, the parts that a made one lacks,
    or the cause of cells outside.
    """
    table = pl.read_csv(PUBLISHED / "figures.csv", schema=SCHEMA).filter(paper=paper)
    counts = (
        published_numbers(paper).group_by("figure", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("numbers"))
    )
    joined = table.join(counts, on="figure", how="left", maintain_order="left")
    return joined.select(
        "figure", "status", pl.col("numbers").fill_null(0), *COUNTS, "cpu_s", pl.col("reason").fill_null("")
    )


def made_figures(paper: str, figures: Sequence[str]) -> tuple[str, ...]:
    """These figures, each once; ScenarioError for one that is unknown or not made."""
    table = figure_table(paper)
    for figure in figures:
        rows, made = table.filter(figure=figure), "; ".join(table.filter(status=MADE)["figure"])
        if rows.is_empty():
            known = table["figure"].to_list()
            raise ScenarioError(
                "--figure", repr(figure), f"one of these: {'; '.join(known)}", suggestion(figure, known)
            )
        if rows["status"].item() != MADE:
            found = f"{figure!r}, which is {rows['status'].item()} ({rows['reason'].item()})"
            raise ScenarioError("--figure", found, f"one of these: {made}")
    return tuple(dict.fromkeys(figures))
