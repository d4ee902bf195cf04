"""Tables of saved runs and sweeps for other programs: CSV, LaTeX, Parquet.

Of several runs, the rows of each have its name (and, in a sweep, its values of the keys) in front.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from fastsim.engine.result import FRAMES, LATER, Result
from fastsim.errors import ScenarioError, suggestion
from fastsim.experiments.sweep.run import PLAN, sweep_table
from fastsim.foundation.csv_table import csv_bytes, flat
from fastsim.reports.report import run_folders
from fastsim.reports.report_table import latex_text

TABLES = (*FRAMES, *LATER)
"""Names of the tables."""
FORMS = ("csv", "latex", "parquet")
"""Formats, of which files are recognised by their suffix."""
SUFFIXES = {".csv": "csv", ".tex": "latex", ".parquet": "parquet"}


def saved_table(folder: str | os.PathLike[str], name: str, columns: Sequence[str] = ()) -> pl.DataFrame:
    """A table of a run, or of all runs in a folder, with these columns or all; its name as in ``TABLES``."""
    if name not in TABLES:
        raise ScenarioError("table", repr(name), f"one of {', '.join(TABLES)}", suggestion(name, TABLES))
    place, runs = Path(folder), run_folders([folder])
    if runs == [place]:
        return _chosen(_table(place, name), columns, place)
    keys = _keys(place)
    frames = [_named(_table(run, name), run.relative_to(place).as_posix(), keys) for run in runs]
    return _chosen(pl.concat(frames, how="diagonal_relaxed"), columns, place)


def form_of(path: str | os.PathLike[str], form: str | None) -> str:
    """The format: the given one, or that of the file's suffix."""
    if form is not None:
        return form
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        expected = f"one that ends in {', '.join(SUFFIXES)}"
        raise ScenarioError("--out", str(path), expected, f"or name the format: --format {'|'.join(FORMS)}")
    return SUFFIXES[suffix]


def table_bytes(frame: pl.DataFrame, form: str) -> bytes:
    """The table in one of ``FORMS``; CSV and LaTeX have lists and structures as texts."""
    if form == "parquet":
        content = io.BytesIO()
        frame.write_parquet(content)
        return content.getvalue()
    return csv_bytes(frame) if form == "csv" else latex(flat(frame)).encode()


def latex(frame: pl.DataFrame) -> str:
    """A tabular with the rules of the package booktabs; numbers stand at the right and have six digits at most."""
    sides = "".join("r" if kind.is_numeric() else "l" for kind in frame.dtypes)
    rows = [_latex_row(map(_printed, row)) for row in frame.iter_rows()]
    head = [f"\\begin{{tabular}}{{{sides}}}", r"\toprule", _latex_row(map(latex_text, frame.columns)), r"\midrule"]
    return "\n".join([*head, *rows, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex_row(cells: object) -> str:
    return " & ".join(cells) + r" \\"  # type: ignore[arg-type]


def _printed(value: object) -> str:
    if value is None:
        return "--"
    return f"{value:.6g}" if isinstance(value, float) else latex_text(str(value))


def _table(folder: Path, name: str) -> pl.DataFrame:
    return Result.load(folder).table(name, str(folder))


def _keys(place: Path) -> pl.DataFrame | None:
    """Names and keys of the runs of a sweep; None for other folders."""
    if not (place / PLAN).exists():
        return None
    table = sweep_table(place)
    return table.rows.select("run", *table.axes)


def _named(frame: pl.DataFrame, run: str, keys: pl.DataFrame | None) -> pl.DataFrame:
    rows = pl.DataFrame({"run": [run]}) if keys is None else keys.filter(pl.col("run") == run)
    own = rows.select(name for name in rows.columns if name not in frame.columns)
    return own.join(frame, how="cross", maintain_order="left_right")


def _chosen(frame: pl.DataFrame, columns: Sequence[str], place: Path) -> pl.DataFrame:
    for column in columns:
        if column not in frame.columns:
            known = ", ".join(frame.columns)
            raise ScenarioError(
                f"{place}: --columns", repr(column), f"some of: {known}", suggestion(column, frame.columns)
            )
    return frame.select(columns) if columns else frame
