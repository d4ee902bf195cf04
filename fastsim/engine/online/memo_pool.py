"""Memos lent to runs: what one run worked out about node states serves the next with the same inputs.

A memo belongs to one run at a time, so runs on threads never share one. It is keyed by everything points
follow from: kinds of nodes, typical pods, GPU models and the plan's kernels. One memo takes so many bytes and then
forgets and starts anew; those nobody uses take at most ``POOL_BYTES`` together, least recently used ones go first.
No result depends on any of it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.engine.online.kernel_columns import Columns, ModelIds, fresh_target, typical_columns
from fastsim_ext.select.state_memo import Memo

if TYPE_CHECKING:
    from fastsim.workload.typical_pods import TypicalPods

POOL_BYTES = 256 * 2**20
"""Most memory of the memos that nobody uses, in bytes."""
MOST = 8
"""Targets that are remembered, least recently used ones go first; one takes up to about a megabyte."""


class MemoPool:
    """Memos nobody uses at the moment, most recently used last."""

    def __init__(self, most_bytes: int = POOL_BYTES) -> None:
        self._most_bytes, self._lock = most_bytes, threading.Lock()
        self._idle: list[tuple[str, Memo]] = []

    def acquire(self, key: str, width: int, each: int, most_bytes: int, cpus: Any = None) -> Memo:
        """A memo for inputs with this key: one that was used for them, or an empty one of at most so many bytes."""
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place][0] == key:
                    return self._idle.pop(place)[1]
        return Memo(width, each, most_bytes, cpus)

    def release(self, key: str, memo: Memo) -> None:
        """Keep a memo for the next run."""
        with self._lock:
            self._idle.append((key, memo))
            while sum(memo.bytes for _, memo in self._idle) > self._most_bytes:
                self._idle.pop(0)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._idle.clear()


MEMOS = MemoPool()
"""The memos of this process."""


def memo_key(*parts: Any) -> str:
    """One text for equal inputs: arrays, mappings of arrays and plain values."""
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, Mapping):
        for name in sorted(part):
            digest.update(f"{name}=".encode())
            _feed(digest, part[name])
    elif isinstance(part, np.ndarray):
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part))
    else:
        digest.update(repr(part).encode())
    digest.update(b"\0")


def target(typical: TypicalPods, models: tuple[str, ...]) -> tuple[Columns, str]:
    """Columns of the target workload for a cluster with these GPU models, to be written to, and the key of a memo."""
    try:
        hash(typical)
    except TypeError:  # made by hand from lists
        columns, key = _known.__wrapped__(typical, models)
    else:
        columns, key = _known(typical, models)
    return fresh_target(columns), key


@lru_cache(maxsize=MOST)
def _known(typical: TypicalPods, models: tuple[str, ...]) -> tuple[Columns, str]:
    columns = typical_columns(typical, ModelIds(models))
    return columns, memo_key(columns)
