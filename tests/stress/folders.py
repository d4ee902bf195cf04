"""Many processes that begin the same work in one folder: one holds the lock, others fail with one line."""

from __future__ import annotations

import random
import time

from tests.stress.ground import CASES, Ground, finished, start, written
from tests.stress.judge import wrong_race

WRITERS = [case for case in CASES if case.kind in ("run", "sweep")]


def folders(ground: Ground, draw: random.Random) -> tuple[str, str]:
    """Start two to five processes, a moment apart; the trial, and its violation (empty: none)."""
    case, count = draw.choice(WRITERS), draw.randint(2, 5)
    folder = ground.begun(case)
    processes = []
    for _ in range(count):
        processes.append(start(case.words, folder))
        time.sleep(draw.choice((0.0, draw.random() * ground.whole_s[case.name] / 2)))
    ended = [finished(process) for process in processes]
    wrong = wrong_race(ended, shared=case.kind == "sweep")
    names = {path.name for path in folder.iterdir()}
    if not wrong and names != {"out"}:
        wrong = f"left {sorted(names)}"
    if not wrong and written(folder) != ground.expected[case.name]:
        wrong = "other bytes than one process alone writes"
    return f"{count} times {case.name}", wrong
