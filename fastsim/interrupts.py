"""Ctrl-C that nobody can lose.

Python raises KeyboardInterrupt wherever the main thread happens to be. Where that is a destructor, or the search of a
library for an optional module, it counts as a failure of that and is forgotten; inside a lock it may come out as
another error. So the signal itself is noted too, and long work asks for the note at places where it can stop.

Who ignores the signal, or handles it in another way than Python does, is left alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from fastsim.errors import FastsimError

PATIENCE_S = 0.1
"""How long to wait before looking again."""


class _Note:
    """Where the operating system's part of Python writes the numbers of signals as they come."""

    def __init__(self) -> None:
        self._pressed = False
        self._read, self._written = os.pipe()
        for end in (self._read, self._written):
            os.set_blocking(end, False)
        self._before = signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)

    def pressed(self) -> bool:
        """Whether Ctrl-C came since the note was begun."""
        with suppress(BlockingIOError):  # nothing came
            self._pressed = self._pressed or signal.SIGINT in os.read(self._read, 4096)
        return self._pressed

    def close(self) -> None:
        """Put everything back."""
        signal.set_wakeup_fd(self._before)
        os.close(self._read)
        os.close(self._written)


_notes: list[_Note] = []
"""The note that is being kept, if any: there is one main thread, and signals are its business."""


@contextmanager
def noticed() -> Iterator[None]:
    """Inside, a Ctrl-C that came and was lost is found by ``check``, and an error that it turned into is undone."""
    mine = None if _notes or not _noticeable() else _Note()
    if mine is not None:
        _notes.append(mine)
    try:
        yield
    except FastsimError:
        raise
    except Exception as error:
        if _notes and _notes[0].pressed():
            raise KeyboardInterrupt from error
        raise
    finally:
        if mine is not None:
            _notes.clear()
            mine.close()


def check() -> None:
    """KeyboardInterrupt if Ctrl-C came and the work goes on nevertheless."""
    if _notes and _notes[0].pressed():
        # Changes nothing, but Python raises its own before it returns, if that is still to come: not both.
        signal.pthread_sigmask(signal.SIG_BLOCK, ())
        raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Ctrl-C waits until the end of the block; threads and processes started inside never see it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unhurt(work: Callable[[], object]) -> None:
    """Do what must not be left half-done; Ctrl-C that comes meanwhile is raised when it is done.

    In a thread of its own, because ``held`` is not enough where other threads exist: the signal goes to one of them,
    and Python raises in the main thread all the same.
    """
    done: list[BaseException | None] = []
    ended = allocate_lock()
    ended.acquire()

    def job() -> None:
        try:
            work()
            done.append(None)
        except BaseException as error:
            done.append(error)
        ended.release()

    def wait() -> None:
        while not done:
            ended.acquire(timeout=PATIENCE_S)

    try:
        start_new_thread(job, ())  # not threading.Thread, whose start Ctrl-C can break
        wait()
    except KeyboardInterrupt:
        wait()
        raise
    if done[0] is not None:
        raise done[0]


def _noticeable() -> bool:
    """Whether Ctrl-C means KeyboardInterrupt here, and nobody else (such as an event loop) keeps a note of it."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    other = signal.set_wakeup_fd(-1)
    if other != -1:
        signal.set_wakeup_fd(other)
    return other == -1
