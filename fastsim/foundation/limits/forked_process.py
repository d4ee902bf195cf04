"""Processes forked after a run: threads of polars are missing there, and its first query would wait for ever."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from fastsim.errors import FastsimError

THREADS = Path("/proc/self/task")
"""The folder in which Linux names the threads of this process."""
Entry = TypeVar("Entry", bound=Callable[..., Any])


class _Process:
    """Whether a run began in this process, and whether its parent had a run or threads of polars before the fork."""

    began = False
    parent_began = False


def refuse_forked() -> None:
    """FastsimError in a process that was forked after a run, or after polars had started its threads."""
    if _Process.parent_began:
        raise FastsimError(
            "process: found one that was forked after a run, in which threads of libraries are missing, expected a "
            "fresh process; use multiprocessing.get_context('spawn'), or simulate_many(workers=...)"
        )


def note_run() -> None:
    """A run begins: processes that are forked from now on are refused, and so is this one if it is such a process."""
    refuse_forked()
    _Process.began = True


def whole_process(entry: Entry) -> Entry:
    """Make a function, or every public method and the construction of a class, refuse forked processes."""
    if isinstance(entry, FunctionType):
        return cast(Entry, _refusing(entry))
    for name, member in [*vars(entry).items()]:
        if name == "__init__" or not name.startswith("_"):
            if isinstance(member, FunctionType):
                setattr(entry, name, _refusing(member))
            elif isinstance(member, classmethod | staticmethod):
                setattr(entry, name, type(member)(_refusing(member.__func__)))
    return entry


def _refusing(function: Any) -> Any:
    @wraps(function)
    def entered(*arguments: Any, **options: Any) -> Any:
        refuse_forked()
        return function(*arguments, **options)

    return entered


def _note_threads() -> None:
    """Look for threads of polars in a process that is about to be forked."""
    with suppress(OSError):  # no Linux, or a thread that has just ended
        names = (thread.joinpath("comm").read_text() for thread in THREADS.iterdir())
        _Process.began = _Process.began or any(name.strip().removeprefix("polars-").isdecimal() for name in names)


def _note_fork() -> None:
    _Process.parent_began = _Process.parent_began or _Process.began


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_threads, after_in_child=_note_fork)
