"""What texts stand for, opened once: a worker that plays many runs makes each cluster and reads each trace once.

Nothing is kept before a purpose is set (:func:`cache_for`), because files may change between one use and another.
No result depends on it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")

MOST = 8
"""Objects that are kept; those not asked for longest go first."""
MOST_ROWS = 4_000_000
"""Rows of all workloads that are kept together, at about 45 bytes each."""


class ObjectCache:
    """Objects by what they were made from, for one purpose at a time."""

    def __init__(self, most: int = MOST, most_rows: int = MOST_ROWS) -> None:
        self._most, self._most_rows, self._lock = most, most_rows, threading.Lock()
        self._purpose: str | None = None
        self._made: OrderedDict[Hashable, Any] = OrderedDict()

    def cache_for(self, purpose: str | None) -> None:
        """From now on keep what is made, for this purpose; what was kept for another one is forgotten."""
        with self._lock:
            if purpose != self._purpose:
                self._purpose = purpose
                self._made.clear()

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return self._purpose is not None

    def kept(self, key: Hashable, maker: Callable[[], Made]) -> Made:
        """What was made for this key, or what ``maker`` makes now."""
        if not self.keeps:
            return maker()
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                found: Made = self._made[key]
                return found
        made = maker()  # two threads may make it at once; both are equal
        with self._lock:
            if self.keeps:
                self._made[key] = made
                while len(self._made) > 1 and self._is_full():
                    self._made.popitem(last=False)
        return made

    def _is_full(self) -> bool:
        # Rows in memory have a table; those of a stream have none.
        held = (made.rows or 0 for made in self._made.values() if hasattr(getattr(made, "source", None), "table"))
        return len(self._made) > self._most or sum(held) > self._most_rows

    def __len__(self) -> int:
        return len(self._made)


OBJECTS = ObjectCache()
"""What this process has opened."""
