"""A thread that runs tasks in order, so that the loop need not wait for files."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from fastsim.foundation import interrupts

DEPTH = 2
"""Tasks that may wait; a further call waits for room, so memory stays bounded."""
CHECK_S = 0.1
"""Seconds between two checks for an error of the other thread and for Ctrl-C."""

Task = tuple[Callable[..., Any], tuple[Any, ...]]


class Inline:
    """Runs each task at once in the calling thread; the same methods as :class:`Background`."""

    def do(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Run the task."""
        work(*arguments)

    def close(self) -> None:
        """Do nothing: no task is left."""

    def drop(self) -> None:
        """Do nothing: no task waits."""


class Background:
    """A second thread that runs tasks; its first error is raised at the next call, and later tasks are skipped."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(DEPTH):
            self._room.put(None)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="fastsim-background", daemon=True)
        self._thread.start()

    def do(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Queue a task behind all earlier ones; waits while ``DEPTH`` tasks are queued."""
        while True:
            self._raise()
            try:
                self._room.get(timeout=CHECK_S)
            except queue.Empty:
                interrupts.check()
                continue
            return self._tasks.put((work, arguments))

    def close(self) -> None:
        """Wait until every task has run."""
        self._raise()
        self._tasks.put(None)
        while self._thread.is_alive():  # a join without end would sleep through Ctrl-C
            interrupts.check()
            self._thread.join(CHECK_S)
        self._raise()

    def drop(self) -> None:
        """End the thread without running the tasks that wait."""
        self._error = self._error or InterruptedError("dropped")
        self._tasks.put(None)
        while self._thread.is_alive():
            self._thread.join(CHECK_S)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._room.put(None)
            if self._error is None:
                try:
                    task[0](*task[1])
                except BaseException as error:
                    self._error = error
            del task  # its arguments must not live until the next task comes
