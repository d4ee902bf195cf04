"""Ctrl-C and SIGTERM: noted when they come, raised where work can stop.

Inside ``deferred`` the main thread has a handler of this module, which only notes which signal came.
``check``, which long work calls every few milliseconds, raises it as KeyboardInterrupt or Terminated, and so does the
end of the block. Nothing is raised anywhere else, so imports, renames, locks and ``finally`` blocks need no protection.
A second signal is not noted but acts at once. Handlers that a program has set itself are left alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED, TERMINATED = 128 + 2, 128 + 15
"""Exit codes of a process that Ctrl-C or SIGTERM ended, as shells count them."""
USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""The handlers that Python starts with: only these are replaced."""


class Terminated(SystemExit):
    """SIGTERM came; if it is not caught, the process ends with exit code 143."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


STOPPED = (KeyboardInterrupt, Terminated)
"""Exceptions that ``check`` raises."""


class _Noted:
    """The signal that came, 0 for none; whether it was raised; whether a second one may end the process."""

    number = 0
    raised = False
    own_process = False


_noted = _Noted()


@contextmanager
def deferred() -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM are raised by ``check`` and at the end, and nowhere else; blocks may be nested."""
    replaced = _replaced()
    raised: BaseException | None = None
    try:
        yield
    except BaseException as error:
        raised = error
        raise
    finally:
        _run_handlers()
        # Handlers first: an earlier signal is noted and raised below, a later one goes to Python's handler.
        for number, usual in replaced.items():
            signal.signal(number, usual)
        pending = _noted.number if not _noted.raised and threading.current_thread() is threading.main_thread() else 0
        if replaced:
            _noted.number, _noted.raised = 0, False
            _arrow_handlers(True)
        elif pending:
            _noted.raised = True
        if pending and not isinstance(raised, STOPPED):
            raise _error(pending) from raised


def check() -> None:
    """KeyboardInterrupt or Terminated if the signal came; once in the main thread, so that cleaning up may call it.

    Other threads stop when the main thread does, which may let them finish first.
    """
    _run_handlers()
    if _noted.number and _noted.raised != (threading.current_thread() is threading.main_thread()):
        _noted.raised = True
        raise _error(_noted.number)


def pending() -> bool:
    """Whether a signal came; for callbacks of libraries, which must not raise."""
    _run_handlers()
    return _noted.number != 0


def own_process() -> None:
    """Signals are noted until this process ends: for a command, whose second Ctrl-C ends the process at once."""
    _noted.own_process = True
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # Python's own handler is not set while modules are loaded
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _replaced()


def ignore() -> None:
    """Ignore signals from now on: the work is done and its outcome printed."""
    for number in USUAL:
        if signal.getsignal(number) is _note:
            signal.signal(number, signal.SIG_IGN)


def exit_code(stopped: BaseException) -> int:
    """The exit code of a process that ended for one of ``STOPPED``."""
    return TERMINATED if isinstance(stopped, Terminated) else INTERRUPTED


def quieten_arrow() -> None:
    """Disable pyarrow's own signal handlers inside ``deferred``; modules that load pyarrow call it."""
    if any(signal.getsignal(number) is _note for number in USUAL):
        _arrow_handlers(False)


def _replaced() -> dict[int, Any]:
    """The usual handlers that were replaced by ``_note`` just now."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    usual_handlers = {number: usual for number, usual in USUAL.items() if signal.getsignal(number) == usual}
    if usual_handlers:
        _noted.number, _noted.raised = 0, False
        _arrow_handlers(False)
    for number in usual_handlers:
        signal.signal(number, _note)
    return usual_handlers


def _run_handlers() -> None:
    """Run handlers of signals that a thread without Python took, as after SIGCONT: CPython 3.11 leaves them waiting."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, ())  # changes nothing, but runs them


def _note(number: int, frame: FrameType | None) -> None:
    if not _noted.number:
        _noted.number = number
    elif _noted.own_process:
        os._exit(128 + number)
    else:
        signal.signal(number, USUAL[number])
        signal.raise_signal(number)


def _error(number: int) -> BaseException:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()


def _arrow_handlers(enabled: bool) -> None:
    # Its handlers turn Ctrl-C into an error of their own, which would be taken for an unreadable file.
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].enable_signal_handlers(enabled)
