"""The entry point of the command line sets up its process before it loads the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.terminal import environment

SCRIPT = """
import gc, sys
from fastsim import __main__ as entry
try:
    entry.main()
finally:
    print(gc.isenabled(), gc.get_threshold() == entry.COLLECTED_AFTER)
"""


def test_a_command_looks_for_garbage_less_often(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", SCRIPT, "describe", "fgd"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "True True", done.stderr
