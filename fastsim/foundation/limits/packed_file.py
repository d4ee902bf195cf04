"""Texts that may be gzipped, or files of a zip archive: unpacked piece by piece up to a stated size.

So no small file fills memory. ``logs.zip/a/b.csv`` is a file of an archive; ``logs.zip`` stands for the only file in
one. Damaged compression is an OSError, as an unreadable file is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
import zlib
from typing import IO, Any, cast

from fastsim.errors import InputError

MOST_MIB = 1024
"""Most MiB that a packed file may hold; ``FASTSIM_UNPACKED_MIB`` raises or lowers it."""
ZIP = ".zip"
CHOICE = "FASTSIM_UNPACKED_MIB"


class Unpacked(io.RawIOBase):
    """The bytes of a packed file; InputError as soon as there are more of them than may be."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._where, self._left = str(path), most_bytes()
        self._packed: zipfile.ZipExtFile | gzip.GzipFile = (
            _archived(str(path)) if is_archived(path) else gzip.GzipFile(path, "rb")
        )

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one piece reaches; the number of bytes."""
        try:
            piece = self._packed.read1(len(buffer))
        except (zlib.error, zipfile.BadZipFile, EOFError) as error:
            raise OSError(f"damaged packed data: {error}") from error
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


def is_archived(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a zip archive or a file of one."""
    archive, ending, _ = str(path).partition(ZIP)
    return bool(ending) and os.path.isfile(archive + ending) and (str(path) + "/").startswith(f"{archive}{ending}/")


def _archived(path: str) -> zipfile.ZipExtFile:
    """A file of an archive, or the only one; InputError with their names if there is none of that name."""
    archive, ending, member = path.partition(ZIP)
    try:
        with zipfile.ZipFile(archive + ending) as files:
            names = [one.filename for one in files.infolist() if not one.is_dir()]
            name = member.removeprefix("/") or (names[0] if len(names) == 1 else "")
            if name in names:
                return cast("zipfile.ZipExtFile", files.open(name))  # keeps the archive open until it is closed itself
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # damaged, of unknown method, encrypted
        raise OSError(f"damaged zip archive: {error}") from error
    listed = ", ".join(f"{archive}{ending}/{one}" for one in names[:5]) + ", ..." * (len(names) > 5)
    raise InputError(path, f"an archive of {len(names)} files without this one", f"one of: {listed}")


def opened_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """A file as bytes, unpacked if its name ends in .gz or is of a zip archive."""
    packed = str(path).endswith(".gz") or is_archived(path)
    return io.BufferedReader(Unpacked(path), 1 << 16) if packed else open(path, "rb")


def opened_text(path: str | os.PathLike[str], newline: str | None = None) -> IO[str]:
    """A text in UTF-8, unpacked as by :func:`opened_bytes`; without the byte order mark that spreadsheets put first."""
    return io.TextIOWrapper(opened_bytes(path), encoding="utf-8-sig", newline=newline)


def file_checksum(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file as it lies there, and of the content of one in an archive."""
    with opened_bytes(path) if is_archived(path) else open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
