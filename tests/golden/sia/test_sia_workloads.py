"""The published job lists: read as they are, and written back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from fastsim.workload import Workload
from fastsim.workload.importers.sia import COLUMNS, write_trace
from tests.conftest import SHARED
from tests.golden.sia.sia import SIA

LISTS = sorted((SIA / "input/workloads").glob("*.csv")) + sorted((SHARED / "data/sia/native").glob("*/*.csv.gz"))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_there_and_back(path: Path, tmp_path: Path) -> None:
    found = Workload.from_sia(path)
    again = tmp_path / "again.csv"
    known = [name for name in COLUMNS if name != "category" or "task_role" in found.columns]
    assert write_trace(found, again) > 0
    types = {"time": pl.Float64}
    expected = pl.read_csv(path, schema_overrides=types)
    assert pl.read_csv(again, schema_overrides=types).equals(expected.select(known))
    table = pl.from_arrow(found.table())
    assert isinstance(table, pl.DataFrame)
    assert table["submit_s"].to_list() == expected["time"].to_list()
    assert table["num_gpu"].to_list() == expected["num_replicas"].to_list()


def test_lists_were_found(shared: Callable[[str], Path]) -> None:
    assert len(list(shared("golden/sia/input/workloads").glob("*.csv"))) <= len(LISTS) > 0
