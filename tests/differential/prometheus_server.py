"""A real Prometheus for tests: bash .ci/fetch_prometheus FOLDER, and FASTSIM_PROMETHEUS=FOLDER/usr/bin."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastsim.telemetry.prometheus import Prometheus

PROGRAMS = os.environ.get("FASTSIM_PROMETHEUS", os.environ.get("PATH", ""))
SERVER, TOOL = (shutil.which(name, path=PROGRAMS) for name in ("prometheus", "promtool"))
NEEDED = pytest.mark.skipif(
    SERVER is None or TOOL is None or "CI" in os.environ, reason="no Prometheus here (set FASTSIM_PROMETHEUS)"
)
"""Mark of tests that need both programs."""


@contextmanager
def served(data: Path, config: str = "global: {}\n") -> Iterator[Prometheus]:
    """A server on a free port of this machine; it may need a while to be ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (data.parent / "p.yml").write_text(config)
    options = ["--config.file", str(data.parent / "p.yml"), "--storage.tsdb.path", str(data)]
    options += ["--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}"]
    running = subprocess.Popen([SERVER or "", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        running.terminate()
        running.wait(30)


def promtool(*words: object) -> bytes:
    """What promtool prints."""
    done = subprocess.run([TOOL or "", *map(str, words)], check=True, capture_output=True)
    return done.stdout
