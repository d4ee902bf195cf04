"""The file of a state: a header of plain values and arrays, with a checksum over everything.

A file is replaced completely or not at all. What cannot be read is named in one line.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fastsim.errors import StoredError
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import replacing

HEADER = "header"
"""Name of the entry without arrays."""
UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, OverflowError, MemoryError, RuntimeError,
    SyntaxError, struct.error, zipfile.BadZipFile,
)  # fmt: skip
"""Exceptions from reading a damaged file, or one that is no state."""


def write_state(path: Path, layout: Mapping[str, Any], meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Put a state in the place of the file, completely or not at all.

    ``layout`` comes first in the header, then the checksum of everything else, then ``meta``.
    """
    plain = json.loads(json.dumps(meta))
    text = json.dumps({**layout, "checksum": state_checksum(plain, arrays), **plain})
    with replacing(path) as partial, partial.open("wb") as file:
        parts: dict[str, Any] = {HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
        np.savez(file, **parts)
        file.flush()
        os.fsync(file.fileno())


def stored_state_of(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file; one of ``UNREADABLE`` if it is something else."""
    with open(path, "rb") as file:
        with zipfile.ZipFile(file) as stored:
            # A state has no compressed parts: with them refused, no part is larger than the file.
            if any(part.compress_type != zipfile.ZIP_STORED for part in stored.infolist()):
                raise ValueError("packed arrays")
            for name in stored.namelist():
                _refuse_shape(stored, name)
        file.seek(0)
        with np.load(file, allow_pickle=False) as parts:
            arrays = dict(parts)
    meta = json_value(arrays.pop(HEADER).tobytes())
    if not isinstance(meta, dict):
        raise ValueError("no mapping")
    return meta, arrays


def _refuse_shape(stored: zipfile.ZipFile, name: str) -> None:
    """ValueError if the declared shape of an array does not match its bytes, before memory is allocated for it."""
    with stored.open(name) as part:
        major, _ = np.lib.format.read_magic(part)
        header_of = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, kind = header_of(part)
        if kind.hasobject or math.prod(shape) * kind.itemsize + part.tell() != stored.getinfo(name).file_size:
            raise ValueError(f"{name} of another size than its header has")


def state_checksum(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """SHA-256 of a state, its values as JSON has them, in hexadecimal digits."""
    total = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"{name}:{arrays[name].dtype.str}:{arrays[name].shape};".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


@contextmanager
def restoring(where: Path | str, expected: str = "the checkpoint of a run") -> Iterator[None]:
    """Errors because of wrong values in a state that is restored become a StoredError."""
    try:
        yield
    except (*UNREADABLE, IndexError, AssertionError, RecursionError) as error:
        missing = f"no {error}" if isinstance(error, KeyError) else ""
        reason = " ".join((missing or str(error) or type(error).__name__).split())[:200]
        raise StoredError(f"{where}: found {reason}, expected {expected}") from error
