"""Runs randomised trials until the time is over: python -m tests.stress --minutes N [--only KIND].

``--only memory`` is 2,000 small runs of each engine, whose memory may grow by 4 MiB over the last 1,000 of them;
``--only threads`` compares 200 runs in each of 8 threads with the same runs in one. Add ``--trials 1`` for one round.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.stress.folders import folders
from tests.stress.ground import Ground
from tests.stress.repeats import memory, threads
from tests.stress.seeds import seeds
from tests.stress.signals import interrupts, kills

KINDS = {
    "interrupts": interrupts, "kills": kills, "seeds": seeds, "folders": folders, "memory": memory, "threads": threads,
}  # fmt: skip
LONG = {"memory", "threads"}
"""Kinds whose trials take minutes: tried when named."""
UNPREPARED = {"seeds", *LONG}
"""Kinds that need no inputs."""


def main() -> int:
    """Try each kind in turn, at least once; 1 if there was a finding."""
    words = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    words.add_argument("--minutes", type=float, default=10.0, help="how long to try  [default: 10]")
    words.add_argument("--trials", type=int, metavar="N", help="so many trials of each kind, whatever the time")
    words.add_argument("--only", choices=[*KINDS], help="one kind  [default: all but memory and threads]")
    words.add_argument("--seed", type=int, help="seed of the first trial; each next one has the next  [default: drawn]")
    given = words.parse_args()
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    kinds = [given.only] if given.only else [kind for kind in KINDS if kind not in LONG]
    print(f"first seed: {seed}", flush=True)
    tried, found = _tried(kinds, seed, time.monotonic() + 60 * given.minutes, given.trials)
    print(", ".join(f"{what}: {count}" for what, count in sorted(tried.items())))
    print(f"{sum(tried.values())} trials, {found} findings")
    return 1 if found else 0


def _tried(kinds: list[str], seed: int, deadline: float, trials: int | None) -> tuple[Counter[str], int]:
    """How often each thing was tried until the deadline or ``trials`` of each kind, and the number of findings."""
    tried: Counter[str] = Counter()
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        if not UNPREPARED.issuperset(kinds):
            ground.prepare()
        while not tried or (time.monotonic() < deadline if trials is None else tried.total() < trials * len(kinds)):
            for kind in kinds:
                told, wrong = KINDS[kind](ground, random.Random(seed))
                tried[f"{kind} ({told.rpartition(' after ')[0] or 'all'})"] += 1
                if wrong:
                    found += 1
                    print(f"FOUND {kind}, {told}: {wrong}")
                    print(f"  python -m tests.stress --only {kind} --seed {seed} --minutes 0", flush=True)
                seed += 1
    return tried, found


if __name__ == "__main__":
    sys.exit(main())
