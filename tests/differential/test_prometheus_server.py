"""Readings through a real Prometheus: taken in by its own tool, or scraped from the live endpoint, and read again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fastsim.cli.main import exit_code
from fastsim.errors import InputError
from fastsim.foundation.draws.random_streams import Stream
from fastsim.telemetry.grafana import dashboard_json
from fastsim.telemetry.openmetrics import read_files, write_files
from fastsim.telemetry.prometheus import Prometheus
from fastsim.telemetry.readings_table import ordered, write
from tests.cli.terminal import COMMAND, attentive, environment
from tests.differential.prometheus_server import NEEDED, promtool, served
from tests.telemetry import table

pytestmark = NEEDED
EPOCH_S, SECONDS = 1_704_067_200, 12_000
"""More seconds than the server tells at once."""
NAMES = ("power_w", "memory_used_mib", "memory_free_mib", "util_pct", "temperature_c", "copy_pct", "energy_j")


def readings(seconds: int = SECONDS, offset_ms: int = 0) -> pa.Table:
    """Numbers with three decimals, one a second, of four quantities."""
    drawn = Stream(7, "readings").uniform(4 * seconds).reshape(4, seconds)
    names = ("power_w", "memory_used_mib", "util_pct", "temperature_c")
    return table({
        name: [(1000 * second + offset_ms, round(300 * value, 3)) for second, value in enumerate(values.tolist())]
        for name, values in zip(names, drawn, strict=True)
    })  # fmt: skip


def ready(server: Prometheus) -> None:
    """Wait until the server answers."""
    for _ in range(100):
        try:
            list(server.samples("up", 0, 0))
            return
        except InputError:
            time.sleep(0.2)
    raise AssertionError("the server never answered")


def moved(made: pa.Table) -> pa.Table:
    """The readings at the time of the epoch."""
    times = pc.add(made["ts"].cast(pa.int64()), 1000 * EPOCH_S).cast(made.schema.field(0).type)
    return made.set_column(0, made.schema.field(0), times)


@pytest.mark.parametrize("profile", ["dcgm2", "dcgm4.9"])
def test_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    monkeypatch.setenv("no_proxy", "*")
    made, data = readings(), tmp_path / "data"
    for path in write_files(made, tmp_path / "om", epoch_s=EPOCH_S, profile=profile, slice_s=7200):
        promtool("tsdb", "create-blocks-from", "openmetrics", "-q", path, data)
    with served(data) as server:
        ready(server)
        found = server.readings(EPOCH_S, EPOCH_S + SECONDS - 1)
    assert len(found) == 4 * SECONDS and found == moved(made)
    (tmp_path / "dump.txt").write_bytes(promtool("tsdb", "dump", data))
    assert read_files(tmp_path / "dump.txt") == moved(made)


def test_verbs_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Parquet file that comes back has the very bytes of the one that went, milliseconds and all."""
    monkeypatch.setenv("no_proxy", "*")
    made, data = readings(11_500, offset_ms=137), tmp_path / "data"
    write(made, tmp_path / "made.parquet")
    epoch = ["--epoch", "2024-01-01T00:00:00Z"]
    assert exit_code(["monitor", "export", str(tmp_path / "made.parquet"), "-o", str(tmp_path / "om"), *epoch]) == 0
    for path in sorted((tmp_path / "om").iterdir()):
        promtool("tsdb", "create-blocks-from", "openmetrics", "-q", path, data)
    output = tmp_path / "back.parquet"
    with served(data) as server:
        ready(server)
        words = ["--start", str(EPOCH_S), "--end", str(EPOCH_S + 11_600)]
        assert exit_code(["monitor", "import", server.url, "-o", str(output), *words]) == 0
        back = output.read_bytes()
        output.unlink()
        assert exit_code(["monitor", "import", server.url + "0", "-o", str(output), *words]) == 2
    write(moved(made), tmp_path / "moved.parquet", (server.url,))
    assert back == (tmp_path / "moved.parquet").read_bytes() and not output.exists()


def devices() -> pa.Table:
    """Six devices of three nodes, every quantity, with pods that come and go."""
    parts = [
        table({name: [(1000 * second, 10.0 * device + second + i) for second in range(600)]
               for i, name in enumerate(NAMES)},
              node=f"n{device // 2}", gpu_index=device % 2, gpu_uuid=f"GPU-{device}", pod=f"p{device}")
        for device in range(6)
    ]  # fmt: skip
    return ordered(pa.concat_tables(parts))


@pytest.mark.parametrize("profile", ["dcgm1", "dcgm2", "dcgm4.9"])
def test_the_live_endpoint_is_scraped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    """Every series has samples at the server: that the target is up says nothing."""
    monkeypatch.setenv("no_proxy", "*")
    write(devices(), tmp_path / "made.parquet")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["monitor", "serve", str(tmp_path / "made.parquet"), "--listen", f"127.0.0.1:{port}", "--speed", "20"]
    words += ["--profile", profile]
    config = (
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs:\n- job_name: gpus\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
        "- job_name: by_node\n  params: {}\n  http_sd_configs:\n"
        f"  - {{url: 'http://127.0.0.1:{port}/targets', refresh_interval: 1s}}\n"
    )
    live = subprocess.Popen([*COMMAND, *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=attentive)  # fmt: skip
    try:
        assert live.stdout is not None and "42 series" in live.stdout.readline()
        begun = time.time()
        with served(tmp_path / "data", config) as server:
            ready(server)
            time.sleep(max(0.0, begun + 9 - time.time()))
            found = server.stored(begun - 5, time.time(), where='job="gpus"')
            by_node = list(server.stored_samples('{job="by_node",__name__=~"(?i)dcgm.*"}', begun - 5, time.time()))
            up = {sample.value for sample in server.stored_samples('up{job="gpus"}', begun - 5, time.time())}
            if profile != "dcgm1":
                for panel in json.loads(dashboard_json(profile))["panels"]:
                    for target in panel["targets"]:
                        expression = target["expr"].replace("$node", ".*")
                        assert list(server.samples(expression, int(time.time()), int(time.time()))), expression
        live.send_signal(signal.SIGINT)
        out, err = live.communicate(timeout=280)
    finally:
        live.kill()
    assert (live.returncode, err) == (0, "") and out.startswith("ended after ")
    counts = found.group_by(["metric", "gpu_uuid"]).aggregate([("value", "count")])
    assert len(counts) == len(NAMES) * 6 and min(counts["value_count"].to_pylist()) >= 3 and 1.0 in up
    assert sorted(set(found["node"].to_pylist())) == ["n0", "n1", "n2"]
    assert {sample.labels["instance"] for sample in by_node} == {"n0", "n1", "n2"}
    rows = [row for row in found.to_pylist() if row["metric"] == "power_w" and row["gpu_uuid"] == "GPU-0"]
    values = [row["value"] for row in rows]
    assert values == sorted(values) and 0 <= values[0] < values[-1] <= 600  # 20 s of the record each second


def test_nothing_is_lost_by_readings_that_share_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first exporter had no labels for pods, so readings of pods that follow each other are one series."""
    later, first = table({"power_w": [(5000, 2.0)]}, pod="a"), table({"power_w": [(1000, 1.0)]}, pod="b")
    source = ordered(pa.concat_tables([later, first]))
    [path] = write_files(source, tmp_path / "om", epoch_s=EPOCH_S, profile="dcgm1")
    promtool("tsdb", "create-blocks-from", "openmetrics", "-q", path, tmp_path / "data")
    monkeypatch.setenv("no_proxy", "*")
    with served(tmp_path / "data") as server:
        ready(server)
        assert server.stored(EPOCH_S, EPOCH_S + 10)["value"].to_pylist() == [1.0, 2.0]
