"""Runs in processes that were forked before and after a run."""

from __future__ import annotations

import subprocess
import sys

FORKED = """
import multiprocessing, sys
import fastsim as fs

def pods(seed):
    try:
        return fs.simulate("openb:4", "synth:openb?pods=5", seed=seed).summary["pods"].item()
    except fs.FastsimError as error:
        return str(error)

if sys.argv[1] == "after":
    pods(0)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map_async(pods, [1]).get(60))
"""


def told(when: str) -> str:
    """What a run says in a process that is forked before or after one of its parent."""
    words = [sys.executable, "-c", FORKED, when]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_run_after_a_fork_is_refused_only_if_one_came_before_it() -> None:
    assert told("before") == "[5]\n"
    assert "found one that was forked after a run" in told("after") and "'spawn'" in told("after")
