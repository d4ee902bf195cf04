"""Readings written for a real Prometheus, taken in by its own tool, served and read again: nothing changes.

Needs the two programs: bash .ci/fetch_prometheus FOLDER, and FASTSIM_PROMETHEUS=FOLDER/usr/bin.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fastsim.errors import InputError
from fastsim.openmetrics import read_files, write_files
from fastsim.prometheus import Prometheus
from fastsim.streams import Stream
from tests.telemetry import table

PROGRAMS = os.environ.get("FASTSIM_PROMETHEUS", os.environ.get("PATH", ""))
SERVER, TOOL = (shutil.which(name, path=PROGRAMS) for name in ("prometheus", "promtool"))
pytestmark = pytest.mark.skipif(
    SERVER is None or TOOL is None or "CI" in os.environ, reason="no Prometheus here (set FASTSIM_PROMETHEUS)"
)
EPOCH_S, SECONDS = 1_704_067_200, 12_000
"""More seconds than the server tells at once."""


def readings() -> pa.Table:
    """Numbers with three decimals, one a second, of four quantities."""
    drawn = Stream(7, "readings").uniform(4 * SECONDS).reshape(4, SECONDS)
    names = ("power_w", "memory_used_mib", "util_pct", "temperature_c")
    return table({
        name: [(1000 * second, round(300 * value, 3)) for second, value in enumerate(values.tolist())]
        for name, values in zip(names, drawn, strict=True)
    })  # fmt: skip


@contextmanager
def served(data: Path) -> Iterator[Prometheus]:
    """A server on a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (data.parent / "p.yml").write_text("global: {}\n")
    options = ["--config.file", str(data.parent / "p.yml"), "--storage.tsdb.path", str(data)]
    options += ["--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}"]
    running = subprocess.Popen([SERVER or "", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        running.terminate()
        running.wait(30)


def told(server: Prometheus) -> pa.Table:
    """What the server tells, as soon as it is ready."""
    for _ in range(100):
        try:
            return server.readings(EPOCH_S, EPOCH_S + SECONDS - 1)
        except InputError:
            time.sleep(0.2)
    raise AssertionError("the server never answered")


@pytest.mark.parametrize("profile", ["dcgm2", "dcgm4.9"])
def test_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    monkeypatch.setenv("no_proxy", "*")
    made, data = readings(), tmp_path / "data"
    for path in write_files(made, tmp_path / "om", epoch_s=EPOCH_S, profile=profile, slice_s=7200):
        words = [TOOL or "", "tsdb", "create-blocks-from", "openmetrics", "-q", str(path), str(data)]
        subprocess.run(words, check=True, capture_output=True)
    with served(data) as server:
        found = told(server)
    moved = pc.add(made["ts"].cast(pa.int64()), 1000 * EPOCH_S).cast(made.schema.field(0).type)
    expected = made.set_column(0, made.schema.field(0), moved)
    assert len(found) == 4 * SECONDS and found == expected
    dump = subprocess.run([TOOL or "", "tsdb", "dump", data], check=True, capture_output=True)
    (tmp_path / "dump.txt").write_bytes(dump.stdout)
    assert read_files(tmp_path / "dump.txt") == expected
