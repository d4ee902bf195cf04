"""Garbage collection, left out while millions of objects are made that all stay: it would look through them again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

_here = local()


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside, if it was on before; what was made counts as old afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if getattr(_here, "settled", False):
                gc.freeze()
            elif not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def settled() -> Iterator[None]:
    """Inside, no garbage collection looks through what ``uncollected`` code made: for a command, which soon ends."""
    _here.settled = own = not gc.get_freeze_count()
    try:
        yield
    finally:
        _here.settled = False
        if own:
            gc.unfreeze()
