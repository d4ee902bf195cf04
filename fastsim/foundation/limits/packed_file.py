"""Texts that may be gzipped: unpacked piece by piece up to a stated size, so that no small file fills memory.

Damaged compression is an OSError, as an unreadable file is.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from typing import IO, Any

from fastsim.errors import InputError

MOST_MIB = 1024
"""Most MiB that a packed file may hold; ``FASTSIM_UNPACKED_MIB`` raises or lowers it."""
CHOICE = "FASTSIM_UNPACKED_MIB"


class Unpacked(io.RawIOBase):
    """The bytes of a gzipped file; InputError as soon as there are more of them than may be."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._where, self._left = str(path), most_bytes()
        self._packed = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one piece reaches; the number of bytes."""
        try:
            piece = self._packed.read1(len(buffer))
        except (zlib.error, EOFError) as error:
            raise OSError(f"damaged gzip data: {error}") from error
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._where)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._packed.close()
        super().close()


def most_bytes() -> int:
    """Most bytes that a packed file may hold."""
    text = os.environ.get(CHOICE, "")
    return (int(text) if text.isascii() and text.isdecimal() else MOST_MIB) << 20


def too_large(where: str) -> InputError:
    """The error for a file that holds more than :func:`most_bytes`."""
    mib = most_bytes() >> 20
    found = f"more than {mib:,} MiB when unpacked"
    return InputError(where, found, f"at most {mib:,} MiB", f"unpack it, or set {CHOICE}")


def opened_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """A file as bytes, unpacked if its name ends in .gz."""
    return io.BufferedReader(Unpacked(path), 1 << 16) if str(path).endswith(".gz") else open(path, "rb")


def opened_text(path: str | os.PathLike[str], newline: str | None = None, encoding: str = "utf-8") -> IO[str]:
    """A text in UTF-8, unpacked if the name of the file ends in .gz."""
    return io.TextIOWrapper(opened_bytes(path), encoding=encoding, newline=newline)
