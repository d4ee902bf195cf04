"""Fresh seeds for tests that draw their scenarios."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

from tests.stress.ground import Ground

ROOT = Path(__file__).resolve().parents[2]


def drawing() -> list[str]:
    """Test files with scenarios that hypothesis draws."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return [path.relative_to(ROOT).as_posix() for path in paths if "@given" in path.read_text(encoding="utf-8")]


def seeds(_: Ground, draw: random.Random) -> tuple[str, str]:
    """Run one such file with a seed of its own; the trial, and the command if it failed."""
    file, seed = draw.choice(drawing()), draw.randrange(2**32)
    words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "hypothesis", f"--hypothesis-seed={seed}"]
    words += ["--most-s", "0"]  # all scenarios on a busy machine take longer than a test may
    given = {name: value for name, value in os.environ.items() if name not in ("CI", "FASTSIM_QUICK")}
    given |= {"FASTSIM_EXPLORE": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, *words, file], cwd=ROOT, env=given, capture_output=True, text=True, check=False
    )
    if done.returncode in (0, 5):  # 5: none of its tests is chosen, such as where none may run on this machine
        return f"{file}, seed {seed}", ""
    again = f"FASTSIM_EXPLORE=1 {shlex.join(['python', *words, file])}"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"{file}, seed {seed}", "\n".join([*(failed or done.stdout.splitlines()[-20:]), f"  {again}"])
