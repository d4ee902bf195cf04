"""The standard streams of a command: each is there however the process was started, and output belongs to results."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

UNPRINTABLE = "backslashreplace"
"""What becomes of characters that a stream cannot encode, such as bytes of a file name that are no UTF-8."""


class _Results(io.FileIO):
    """Standard output as bytes; its errors name it."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, "standard output") from None


class _Remarks(io.FileIO):
    """Standard error as bytes; what cannot be written there is lost, and the work goes on."""

    def write(self, content: Any) -> int:
        written = None
        with suppress(OSError):
            written = super().write(content)
        return memoryview(content).nbytes if written is None else written


class Discarded(io.TextIOWrapper):
    """Standard output of a process that was started without one."""


def prepare() -> None:
    """Make the three streams of this process fit for a command; called once, before anything is read or written.

    A stream that is closed becomes the null device: the next file to be opened would get its descriptor, and libraries
    would write into that file. ``sys.stdout`` gets a descriptor of its own, and descriptor 1 of the process points at
    standard error, because compiled libraries and processes that are started write to it, past ``sys.stdout``. Standard
    input stays None if it is closed.
    """
    had_output = _is_open(1)
    for descriptor in range(3):
        if not _is_open(descriptor):
            opened = os.open(os.devnull, os.O_RDWR)  # the system takes the smallest number that is free
            os.set_inheritable(opened, True)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    if sys.stderr is None or _leads_to(sys.stderr, 2):
        bytes_out = io.BufferedWriter(_Remarks(2, "w", closefd=False))
        encoding = None if sys.stderr is None else sys.stderr.encoding
        sys.stderr = sys.__stderr__ = io.TextIOWrapper(  # type: ignore[misc]
            bytes_out, encoding, UNPRINTABLE, line_buffering=True
        )
    if sys.stdout is None or _leads_to(sys.stdout, 1):
        _keep_for_results(had_output)


def _keep_for_results(had_output: bool) -> None:
    encoding = None if sys.stdout is None else sys.stdout.encoding
    if sys.stdout is not None:
        with suppress(OSError):
            sys.stdout.flush()
    bytes_out = io.BufferedWriter(_Results(os.dup(1), "w"))
    os.dup2(2, 1)
    kind = io.TextIOWrapper if had_output else Discarded
    results = kind(bytes_out, encoding, UNPRINTABLE, line_buffering=bytes_out.isatty())
    sys.stdout = sys.__stdout__ = results  # type: ignore[misc]


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _leads_to(stream: Any, descriptor: int) -> bool:
    """Whether a stream writes to this descriptor; False for a stream that a program has put in its place."""
    try:
        return bool(stream.fileno() == descriptor)
    except (OSError, ValueError, AttributeError):
        return False
