"""Readings and decisions by readings: samples a second, lines of text out and in, decisions of the scheduler."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

import fastsim as fs
from bench.conftest import Timed
from fastsim.foundation.draws.random_streams import Stream
from fastsim.policies.monitored.admission import Admission
from fastsim.telemetry.exporter import Record
from fastsim.telemetry.openmetrics import read_files, write_files
from fastsim.telemetry.readings_table import SCHEMA, ordered

DEVICES, MOMENTS = 100, 500
ROWS = 4 * DEVICES * MOMENTS
"""Readings of the table that is written and read."""
QUESTIONS = 2000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Four quantities of a hundred GPUs, every 15 s."""
    values = Stream(1, "readings").uniform(ROWS)
    cells = itertools.product(("copy_pct", "power_w", "temperature_c", "util_pct"), range(DEVICES), range(MOMENTS))
    rows = [
        {"ts": 1_704_067_200_000 + 15_000 * moment, "node": f"n{device // 8}", "gpu_uuid": f"GPU-{device}",
         "gpu_index": device % 8, "model": "V100", "pod": f"p{device}", "metric": metric,
         "value": round(100 * value, 3)}
        for (metric, device, moment), value in zip(cells, values.tolist(), strict=True)
    ]  # fmt: skip
    return ordered(pa.Table.from_pylist(rows, schema=SCHEMA))


def bench_samples(timed: Timed) -> None:
    """Readings of 6,212 GPUs each hour while pods come and go; the run itself is in the time."""
    run = ("openb", "synth:openb?pods=4000&seed=1&rate_per_hour=200", "best_fit")
    every_s = 3600.0
    count = len(fs.simulate(*run, telemetry=every_s, record="summary").telemetry)
    timed(lambda: fs.simulate(*run, telemetry=every_s, record="summary"), items=count, budget=25.0)


def bench_lines_out(timed: Timed, table: pa.Table, tmp_path: Path) -> None:
    """OpenMetrics text for promtool."""
    folders = (tmp_path / str(number) for number in itertools.count())
    timed(lambda: write_files(table, next(folders)), items=ROWS, budget=8.0)


def bench_lines_in(timed: Timed, table: pa.Table, tmp_path: Path) -> None:
    """The same text read again."""
    paths = write_files(table, tmp_path)
    assert timed(lambda: read_files(*paths), items=ROWS, budget=35.0).num_rows == ROWS


def bench_scrapes(timed: Timed, table: pa.Table) -> None:
    """Series in one answer of the live endpoint."""
    record, places = Record(table), itertools.cycle(range(0, 7000, 13))
    timed(lambda: record.text(next(places)), items=4 * DEVICES, budget=0.1)


def bench_admissions(timed: Timed) -> None:
    """Questions to one GPU about a minute of readings: variation, percentile, repetition and forecast."""
    admission, draw = Admission(), Stream(2, "free")
    free = [[float(int(32_000 * value)) for value in draw.uniform(60).tolist()] for _ in range(QUESTIONS)]
    used = [[32_509.0 - value for value in values] for values in free]

    def asked() -> int:
        return sum(bool(admission(6994, 0, *pair)) for pair in zip(free, used, strict=True))

    assert 0 < timed(asked, items=QUESTIONS, budget=4.0) < QUESTIONS


def bench_monitored_run(timed: Timed) -> None:
    """A whole experiment: 30 detectors on one GPU under the scheduler that looks at it."""
    cluster, jobs = "uniform?nodes=1&gpu=V100M32&gpus=1", "synth:detectors?over=50"
    timed(lambda: fs.simulate(cluster, jobs, "monitored", compat="monitored"), items=30, budget=12.0)
