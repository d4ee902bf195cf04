"""Progress bars: only on a terminal, and only for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 1.0
"""Nothing is shown before this many seconds."""


@contextmanager
def progress_bar(unit: str, total: int | None = None) -> Iterator[Callable[[int], None] | None]:
    """A function to be told how many ``unit`` are done; None where there is no terminal to draw on."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _LateBar(unit, total)
    try:
        yield bar.tell
    finally:
        bar.close()


class _LateBar:
    def __init__(self, unit: str, total: int | None) -> None:
        self.unit, self.total = unit, total
        self.began = time.monotonic()
        self.shown: Any = None
        self.task: Any = None

    def tell(self, done: int) -> None:
        """Show that ``done`` units are done, if it has taken long enough."""
        if self.shown is None:
            if time.monotonic() - self.began < PATIENCE_S:
                return
            self._open()
        self.shown.update(self.task, completed=done)

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self.shown is not None:
            self.shown.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        count = TextColumn("{task.completed:,.0f}" + (" of {task.total:,.0f}" if self.total else "") + f" {self.unit}")
        console = Console(stderr=True)
        self.shown = Progress(BarColumn(), count, TimeElapsedColumn(), console=console, transient=True)
        self.task = self.shown.add_task(self.unit, total=self.total)
        self.shown.start()
