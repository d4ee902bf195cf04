"""Progress bars: only on a terminal, and only for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

DELAY_S = 1.0
"""Nothing is shown before this many seconds."""


@contextmanager
def progress_bar(unit: str, total: int | None = None) -> Iterator[Callable[[int], None] | None]:
    """A callback that takes the number of finished ``unit``; None without a terminal.

    Text that is printed meanwhile, as by a scorer, goes to standard error: standard output belongs to the result.
    """
    if not sys.stderr.isatty():
        with redirect_stdout(sys.stderr):
            yield None
        return
    bar = _LateBar(unit, total)
    try:
        with redirect_stdout(sys.stderr):
            yield bar.update
    finally:
        bar.close()


@contextmanager
def sweep_bar() -> Iterator[Callable[[Any], None] | None]:
    """A callback that takes the state of a sweep (``fastsim.experiments.sweep.run.State``); None without a terminal."""
    if not sys.stderr.isatty():
        with redirect_stdout(sys.stderr):
            yield None
        return
    bar = _LateBar("runs", None, ends=True)

    # The first run may take long, and there is no callback until it is done.
    timer = threading.Timer(DELAY_S, bar.open)
    timer.daemon = True

    def report(state: Any) -> None:
        if timer.ident is None:
            bar.total = state.total - state.kept
            timer.start()
        notes = ((state.kept, "complete before"), (state.failed, "failed"), (state.retried, "begun again"))
        bar.update(state.done, "".join(f", {count:,} {label}" for count, label in notes if count))

    try:
        with redirect_stdout(sys.stderr):
            yield report
    finally:
        timer.cancel()
        bar.close()


class _LateBar:
    def __init__(self, unit: str, total: int | None, ends: bool = False) -> None:
        self.unit, self.total, self.ends = unit, total, ends
        self.start_s = time.monotonic()
        self.lock, self.closed = threading.Lock(), False
        self.shown: Any = None
        self.task: Any = None

    def update(self, done: int, note: str = "") -> None:
        """Show ``done`` and the note, once ``DELAY_S`` have passed."""
        if self.shown is None and time.monotonic() - self.start_s >= DELAY_S:
            self.open()
        if self.shown is not None:
            self.shown.update(self.task, completed=done, note=note)

    def close(self) -> None:
        """Remove the bar from the terminal."""
        with self.lock:
            self.closed = True
            if self.shown is not None:
                self.shown.stop()

    def open(self) -> None:
        """Show the bar, unless it is shown or closed."""
        with self.lock:
            if self.shown is None and not self.closed:
                self._open()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        count = TextColumn("{task.completed:,.0f}" + (" of {task.total:,.0f}" if self.total else "") + f" {self.unit}")
        ends = [TextColumn("{task.fields[note]}, ends in"), TimeRemainingColumn()] if self.ends else []
        console = Console(stderr=True)
        bar = Progress(BarColumn(), count, TimeElapsedColumn(), *ends, console=console, transient=True)
        self.task = bar.add_task(self.unit, total=self.total, note="")
        bar.start()
        self.shown = bar
