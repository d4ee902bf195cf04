"""`fastsim explain` as a user meets it: the story of a pod, tables for programs, one line for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from fastsim.cli.main import exit_code
from fastsim.cli.run import ATTEMPTS
from fastsim.decisions.explain import explain
from fastsim.decisions.replay import ATTEMPTS as KNOWN

SMALL = ("--cluster", "openb:12?seed=1", "--workload", "synth:openb?pods=60&seed=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved run."""
    path = tmp_path_factory.mktemp("runs") / "mix"
    assert exit_code(["run", *SMALL, "--policy", "0.9*fgd + 0.1*pwr", "--out", str(path)]) == 0
    return path


def told(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Standard output of a command that succeeds."""
    capsys.readouterr()
    assert exit_code(["explain", *map(str, words)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line with which bad input is refused."""
    capsys.readouterr()
    assert exit_code(["explain", *map(str, words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


def test_the_story_of_a_pod(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    out = told(capsys, folder, 7)
    assert out.startswith("pod 7, attempt 0 at ") and "\n-> " in out and "of 12 nodes cannot host it: " in out
    assert len(told(capsys, folder, 7, "--all").splitlines()) >= len(out.splitlines())
    assert told(capsys, folder, 7, 8).startswith(out)


def test_tables_for_programs(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    frame = explain(folder, sample=3)
    assert json.loads(told(capsys, folder, "--sample", 3, "--json")) == frame.to_dicts()
    told(capsys, folder, "--sample", 3, "--csv", tmp_path / "why.csv")
    assert pl.read_csv(tmp_path / "why.csv")["total"].to_list() == frame["total"].to_list()


def test_mistakes(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    assert "no such pod in the workload" in refused(capsys, folder, "job-x")
    assert "found neither POD nor --sample" in refused(capsys, folder)
    assert "--sample" in refused(capsys, folder, 1, "--sample", 2)
    assert "last" in refused(capsys, folder, 1, "--attempt", "last")
    assert exit_code(["explain", str(tmp_path), "1"]) == 1
    assert "found no readable run.json" in capsys.readouterr().err


def test_the_choices_are_those_of_the_function() -> None:
    assert ATTEMPTS == KNOWN


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Example: fastsim explain runs/mix 17" in told(capsys, "--help")
