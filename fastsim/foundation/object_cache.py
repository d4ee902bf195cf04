"""Clusters and workloads by the texts that name them, so that a worker of a sweep opens each of them once.

Nothing is cached outside a purpose (:meth:`ObjectCache.cache_for`) and a run (:meth:`ObjectCache.during_run`), because
files may change between two uses. No result depends on the cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Opened = TypeVar("Opened")

MOST = 8
"""Objects that are cached; the least recently used goes first."""
MOST_ROWS = 4_000_000
"""Rows of all cached workloads together, at about 45 bytes each."""


class ObjectCache:
    """Opened objects by key, for one purpose at a time."""

    def __init__(self, most: int = MOST, most_rows: int = MOST_ROWS) -> None:
        self._most, self._most_rows, self._lock = most, most_rows, threading.Lock()
        self._purpose: str | None = None
        self._objects: OrderedDict[Hashable, Any] = OrderedDict()
        self._run = threading.local()

    def cache_for(self, purpose: str | None) -> None:
        """Cache objects for this purpose from now on, or none if it is None; those of another purpose are dropped."""
        with self._lock:
            if purpose != self._purpose:
                self._purpose = purpose
                self._objects.clear()

    @property
    def caching(self) -> bool:
        """Whether objects are cached now."""
        return self._purpose is not None

    @contextmanager
    def during_run(self) -> Iterator[None]:
        """Open each text once inside, in this thread; a run inside a run opens its own."""
        outer = getattr(self._run, "objects", None)
        self._run.objects = {}
        try:
            yield
        finally:
            self._run.objects = outer

    def cached(self, key: Hashable, opener: Callable[[], Opened]) -> Opened:
        """The object of this key; ``opener`` makes it unless it is in the cache."""
        if not self.caching:
            return self._cached_during_run(key, opener)
        with self._lock:
            if key in self._objects:
                self._objects.move_to_end(key)
                hit: Opened = self._objects[key]
                return hit
        opened = opener()  # two threads may open it at once; both are equal
        with self._lock:
            if self.caching:
                self._objects[key] = opened
                while len(self._objects) > 1 and self._is_full():
                    self._objects.popitem(last=False)
        return opened

    def _cached_during_run(self, key: Hashable, opener: Callable[[], Opened]) -> Opened:
        objects: dict[Hashable, Opened] | None = getattr(self._run, "objects", None)
        if objects is None:
            return opener()
        if key not in objects:
            objects[key] = opener()
        return objects[key]

    def _is_full(self) -> bool:
        # Rows in memory have a table; those of a stream have none.
        rows = (item.rows or 0 for item in self._objects.values() if hasattr(getattr(item, "source", None), "table"))
        return len(self._objects) > self._most or sum(rows) > self._most_rows

    def __len__(self) -> int:
        return len(self._objects)


OBJECTS = ObjectCache()
"""The cache of this process."""
