"""A worker process that tries cases one by one, so that a crash or an endless case ends only the worker."""

from __future__ import annotations

import multiprocessing
import resource
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

CASE_S = 30.0
"""Longest that a case may take, seconds."""
MEMORY_BYTES = 8 << 30
"""Address space of a worker; threads of the libraries reserve most of it."""
Trial = Callable[[int], str]
"""Tries the case of a seed; answers what happened in a word, and raises where something is wrong."""


@dataclass(frozen=True)
class Finding:
    """A case that ended otherwise than it may."""

    target: str
    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.target}, case {self.seed}: {self.what}"


def _serve(conn: Connection, prepare: Callable[[], Trial]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    trial = prepare()
    conn.send("ready")
    while (seed := conn.recv()) is not None:
        try:
            conn.send((True, trial(seed)))
        except BaseException:
            conn.send((False, traceback.format_exc(limit=-3)))


class Worker:
    """A process that tries cases of one target; a new one takes its place when it is lost."""

    def __init__(self, target: str, prepare: Callable[[], Trial]) -> None:
        self.target, self.prepare = target, prepare
        self._process: Any = None
        self._conn: Any = None

    def outcome(self, seed: int) -> str | Finding:
        """What happened in the case of this seed, in a word; or the finding."""
        if self._process is None:
            self._start()
        self._conn.send(seed)
        if not self._conn.poll(CASE_S):
            self.close()
            return Finding(self.target, seed, f"no end within {CASE_S:g} s")
        try:
            fine, text = self._conn.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._process = None
            return Finding(self.target, seed, f"the process ended with {code}")
        return text if fine else Finding(self.target, seed, text)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._conn, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.prepare), daemon=True)
        self._process.start()
        theirs.close()
        self._conn.recv()
