"""A run that is killed or interrupted goes on to the same bytes; other processes may not write to its folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fastsim as fs
from fastsim.engine.checkpoints.folder import STATE, working_folder
from fastsim.engine.checkpoints.state import RunState
from fastsim.errors import ResultError
from fastsim.workload import Workload
from tests.cli.terminal import COMMAND, attentive, environment, fastsim

PODS, EVERY = 4000, 200
CLUSTER, POLICY, QUEUE = "openb:20", "random", "fifo"
SCRIPT = f"""
import signal, sys, warnings
import fastsim as fs
from fastsim.cli.main import main
from fastsim.engine.checkpoints.state import RunState

number, pods, verb, *words = sys.argv[1:]
written = RunState.write

def write(checkpoint, folder):
    written(checkpoint, folder)
    if str(checkpoint.arrived) in pods.split(","):
        signal.raise_signal(int(number))

RunState.write = write
warnings.simplefilter("ignore")
if verb == "run":
    fs.simulate("{CLUSTER}", "pods.parquet", "{POLICY}", queue="{QUEUE}", out="run", checkpoint_pods={EVERY})
elif verb == "resume":
    fs.resume("run")
else:
    main(words)
"""
"""Sends itself the signal ``number`` after the checkpoints of these pods."""
ROOT = Path(fs.__file__).resolve().parent.parent
PATIENCE_S = 300.0
"""How long a process may take to end, on a machine that has other things to do."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pods that come, wait and go, and a run of them that nothing stopped."""
    folder = tmp_path_factory.mktemp("killed")
    cluster = fs.Cluster.scaled(nodes=20)
    Workload.synth("openb", pods=PODS, seed=4, load=0.9, cluster=cluster).write(folder / "pods.parquet")
    (folder / "script.py").write_text(SCRIPT)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        fs.simulate(CLUSTER, "pods.parquet", POLICY, queue=QUEUE, out="plain", checkpoint_pods=EVERY)
    return folder


@contextmanager
def started(place: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A process of its own in the folder, which does not outlive the block."""
    given: dict[str, Any] = {"env": environment(ROOT), "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, *map(str, words)], cwd=place, preexec_fn=attentive, **given) as process:
        try:
            yield process
        finally:
            process.kill()


def stopped(process: subprocess.Popen[str]) -> None:
    """Return once the process stands still after a checkpoint."""
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder and below."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same(one: Path, two: Path) -> None:
    """Every file of both runs has the same bytes, and the same was noted but for the time it took."""
    files = [contents(folder) for folder in (one, two)]
    records = [json.loads(found.pop("run.json")) for found in files]
    for record in records:
        assert record.pop("timing")["wall_s"] > 0
    assert len(files[0]) == 5 and files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []
    assert records[0] == records[1]


def assert_refused(place: Path, holder: int) -> None:
    """No other process may go on with the run, or write to its folder, and nothing changes when one tries."""
    before = contents(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        text = f"run: found process {holder} at work on it, expected a folder that no other run writes to"
        with pytest.raises(ResultError, match=text):
            fs.resume("run")
        with pytest.raises(ResultError, match=text):
            fs.simulate(CLUSTER, "pods.parquet", POLICY, queue=QUEUE, out="run", overwrite=True)
        with pytest.raises(ResultError, match=text):
            fs.simulate(CLUSTER, "pods.parquet", POLICY, queue=QUEUE, out="run", overwrite=True, checkpoint_pods=9)
    done = fastsim("resume", "run", "--force", cwd=place)
    assert done.code == 1 and f"found process {holder} at work on it" in done.line
    assert contents(place) == before


@pytest.mark.long
def test_a_run_killed_twice_writes_the_same_bytes(place: Path) -> None:
    work = working_folder(place / "run")
    for verb, pods in (("run", PODS // 5), ("resume", PODS // 2)):
        with started(place, "script.py", int(signal.SIGSTOP), f"{pods},{pods + EVERY}", verb) as process:
            stopped(process)  # so that it is still there while others try
            assert_refused(place, process.pid)
            process.send_signal(signal.SIGCONT)
            stopped(process)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert RunState.read(work / STATE).arrived == pods + EVERY and not (place / "run").exists()
    with started(place, "script.py", 0, "none", "resume") as process:
        assert process.wait(PATIENCE_S) == 0
    assert_same(place / "plain", place / "run")
    assert {path.name for path in place.iterdir()} >= {"pods.parquet", "script.py", "plain", "run"}
    assert not work.exists() and not list(place.glob(".*"))


@pytest.mark.long
def test_an_interrupted_run_goes_on(place: Path) -> None:
    given = ("--cluster", CLUSTER, "--workload", "pods.parquet", "--policy", POLICY, "--queue", QUEUE)
    before, work = {path.name for path in place.iterdir()}, place / "other.checkpoint"
    words = ("command", "run", *given, "--checkpoint", EVERY, "--out", "other")
    with started(place, "script.py", int(signal.SIGINT), PODS // 4, *words) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (130, "fastsim: interrupted; go on with: fastsim resume other\n")
    assert {path.name for path in place.iterdir()} - before == {"other.checkpoint"}
    assert PODS // 4 <= RunState.read(work / STATE).arrived < PODS
    with started(place, *COMMAND[1:], "resume", "other") as process:
        assert process.wait(PATIENCE_S) == 0
    assert_same(place / "plain", place / "other")
    assert {path.name for path in place.iterdir()} - before == {"other"}


@pytest.mark.long
def test_two_runs_to_one_folder_leave_one_result(tmp_path: Path) -> None:
    Workload.synth("openb", pods=3000, seed=4).write(tmp_path / "pods.parquet")
    words = ("run", "--cluster", "openb:20", "--workload", "pods.parquet", "--policy", "random", "--out", "run")
    with started(tmp_path, *COMMAND[1:], *words) as one, started(tmp_path, *COMMAND[1:], *words) as two:
        told = {process.wait(PATIENCE_S): process.communicate()[1] for process in (one, two)}
    assert 0 in told and len(told) == 2, told
    (line,) = (text for code, text in told.items() if code)
    # Refused at once; or, if it came late, because the result of the other was there.
    assert "at work on it" in line or "something that exists already" in line or "exists already;" in line, line
    assert len(fs.Result.load(tmp_path / "run").jobs) == 3000
    assert {path.name for path in tmp_path.iterdir()} == {"pods.parquet", "run"}
