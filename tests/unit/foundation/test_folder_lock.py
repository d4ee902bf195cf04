"""The right to write to a folder: one holder at a time, given back whatever happens to the holder."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fastsim.errors import ResultError
from fastsim.foundation import folder_lock
from fastsim.foundation.folder_lock import held, lock_file

HOLDER = """
import sys
from pathlib import Path
from fastsim.foundation.folder_lock import held
with held(Path("run"), False):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_error_names_the_holder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with held(folder, False):
        with pytest.raises(ResultError, match=rf"run: found process {os.getpid()} at work on it, expected a folder"):
            held(folder, True).__enter__()
        with held(tmp_path / "other", False):
            pass
        assert [path.name for path in tmp_path.iterdir()] == [".run.lock"]
    with held(folder, False):
        pass
    assert not list(tmp_path.iterdir())


def test_the_lock_is_given_back_after_a_failure(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), held(tmp_path / "a" / "run", False):
            raise KeyboardInterrupt
    assert not list((tmp_path / "a").iterdir())


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    root = str(Path(folder_lock.__file__).parents[2])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=tmp_path, env=os.environ | {"PYTHONPATH": root},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
            with pytest.raises(ResultError, match=f"found process {holder.pid} at work"):
                held(tmp_path / "run", False).__enter__()
        finally:
            holder.send_signal(signal.SIGKILL)
    assert lock_file(tmp_path / "run").exists()  # the file stays, but no process holds it
    with held(tmp_path / "run", False):
        assert lock_file(tmp_path / "run").read_text() == str(os.getpid())
    assert not list(tmp_path.iterdir())


def test_a_file_that_its_holder_removed_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, original = lock_file(tmp_path / "run"), folder_lock._lock
    seen: list[int] = []

    def slow(file: int) -> None:
        original(file)
        if not seen:
            path.unlink()  # between opening and locking, the holder gave it back
        seen.append(os.fstat(file).st_ino)

    monkeypatch.setattr(folder_lock, "_lock", slow)
    with held(tmp_path / "run", False):
        assert len(seen) == 2 and path.stat().st_ino == seen[1]


def test_what_stands_in_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with held(tmp_path / "run", False):
        pass
    (tmp_path / "run" / "file").touch()
    with pytest.raises(ResultError, match="exists already"):
        held(tmp_path / "run", False).__enter__()
    with pytest.raises(ResultError, match=r"found files that are not of fastsim \(file\)"):
        held(tmp_path / "run", True).__enter__()
    with held(tmp_path / "run", True, grows=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_killed_processes_left_half_written_goes(tmp_path: Path) -> None:
    for name in (".run.12.partial", ".run.99.partial", ".run2.12.partial", ".run.x.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    with held(tmp_path / "run", False):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {".run2.12.partial", ".run.x.partial"}


def test_a_file_system_without_locks_goes_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(number: int) -> None:
        def flock(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", flock)

    refused(errno.ENOLCK)
    with held(tmp_path / "run", False):
        pass
    refused(errno.EIO)
    with pytest.raises(ResultError, match="run: cannot be written"):
        held(tmp_path / "run", False).__enter__()


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultError, match="cannot be written"):
        held(tmp_path / "file" / "run", False).__enter__()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links cannot be told apart while opening")
def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    lock_file(tmp_path / "run").symlink_to(tmp_path / "notes.txt")
    with pytest.raises(ResultError, match="run: cannot be written"):
        held(tmp_path / "run", False).__enter__()
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(("name", "found"), [("x" * 300, "File name too long"), ("a\0b", "embedded null byte")])
def test_a_path_that_no_folder_can_have_is_one_clear_error(
    tmp_path: Path, name: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", os.path.exists)  # as since Python 3.14: False where there is an error
    message = f"found {found}, expected the path of a folder"
    with pytest.raises(ResultError, match=message), held(tmp_path / name, overwrite=False):
        pass
