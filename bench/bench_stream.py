"""Costs of a streamed run outside of the engine: reading pods, their classes and checksum, writing rows, waits."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fastsim as fs
from bench.conftest import Timed
from fastsim.engine.online.recorder import FileTables
from fastsim.engine.summary import Waits
from fastsim.engine.tables import INTERVAL, OUTCOME, POD
from fastsim.foundation.background_writer import Background
from fastsim.foundation.columns.checksum import content_checksum
from fastsim.workload.pod_classes import PodClasses

ROWS = int(os.environ.get("FASTSIM_BENCH_ROWS", "200000"))
"""Pods of each benchmark; a longer trace costs the same for each pod."""
SCALE = ROWS / 200_000
"""Budgets are for 200,000 pods."""
CHUNK = 50_000
"""Rows the loop hands over at a time, about."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> fs.Workload:
    """A Parquet file of pods, of which about one in fourteen has a request of its own."""
    path = tmp_path_factory.mktemp("trace") / "pods.parquet"
    fs.Workload.synth("openb", pods=ROWS, seed=7, gpu_spec_share=0.3).write(path)
    return fs.Workload.scan(path)


@pytest.fixture(scope="module")
def outcomes() -> Any:
    """Rows of pods that each held one of 10,000 nodes once, in the order of leaving."""
    random = np.random.default_rng(1)
    out = np.zeros(ROWS, OUTCOME)
    out["seq"] = out["pod_id"] = np.argsort(np.arange(ROWS) + random.exponential(20_000, ROWS))
    out["node"], out["gpus"] = random.integers(0, 10_000, ROWS), 1 << random.integers(0, 8, ROWS)
    out["submit"] = out["seq"] * 0.7 + random.random(ROWS)
    out["start"] = out["submit"] + np.where(random.random(ROWS) < 0.2, random.exponential(100, ROWS), 0)
    out["end"], out["first_start"] = out["start"] + random.exponential(10_000, ROWS), out["start"]
    out["closes"] = INTERVAL | POD
    return out


def bench_pods_in(timed: Timed, trace: fs.Workload) -> None:
    """Read and check the file."""
    assert timed(lambda: sum(batch.num_rows for batch in trace.batches()), items=ROWS, budget=2.0 * SCALE) == ROWS


def bench_classes(timed: Timed, trace: fs.Workload) -> None:
    """Number the requests of batches in memory."""
    batches = list(trace.batches())

    def classes() -> int:
        known = PodClasses()
        return sum(len(known.intern(batch)) for batch in batches)

    assert timed(classes, items=ROWS, budget=0.8 * SCALE) == ROWS


def bench_checksum(timed: Timed, trace: fs.Workload) -> None:
    """The checksum of the content of batches in memory."""
    batches = list(trace.batches())
    assert len(timed(lambda: content_checksum(batches, trace.schema), items=ROWS, budget=1.5 * SCALE)) == 64


def bench_rows_out(timed: Timed, outcomes: Any, tmp_path: Path) -> None:
    """Placements and jobs as Parquet, on the second thread."""
    number, names = count(), pl.Series([f"node-{k:05d}" for k in range(10_000)])

    def write() -> Path:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        tables, writer = FileTables(names, folder), Background()
        for first in range(0, ROWS, CHUNK):
            writer.do(tables.outcomes, outcomes[first : first + CHUNK], None)
        writer.close()
        tables.close()
        return folder

    folder = timed(write, items=ROWS, budget=10.0 * SCALE)
    assert len(pl.read_parquet(folder / "jobs.parquet")) == ROWS


def bench_waits(timed: Timed, outcomes: Any) -> None:
    """Means and percentiles of waiting and completion times, exact and out of memory."""

    def figures() -> Any:
        waits = Waits()
        for first in range(0, ROWS, CHUNK):
            waits.add(outcomes[first : first + CHUNK])
        found = waits.figures()
        waits.close()
        return found

    assert timed(figures, items=ROWS, budget=1.5 * SCALE)["jct_p50_s"] > 0
