"""Bytes that are on the disk before a name promises them, and what killed processes left beside a file."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from fastsim.errors import InputError


def refuse_other_bytes(path: Path) -> None:
    """InputError if the whole path has bytes that are no UTF-8: no table and no record could name it."""
    if not is_utf8(str(path.absolute())):
        raise InputError(str(path), "bytes that are no UTF-8 in its path", "a path in UTF-8")


def is_utf8(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, by which Python writes bytes that it cannot decode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def flush(path: Path) -> None:
    """Wait until a file, or a folder with all it has in it, is on the disk, so that no power cut leaves an empty name.

    An error of the disk is an OSError; systems that flush no folders go without.
    """
    if not path.is_dir():
        _flush_file(path)
        return
    for folder, _, names in os.walk(path):
        for name in names:
            _flush_file(Path(folder, name))
        flush_names(Path(folder))


def flush_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system has such a wait."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep_partials(target: Path) -> None:
    """Remove partial files of this name whose process has ended; another that is alive may still write its own."""
    half = re.compile(rf"\.{re.escape(target.name)}\.(\d+)\.partial")
    with suppress(OSError):  # a folder that may not be listed
        for path in list(target.absolute().parent.iterdir()):
            match = half.fullmatch(path.name)
            if match and path.is_file() and not path.is_symlink() and not _alive(int(match[1])):
                path.unlink()


def _flush_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _alive(process: int) -> bool:
    if sys.platform == "win32":  # there the same call ends the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
