"""Rates and jobs of the recorded Gavel runs, read from and drawn as the original writes and draws them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastsim.workload.gavel_rates import import_rates
from tests.golden import gavel

KEYS = ["gpu_model", "workload", "num_gpu", "colocated_workload", "consolidated"]

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")


def files(pattern: str) -> list[Path]:
    return sorted(gavel.GAVEL.glob(pattern))


@pytest.mark.parametrize("path", files("oracle/*.json"), ids=lambda path: path.stem)
def test_every_rate_is_read(path: Path) -> None:
    expected = pl.read_parquet(path.with_suffix(".parquet")).select(
        pl.col("worker_type").str.strip_suffix("_unconsolidated").alias("gpu_model"),
        pl.col("job_type").alias("workload"), pl.col("scale_factor").cast(pl.Int32).alias("num_gpu"),
        pl.col("other_job_type").alias("colocated_workload"),
        (~pl.col("worker_type").str.ends_with("_unconsolidated")).alias("consolidated"),
        pl.col("throughput").alias("steps_per_s"), pl.col("other_throughput").alias("colocated_steps_per_s"),
    )  # fmt: skip
    table = pl.DataFrame(import_rates(path)).with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert table.select(expected.columns).sort(KEYS).equals(expected.sort(KEYS))


@pytest.mark.parametrize("path", files("oracle/*.json"), ids=lambda path: path.stem)
def test_the_oracle_holds_them_and_comes_back_from_parquet(path: Path, tmp_path: Path) -> None:
    oracle = gavel.oracle(path.stem)
    assert oracle.gpu_models == ("k80", "p100", "v100") and oracle.fastest_first == ("v100", "p100", "k80")
    rows = pl.read_parquet(path.with_suffix(".parquet")).filter(pl.col("worker_type").is_in(oracle.gpu_models))
    place = {model: index for index, model in enumerate(oracle.gpu_models)}
    for worker, job, count, other, mine, theirs in rows.iter_rows():
        kind = oracle.kind_index[job, count]
        if other is None:
            assert oracle.alone__kg[kind, place[worker]] == mine
        else:
            partner = oracle.kind_index[other, count]
            assert oracle.shared__kkg[kind, partner, place[worker]] == mine
            assert oracle.shared__kkg[partner, kind, place[worker]] == theirs
    oracle.to_parquet(tmp_path / "rates.parquet")
    again = type(oracle).from_parquet(tmp_path / "rates.parquet")
    assert (again.kinds, again.gpu_models) == (oracle.kinds, oracle.gpu_models)
    assert np.array_equal(again.alone__kg, oracle.alone__kg, equal_nan=True)
    assert np.array_equal(again.shared__kkg, oracle.shared__kkg, equal_nan=True)


@pytest.mark.parametrize("path", files("traces/*.parquet"), ids=lambda path: path.stem)
def test_recorded_jobs_are_a_workload(path: Path) -> None:
    table = gavel.jobs(path.stem).table()
    assert table.num_rows == pl.read_parquet(path).height
    kinds = zip(table["workload"].to_pylist(), table["num_gpu"].to_pylist(), strict=True)
    assert set(kinds) <= set(gavel.oracle().kinds)
