"""Fuzz until the time is up: ``python -m tests.fuzz --minutes 10``; the exit code is 1 if anything was found."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter

from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Finding, Worker

ROUND = 50
"""Cases of one target before the next one has its turn."""


def main() -> int:
    """Fuzz the targets in turns; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first case of each target")
    parser.add_argument("--only", default="", metavar="WORD", help="only targets with this word in their names")
    given = parser.parse_args()
    began, found = time.monotonic(), 0
    tried: Counter[str] = Counter()
    workers = {name: Worker(name, prepare) for name, prepare in TARGETS.items() if given.only in name}
    for lot in itertools.count():
        for name, worker in workers.items():
            for seed in range(given.first + lot * ROUND, given.first + (lot + 1) * ROUND):
                outcome = worker.outcome(seed)
                tried[name] += 1
                if isinstance(outcome, Finding):
                    found += 1
                    print(outcome, flush=True)
                if time.monotonic() - began > 60 * given.minutes:
                    return _ended(tried, found, time.monotonic() - began, workers)
        if not workers:
            parser.error(f"no target has {given.only!r} in its name; there are: {', '.join(TARGETS)}")
    raise AssertionError("unreachable")


def _ended(tried: Counter[str], found: int, took_s: float, workers: dict[str, Worker]) -> int:
    for worker in workers.values():
        worker.close()
    for name, count in tried.items():
        print(f"{count:9,} cases of {name}")
    print(f"{tried.total():,} cases in {took_s:.0f} s, {tried.total() / took_s:.1f} a second; {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
