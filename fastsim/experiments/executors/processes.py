"""Worker processes of this machine, one item each at a time, so that the death of a worker concerns one known item."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from fastsim.errors import FastsimError
from fastsim.experiments.executors.executor import DIED, POLL_S, Executor, OutOfTime, WorkerDied, outcome_of, unopened

Reply = tuple[Any, Exception | None, list[tuple[type[Warning], str]]]
"""The message of a worker about an item: answer or error, and the warnings raised meanwhile."""
TERMINATE_S = 10.0
"""Seconds from SIGTERM to SIGKILL for a worker that does not end."""
SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable with which Python adds no folder of its own to the places of modules."""
_starting = threading.Lock()
"""One thread at a time changes the environment for a new process."""


class Processes(Executor):
    """``workers`` spawned processes; one that spends more than ``most_s`` seconds on an item is ended."""

    def __init__(self, workers: int, most_s: float | None = None) -> None:
        super().__init__()
        self.workers = self.slots = workers
        self.most_s = most_s
        self._open = False
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []

    def open(self) -> None:
        """Allow tasks; processes start with the first of them."""
        self._open = True

    def close(self, *, abort: bool = False) -> None:
        """Wait for running tasks, or end the workers at once with ``abort``."""
        self._open = False
        for worker in self._all:
            worker.leave(at_once=abort)
        for worker in self._all:
            worker.join()
        self._all.clear()
        self._idle.clear()

    def _begin(self, task: Callable[[Any], Any], item: Any) -> Hashable:
        if not self._open:
            raise unopened()
        worker = self._idle.pop() if self._idle else self._start()
        worker.begin(task, item)
        return worker

    def _start(self) -> _Worker:
        # Ctrl-C reaches the whole process group, also workers that are still starting and could only print a traceback.
        with no_current_folder() as before, _sigint_blocked():
            worker = _Worker(before)
        self._all.append(worker)
        return worker

    def _finished(self, handles: Sequence[_Worker]) -> Iterable[Hashable]:
        ready = set(wait([worker.connection for worker in handles], self._poll_s(handles)))
        return [worker for worker in handles if worker.connection in ready or self._is_late(worker)]

    def _poll_s(self, handles: Sequence[_Worker]) -> float:
        return 0.0 if any(self._is_late(worker) for worker in handles) else POLL_S

    def _is_late(self, worker: _Worker) -> bool:
        return self.most_s is not None and time.monotonic() - worker.began_s > self.most_s

    def _answer(self, handle: _Worker) -> tuple[Any, Exception | None]:
        if not handle.connection.poll() and self._is_late(handle):
            handle.process.kill()  # a run that can stop checks the time itself
            self._drop([handle])
            return None, OutOfTime(f"took more than {self.most_s:g} s")
        try:
            answer, error, raised_warnings = pickle.loads(handle.connection.recv_bytes())
        except (EOFError, OSError):
            self._drop([handle])
            raise WorkerDied(DIED) from None
        self._idle.append(handle)
        for category, text in raised_warnings:
            warnings.warn(text, category, stacklevel=2)
        return answer, error

    def _drop(self, handles: Sequence[_Worker]) -> None:
        for worker in handles:
            worker.leave(at_once=True)
            worker.join()
            if worker in self._all:
                self._all.remove(worker)


@contextmanager
def no_current_folder() -> Iterator[str | None]:
    """Inside, Python starts without the current folder among its places of modules; yields what the user has set.

    A worker takes over the places of this process, but loads modules of Python before that, and a folder of traces may
    hold files of the same names.
    """
    with _starting:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            yield before
        finally:
            _restore_safe_path(before)


def _restore_safe_path(value: str | None) -> None:
    if value is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = value


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Inside, processes start with SIGINT blocked; in this process it is delivered at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # Python starts it beside the first worker, and lets SIGINT through afterwards
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    def __init__(self, safe_path: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, child_end = context.Pipe()
        self.began_s = 0.0
        # A daemon ends with this process if Python ends it; if this process is killed, see _end_with_parent.
        self.process = context.Process(target=_serve, args=(child_end, safe_path), daemon=True, name="fastsim-worker")
        self.process.start()
        child_end.close()  # else the end of the worker would not close the pipe

    def begin(self, task: Callable[[Any], Any], item: Any) -> None:
        """Send an item to the worker."""
        self.began_s = time.monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):  # it died: _answer raises WorkerDied
            self.connection.send((task, item))

    def leave(self, *, at_once: bool) -> None:
        """Let the process end after its item, or with ``at_once`` as soon as its run can stop."""
        if at_once:
            self.process.terminate()
        self.connection.close()

    def join(self) -> None:
        """Wait for the end of the process."""
        self.process.join(TERMINATE_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def _serve(connection: Connection, safe_path: str | None) -> None:
    """The main loop of a worker: receive an item, send its reply, until the connection closes."""
    _restore_safe_path(safe_path)  # programs that a task starts find their modules as they do elsewhere
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc_enabled = gc.isenabled()
    gc.disable()
    while True:
        try:
            task, item = connection.recv()
            if gc_enabled and not gc.isenabled():
                gc.freeze()  # modules of the first task stay: each collection would spend 20 ms on them
                gc.enable()
        except EOFError:
            _leave()
        except Exception as error:  # a task that cannot be loaded here
            reply: Reply = None, _as_fastsim_error(error), []
        else:
            reply = _reply(task, item)
        with suppress(BrokenPipeError):
            connection.send_bytes(_pickled(reply))


def _reply(task: Callable[[Any], Any], item: Any) -> Reply:
    """The outcome, and warnings for the parent to raise: each worker would print them again."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        answer, error = outcome_of(task, item)
    texts = dict.fromkeys((_category(one.category), str(one.message)) for one in caught)
    return answer, error, list(texts)


def _category(category: type[Warning]) -> type[Warning]:
    """The category, or its nearest base class that every process can import."""
    return next(kind for kind in category.__mro__ if kind.__module__.partition(".")[0] in ("fastsim", "builtins"))


def _leave() -> NoReturn:
    # All items are done; the shutdown of a large interpreter would only delay the parent.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def _pickled(reply: Reply) -> bytes:
    try:
        content = pickle.dumps(reply)
        if reply[1] is not None:
            pickle.loads(content)  # some errors can be pickled but not unpickled
        return content
    except Exception as error:
        return pickle.dumps((None, _as_fastsim_error(reply[1] or error), reply[2]))


def _as_fastsim_error(error: Exception) -> FastsimError:
    return FastsimError(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    # A worker that outlived a killed parent would hold the lock of its folder against the next attempt.
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
