"""The recorded experiments of the metric-driven scheduler and the table of quantities. Nothing here names a run."""

from __future__ import annotations

import csv
from typing import Any

import polars as pl

from tests.conftest import SHARED

KUBERNETES = SHARED / "golden/k8s-gpu"


def quantities() -> list[dict[str, str]]:
    """The rows of the table of quantities."""
    path = KUBERNETES / "k8s_quantities.csv"
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def frame(name: str) -> pl.DataFrame:
    """A recorded table."""
    return pl.read_parquet(KUBERNETES / f"{name}.parquet")


def experiments(name: str = "sched_state") -> list[int]:
    """Experiments that a table has rows of, in order."""
    if not (KUBERNETES / f"{name}.parquet").exists():
        return []
    found: list[Any] = frame(name)["experiment"].unique().sort().to_list()
    return found
