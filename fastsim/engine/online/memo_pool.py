"""Tables that runs with equal inputs share: memos of node states, and columns of target workloads.

A memo belongs to one run at a time, so runs on threads never share one. Its key covers everything that points depend
on: kinds of nodes, typical pods, GPU models and the plan's kernels. A memo that reaches its size is cleared; at most
``MOST_IDLE`` are idle, which take at most ``POOL_BYTES`` together, the least recently used are dropped first. Columns
of a target workload are computed once and copied for each run. No result depends on any of this.
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
"""Most bytes of all idle memos."""
MOST_IDLE = 64
"""Most idle memos, so that thousands of small runs of different workloads do not fill those bytes."""
MOST = 8
"""Cached targets; the least recently used are dropped first. One takes up to about a megabyte."""


class MemoPool:
    """Idle memos, most recently used last."""

    def __init__(self, most_bytes: int = POOL_BYTES) -> None:
        self._most_bytes, self._lock = most_bytes, threading.Lock()
        self._idle: list[tuple[str, Memo]] = []

    def acquire(self, key: str, width: int, each: int, most_bytes: int, cpus: Any = None) -> Memo:
        """An idle memo with this key, or an empty one of at most ``most_bytes``."""
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place][0] == key:
                    return self._idle.pop(place)[1]
        return Memo(width, each, most_bytes, cpus)

    def release(self, key: str, memo: Memo) -> None:
        """Add a memo to the idle ones."""
        with self._lock:
            self._idle.append((key, memo))
            del self._idle[:-MOST_IDLE]
            while sum(memo.bytes for _, memo in self._idle) > self._most_bytes:
                self._idle.pop(0)

    def clear(self) -> None:
        """Drop all idle memos."""
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
    """Writable columns of the target workload for a cluster with these GPU models, and their part of a memo's key."""
    try:
        hash(typical)
    except TypeError:  # lists cannot be hashed
        columns, key = _known.__wrapped__(typical, models)
    else:
        columns, key = _known(typical, models)
    return fresh_target(columns), key


@lru_cache(maxsize=MOST)
def _known(typical: TypicalPods, models: tuple[str, ...]) -> tuple[Columns, str]:
    columns = typical_columns(typical, ModelIds(models))
    return columns, memo_key(columns)
