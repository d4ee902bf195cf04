"""Frames of the user's own code in a traceback: the last ones that are not of fastsim or a library."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path

MOST_FRAMES = 3
"""Frames that are shown."""
OWN = (str(Path(__file__).parents[2]) + os.sep, str(Path(__file__).parents[3] / "fastsim_ext") + os.sep)
"""Beginnings of the paths of fastsim's files; compiled modules name theirs relative to the checkout."""
LIBRARIES = {"site-packages", "dist-packages"}
"""Names of folders of installed libraries."""


def users_frames(error: BaseException | None) -> Sequence[str]:
    """Lines about the last frames in files of the user's; none where fastsim or a library failed by itself."""
    if error is None:
        return ()
    frames = traceback.extract_tb(error.__traceback__)
    ours = [place for place, frame in enumerate(frames) if _is_own(frame.filename)]
    called = frames[ours[-1] + 1 :] if ours else frames
    users = [frame for frame in called if not _is_of_library(frame.filename)][-MOST_FRAMES:]
    if not users:
        return ()
    lines = [line for frame in users for line in (f"  {frame.filename}:{frame.lineno} in {frame.name}",
                                                  *([f"    {frame.line}"] if frame.line else []))]  # fmt: skip
    return [*lines, f"  {type(error).__name__}: {' '.join(str(error).split())}"]


def _is_own(path: str) -> bool:
    return path.startswith((*OWN, "fastsim_ext" + os.sep))


def _is_of_library(path: str) -> bool:
    paths = sysconfig.get_paths()
    if not os.path.isabs(path):  # made at run time, or compiled: these name their sources as they were built
        return True
    if LIBRARIES & set(Path(path).parts):  # also of a user's own installation, or one that a path file names
        return True
    return path.startswith(tuple(paths[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")))
