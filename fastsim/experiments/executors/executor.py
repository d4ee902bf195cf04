"""The interface of executors, this process and its threads as executors, and the choice among all by name.

An executor has three methods: ``open``, ``completed`` and ``close``; ``map`` is ``completed`` in the order of the
items. The item of a worker that dies is tried again, ``ATTEMPTS`` times in all. Worker processes are spawned, never
forked, so every run begins in a fresh interpreter and its tables do not depend on the executor.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from fastsim.errors import FastsimError
from fastsim.foundation import interrupts

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MAX_WORKERS = 1024
POLL_S = 0.1
"""Longest wait for a worker between checks for Ctrl-C, seconds."""
ATTEMPTS = 3
"""Attempts at an item whose worker dies."""
PLACES = ("processes", "threads", "serial", "ray", "dask")
"""Names that :func:`executor_on` takes."""
DIED = "a worker process died (out of memory, or the call is not under: if __name__ == '__main__':)"


class WorkerDied(FastsimError):
    """The worker of an item ended without an answer."""


class OutOfTime(FastsimError):
    """A run took longer than its limit."""


class Outcome(NamedTuple):
    """The answer to the item at position ``at``, or None and an error; and the number of attempts."""

    at: int
    answer: Any
    error: Exception | None = None
    attempts: int = 1


class _Attempt(NamedTuple):
    at: int
    item: Any
    attempts: int


def outcome_of(task: Callable[[Any], Any], item: Any) -> tuple[Any, Exception | None]:
    """The answer and None, or None and the error: a worker returns errors as values."""
    try:
        return task(item), None
    except Exception as error:
        return None, error


class Executor:
    """Runs one task for many items; use it as a context manager.

    A subclass implements ``_begin``, ``_finished`` and ``_answer``: start an item, wait for items, fetch an answer.
    """

    slots = 1
    """Items that run at a time."""

    def __init__(self) -> None:
        self.retries = 0
        """Items tried again so far."""

    def open(self) -> None:
        """Prepare the executor for tasks."""

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks, or end them at once with ``abort``."""

    def completed(self, task: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """The outcome of each item, in the order in which they end; items begin in their own order."""
        source = (_Attempt(at, item, 1) for at, item in enumerate(items))
        again: deque[_Attempt] = deque()
        running: dict[Hashable, _Attempt] = {}
        try:
            while True:
                while len(running) < self.slots:
                    attempt = again.popleft() if again else next(source, None)
                    if attempt is None:
                        break
                    running[self._begin(task, attempt.item)] = attempt
                if not running:
                    return
                for handle in self._finished(list(running)):
                    attempt = running.pop(handle)
                    outcome = self._settle(handle, attempt, again)
                    if outcome is not None:
                        yield outcome
                interrupts.check()
        finally:
            if running:
                self._drop(list(running))

    def map(self, task: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
        """Answers in the order of the items; the first failure is raised at its place."""
        early: dict[int, Outcome] = {}
        due = 0
        for outcome in self.completed(task, items):
            early[outcome.at] = outcome
            while due in early:
                ended = early.pop(due)
                due += 1
                if ended.error is not None:
                    raise ended.error
                yield ended.answer

    def _settle(self, handle: Hashable, attempt: _Attempt, again: deque[_Attempt]) -> Outcome | None:
        """The outcome of an item that is done, or None if it is tried again."""
        try:
            answer, error = self._answer(handle)
        except WorkerDied as death:
            if attempt.attempts < ATTEMPTS:
                self.retries += 1
                again.append(attempt._replace(attempts=attempt.attempts + 1))
                return None
            return Outcome(attempt.at, None, death, attempt.attempts)
        return Outcome(attempt.at, answer, error, attempt.attempts)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(abort=kind is not None)

    @abstractmethod
    def _begin(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        """Begin an item and return its handle."""

    @abstractmethod
    def _finished(self, handles: Sequence[Any]) -> Iterable[Hashable]:
        """Handles of finished items, after ``POLL_S`` at most."""

    @abstractmethod
    def _answer(self, handle: Any) -> tuple[Any, Exception | None]:
        """The return value of :func:`outcome_of` for a finished item; WorkerDied if it is lost."""

    def _drop(self, handles: Sequence[Any]) -> None:
        """Release items whose answers are no longer needed."""


class Serial(Executor):
    """Items one after the other in this process, each when its answer is needed."""

    def _begin(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        self._outcome = outcome_of(task, item)
        return 0

    def _finished(self, handles: Sequence[Any]) -> Iterable[Hashable]:
        return handles

    def _answer(self, handle: Any) -> tuple[Any, Exception | None]:
        return self._outcome


class Threads(Executor):
    """``workers`` threads of this process; tasks that release the GIL run in parallel."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = self.slots = workers
        self._pool: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Prepare the pool; threads start with the first tasks."""
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="fastsim")

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks; with ``abort`` those that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=abort)
            self._pool = None

    def _begin(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        if self._pool is None:
            raise unopened()
        return self._pool.submit(outcome_of, task, item)

    def _finished(self, handles: Sequence[Future[Any]]) -> Iterable[Hashable]:
        # A wait without limit may miss Ctrl-C (always on Windows; elsewhere if another thread took the signal).
        return sorted(wait(handles, POLL_S, FIRST_COMPLETED).done, key=handles.index)

    def _answer(self, handle: Future[Any]) -> tuple[Any, Exception | None]:
        outcome: tuple[Any, Exception | None] = handle.result()
        return outcome


def unopened() -> FastsimError:
    """The error of an executor that was not opened."""
    return FastsimError("an executor runs tasks only inside its 'with' block")
