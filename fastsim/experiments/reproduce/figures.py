"""The figures of the papers, their status (made, impossible) and the reason for it.

``published/figures.csv`` has a row a figure with its CPU seconds; names are those of the published numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fastsim.errors import ScenarioError, suggestion
from fastsim.experiments.reproduce.published_numbers import PUBLISHED, published_numbers

MADE = "made"
"""Status of a figure that is reproduced; others are ``impossible``."""
SCHEMA = {"paper": pl.String, "figure": pl.String, "status": pl.String, "cpu_s": pl.Float64, "reason": pl.String}


def figure_table(paper: str) -> pl.DataFrame:
    """A row a figure: ``figure``, ``status``, ``numbers`` (published ones), ``cpu_s`` (null if not measured) and
    ``reason``: why a figure is not made, or the parts that a made one lacks."""
    table = pl.read_csv(PUBLISHED / "figures.csv", schema=SCHEMA).filter(paper=paper)
    counts = (
        published_numbers(paper).group_by("figure", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("numbers"))
    )
    joined = table.join(counts, on="figure", how="left", maintain_order="left")
    return joined.select("figure", "status", pl.col("numbers").fill_null(0), "cpu_s", pl.col("reason").fill_null(""))


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
