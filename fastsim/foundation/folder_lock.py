"""One process at a time writes to a folder: a lock of the operating system, released when its process ends.

The lock is a hidden file beside the folder, because the folder itself appears only when it is complete. What counts
is not that the file exists but that a living process holds it, so one that was killed leaves nothing to clear up.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fastsim.errors import ResultError, short
from fastsim.foundation.durable_file import refuse_other_bytes
from fastsim.foundation.written_folder import formers, recovered, refuse_replacing

UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""Errors of file systems that have no locks; a run there goes without one."""
HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}
BYTE = 1 << 30
"""Offset of the byte that is locked where locks are of bytes: beyond the process id, which stays readable."""


@contextmanager
def held(folder: Path, overwrite: bool, grows: bool = False) -> Iterator[None]:
    """Lock a folder while its files are written; ResultError if another process holds the lock or files are there.

    With ``overwrite`` files that fastsim wrote are replaced; a folder that ``grows`` keeps all its files.
    """
    refuse_other_bytes(folder)
    if not grows:
        refuse_folder_in_use(folder, overwrite)
    path, lock = lock_file(folder), -1
    try:
        lock = _locked(folder, path)
        _remove_partial(folder)
        if not grows:
            refuse_folder_in_use(folder, overwrite)  # again: the last holder may just have written them
        yield
    finally:
        if lock >= 0:
            _release(lock, path)


def lock_file(folder: Path) -> Path:
    """The file whose lock is the right to write to this folder."""
    plain = folder.absolute()
    return plain.with_name(f".{plain.name}.lock")


def refuse_folder_in_use(folder: Path, overwrite: bool) -> None:
    """ResultError if the path is a file or a folder with files, unless it may be overwritten and fastsim wrote it."""
    try:
        if "\0" in str(folder):
            raise OSError("embedded null byte")
        there = _is_there(folder)
    except OSError as error:  # too long for a name
        found = f"found {error.strerror or error}, expected the path of a folder"
        raise ResultError(f"{short(str(folder), 200)}: {found}") from None
    if there and not overwrite and (not folder.is_dir() or any(folder.iterdir())):
        raise ResultError(f"{folder}: exists already; choose another folder or overwrite it")
    refuse_replacing(folder)


def _is_there(folder: Path) -> bool:
    """Whether something has this path; OSError if nothing can, for which ``exists`` says no since Python 3.14."""
    try:
        os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def recover(folder: Path) -> None:
    """Give a folder its name back, if the process that was replacing it was killed before it could."""
    if folder.exists() or not formers(folder):
        return
    path, lock = lock_file(folder), -1
    with suppress(OSError, ResultError):  # locked by another process, or read-only
        lock = _locked(folder, path)
        recovered(folder)
    if lock >= 0:
        _release(lock, path)


def _locked(folder: Path, path: Path) -> int:
    """The descriptor of the locked file; ResultError if it cannot be locked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock_if_free(path)
    except OSError as error:
        raise ResultError(f"{folder}: cannot be written: {error.strerror or error}") from error
    if lock < 0:
        holder = f"process {_holder(path)} at work on it"
        raise ResultError(f"{folder}: found {holder}, expected a folder that no other run writes to; wait for its end")
    return lock


def _lock_if_free(path: Path) -> int:
    """The descriptor of the locked file, or -1 if another process holds it."""
    while True:
        # Without O_NOFOLLOW a link with the lock's name would empty the file that it points to.
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(file)
            if _is_still(file, path):
                with suppress(OSError):  # a full disk: then the holder has no name
                    os.ftruncate(file, 0)
                    os.write(file, str(os.getpid()).encode())
                return file
        except OSError as error:
            os.close(file)
            if error.errno in HELD:
                return -1
            raise
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the last holder has just removed it: this name is another file by now


def _lock(file: int) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _is_still(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    try:
        return path.read_text().strip() or "(unknown)"
    except (OSError, ValueError):
        return "(unknown)"


def _release(file: int, path: Path) -> None:
    # Removed while it is held, so that no process can lock a file that is about to go; Windows removes no open file.
    if sys.platform != "win32":
        with suppress(OSError):
            path.unlink()
    os.close(file)
    if sys.platform == "win32":
        with suppress(OSError):
            path.unlink()


def _remove_partial(folder: Path) -> None:
    """Remove partial folders of killed processes; a process that still writes would hold the lock."""
    recovered(folder)
    half = re.compile(rf"\.{re.escape(folder.name)}\.\d+\.partial")
    with suppress(OSError):  # a folder that may not be listed
        for path in list(folder.parent.iterdir()):
            if half.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)
