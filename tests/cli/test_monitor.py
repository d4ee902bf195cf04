"""The verb monitor: readings of GPUs in and out, and one clear line for everything that is broken."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from fastsim.cli.main import exit_code
from fastsim.cli.monitor import AT_END, PROFILES
from fastsim.telemetry.exporter import AT_END as KNOWN_ENDS
from fastsim.telemetry.files import readings_of
from fastsim.telemetry.metric_names import PROFILES as KNOWN_PROFILES
from fastsim.telemetry.readings_table import write
from tests.cli.terminal import COMMAND, attentive, environment, fastsim
from tests.needs import needed, needs
from tests.telemetry import table
from tests.unit.telemetry.test_prometheus import Handler, Server, server

__all__ = ["server"]
READINGS = {
    name: [(1000 * s, 1.0 + s) for s in range(30)] for name in ("util_pct", "copy_pct", "power_w", "temperature_c")
}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A file of readings."""
    write(table(READINGS), tmp_path / "made.parquet")
    return tmp_path / "made.parquet"


def test_what_is_written_out() -> None:
    assert PROFILES == KNOWN_PROFILES and AT_END == KNOWN_ENDS


def test_out_and_in_again(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["monitor", "export", str(made), "-o", str(tmp_path / "om"), "--epoch", "2024-01-01T00:00:00Z"]
    assert exit_code([*words, "--slice-s", "10"]) == 0
    assert len(list((tmp_path / "om").iterdir())) == 3 and "120 readings in 3 files" in capsys.readouterr().out
    files = [str(path) for path in sorted((tmp_path / "om").iterdir())]
    assert exit_code(["monitor", "import", *files, "-o", str(tmp_path / "in.parquet")]) == 0
    found = readings_of([tmp_path / "in.parquet"])
    assert found["value"] == readings_of([made])["value"] and found["ts"][0].as_py().year == 2024
    assert exit_code(["monitor", "export", str(tmp_path / "in.parquet"), "-o", str(tmp_path / "again")]) == 0
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["001704067200.om"]
    assert exit_code(["monitor", "export", str(made), "-o", str(tmp_path / "csv"), "--as", "csv"]) == 0
    assert (tmp_path / "csv" / "n1-0-p-power_w.csv").read_text().startswith("t_rel,value\n0.0,1.0\n")


def test_from_a_server(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["monitor", "import", f"http://127.0.0.1:{server.server_port}", "-o", str(tmp_path / "a.parquet")]
    assert exit_code([*words, "--start", "1970-01-01T00:00:50Z", "--end", "149"]) == 0
    assert readings_of([tmp_path / "a.parquet"])["value"].to_pylist() == list(range(50, 150))
    assert exit_code([*words, "--end", "149", "--last", "49", "--step", "7"]) == 0
    assert readings_of([tmp_path / "a.parquet"])["value"].to_pylist() == list(range(100, 150, 7))
    assert "8 readings" in capsys.readouterr().out and Handler.protocol_version == "HTTP/1.0"


@pytest.mark.parametrize(
    ("mode", "found"),
    [("broken", "500 Internal Server Error"), ("text", "'not JSON'"), ("half", "lacks"), ("bad_series", "a series")],
)
def test_broken_servers(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str, found: str
) -> None:
    server.mode = mode
    words = ["monitor", "import", f"http://127.0.0.1:{server.server_port}", "-o", str(tmp_path / "a.parquet")]
    assert exit_code([*words, "--start", "0", "--end", "9"]) == 2
    output = capsys.readouterr()
    assert found in output.err and len(output.err.splitlines()) == 1 and not output.out and not list(tmp_path.iterdir())


def test_what_is_refused(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "late.om").write_text("dcgm_power_usage 1 2\ndcgm_power_usage 1 1\n# EOF\n")
    (tmp_path / "cut.om").write_text("dcgm_power_usage 1 2\n")
    (tmp_path / "none.om").write_text("up 1 2\n# EOF\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    before = sorted(tmp_path.rglob("*"))
    target = str(tmp_path / "new")
    dead = "http://127.0.0.1:9"
    for words, found in (
        (["import", str(tmp_path / "late.om"), "-o", target], "late.om:2: found 1000 ms after 2000 ms"),
        (["import", str(tmp_path / "cut.om"), "-o", target], "found an end without a last line"),
        (["import", str(tmp_path / "none.om"), "-o", target], "found no readings of GPUs"),
        (["import", str(made), "-o", target, "--last", "5"], "expected the address of a server"),
        (["import", dead, "-o", target, "--last", "5"], f"{dead}/api/v1/query: found"),
        (["import", dead, "-o", target], "both or neither of --start and --last"),
        (["import", dead, "-o", target, "--start", "noon"], "--start: found 'noon'"),
        (["import", dead, dead, "-o", target, "--last", "5"], "expected one server, or files"),
        (["import", dead, "-o", target, "--start", "9", "--end", "5"], "an end after the start"),
        (["export", str(made), "-o", target], "--epoch: found nothing, and readings of 1970"),
        (["export", str(made), "-o", str(tmp_path / "full"), "--as", "csv"], "expected a new or empty folder"),
        (["export", str(made), "-o", target, "--epoch", "-999999"], "a time before 1970"),
        (["serve", str(tmp_path / "nowhere.parquet")], "nowhere.parquet: found no such file"),
        (["serve", str(made), "--speed", "0"], "monitor: speed: found 0"),
        (["serve", str(made), "--listen", "here"], "--listen: found 'here'"),
    ):
        assert exit_code(["monitor", *words]) == 2, words
        output = capsys.readouterr()
        assert found in output.err and len(output.err.splitlines()) == 1, output.err
        assert sorted(tmp_path.rglob("*")) == before, words


@needs("altair")
def test_pictures_that_are_refused(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "new.png")
    before = sorted(tmp_path.rglob("*"))
    for words, found in (
        ([str(tmp_path / "a.gif")], "a name that ends in .gif"),
        ([target, "--pod", "q"], "no readings of pods q"),
        ([target, "--name", "a", "--name", "b"], "--name: found 2 of them"),
    ):
        assert exit_code(["monitor", "plot", str(made), "-o", *words]) == 2, words
        output = capsys.readouterr()
        assert found in output.err and len(output.err.splitlines()) == 1, output.err
        assert sorted(tmp_path.rglob("*")) == before, words


def test_pictures(made: Path, tmp_path: Path) -> None:
    needed("altair")
    for name in ("a.png", "a.svg"):
        assert exit_code(["monitor", "plot", str(made), "-o", str(tmp_path / name)]) == 0
    words = ["monitor", "plot", str(made), str(made), "-o", str(tmp_path / "two.png"), "--apart", "--metric", "power_w"]
    assert exit_code(words) == 0
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG") and b"<svg" in (tmp_path / "a.svg").read_bytes()


def test_dashboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["monitor", "dashboard", "--profile", "dcgm4.9"]) == 0
    printed = capsys.readouterr().out
    assert exit_code(["monitor", "dashboard", "--profile", "dcgm4.9", "-o", str(tmp_path / "d.json")]) == 0
    assert (tmp_path / "d.json").read_text() == printed and json.loads(printed)["title"] == "GPUs"


def test_the_endpoint_ends_with_the_record(made: Path) -> None:
    done = fastsim("monitor", "serve", made, "--listen", "127.0.0.1:0", "--speed", "1000")
    assert (done.code, done.err) == (0, "")
    assert "4 series, 29 s of readings at 1000 times their pace" in done.out and "ended after 0 answers" in done.out


def test_the_endpoint_ends_with_ctrl_c(made: Path) -> None:
    words = [*COMMAND, "monitor", "serve", str(made), "--listen", "127.0.0.1:0", "--at-end", "hold"]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=attentive) as live:  # fmt: skip
        assert live.stdout is not None
        line = live.stdout.readline()
        port = int(line.partition("/metrics")[0].rpartition(":")[2])
        taken = fastsim("monitor", "serve", made, "--listen", f"127.0.0.1:{port}")
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b"DCGM_FI_DEV_POWER_USAGE" in connection.makefile("rb").read()
        live.send_signal(signal.SIGINT)
        out, err = live.communicate(timeout=280)
    assert (live.returncode, out, err) == (0, "ended after 1 answers\n", "")
    assert taken.code == 2 and taken.line.endswith("found a port in use, expected a free one; choose another")


def test_the_endpoint_ends_with_sigterm(made: Path) -> None:
    words = [*COMMAND, "monitor", "serve", str(made), "--listen", "127.0.0.1:0", "--at-end", "hold"]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as live:
        assert live.stdout is not None
        live.stdout.readline()
        live.send_signal(signal.SIGTERM)
        out, err = live.communicate(timeout=280)
    assert (live.returncode, out, err) == (143, "", "fastsim: ended by SIGTERM after 0 answers\n")
