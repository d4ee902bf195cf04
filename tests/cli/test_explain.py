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
from tests.needs import needed

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


# ---------------------------------------------------------------------- a round of jobs


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved run of jobs in rounds."""
    path = tmp_path_factory.mktemp("runs") / "las"
    jobs = "synth:gavel?jobs=9&rate_per_hour=9&seed=1"
    words = ["--cluster", "gavel:1:1:1", "--workload", jobs, "--policy", "las", "--out", str(path)]
    assert exit_code(["run", *words]) == 0
    return path


def test_a_round_of_jobs(capsys: pytest.CaptureFixture[str], rounds: Path, tmp_path: Path) -> None:
    table = explain(rounds, t=3600.0)
    text = told(capsys, rounds, "--at", "1h")
    ran = table.filter(state="runs").height
    assert (
        text.splitlines()[0] == f"round {table['round'][0]} at {table['t_s'][0]:,g} s: of {table.height} jobs {ran} run"
    )
    one = told(capsys, rounds, str(table["pod_id"][1]), "--at", "3600", "--csv", tmp_path / "round.csv")
    assert f"\njob {table['pod_id'][1]} " in one and one.count("\njob ") == 1
    written = pl.read_csv(tmp_path / "round.csv")
    assert written.columns == table.columns and written.height == 1
    assert written["terms"].to_list() == ["'-starving service arrival"]  # no formula
    shown = json.loads(told(capsys, rounds, "--at", "60min", "--json"))
    assert [row["why"] for row in shown] == table["why"].to_list()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--at", "soon"), "'soon' is no such length of time: expected seconds of 0 or more"),
        (("--at", "-5"), "expected seconds of 0 or more"),
        (("--at", "nan"), "expected seconds of 0 or more"),
        (("--at", "inf"), "expected seconds of 0 or more"),
        (("--at", "1h", "--sample", "2"), "found --at with --sample 2"),
        (("--at", "1h", "--waiting"), "found --at with --waiting"),
        (("1", "--at", "1h", "--attempt", "all"), "found --at with --attempt all"),
        (("--at", "9000d"), "the run's end"),
        (("nobody", "--at", "1h"), "no such"),
    ],
)
def test_rounds_that_are_refused(
    capsys: pytest.CaptureFixture[str], rounds: Path, words: tuple[str, ...], found: str
) -> None:
    capsys.readouterr()
    assert exit_code(["explain", str(rounds), *words]) == 2
    assert found in capsys.readouterr().err


def test_a_run_of_pods_has_no_rounds(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert "found a run of engine pods, expected a run in rounds" in refused(capsys, folder, "--at", "1h")


@pytest.mark.parametrize("words", [("7", "30"), ("--sample", "2"), ("--waiting",)])
def test_the_page_of_the_run_has_the_explanation(
    words: tuple[str, ...], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needed("vl_convert")
    told(capsys, folder, *words, "--html", tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    heading = {"7": "Explanation of 7, 30", "--sample": "Explanation of a sample"}
    assert f"<h2>{heading.get(words[0], 'Pods without a place at the end')}</h2>" in page
    assert ">Summary</h2>" in page


def test_the_page_of_a_run_in_rounds_has_the_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needed("vl_convert")
    run, page = tmp_path / "jobs", tmp_path / "round.html"
    jobs = ("--cluster", "gavel:1:1:0", "--workload", "synth:gavel?jobs=4&rate_per_hour=8&seed=3")
    assert exit_code(["run", *jobs, "--policy", "fifo", "--out", str(run)]) == 0
    told(capsys, run, "--at", "1h", "--html", page)
    assert "<h2>Explanation of the round at 3,600 s</h2>" in page.read_text(encoding="utf-8")
