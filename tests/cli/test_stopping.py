"""A command that is stopped at any look, or by a signal in the worst places, leaves all, a way on, or nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastsim.foundation import folder_lock, interrupts
from fastsim.reports import text_tables
from tests.cli.terminal import Outcome, attentive, environment, fastsim_here

PODS = "run --cluster openb:20 --workload synth:openb?pods=300&seed=1 --policy random --queue fifo"
ROUNDS = "run --cluster gavel:2:2:2 --workload synth:gavel?jobs=8&rate_per_hour=40&seed=1"
COMMANDS = {
    "pods": f"{PODS} --out out",
    "pods, checkpoints": f"{PODS} --checkpoint 60 --out out",
    "shares": f"{ROUNDS} --policy max_min_fairness --out out",
    "shares, checkpoints": f"{ROUNDS} --policy max_min_fairness --checkpoint 2 --out out",
    "ideal": f"{ROUNDS} --policy max_min_fairness --ideal --out out",
    "orders": f"{ROUNDS} --policy las --out out",
    "adaptive jobs": "run --cluster sia:1:1:1 --workload synth:sia?jobs=2&seed=1 --policy sia --out out",
    "monitored GPUs": "run --cluster uniform?nodes=1&gpu=V100M32&gpus=1 --workload synth:detectors?over=50&unit=gib"
    " --policy monitored --until 60 --out out",
}
SWEEP = """cluster = "openb:20"
workload = "synth:openb?pods=100"
policy = ["fgd", "best_fit"]
seed = [1, 2]
"""
MOST_LOOKS = 24
"""Looks at which each command is stopped: the first and the last one, and others evenly between.

How often a command waits for its files hangs on the machine, so the last ones may never be reached: it is done then.
"""


@pytest.fixture(autouse=True)
def as_at_a_terminal() -> Iterator[None]:
    """The handlers that Python starts with, whatever this process inherited."""
    before = {number: signal.signal(number, usual) for number, usual in interrupts.USUAL.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def looks(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int = 0) -> tuple[int, Outcome]:
    """How often a command looked for a signal, and its outcome; the look ``stop_at`` finds Ctrl-C."""
    count = 0

    def look() -> None:
        nonlocal count
        count += 1
        if count == stop_at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(interrupts, "check", look)
        outcome = fastsim_here(*words, cwd=folder)
    return count, outcome


def some_of(count: int) -> list[int]:
    """All looks, or as many as are tried, spread evenly."""
    if count <= MOST_LOOKS:
        return list(range(1, count + 1))
    return sorted({1 + (count - 1) * k // (MOST_LOOKS - 1) for k in range(MOST_LOOKS)})


def names(folder: Path) -> set[str]:
    """Names in a folder, hidden files included."""
    return {path.name for path in folder.iterdir()}


def assert_stopped(outcome: Outcome, left: set[str]) -> None:
    """The exit code is 130, and the single line on standard error agrees with the files."""
    said = {"out": "; out is complete", "out.checkpoint": "; go on with: fastsim resume out"}
    assert len(left) <= 1
    assert outcome.code == 130
    assert outcome.err == f"fastsim: interrupted{said[min(left)] if left else ', nothing written'}\n"


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_at_every_look_of_a_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = COMMANDS[name].split()
    count, whole = looks(words, tmp_path, monkeypatch)
    assert (whole.code, whole.err) == (0, "") and names(tmp_path) == {"out"} and count >= 3
    for at in some_of(count):
        folder = tmp_path / str(at)
        folder.mkdir()
        reached, outcome = looks(words, folder, monkeypatch, at)
        if reached < at:
            assert (outcome.code, outcome.err) == (0, "") and names(folder) == {"out"}
        else:
            assert_stopped(outcome, names(folder))


@pytest.mark.long
def test_at_every_look_of_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, whole = tmp_path / "begun", tmp_path / "whole"
    begun.mkdir()
    whole.mkdir()
    words = COMMANDS["pods, checkpoints"].split()
    count, _ = looks(words, whole, monkeypatch)
    for at in range(count, 0, -1):  # the last look that leaves a checkpoint
        looks(words, begun, monkeypatch, at)
        if names(begun) == {"out.checkpoint"}:
            break
        shutil.rmtree(begun / "out", ignore_errors=True)
    assert names(begun) == {"out.checkpoint"}
    shutil.copytree(begun, tmp_path / "plain")
    count, _ = looks(["resume", "out"], tmp_path / "plain", monkeypatch)
    for at in some_of(count):
        folder = tmp_path / str(at)
        shutil.copytree(begun, folder)
        reached, outcome = looks(["resume", "out"], folder, monkeypatch, at)
        if reached < at:
            assert (outcome.code, outcome.err) == (0, "")
        else:
            assert_stopped(outcome, names(folder))
        if names(folder) == {"out.checkpoint"}:
            assert fastsim_here("resume", "out", cwd=folder).code == 0
        for table in ("jobs", "placements"):
            one, two = (place / "out" / f"{table}.parquet" for place in (folder, whole))
            assert one.read_bytes() == two.read_bytes()


@pytest.mark.long
def test_at_every_look_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sweep", "sweep.toml", "--out", "runs", "--on", "serial"]
    (tmp_path / "sweep.toml").write_text(SWEEP)
    count, whole = looks(words, tmp_path, monkeypatch)
    assert whole.code == 0
    for at in some_of(count):
        folder = tmp_path / str(at)
        folder.mkdir()
        shutil.copy(tmp_path / "sweep.toml", folder)
        reached, outcome = looks(words, folder, monkeypatch, at)
        if reached < at:
            assert (outcome.code, outcome.err) == (0, "")
            continue
        done = len(list(folder.rglob("run.json")))
        text = f"; {done} of 4 runs are complete; the same command goes on" if done else ", nothing written"
        assert (outcome.code, outcome.err) == (130, f"fastsim: interrupted{text}\n")
        assert not list(folder.rglob(".*"))
        assert fastsim_here(*words, cwd=folder).code == 0
        for path in (tmp_path / "runs").rglob("jobs.parquet"):
            assert (folder / path.relative_to(tmp_path)).read_bytes() == path.read_bytes()


def pressed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with Ctrl-C before its first line, the first time."""

    def then(*arguments: Any, **options: Any) -> Any:
        if not interrupts.pending():
            signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)

    return then


PLACES = {
    "taking the lock": (folder_lock, "_lock_if_free"),
    "holding the lock": (folder_lock, "_remove_partial"),
    "giving the lock back": (folder_lock, "_release"),
    "a change of names": (os, "replace"),
    "removing what is half-written": (shutil, "rmtree"),
    "making a folder": (os, "mkdir"),
}


@pytest.mark.parametrize("command", ["pods", "pods, checkpoints", "shares", "adaptive jobs"])
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_in_the_worst_places(
    place: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = PLACES[place]
    monkeypatch.setattr(module, name, pressed(getattr(module, name)))
    outcome = fastsim_here(*COMMANDS[command].split(), cwd=tmp_path)
    assert_stopped(outcome, names(tmp_path))


IMPORTING = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
from fastsim.__main__ import main
main()
"""


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "module", ["polars", "fastsim.simulation.simulate", "fastsim.engine.online.run", "fastsim.engine.online.recorder"]
)
def test_a_signal_while_a_module_is_loaded(module: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", IMPORTING.format(module=module), *COMMANDS["pods"].split()]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(), preexec_fn=attentive, capture_output=True, text=True
    )  # fmt: skip
    assert_stopped(Outcome(done.returncode, done.stdout, done.stderr), names(tmp_path))
    assert not names(tmp_path)


def test_a_signal_when_all_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "summary_text", pressed(text_tables.summary_text))
    outcome = fastsim_here(*COMMANDS["pods"].split(), cwd=tmp_path)
    assert outcome.code == 130 and outcome.err == "fastsim: interrupted; all was done\n" and names(tmp_path) == {"out"}
