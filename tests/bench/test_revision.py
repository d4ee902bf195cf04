"""Another revision is checked out, built and measured with today's benchmarks, and leaves nothing behind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bench.revision import RevisionError, measured, worktree

BENCH = """import thing

def test_speed(benchmark):
    benchmark.extra_info["speed"] = thing.SPEED
    benchmark(len, "")
"""


def git(folder: Path, *words: str) -> str:
    """One git command."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project of two revisions whose present benchmark was not there yet in the first."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path / "project"
    (root / "bench").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "thing.py").write_text("SPEED = 1\n")
    (root / "setup.py").write_text("open('built', 'w').close()\n")
    (root / "bench" / "former.py").write_text("raise SystemExit\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "thing.py").write_text("SPEED = 2\n")
    (root / "bench" / "former.py").unlink()
    (root / "bench" / "test_thing.py").write_text(BENCH)
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    return root


@pytest.mark.long
def test_todays_benchmarks_measure_the_sources_of_the_revision(repository: Path) -> None:
    found = [measured(revision, ["bench/test_thing.py"], repository) for revision in ("HEAD~1", "HEAD")]
    assert [report["benchmarks"][0]["extra_info"]["speed"] for report in found] == [1, 2]
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "status", "--short") == ""


def test_a_worktree_goes_even_after_an_error(repository: Path) -> None:
    with pytest.raises(ZeroDivisionError), worktree("HEAD~1", repository) as tree:
        assert (tree / "thing.py").read_text() == "SPEED = 1\n"
        _ = 1 // 0
    assert not tree.exists() and len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.long
def test_what_cannot_be_measured_says_why(repository: Path) -> None:
    with pytest.raises(RevisionError, match="nowhere"):
        measured("nowhere", [], repository)
    (repository / "setup.py").write_text("raise SystemExit('no compiler')\n")
    git(repository, "commit", "-aqm", "third")
    with pytest.raises(RevisionError, match="no compiler"):
        measured("HEAD", [], repository)
    (repository / "bench" / "test_thing.py").write_text("import nothing_like_it\n")
    with pytest.raises(RevisionError, match="no benchmark ran there"):
        measured("HEAD~1", ["bench/test_thing.py"], repository)
