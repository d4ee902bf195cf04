"""Every job of the Pollux paper's Optimus and Tiresias on the testbed's list, as its authors published them."""

from __future__ import annotations

import polars as pl
import pytest

from fastsim.experiments.reproduce.pollux import TESTBED, pollux_reproduction
from fastsim.experiments.reproduce.sia_artifact import NUMBER, ONE_TABLE
from tests.conftest import SHARED


@pytest.mark.long
@pytest.mark.parametrize(
    "policy", ["optimus(oracle=True, interval_s=0)", "served(order=demotion, first_h=16, nodes=emptiest)"]
)
def test_published_jobs(policy: str) -> None:
    lists = SHARED / ONE_TABLE
    if not lists.is_file():
        pytest.skip("needs the lists of Pollux")
    cells = pollux_reproduction(SHARED, True, 1, None, (policy,), ("8a",)).cells
    jobs = cells.filter(pl.col("case").str.starts_with("per job"))
    assert len(jobs) == len(pl.read_parquet(lists).filter(pl.col(NUMBER) == TESTBED)) > 0
    assert set(cells["verdict"]) == {"same"}
