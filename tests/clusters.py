"""Tasks that are spread over real clusters, and a script that does it in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.terminal import environment
from tests.cli.test_current_folder import OPTIONAL, marks, plant

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import json, os, sys
from fastsim.experiments.executors.choice import executor_on
from tests.clusters import tried

if __name__ == "__main__":
    with executor_on(sys.argv[1], 2) as spread:
        found = sorted(spread.completed(tried, [f"{sys.argv[2]}/{k}" for k in range(8)]), key=lambda one: one.at)
        pids = {one.answer for one in found if one.error is None} - {os.getpid()}
        errors = [f"{one.at}: {one.error}" for one in found if one.error is not None]
        print("ANSWER " + json.dumps({"workers": len(pids), "errors": errors, "places": [one.at for one in found]}))
"""


def tried(path: str) -> int:
    """Who does it: item 3 is killed the first time, item 5 is wrong."""
    flag = Path(path)
    if flag.name == "3" and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if flag.name == "5":
        raise ValueError("five")
    time.sleep(0.3)  # so that no worker can do all
    return os.getpid()


def spread_over(place: str, folder: Path) -> str:
    """What the script says of its cluster, as JSON; workers load no module from the folder it is started in."""
    work = folder / "work"
    work.mkdir()
    plant(work, {*OPTIONAL, *sys.stdlib_module_names, "fastsim", "polars", "pyarrow", "numpy"})
    script = folder / "script.py"
    script.write_text(SCRIPT)
    words = [sys.executable, str(script), place, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, env=environment(ROOT), cwd=work)
    assert done.returncode == 0 and marks(work) == [], done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    return line.removeprefix("ANSWER ")
