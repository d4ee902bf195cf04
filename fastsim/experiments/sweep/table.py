"""The table of a sweep, to be looked at: what it was over, and figures as text."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.errors import ResultError
from fastsim.experiments.sweep.run import PLAN, TABLE
from fastsim.experiments.sweep.store import store_at

if TYPE_CHECKING:
    import polars as pl


class SweepTable(NamedTuple):
    """A row for each run, and the keys that the runs differ in."""

    rows: pl.DataFrame
    axes: tuple[str, ...]


def sweep_table(place: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> SweepTable:
    """The table in the folder or at the URL of a sweep that has come to an end."""
    store = store_at(place, options)
    plan, rows = store.text(PLAN), store.whole(TABLE)
    if plan is None or rows is None:
        raise ResultError(f"{place}: found no {TABLE}, expected the folder of a sweep that has come to an end")
    return SweepTable(rows, tuple(json.loads(plan)["axes"]))


def winners_text(found: pl.DataFrame, metric: str, keys: Sequence[str]) -> str:
    """A table of winners for the terminal; ``keys`` are the columns that name a row."""
    from fastsim.reports.text_tables import text_table

    columns = [(name, name.replace("_", " ")) for name in keys]
    columns += [("n", "runs"), ("mean", f"mean\n{metric}"), ("low", "from"), ("high", "to")]
    columns += [("difference", "to the\nbest"), ("p_value", "p"), ("verdict", "verdict")]
    return text_table(found, columns, left=(*keys, "verdict"))
