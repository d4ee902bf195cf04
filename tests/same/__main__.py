"""Compares this checkout with another revision, byte by byte: python -m tests.same REVISION [--only WORD]

Both play the same runs of all engines: plain, with options, from checkpoints, drawn ones. Tables, arrays of
checkpoints, warnings and refusals must be the same; the exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.revision import built
from tests.same.runs import Run, all_runs

ROOT = Path(__file__).resolve().parents[2]
PLAYER = Path(__file__).with_name("digests.py")


def digests(tree: Path, runs: Mapping[str, Run]) -> dict[str, dict[str, str]]:
    """What the sources of a tree leave of these runs, by run and part."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", PLAYER], input=json.dumps(runs), cwd=tree, env=environment, text=True,
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def differences(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Lines about parts of runs that are not the same."""
    lines = []
    for name in before:
        for part in sorted({*before[name], *after[name]}):
            one, other = (side[name].get(part, "nothing") for side in (before, after))
            if one != other:
                lines.append(f"{name}, {part}: {one!r} -> {other!r}")
    return lines


def main() -> int:
    """Compare; 1 if anything differs."""
    words = argparse.ArgumentParser(prog="python -m tests.same", description=__doc__)
    words.add_argument("revision")
    words.add_argument("--only", default="", metavar="WORD", help="runs with this word in their names")
    given = words.parse_args()
    runs = {name: run for name, run in all_runs().items() if given.only in name}
    with built(given.revision, ROOT) as tree:
        before, after = digests(tree, runs), digests(ROOT, runs)
    found = differences(before, after)
    print("\n".join(found))
    played = sum("refused" not in parts for parts in after.values())
    parts = sum(map(len, after.values()))
    print(f"{len(runs)} runs ({played} played, {len(runs) - played} refused), {parts} parts, {len(found)} differ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
