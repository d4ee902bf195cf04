"""Ctrl-C in the middle of anything: one line, exit code 130, no output, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.terminal import COMMAND, attentive, environment

SCORER = """
import pathlib, time
import numpy as np

def points(nodes, pod):
    pathlib.Path(__file__).with_name("started").touch()
    time.sleep(0.2)
    return np.asarray(nodes.memory_free)
"""


def left_behind(group: int) -> list[str]:
    """Processes of a group that still run two seconds later (Linux; elsewhere unknown)."""
    deadline = time.monotonic() + 2
    while True:
        fields = [_stat(path) for path in Path("/proc").glob("[0-9]*/stat")]
        running = [words[0] for words in fields if words and int(words[2]) == group and words[0] != "Z"]
        if not running or time.monotonic() > deadline:
            return running
        time.sleep(0.05)


def _stat(path: Path) -> list[str]:
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:  # it ended meanwhile
        return []


def interrupted(
    words: list[str], folder: Path, started: Path, group: bool = False, patience_s: float = 60.0
) -> tuple[int, str]:
    """Start a command, press Ctrl-C once ``started`` exists, and answer with exit code and standard error."""
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=attentive,
    )
    try:
        deadline = time.monotonic() + patience_s
        while not started.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=280)
        assert not left_behind(process.pid)
        return process.returncode, err
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_run_in_the_loop(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SCORER)
    words = ["run", "--cluster", "openb:20", "--workload", "synth:openb?pods=5000", "--out", "out"]
    code, err = interrupted([*words, "--policy", "python(scorer='slow:points')"], tmp_path, tmp_path / "started")
    assert (code, err) == (130, "fastsim: interrupted, nothing written\n")
    assert {path.name for path in tmp_path.iterdir()} <= {"slow.py", "started", "__pycache__"}


@pytest.mark.long
def test_a_run_in_rounds_says_how_to_go_on(tmp_path: Path) -> None:
    jobs = "synth:gavel?jobs=1500&rate_per_hour=0.3&seed=1"
    words = ["--cluster", "gavel:2:2:2", "--workload", jobs, "--policy", "fifo", "--record", "summary"]
    state = tmp_path / "out.checkpoint" / "state.npz"
    code, err = interrupted(["run", *words, "--checkpoint", "20", "--out", "out"], tmp_path, state)
    assert (code, err) == (130, "fastsim: interrupted; go on with: fastsim resume out\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out.checkpoint"]
    for rest in (["resume", "out"], ["run", *words, "--out", "plain"]):
        subprocess.run([*COMMAND, *rest], cwd=tmp_path, env=environment(), check=True, stdout=subprocess.DEVNULL)
    assert {path.name for path in tmp_path.iterdir()} == {"out", "plain"}
    one, two = (tmp_path / name / "jobs.parquet" for name in ("out", "plain"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.long
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SCORER)
    (tmp_path / "many.py").write_text(
        "import sys\n"
        "import fastsim.cli.main, fastsim.cli.run\n"
        "from fastsim.experiments import demo\n"
        "demo.POLICIES = (\"python(scorer='slow:points')\",) * 4\n"
        "if __name__ == '__main__':\n"
        "    fastsim.cli.main.main(['demo', '--nodes', '20', '--pods', '500', '--workers', '2', '--out', 'out'])\n"
    )
    words = COMMAND[:]
    COMMAND[1:] = [str(tmp_path / "many.py")]
    try:
        code, err = interrupted([], tmp_path, tmp_path / "started", group=True)
    finally:
        COMMAND[:] = words
    assert (code, err) == (130, "fastsim: interrupted, nothing written\n")
    assert {path.name for path in tmp_path.iterdir()} <= {"slow.py", "many.py", "started", "__pycache__"}


EARLY = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "fastsim.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press())
from fastsim.__main__ import main
main()
"""


def test_while_modules_are_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], env=environment(), capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_the_door_leads_to_the_commands() -> None:
    words = [sys.executable, "-m", "fastsim", "--version"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and done.stdout.startswith("fastsim")
