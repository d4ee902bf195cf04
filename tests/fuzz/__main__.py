"""Fuzz until the time is up: ``python -m tests.fuzz --minutes 10``; the exit code is 1 if anything was found."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Worker

TURN_S = 5.0
"""Seconds of one target before the next one has its turn."""
LOT = 20
"""Cases of the first lot of a turn; the next ones are as large as the rest of the turn allows."""

ALIKE = 2
"""Findings of one target that are printed of those raised at the same place."""


def main() -> int:
    """Fuzz the targets in turns; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first case of each target")
    parser.add_argument("--cases", type=int, metavar="N", help="so many cases of each target, whatever the time")
    parser.add_argument("--only", default="", metavar="WORD", help="only targets with this word in their names")
    parser.add_argument("--show", action="store_true", help="print how each case ended")
    given = parser.parse_args()
    chosen = [name for name in TARGETS if given.only in name]
    if not chosen:
        parser.error(f"no target has {given.only!r} in its name; there are: {', '.join(TARGETS)}")
    began, until_s = time.monotonic(), 60 * given.minutes
    tally, worker = _Tally(given.show), Worker(TARGETS)
    try:
        while True:
            for name in chosen:
                if given.cases:
                    tally.lot(worker, name, given.first, given.cases)
                    continue
                _turn(worker, tally, name, given.first, began + until_s)
                if time.monotonic() - began > until_s:
                    return tally.ended(time.monotonic() - began)
            if given.cases:
                return tally.ended(time.monotonic() - began)
    finally:
        worker.close()


def _turn(worker: Worker, tally: _Tally, name: str, first: int, end_s: float) -> None:
    """Cases of one target for the time of its turn."""
    end_s, count = min(end_s, time.monotonic() + TURN_S), LOT
    while (began := time.monotonic()) < end_s:
        tally.lot(worker, name, first + tally.tried[name], count)
        took_s = max(time.monotonic() - began, 1e-3)
        count = max(1, min(20 * count, int(count / took_s * max(0.0, end_s - time.monotonic()))))


class _Tally:
    """What was tried and found."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.tried: Counter[str] = Counter()
        self.valid: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.alike: Counter[tuple[str, str]] = Counter()

    def lot(self, worker: Worker, name: str, first: int, count: int) -> None:
        """Try some cases and print what is found."""
        outcomes, findings = worker.lot(name, first, count)
        self.tried[name] += count
        self.valid[name] += sum(outcome == "valid" for outcome in outcomes)
        self.found[name] += len(findings)
        for line in outcomes if self.shown else ():
            print(line)
        for finding in findings:
            self.alike[name, finding.place] += 1
            if self.alike[name, finding.place] <= ALIKE:
                print(finding, flush=True)

    def ended(self, took_s: float) -> int:
        """Print the numbers; the exit code."""
        for name, count in self.tried.items():
            print(f"{count:9,} cases of {name}: {self.valid[name]:,} valid, {self.found[name]:,} findings")
        cases, found = self.tried.total(), self.found.total()
        rate = f"{cases:,} cases in {took_s:.0f} s, {cases / took_s:.1f} a second"
        print(f"{rate}; {found} findings at {len(self.alike)} places")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
