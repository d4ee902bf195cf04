"""One sweep, everywhere: each place writes the same bytes, and what is killed goes on to them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.terminal import COMMAND, attentive, environment
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]
SWEEP = """
seed = [0, 1]

[[zip]]
cluster = ["openb:40?shuffle=1", "gavel:2:2:2", "gavel:2:2:2", "sia:2:1:1"]
workload = ["synth:openb?pods=400&tune=1.2", "synth:gavel?jobs=12", "synth:gavel?jobs=9", "synth:sia?jobs=3"]
policy = ["fgd", "max_min_fairness", "gandiva", "sia"]
"""
SLOW = """
cluster = "openb:20"
workload = "synth:openb?pods=20000&arrivals=order"
policy = ["fgd", "random", "best_fit"]
queue = "fifo"
record = "all"
seed = [0, 1, 2]
"""
PATIENCE_S = 240.0


def tables(folder: Path) -> dict[str, bytes]:
    """Every table below a folder; what is hidden is half written."""
    paths = [path for path in folder.rglob("*.parquet") if ".partial" not in str(path)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def swept(file: Path, out: str, *words: str) -> None:
    """Run a sweep to its end."""
    command = [*COMMAND, "sweep", file.name, "--out", out, *words]
    done = subprocess.run(command, cwd=file.parent, env=environment(ROOT), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sweep file and what one process made of it."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "sweep.toml").write_text(SWEEP)
    swept(folder / "sweep.toml", "serial", "--on", "serial")
    assert len(tables(folder / "serial")) == 8 * 5 + 1
    return folder


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("processes", marks=pytest.mark.long),
        "threads",
        pytest.param("ray", marks=needs("ray")),
        pytest.param("dask", marks=needs("distributed")),
    ],
)
def test_every_place_writes_the_same_bytes(plain: Path, place: str) -> None:
    swept(plain / "sweep.toml", place, "--on", place, "--workers", "2")
    assert tables(plain / place) == tables(plain / "serial")


@needs("cylp")
@pytest.mark.parametrize("place", ["processes", "threads"])
def test_another_solver_picks_the_same_everywhere(tmp_path: Path, place: str) -> None:
    text = 'cluster = "sia:2:1:1"\nworkload = "synth:sia?jobs=6"\npolicy = "sia(solver=cbc)"\nseed = [0, 1, 2]\n'
    (tmp_path / "sweep.toml").write_text(text)
    swept(tmp_path / "sweep.toml", "serial", "--on", "serial")
    swept(tmp_path / "sweep.toml", place, "--on", place, "--workers", "2")
    assert tables(tmp_path / place) == tables(tmp_path / "serial") != {}


def children(pid: int) -> list[int]:
    """Processes that this one started and that are at work (Linux)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
            command = (path.parent / "cmdline").read_text()
        except OSError:
            continue
        if int(words[1]) == pid and "spawn_main" in command and words[0] != "Z":
            found.append(int(path.parent.name))
    return found


def complete(folder: Path) -> int:
    """How many runs have their name in a folder; what is half-written may vanish while one looks."""
    count = 0
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        count += "run.json" in files
    return count


def wait_for(folder: Path, runs: int, process: subprocess.Popen[bytes]) -> None:
    """Until so many runs are complete."""
    deadline = time.monotonic() + PATIENCE_S
    while complete(folder) < runs and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "it was over before it could be killed"


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the workers")
def test_a_killed_worker_and_a_killed_driver_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SLOW)
    command = [*COMMAND, "sweep", "sweep.toml", "--out", "killed", "--workers", "2"]
    given = {"cwd": tmp_path, "env": environment(ROOT), "stdout": subprocess.DEVNULL, "preexec_fn": attentive}
    with subprocess.Popen(command, **given) as process:  # type: ignore[call-overload]
        wait_for(tmp_path / "killed", 1, process)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        wait_for(tmp_path / "killed", 4, process)
        workers = children(process.pid)
        assert len(workers) == 2, "the one that was killed has a successor"
        process.send_signal(signal.SIGKILL)
    assert len(list((tmp_path / "killed").rglob("run.json"))) < 9 and not (tmp_path / "killed/sweep.parquet").exists()
    swept(tmp_path / "sweep.toml", "killed", "--workers", "2")  # at once: workers without a driver end by themselves
    swept(tmp_path / "sweep.toml", "plain", "--on", "serial")
    assert tables(tmp_path / "killed") == tables(tmp_path / "plain")
    assert not list((tmp_path / "killed").rglob(".*"))
