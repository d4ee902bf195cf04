"""Folders of results: which may be replaced, and how one takes the place of another without a moment with neither.

A folder is replaced only if fastsim wrote it: its record is there, and nothing besides the files that belong to it.
Whatever else stands in it is the user's, and is named in the refusal.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fastsim.errors import ResultError

RUN_RECORD = "run.json"
KEPT_INPUTS = ("cluster", "workload", "typical", "retarget")
"""Inputs of a run that are kept in its folder if they were tables in memory."""
RUN_FILES = frozenset(
    f"{name}.parquet" for name in ("summary", "timeline", "placements", "jobs", "stages", "telemetry", *KEPT_INPUTS)
)
"""Files of a run beside its record."""
DEMO_FILES = frozenset({"report.html", "report.png", "table.csv"})
REPRODUCED_FILES = frozenset({"index.html", "cells.parquet", "curves.parquet"})
AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Arguments of ``renameat2``: paths as they stand, and both names change places at once."""


def refuse_replacing(folder: Path) -> None:
    """ResultError if this folder may not be replaced."""
    reason = refusal(folder)
    if reason:
        raise ResultError(f"{folder}: found {reason}, expected a new or empty folder, or one that a run or demo wrote")


def refusal(folder: Path) -> str:
    """Why this folder may not be replaced; nothing if it may, as one that is empty or not there always may."""
    if not os.path.lexists(folder):
        return ""
    reason = _protected(folder)
    if not reason and (not folder.is_dir() or any(folder.iterdir())):
        stranger = _stranger(folder)
        reason = stranger and f"files that are not of fastsim ({stranger})"
    return reason


def exchange(partial: Path, target: Path, former: Path) -> None:
    """Give ``target`` the folder ``partial``; what it was before is gone.

    Where the system cannot exchange two names at once, the one before is called ``former`` for a moment;
    :func:`recovered` gives its name back if the process was killed in that moment.
    """
    if not target.exists():
        os.replace(partial, target)
    elif _exchanged(partial, target):
        shutil.rmtree(partial, ignore_errors=True)
    else:
        os.replace(f"{target}{os.sep}", former)  # the separator refuses anything that is no folder
        try:
            os.replace(partial, target)
        finally:
            if not target.exists():
                os.replace(former, target)
        shutil.rmtree(former, ignore_errors=True)


def recovered(folder: Path) -> None:
    """Undo or finish the exchange of a process that was killed; no other process may write to the folder meanwhile."""
    for former in formers(folder):
        if os.path.lexists(folder):
            shutil.rmtree(former, ignore_errors=True)
        else:
            os.replace(former, folder)


def formers(folder: Path) -> list[Path]:
    """Former folders of this name that broken exchanges left behind; a user's own folder of such a name is none.

    Beside the folder, a former one may be half removed; without it, a former one is whole.
    """
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.\d+\.former")
    left_over = _is_left_over if os.path.lexists(folder) else _is_whole
    with suppress(OSError):  # a folder that may not be listed
        named = [path for path in folder.absolute().parent.iterdir() if pattern.fullmatch(path.name)]
        return sorted(path for path in named if not path.is_symlink() and path.is_dir() and left_over(path))
    return []


def _is_whole(former: Path) -> bool:
    return not any(former.iterdir()) or not _stranger(former)


def _is_left_over(former: Path) -> bool:
    return {path.name for path in former.iterdir()} <= {RUN_RECORD, "runs"} | RUN_FILES | DEMO_FILES | REPRODUCED_FILES


def _protected(folder: Path) -> str:
    """The kind of a place that must stay whatever it holds, such as a mount point; empty for any other place."""
    if folder.is_symlink():
        return "a symbolic link"
    real, here = folder.resolve(), Path.cwd().resolve()
    if real == here or real in here.parents:
        return "the working folder or one that it is in"
    home = _home()
    if home is not None and (real == home or real in home.parents):
        return "the home folder or one that it is in"
    return "a mount point" if os.path.ismount(real) else ""


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):  # a user without one
        return None


def _stranger(folder: Path) -> str:
    """The first thing here that fastsim did not write, or what is missing; nothing if all of it is ours."""
    if not folder.is_dir():
        return "no folder"
    names = {path.name for path in folder.iterdir()}
    if RUN_RECORD in names:
        return _stranger_of_run(folder)
    if "report.html" in names:
        return next(_strangers_of_demo(folder), "")
    if "cells.parquet" in names and "index.html" in names:
        return next(_others(folder, REPRODUCED_FILES), "")
    return min(names)


def _stranger_of_run(folder: Path) -> str:
    record = _record(folder / RUN_RECORD)
    if not isinstance(record, dict) or not {"provenance", "timing", "citations"} <= record.keys():
        return f"{RUN_RECORD} is not the record of a run"
    return next(_others(folder, RUN_FILES | {RUN_RECORD}), "")


def _strangers_of_demo(folder: Path) -> Iterator[str]:
    yield from _others(folder, DEMO_FILES | {"runs"})
    runs = folder / "runs"
    if not runs.is_dir():
        yield "report.html without the runs of a demo"
        return
    for run in sorted(runs.iterdir()):
        stranger = _stranger(run) if run.is_symlink() or not run.is_dir() else _stranger_of_run(run)
        if stranger:
            yield f"runs/{run.name}: {stranger}"


def _others(folder: Path, known: frozenset[str]) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        kind = path.is_dir() if path.name == "runs" else path.is_file()
        if path.name not in known or path.is_symlink() or not kind:
            yield path.name


def _record(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _exchanged(one: Path, other: Path) -> bool:
    """Whether the two folders have changed places; False where the system cannot do this at once."""
    call = _renameat2()
    return call is not None and call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0


@cache
def _renameat2() -> Any:
    """The function of the C library that exchanges two names, None if it has none."""
    if sys.platform != "linux":
        return None
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call
