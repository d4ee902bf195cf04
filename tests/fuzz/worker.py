"""A worker process that tries cases in lots, so that a crash or an endless case ends only the worker."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fastsim.foundation.object_cache import OBJECTS
from tests.fuzz.trial import Trial

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
"""Whether every access to memory is looked at, which takes several times as long."""
CASE_CPU_S = 60 if SANITIZED else 10
"""Longest that a case may compute, seconds of a processor; the clock would depend on what else the machine does."""
CASE_S = 90.0
"""Longest that a case may take by the clock, as one that waits does not compute."""
MEMORY_BYTES = 8 << 30
"""Address space of a worker; threads of the libraries reserve most of it."""
MOST_KIB = 1 << 20
"""Memory that cases may take beyond that of the worker when it begins, KiB."""
IN_MEMORY = Path("/dev/shm")
"""Where the files of cases stand if there is such a folder: a case writes up to a hundred of them."""


@dataclass(frozen=True)
class Finding:
    """A case that ended otherwise than it may."""

    target: str
    seed: int
    what: str

    @property
    def place(self) -> str:
        """Where it was raised, or how the process ended."""
        places = [line.strip() for line in self.what.splitlines() if line.startswith("  File ")]
        return places[-1] if places else self.what

    def __str__(self) -> str:
        again = f"python -m tests.fuzz --only {self.target!r} --first {self.seed} --cases 1"
        return f"{self.target}, case {self.seed}: {self.what.rstrip()}\n  again: {again}"


def _serve(conn: Connection, current: Any, base: str, targets: Mapping[str, Callable[[], Trial]]) -> None:
    tempfile.tempdir = base
    os.chdir(base)  # where no case finds or leaves files, and no project with defaults of options is read each time
    os.fsync = lambda _: None  # type: ignore[assignment]  # what a loss of power leaves is no matter of these tests
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:  # sanitizers reserve many terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    trials: dict[str, Trial] = {}
    conn.send("ready")
    while (lot := conn.recv()) is not None:
        target, first, count = lot
        if target not in trials:
            trials[target] = targets[target]()
        conn.send("prepared")
        outcomes, found = _lot(trials[target], range(first, first + count), current)
        conn.send((outcomes, found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
        OBJECTS.cache_for(None)


def _lot(trial: Trial, seeds: range, current: Any) -> tuple[list[str], list[tuple[int, str]]]:
    """Outcomes and findings of a lot."""
    outcomes: list[str] = []
    found: list[tuple[int, str]] = []
    began_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        current.value = seed
        # From now on, by the clock that the kernel looks at: the one of getrusage parts from it by per cents.
        signal.setitimer(signal.ITIMER_PROF, CASE_CPU_S)
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # of services, about clients that go away
                outcomes.append(trial(seed))
        except BaseException:
            found.append((seed, traceback.format_exc(limit=-4)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        most_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if most_kib > began_kib + MOST_KIB:
            found.append((seed, f"{most_kib - began_kib:,} KiB of memory"))
            began_kib = most_kib
    return outcomes, found


class Worker:
    """A process that tries cases of any target; a new one takes its place when it is lost."""

    def __init__(self, targets: Mapping[str, Callable[[], Trial]]) -> None:
        self.targets = targets
        self.most_kib = 0
        """Most memory of its processes so far, KiB."""
        self._process: Any = None
        self._conn: Any = None
        self._current: Any = None
        self._base: Any = None

    def lot(self, target: str, first: int, count: int) -> tuple[list[str], list[Finding]]:
        """Outcomes and findings of so many cases, from the seed ``first`` on."""
        outcomes: list[str] = []
        findings: list[Finding] = []
        end = first + count
        while first < end:
            if self._process is None:
                self._start()
            self._current.value = first
            self._conn.send((target, first, end - first))
            answer = self._answer()
            if isinstance(answer, str):  # the cases before it are lost with the process, but were fine
                lost = self._current.value
                findings.append(Finding(target, lost, answer))
                first = lost + 1
                continue
            outcomes += answer[0]
            self.most_kib = max(self.most_kib, answer[2])
            findings += [Finding(target, seed, what) for seed, what in answer[1]]
            break
        return outcomes, findings

    def _answer(self) -> Any:
        """The outcomes of a lot, or a word about how the process was lost."""
        seen, since = None, time.monotonic()
        try:
            while True:
                if self._conn.poll(1.0):
                    answer = self._conn.recv()
                    if answer == "prepared":
                        continue
                    return answer
                if self._current.value != seen:
                    seen, since = self._current.value, time.monotonic()
                elif time.monotonic() - since > CASE_S:
                    self.close()
                    return f"no end within {CASE_S:g} s"
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self.close()
            return f"the process ended with {code}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
            self._base.cleanup()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._conn, theirs = context.Pipe()
        self._current = context.Value("q", 0, lock=False)
        place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
        self._base = tempfile.TemporaryDirectory(prefix="fuzz-", dir=place, ignore_cleanup_errors=True)
        arguments = (theirs, self._current, self._base.name, self.targets)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._conn.recv()
