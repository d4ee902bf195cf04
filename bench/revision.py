"""Measures another git revision: its sources, today's benchmarks, this interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class RevisionError(Exception):
    """A revision could not be checked out, built or measured."""


def measured(revision: str, files: Sequence[str], root: Path) -> dict[str, Any]:
    """The benchmark report of a revision; benchmarks of things it does not have yet are missing in it."""
    with built(revision, root) as tree:
        shutil.rmtree(tree / "bench", ignore_errors=True)
        shutil.copytree(root / "bench", tree / "bench", ignore=shutil.ignore_patterns("__pycache__"))
        report = tree / "report.json"
        options = ["--continue-on-collection-errors", "-q", "-p", "no:cacheprovider", f"--benchmark-json={report}"]
        # Failures are expected: what is new has no module there, and an old program may exceed today's budgets.
        output = _called([sys.executable, "-m", "pytest", *options, *(files or ["bench"])], tree, codes=(0, 1, 2))
        if not report.is_file() or not report.stat().st_size:
            raise RevisionError(f"{revision}: no benchmark ran there\n{_tail(output)}")
        found: dict[str, Any] = json.loads(report.read_text())
    return found


@contextmanager
def built(revision: str, root: Path) -> Iterator[Path]:
    """A temporary checkout of a revision with its extension compiled."""
    with worktree(revision, root) as tree:
        _called([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], tree)
        yield tree


@contextmanager
def worktree(revision: str, root: Path) -> Iterator[Path]:
    """A temporary checkout of a revision, beside the repository's own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _called(["git", "worktree", "add", "--quiet", "--detach", str(tree), revision], root)
        try:
            yield tree
        finally:
            _called(["git", "worktree", "remove", "--force", str(tree)], root)


def _called(command: list[str], folder: Path, codes: Sequence[int] = (0,)) -> str:
    """Output of a command; the checkout precedes any installed fastsim."""
    # Under pytest-xdist its variables would tell the inner run that it is a worker, where nothing is timed.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(folder)
    environment.pop("FASTSIM_CHECKED", None)
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode not in codes:
        raise RevisionError(f"{' '.join(command[:4])} … failed\n{_tail(done.stdout)}")
    return done.stdout


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-12:])
