"""Garbage collection, left out while millions of objects are made that all stay: it would look through them again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

_here = local()
FEW = 10_000
"""New objects that a collection looks through in less time than it takes to count the objects that are frozen."""


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside, if it was on before; what was made counts as old afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > FEW:
                _age()
            gc.enable()


def _age() -> None:
    """Let later collections of young objects leave out what there is now, and all of them within `settled`."""
    if getattr(_here, "settled", False):
        if _here.own is None:
            _here.own = not gc.get_freeze_count()
        if _here.own:
            gc.freeze()
    elif not gc.get_freeze_count():  # objects that other code has frozen stay frozen
        gc.freeze()
        gc.unfreeze()


@contextmanager
def settled() -> Iterator[None]:
    """Inside, no garbage collection looks through what ``uncollected`` code made: for a command, which soon ends."""
    _here.settled, _here.own = True, None
    try:
        yield
    finally:
        _here.settled = False
        if _here.own:
            gc.unfreeze()
