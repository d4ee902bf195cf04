"""Where many runs are spread: this process, its threads, or worker processes. Results come back in order.

An executor has three methods (``open``, ``map``, ``close``). Worker processes are spawned, never forked, so a
run sees the same fresh interpreter everywhere and its bytes do not depend on the number of workers.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Protocol, Self, TypeVar

from fastsim import interrupts
from fastsim.errors import FastsimError, ScenarioError

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MAX_WORKERS = 1024
BREATH_S = 0.1
"""How long this process waits for a worker before it looks for Ctrl-C."""


class Executor(Protocol):
    """Runs one task for many items; use it as a context manager."""

    def open(self) -> None:
        """Start what is needed to run tasks."""

    def map(self, task: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
        """Answers in the order of the items; the first failure is raised at its place."""

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks, or end them at once with ``abort``."""


class _Context:
    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(abort=kind is not None)

    def open(self) -> None:
        """Start what is needed to run tasks."""

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks, or end them at once with ``abort``."""


class Serial(_Context):
    """Everything in this process, one after the other."""

    def map(self, task: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
        """Answers in the order of the items, each computed when it is asked for."""
        return map(task, items)


class Processes(_Context):
    """``workers`` spawned processes on this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[int | None] = set()

    def open(self) -> None:
        """Prepare the pool; processes start with the first tasks."""
        context = multiprocessing.get_context("spawn")
        self._others = {process.pid for process in multiprocessing.active_children()}
        self._pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_leave_interrupts_to_parent)

    def map(self, task: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
        """Answers in the order of the items; at most two tasks for each worker wait at a time."""
        if self._pool is None:
            raise FastsimError("an executor runs tasks only inside its 'with' block")
        try:
            yield from _in_order(self._pool, self.workers, task, items)
        except BrokenProcessPool as error:
            raise FastsimError(
                "a worker process died (out of memory, or the call is not under: if __name__ == '__main__':)"
            ) from error

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks, or end the workers at once with ``abort``."""
        if self._pool is None:
            return
        if abort:
            for child in multiprocessing.active_children():
                if child.pid not in self._others:
                    child.terminate()
        # Waiting for the pool's own thread, which joins the ended workers too, leaves no process behind.
        self._pool.shutdown(wait=True, cancel_futures=abort)
        self._pool = None


class Threads(_Context):
    """``workers`` threads of this process; tasks that hold no GIL run side by side."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Prepare the pool; threads start with the first tasks."""
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="fastsim")

    def map(self, task: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
        """Answers in the order of the items; at most two tasks for each worker wait at a time."""
        if self._pool is None:
            raise FastsimError("an executor runs tasks only inside its 'with' block")
        yield from _in_order(self._pool, self.workers, task, items)

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks; with ``abort`` those that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=abort)
            self._pool = None


def executor(workers: int, items: int | None = None, threads: bool = False) -> Serial | Processes | Threads:
    """The executor for this many workers: this thread alone for one worker or one item."""
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MAX_WORKERS:
        raise ScenarioError("workers", repr(workers), f"a whole number from 1 to {MAX_WORKERS}")
    count = workers if items is None else min(workers, items)
    if count <= 1:
        return Serial()
    return Threads(count) if threads else Processes(count)


def _in_order(
    pool: ProcessPoolExecutor | ThreadPoolExecutor,
    workers: int,
    task: Callable[[Item], Answer],
    items: Iterable[Item],
) -> Iterator[Answer]:
    waiting: deque[Future[Answer]] = deque()
    for item in items:
        # Ctrl-C reaches the whole process group, also workers that are still starting and could only print a traceback.
        with interrupts.held():
            waiting.append(pool.submit(task, item))
        if len(waiting) > 2 * workers:
            yield _answer(waiting.popleft())
    while waiting:
        yield _answer(waiting.popleft())


def _answer(future: Future[Answer]) -> Answer:
    # A wait without end may sleep through Ctrl-C (always on Windows; where another thread took the signal, too).
    while not future.done():
        wait([future], timeout=BREATH_S)
        interrupts.check()
    return future.result()


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
