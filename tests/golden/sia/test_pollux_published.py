"""Every job of the Pollux paper's Optimus and Tiresias on the testbed's list, as its authors published them."""

from __future__ import annotations

import polars as pl
import pytest

from fastsim.experiments.reproduce.pollux import pollux_reproduction
from tests.conftest import SHARED


@pytest.mark.long
@pytest.mark.parametrize(
    "policy", ["optimus(oracle=True, interval_s=0)", "served(order=demotion, first_h=16, nodes=emptiest)"]
)
def test_published_jobs(policy: str) -> None:
    if not (SHARED / "data/pollux/workloads.parquet").is_file():
        pytest.skip("needs the lists of Pollux")
    cells = pollux_reproduction(SHARED, True, 1, None, (policy,), ("8a",)).cells
    jobs = cells.filter(pl.col("case").str.starts_with("per job"))
    assert len(jobs) == 160 and set(cells["verdict"]) == {"same"}
