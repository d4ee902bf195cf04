"""What is on the disk before it has its name, and what killed processes leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastsim.foundation.parquet import replacing, replacing_folder


def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(sys.platform == "win32", reason="whether a process lives is not asked there")
def test_partials_of_killed_processes_are_removed(tmp_path: Path) -> None:
    left = tmp_path / f".a.csv.{dead()}.partial"
    stays = [tmp_path / f".a.csv.{os.getppid()}.partial", tmp_path / f".b.csv.{dead()}.partial",
             tmp_path / ".a.csv.mine.partial"]  # fmt: skip
    for path in (left, *stays):
        path.touch()
    with replacing(tmp_path / "a.csv") as partial:
        partial.write_text("whole")
    assert not left.exists()
    assert all(path.exists() for path in stays)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files as they are flushed, and "named" for a rename."""
    seen: list[str] = []
    original, fsync = os.replace, os.fsync

    def flushed(descriptor: int) -> None:
        seen.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def named(one: Path, other: Path) -> None:
        seen.append("named")
        original(one, other)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", named)
    return seen


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors have no names there")
def test_files_are_on_the_disk_before_they_have_their_name(tmp_path: Path, steps: list[str]) -> None:
    with replacing(tmp_path / "a.csv") as partial:
        partial.write_text("whole")
    assert steps == [partial.name, "named", tmp_path.name]


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors have no names there")
def test_folders_are_on_the_disk_before_they_have_their_name(tmp_path: Path, steps: list[str]) -> None:
    with replacing_folder(tmp_path / "run") as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "x").touch()
        (partial / "y").touch()
    assert steps == ["y", partial.name, "x", "inner", "named", tmp_path.name]
