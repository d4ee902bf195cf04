"""Fuzz until a number of cases or the time is reached; the exit code is 1 if anything was found.

``python -m tests.fuzz --total 1000000 --workers 2`` tries a million cases of all targets in two processes,
``python -m tests.fuzz --minutes 10`` as many as there is time for. The same seeds make the same cases in any number of
workers.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.fuzz.plan import Plan
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Finding, Worker

ALIKE = 2
"""Findings of one target that are printed of those raised at the same place."""
NEWS_S = 60.0
"""Seconds between two lines about how far it is."""


def main() -> int:
    """Fuzz the targets in turns; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="default: 10, or no limit with --total or --cases")
    parser.add_argument("--total", type=int, metavar="N", help="so many cases of all targets together")
    parser.add_argument("--cases", type=int, metavar="N", help="so many cases of each target")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes  [default: 1]")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first case of each target")
    parser.add_argument("--only", default="", metavar="WORD", help="only targets with this word in their names")
    parser.add_argument("--show", action="store_true", help="print how each case ended")
    given = parser.parse_args()
    chosen = [name for name in TARGETS if given.only in name]
    if not chosen:
        parser.error(f"no target has {given.only!r} in its name; there are: {', '.join(TARGETS)}")
    if min(given.workers, given.total or 1, given.cases or 1) < 1:
        parser.error("--workers, --total and --cases are whole numbers of 1 or more")
    open_end = given.minutes is None and (given.total or given.cases)
    began = time.monotonic()
    end_s = math.inf if open_end else began + 60 * (10.0 if given.minutes is None else given.minutes)
    plan, tally = Plan(chosen, given.first, end_s, given.total, given.cases), Tally(given.show)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(given.workers) as threads:
        try:
            for done in [threads.submit(_work, plan, tally) for _ in range(given.workers)]:
                done.result()
        except KeyboardInterrupt:
            print("stopped; what was tried so far:")
        finally:
            plan.stop()  # before the pool waits for its threads
    return tally.ended(plan.used_s, time.monotonic() - began)


def _work(plan: Plan, tally: Tally) -> None:
    """Try the lots of the plan in one worker process."""
    worker = Worker(TARGETS)
    try:
        while (lot := plan.next()) is not None:
            began = time.monotonic()
            outcomes, findings = worker.lot(*lot)
            plan.took(lot, time.monotonic() - began)
            tally.take(lot.target, lot.cases, outcomes, findings)
        tally.most_kib = max(tally.most_kib, worker.most_kib)
    except BaseException:
        plan.stop()
        raise
    finally:
        worker.close()


class Tally:
    """What was tried and found."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.tried: Counter[str] = Counter()
        self.valid: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.alike: Counter[tuple[str, str]] = Counter()
        self.most_kib = 0
        self._lock, self._news_s = threading.Lock(), time.monotonic() + NEWS_S

    def take(self, name: str, count: int, outcomes: list[str], findings: list[Finding]) -> None:
        """Count the cases of a lot and print what is found."""
        with self._lock:
            self.tried[name] += count
            self.valid[name] += outcomes.count("valid")
            self.found[name] += len(findings)
            for line in outcomes if self.shown else ():
                print(line)
            for finding in findings:
                self.alike[name, finding.place] += 1
                if self.alike[name, finding.place] <= ALIKE:
                    print(finding, flush=True)
            if time.monotonic() > self._news_s:
                self._news_s = time.monotonic() + NEWS_S
                print(f"... {self.tried.total():,} cases, {self.found.total()} findings", flush=True)

    def ended(self, used_s: dict[str, float], took_s: float) -> int:
        """Print the numbers; the exit code."""
        for name, count in sorted(self.tried.items(), key=lambda item: list(used_s).index(item[0])):
            time_of = f"{used_s[name]:,.0f} s"
            print(f"{count:9,} cases of {name}: {self.valid[name]:,} valid, {self.found[name]:,} findings, {time_of}")
        cases, found = self.tried.total(), self.found.total()
        print(f"most memory of a worker: {self.most_kib / 1024:,.0f} MiB")
        rate = f"{cases:,} cases in {took_s:.0f} s, {cases / took_s:.1f} a second"
        print(f"{rate}; {found} findings at {len(self.alike)} places")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
