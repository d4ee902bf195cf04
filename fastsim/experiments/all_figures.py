"""All figures of all papers that can be reproduced, the cheapest first, in one folder.

A figure is complete when its folder ``PAPER/FIGURE`` exists, and is then skipped; so the same command continues after
an interruption. ``index.html`` and ``figures.parquet`` count the cells of each figure by verdict.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from fastsim.errors import FastsimError, ResultError
from fastsim.experiments.many_runs import sharing
from fastsim.experiments.reproduce import papers
from fastsim.experiments.reproduce.published_numbers import MADE, figure_table
from fastsim.experiments.reproduce.reproduction import SCHEMA, STYLE, VERDICTS
from fastsim.foundation.parquet import replacing
from fastsim.reports.charts.html_page import page

PLAN, INDEX, TABLE, CELLS = "plan.json", "index.html", "figures.parquet", "cells.parquet"
HEADS = ("paper", "figure", "status", "numbers", "cells", *VERDICTS, "reason")


class Figure(NamedTuple):
    """A figure of a paper, its CPU seconds (None if not measured), and why it or a part of it is not reproduced."""

    paper: str
    figure: str
    status: str
    numbers: int
    cpu_s: float | None
    reason: str

    @property
    def folder(self) -> Path:
        """Its folder, below the folder of all figures."""
        return Path(self.paper, re.sub(r"[^A-Za-z0-9.=_]+", "-", self.figure).strip("-"))


class FigureOutcome(NamedTuple):
    """A reproduced figure, or one that failed (``error``); and the figures left, with their known CPU seconds."""

    figure: Figure
    cells: pl.DataFrame
    error: str
    left: int
    left_s: float


def all_figures() -> list[Figure]:
    """All figures, paper by paper."""
    columns = ("figure", "status", "numbers", "cpu_s", "reason")
    return [Figure(paper, *row) for paper in papers.PAPERS for row in figure_table(paper).select(columns).iter_rows()]


def in_order_of_cost() -> list[Figure]:
    """The figures that can be reproduced, the cheapest first, those of unknown cost last."""
    figures = [one for one in all_figures() if one.status == MADE]
    return sorted(figures, key=lambda one: (one.cpu_s is None, one.cpu_s or 0.0))


def reproduce_all(
    folder: str | os.PathLike[str], data: str | os.PathLike[str] | None = None, *, quick: bool = False,
    workers: int = 1, figures: Sequence[Figure] | None = None,
) -> Iterator[FigureOutcome]:  # fmt: skip
    """Reproduce the figures without a folder yet; ResultError for a folder of other data or another ``quick``.

    A run that several of them need is made once. A figure that fails with an error of fastsim, such as one without its
    data, leaves the others as they are.
    """
    target, todo = Path(folder), in_order_of_cost() if figures is None else list(figures)
    _check_plan(target, {"data": None if data is None else os.path.abspath(data), "quick": quick})
    todo = [one for one in todo if not (target / one.folder / CELLS).is_file()]
    with sharing() as shared:
        for number, one in enumerate(todo, 1):
            left, cells, error = todo[number:], pl.DataFrame(schema=SCHEMA), ""
            try:
                reproduction = papers.reproduce(
                    one.paper, data, quick=quick, workers=workers, figures=[one.figure], shared=shared
                )
                reproduction.write(target / one.folder)
                cells = reproduction.cells
            except FastsimError as failure:
                error = str(failure)
            yield FigureOutcome(one, cells, error, len(left), sum(other.cpu_s or 0.0 for other in left))


def _check_plan(target: Path, plan: dict[str, Any]) -> None:
    path = target / PLAN
    if path.is_file():
        try:
            stored_plan = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            stored_plan = None
        if stored_plan != plan:
            raise ResultError(f"{path}: found {stored_plan}, expected {plan}; choose another folder for other figures")
        return
    if target.is_dir() and any(target.iterdir()):
        raise ResultError(f"{target}: found other files, expected an empty folder or one of `reproduce all`")
    target.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text(json.dumps(plan) + "\n", encoding="utf-8")


def summary(folder: str | os.PathLike[str], errors: dict[tuple[str, str], str] | None = None) -> pl.DataFrame:
    """A row a figure: its status, published numbers, cells by verdict (null until it is reproduced), and the reason.

    ``errors`` by paper and figure replace reasons.
    """
    rows = []
    for one in all_figures():
        path, status = Path(folder) / one.folder / CELLS, one.status
        error = (errors or {}).get((one.paper, one.figure))
        counts: list[int | None] = [None] * (1 + len(VERDICTS))
        if status == MADE and path.is_file():
            verdicts = pl.read_parquet(path, columns=["verdict"])["verdict"]
            counts = [len(verdicts), *(int((verdicts == verdict).sum()) for verdict in VERDICTS)]
        elif status == MADE:
            status = "to do" if error is None else "failed"
        rows.append((one.paper, one.figure, status, one.numbers, *counts, one.reason if error is None else error))
    types = [pl.Int64 if name in ("numbers", "cells", *VERDICTS) else pl.String for name in HEADS]
    return pl.DataFrame(rows, schema=dict(zip(HEADS, types, strict=True)), orient="row")


def write_index(folder: str | os.PathLike[str], table: pl.DataFrame) -> Path:
    """The table as a page with links to the figures, and as Parquet."""
    target = Path(folder)
    with replacing(target / TABLE) as partial:
        table.write_parquet(partial)
    with replacing(target / INDEX) as partial:
        partial.write_text(_page(table), encoding="utf-8")
    return target / INDEX


def _page(table: pl.DataFrame) -> str:
    folders = {(one.paper, one.figure): one.folder.as_posix() for one in all_figures()}
    totals = [(name, int(table[name].sum())) for name in ("numbers", "cells", *VERDICTS)]
    counted = ", ".join(f"{count:,} {name}" for name, count in totals)
    heads = "".join(f"<th{_kind(name)}>{name}</th>" for name in HEADS)
    rows = []
    for row in table.iter_rows(named=True):
        cells = {name: escape("" if row[name] is None else str(row[name])) for name in HEADS}
        if row["cells"] is not None:
            cells["figure"] = f'<a href="{folders[row["paper"], row["figure"]]}/index.html">{cells["figure"]}</a>'
        rows.append("<tr>" + "".join(f"<td{_kind(name)}>{cells[name]}</td>" for name in HEADS) + "</tr>")
    table_html = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    body = f'<h1>All figures</h1><p>{counted}.</p><div class="wide">{table_html}</div>'
    return page("fastsim: all figures", body, style=STYLE)


def _kind(name: str) -> str:
    return ' class="words"' if name in ("paper", "figure", "status", "reason") else ""


def made_into(
    folder: str | os.PathLike[str], data: str | os.PathLike[str] | None, quick: bool, workers: int,
    progress: Callable[[FigureOutcome], None], figures: Sequence[Figure] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Reproduce the rest, with the index written after every figure, and return the table."""
    errors: dict[tuple[str, str], str] = {}
    for outcome in reproduce_all(folder, data, quick=quick, workers=workers, figures=figures):
        if outcome.error:
            errors[outcome.figure.paper, outcome.figure.figure] = outcome.error
        write_index(folder, summary(folder, errors))
        progress(outcome)
    table = summary(folder, errors)
    write_index(folder, table)
    return table
