"""Texts that may be gzipped, or files of a zip or tar.gz archive: unpacked piece by piece up to a stated size.

So no small file fills memory. ``logs.zip/a/b.csv`` is a file of an archive; ``logs.zip`` stands for the only file in
one. What stands before a file of a tar.gz is unpacked too, and counts. Damaged compression is an OSError, as an
unreadable file is.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
import zipfile
import zlib
from typing import IO, Any, cast

from fastsim.errors import InputError
from fastsim.foundation.limits.environment import UNPACKED_MIB, number_of

MOST_MIB = 1024
"""Most MiB that a packed file may hold; ``FASTSIM_UNPACKED_MIB`` raises or lowers it."""
ZIP = ".zip"
ARCHIVES = (ZIP, ".tar.gz", ".tgz")


class Unpacked(io.RawIOBase):
    """The bytes of a packed file; InputError as soon as there are more of them than may be."""

    def __init__(self, path: str | os.PathLike[str], packed: gzip.GzipFile | None = None) -> None:
        super().__init__()
        self._files = contextlib.ExitStack()  # before anything that may fail, as what failed is closed, too
        self._where, self._left = str(path), most_bytes()
        archive, member = ("", "") if packed else _archive_and_member(path)
        content: gzip.GzipFile | zipfile.ZipExtFile | io.BufferedReader = (
            packed or gzip.GzipFile(path, "rb") if not archive
            else _of_zip(archive, member) if archive.endswith(ZIP)
            else _of_tar(archive, member, self._files)
        )  # fmt: skip
        self._packed = self._files.enter_context(content)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one piece reaches; the number of bytes."""
        try:
            piece = self._packed.read1(len(buffer))
        except (zlib.error, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
            raise OSError(f"damaged packed data: {error}") from error
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._where)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file, and what it is read from."""
        self._files.close()
        super().close()


def most_bytes() -> int:
    """Most bytes that a packed file may hold."""
    return (number_of(UNPACKED_MIB) or MOST_MIB) << 20


def too_large(where: str) -> InputError:
    """The error for a file that holds more than :func:`most_bytes`."""
    mib = most_bytes() >> 20
    found = f"more than {mib:,} MiB when unpacked"
    return InputError(where, found, f"at most {mib:,} MiB", f"unpack it, or set {UNPACKED_MIB}")


def is_archived(path: str | os.PathLike[str]) -> bool:
    """Whether a path names an archive or a file of one."""
    return bool(_archive_and_member(path)[0])


def _archive_and_member(path: str | os.PathLike[str]) -> tuple[str, str]:
    """An archive and the file of it that a path names ("": the only one); two "" for other paths."""
    for ending in ARCHIVES:
        head, found, member = str(path).partition(ending)
        if found and (member + "/").startswith("/") and os.path.isfile(head + found):
            return head + found, member.removeprefix("/")
    return "", ""


def _of_zip(archive: str, member: str) -> zipfile.ZipExtFile:
    """A file of a zip archive, or the only one."""
    try:
        with zipfile.ZipFile(archive) as files:
            names = [one.filename for one in files.infolist() if not one.is_dir()]
            name = member or (names[0] if len(names) == 1 else "")
            if name in names:
                return cast("zipfile.ZipExtFile", files.open(name))  # keeps the archive open until it is closed itself
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # damaged, of unknown method, encrypted
        raise OSError(f"damaged zip archive: {error}") from error
    raise _without(archive, member, names)


def _of_tar(archive: str, member: str, files: contextlib.ExitStack) -> io.BufferedReader:
    """A file of a tar.gz archive, or the only one, for which it is read twice; ``files`` closes the archive."""
    names = []
    # Counted as a whole, because tar holds long names and the like in memory.
    packed = files.enter_context(Unpacked(archive, gzip.GzipFile(archive)))
    try:
        tar = files.enter_context(tarfile.open(fileobj=packed, mode="r|"))  # noqa: SIM115
        for one in filter(tarfile.TarInfo.isfile, tar):
            names.append(one.name.removeprefix("./"))
            if names[-1] == member:
                return cast("io.BufferedReader", tar.extractfile(one))
    except tarfile.TarError as error:
        raise OSError(f"damaged tar archive: {error}") from error
    if not member and len(names) == 1:
        return _of_tar(archive, names[0], files)
    raise _without(archive, member, names)


def _without(archive: str, member: str, names: list[str]) -> InputError:
    """The error for an archive that has no such file, with the names of those that it has."""
    listed = ", ".join(f"{archive}/{one}" for one in names[:5]) + ", ..." * (len(names) > 5)
    where = archive + f"/{member}" * bool(member)
    return InputError(where, f"an archive of {len(names)} files without this one", f"one of: {listed}")


def opened_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """A file as bytes, unpacked if its name ends in .gz or is of an archive."""
    if "\0" in str(path):  # a ValueError of Python, while all other paths that cannot be are an OSError
        raise OSError("embedded null byte")
    packed = str(path).endswith(".gz") or is_archived(path)
    return io.BufferedReader(Unpacked(path), 1 << 16) if packed else open(path, "rb")


def opened_text(path: str | os.PathLike[str], newline: str | None = None) -> IO[str]:
    """A text in UTF-8, unpacked as by :func:`opened_bytes`; without the byte order mark that spreadsheets put first."""
    return io.TextIOWrapper(opened_bytes(path), encoding="utf-8-sig", newline=newline)


def file_checksum(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file as it lies there, and of the content of one in an archive."""
    with opened_bytes(path) if is_archived(path) else open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
