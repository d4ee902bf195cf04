"""One thread for the linear algebra under SciPy: its search fits seven numbers, and a pool of threads only spins."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

PREFIX = "scipy_openblas"
"""How the library that comes with SciPy's wheels names its functions."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Fits inside run in one thread; results are the same. Without the library of SciPy's wheels nothing happens."""
    library = _library()
    if library is None:
        yield
        return
    before = getattr(library, f"{PREFIX}_get_num_threads")()
    told = getattr(library, f"{PREFIX}_set_num_threads")
    told(1)
    try:
        yield
    finally:
        told(before)


@cache
def _library() -> Any:
    import scipy
    import scipy.linalg  # the library must be loaded before it can be told

    for path in sorted(Path(scipy.__file__).parent.with_name("scipy.libs").glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if hasattr(library, f"{PREFIX}_set_num_threads") and hasattr(library, f"{PREFIX}_get_num_threads"):
            return library
    return None
