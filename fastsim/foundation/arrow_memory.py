"""Where Arrow takes memory from while tables stream through a run."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable by which users choose Arrow's allocator."""


class _Streaming:
    """How many runs stream now, and what Arrow used before the first of them."""

    lock = threading.Lock()
    runs = 0
    before: Any = None


@contextmanager
def streaming() -> Iterator[None]:
    """Within, batches come from C's allocator unless the user chose another; no result depends on it.

    It hands the pages of one batch to the next. Arrow's usual one gives them back, so that the kernel clears them anew.
    """
    with _Streaming.lock:
        _Streaming.runs += 1
        if _Streaming.runs == 1:
            _Streaming.before = pa.default_memory_pool()
            if sys.platform == "linux" and CHOICE not in os.environ and _Streaming.before.backend_name == "mimalloc":
                pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _Streaming.lock:
            _Streaming.runs -= 1
            if not _Streaming.runs:
                pa.set_memory_pool(_Streaming.before)
