"""Which folders may be replaced, and that there is a whole one at every moment of the exchange."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastsim.errors import ResultError
from fastsim.foundation import written_folder
from fastsim.foundation.folder_lock import held, recover
from fastsim.foundation.parquet import replacing_folder
from fastsim.foundation.written_folder import refusal, refuse_replacing

RECORD = json.dumps({"provenance": {}, "timing": {}, "citations": []})
KILLED = """
import os, signal, sys
from pathlib import Path
from fastsim.foundation import written_folder
from fastsim.foundation.folder_lock import held
from fastsim.foundation.parquet import replacing_folder

instead, names = sys.argv[1] == "in two steps", os.replace
if instead:
    written_folder._renameat2 = lambda: None

def killed(*paths):
    if not instead or killed.calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    killed.calls += 1
    names(*paths)

killed.calls = 0
os.replace = killed
if not instead:
    call = written_folder._renameat2()
    def once(*given):
        if sys.argv[2] == "1":
            call(*given)
        os.kill(os.getpid(), signal.SIGKILL)
    written_folder._renameat2 = lambda: once
with held(Path("run"), True), replacing_folder("run") as partial:
    (partial / "run.json").write_text(sys.stdin.read())
"""


def run_at(folder: Path, *more: str) -> Path:
    """A folder as a run leaves it, with these files besides."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(RECORD)
    for name in ("summary.parquet", *more):
        (folder / name).touch()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_what_fastsim_wrote_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    demo = tmp_path / "demo"
    run_at(demo / "runs" / "fgd")
    for name in ("report.html", "report.png", "table.csv"):
        (demo / name).touch()
    paper = tmp_path / "paper"
    paper.mkdir()
    for name in ("index.html", "cells.parquet", "curves.parquet"):
        (paper / name).touch()
    for folder in (run_at(tmp_path / "run", "telemetry.parquet"), demo, paper, tmp_path / "empty", tmp_path / "none"):
        assert refusal(folder) == ""
    (demo / "runs" / "fgd" / "notes.txt").touch()
    assert refusal(demo) == "files that are not of fastsim (runs/fgd: notes.txt)"
    (paper / "draft.tex").touch()
    assert "draft.tex" in refusal(paper)


@pytest.mark.parametrize("stranger", ["notes.txt", ".git", "jobs.parquet.bak", "run.json"])
def test_anything_else_is_named_and_stays(tmp_path: Path, stranger: str) -> None:
    folder = run_at(tmp_path / "run")
    (folder / stranger).write_text("{}")
    before = names(tmp_path)
    with pytest.raises(ResultError, match=rf"run: found files that are not of fastsim \({stranger}"):
        replacing_folder(folder).__enter__()
    with pytest.raises(ResultError, match=stranger):
        held(folder, True).__enter__()
    assert names(tmp_path) == before


def test_folders_and_links_with_known_names_are_strangers(tmp_path: Path) -> None:
    folder = run_at(tmp_path / "run")
    (folder / "jobs.parquet").mkdir()
    assert "jobs.parquet" in refusal(folder)
    (folder / "jobs.parquet").rmdir()
    (folder / "jobs.parquet").symlink_to(tmp_path / "elsewhere")
    assert "jobs.parquet" in refusal(folder)


def test_places_that_must_stay_are_refused_even_with_a_run_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, people = run_at(tmp_path / "a" / "here"), run_at(tmp_path / "people")
    home = run_at(people / "home")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    (tmp_path / "link").symlink_to(run_at(tmp_path / "run"))
    for place, told in ((Path("."), "working folder"), (Path(".."), "working folder"), (home, "home folder"),
                        (people, "home folder"), (tmp_path, "working folder"),
                        (tmp_path / "link", "symbolic link")):  # fmt: skip
        with pytest.raises(ResultError, match=told):
            refuse_replacing(place)
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == (tmp_path / "run").resolve())
    assert refusal(tmp_path / "run") == "a mount point"


def test_a_user_without_a_home_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", none)
    assert refusal(run_at(tmp_path / "run")) == ""


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_keeps_what_it_had_until_the_new_one_is_complete(
    tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(written_folder, "_renameat2", lambda: None)
    target = run_at(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), replacing_folder(target) as partial:
        (partial / "new").touch()
        raise KeyboardInterrupt
    assert names(tmp_path) == ["run", "run/run.json", "run/summary.parquet"]
    with replacing_folder(target) as partial:
        (partial / "new").touch()
    assert names(tmp_path) == ["run", "run/new"]


def test_what_was_put_there_meanwhile_stays(tmp_path: Path) -> None:
    target = run_at(tmp_path / "run")
    with pytest.raises(ResultError, match=r"notes\.txt"), replacing_folder(target) as partial:
        (partial / "new").touch()
        (target / "notes.txt").touch()
    assert names(target) == ["notes.txt", "run.json", "summary.parquet"]


def test_a_folder_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ResultError, match="no folder"), replacing_folder(tmp_path / "run"):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run").read_text() == "mine"


def test_a_name_that_cannot_be_given_brings_the_former_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = os.replace

    def refused(one: Any, other: Any) -> None:
        if str(one).endswith(".partial"):
            raise OSError(5, "I/O error")
        original(one, other)

    monkeypatch.setattr(written_folder, "_renameat2", lambda: None)
    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(ResultError, match="I/O error"), replacing_folder(run_at(tmp_path / "run")):
        pass
    assert names(tmp_path) == ["run", "run/run.json", "run/summary.parquet"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no signal that nobody can answer")
@pytest.mark.parametrize("way", ["at once", "in two steps"])
@pytest.mark.parametrize("calls", [0, 1])
def test_killed_in_the_exchange_one_result_is_there(tmp_path: Path, way: str, calls: int) -> None:
    if way == "at once" and written_folder._renameat2() is None:
        pytest.skip("no exchange of names here")
    run_at(tmp_path / "run")
    root = str(Path(written_folder.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, way, str(calls)], cwd=tmp_path, env=os.environ | {"PYTHONPATH": root},
        input=RECORD.encode(), check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "run").exists() == (way == "at once" or not calls)
    recover(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text()) == json.loads(RECORD)
    with held(tmp_path / "run", True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_former_folder_beside_a_new_one_goes(tmp_path: Path) -> None:
    run_at(tmp_path / "run")
    run_at(tmp_path / ".run.12.former")
    run_at(tmp_path / ".run.x.former")
    with held(tmp_path / "run", True):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"run", ".run.x.former"}


@pytest.mark.parametrize("there", [True, False])
def test_a_users_own_folder_of_such_a_name_stays(there: bool, tmp_path: Path) -> None:
    own, ours = tmp_path / ".run.7.former", run_at(tmp_path / ".run.8.former")
    own.mkdir()
    (own / "thesis.tex").touch()
    if there:
        run_at(tmp_path / "run")
    written_folder.recovered(tmp_path / "run")
    assert (own / "thesis.tex").is_file() and not ours.exists() and (tmp_path / "run" / "run.json").is_file()
