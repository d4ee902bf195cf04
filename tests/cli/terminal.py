"""The command line as a user meets it: exit code, standard output, standard error."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fastsim.cli.main import exit_code

COMMAND = [sys.executable, "-m", "fastsim.cli.main"]


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


def environment(*paths: Path) -> dict[str, str]:
    """The environment of a command that may import from these folders and has a terminal of 100 columns."""
    inherited = os.environ.get("PYTHONPATH", "")
    joined = os.pathsep.join([*map(str, paths), *([inherited] if inherited else [])])
    return {**os.environ, "PYTHONPATH": joined, "COLUMNS": "100"}


def attentive() -> None:
    """Prepares a process for a command: SIGINT is handled as at a terminal.

    A shell without job control starts what it puts in the background with Ctrl-C ignored, and so are its children.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def fastsim(*arguments: object, cwd: Path | None = None, **options: Any) -> Outcome:
    """Run one command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        **options,
    )
    return Outcome(done.returncode, done.stdout or "", done.stderr)


def fastsim_here(*arguments: object, cwd: Path) -> Outcome:
    """Run one command in this process: quick, and what a test has patched holds."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, COLUMNS="100"):
        try:
            code = exit_code([*map(str, arguments)])
        except SystemExit as left:
            code = int(left.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())
