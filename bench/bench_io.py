"""Tables in and out: canonical Parquet, Arrow, the openb importer, saved runs."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from bench.conftest import Timed

ROWS = 100_000


@pytest.fixture(scope="module")
def many() -> fs.Workload:
    """A hundred thousand generated pods in memory."""
    return fs.Workload.from_arrow(fs.Workload.synth("openb", pods=ROWS, seed=7).table())


def rows(workload: fs.Workload) -> int:
    """Read everything once, checks included."""
    return sum(batch.num_rows for batch in workload.batches())


def bench_generator(timed: Timed) -> None:
    """Draw pods like those of openb."""
    assert timed(lambda: rows(fs.Workload.synth("openb", pods=ROWS, seed=7)), items=ROWS, budget=3.5) == ROWS


def bench_parquet_out(timed: Timed, many: fs.Workload, tmp_path: Path) -> None:
    """Write canonical Parquet."""
    timed(lambda: many.write(tmp_path / "pods.parquet"), items=ROWS, budget=2.1)


def bench_parquet_in(timed: Timed, many: fs.Workload, tmp_path: Path) -> None:
    """Stream canonical Parquet."""
    many.write(tmp_path / "pods.parquet")
    assert timed(lambda: rows(fs.Workload.scan(tmp_path / "pods.parquet")), items=ROWS, budget=1.0) == ROWS


def bench_arrow_in(timed: Timed, many: fs.Workload) -> None:
    """Take and check a table that is in memory."""
    table = many.table()
    assert timed(lambda: rows(fs.Workload.from_arrow(table)), items=ROWS, budget=0.4) == ROWS


def bench_importer(timed: Timed, many: fs.Workload, tmp_path: Path) -> None:
    """Read a pod list in the columns of the published trace."""
    frame = pl.DataFrame(many.table())
    arrived = frame["submit_s"].round().cast(pl.Int64)
    pl.DataFrame({
        "name": [f"pod-{i}" for i in range(ROWS)], "cpu_milli": frame["cpu_milli"], "memory_mib": frame["memory_mib"],
        "num_gpu": frame["num_gpu"], "gpu_milli": frame["gpu_milli"], "gpu_spec": [""] * ROWS, "qos": ["LS"] * ROWS,
        "pod_phase": ["Succeeded"] * ROWS, "creation_time": arrived, "deletion_time": arrived + 60,
        "scheduled_time": arrived,
    }).write_csv(tmp_path / "list.csv")  # fmt: skip
    assert timed(lambda: rows(fs.Workload.from_openb(tmp_path / "list.csv")), items=ROWS, budget=4.2) == ROWS


def bench_result_save(timed: Timed, cluster: fs.Cluster, offered: fs.Workload, tmp_path: Path) -> None:
    """Write a run with all its tables."""
    result = fs.simulate(cluster, offered, "best_fit", seed=1)
    number = count()
    timed(lambda: result.save(tmp_path / f"run-{next(number)}"), items=len(result.timeline), budget=2.6)
