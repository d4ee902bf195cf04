"""Groups with a usual verb."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import fastsim_here


def test_the_usual_verb_may_be_left_out(tmp_path: Path) -> None:
    run = ["run", "--cluster", "openb:3", "--workload", "synth:openb?pods=4", "-o", "r"]
    assert fastsim_here(*run, cwd=tmp_path).code == 0
    short = fastsim_here("export", "r", "-o", "a.json", cwd=tmp_path)
    full = fastsim_here("export", "kubernetes", "r", "-o", "b.json", cwd=tmp_path)
    assert short.code == full.code == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    table = fastsim_here("export", "table", "r", "jobs", "-o", "-", "--columns", "pod_id,state", cwd=tmp_path)
    assert table.code == 0 and table.out.startswith("pod_id,state\n") and table.out.count("\n") == 5


def test_a_group_shows_its_verbs(tmp_path: Path) -> None:
    assert "table" in fastsim_here("export", "--help", cwd=tmp_path).out


def test_a_word_that_is_neither_a_verb_nor_a_path_is_named(tmp_path: Path) -> None:
    done = fastsim_here("export", "sia", "r", "-o", "a.json", cwd=tmp_path)
    told = "found 'sia', expected one of kubernetes, sia-log, table, or a path: did you mean 'sia-log'?"
    assert (done.code, done.line.removeprefix("fastsim: ")) == (2, told)
    assert "expected a folder" in fastsim_here("export", "sia", "-o", "a.json", cwd=tmp_path).line
