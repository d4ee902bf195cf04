"""The recorded answers of the Sia simulator's functions, as ours. Nothing here names an application or a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.goodput import Goodput, Noise, Perf
from tests.conftest import SHARED

SIA = SHARED / "golden/sia"
MODEL = [*Perf._fields, "grad_sqr", "grad_var", "init_bsz"]
"""Columns that make a goodput model."""


def recorded(path: Path) -> pl.DataFrame:
    """A recorded table, whichever format it has."""
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema_length=None)
    return pl.read_ndjson(path, infer_schema_length=None) if path.suffix == ".jsonl" else pl.read_parquet(path)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file with one on each line."""
    with path.open(encoding="utf-8") as text:
        yield from map(json.loads, text)


def models(rows: pl.DataFrame, *more: str) -> Iterator[tuple[Goodput, tuple[Any, ...], pl.DataFrame]]:
    """The goodput models of recorded rows: each with the values of the columns ``more`` and the rows it stands for."""
    for key, part in rows.group_by([*MODEL, *more], maintain_order=True):
        perf, noise = Perf(*key[:7]), Noise(*key[7:10])
        yield Goodput(perf, noise), key[10:], part
