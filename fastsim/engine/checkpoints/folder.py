"""The working folder of a run with checkpoints: when it is made, kept and removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.errors import ResultError, ScenarioError

SUFFIX = ".checkpoint"
STATE = "state.npz"
PARTS = ("*.arrows", "*.f8", f".*{STATE}.*.partial")
"""Other files of a working folder: journals, waiting times, an incomplete state."""


def working_folder(out: Path) -> Path:
    """The folder of the checkpoint of a run to ``out``, which may be that folder itself."""
    return out if out.name.endswith(SUFFIX) else out.with_name(out.name + SUFFIX)


@contextmanager
def unfinished(out: Path | None, checkpoints: Checkpoints, taken_over: bool, overwrite: bool) -> Iterator[Path]:
    """The working folder of a run: removed when the run is complete, kept when it fails after a checkpoint."""
    checkpoints.check()
    if out is None:
        raise ScenarioError("checkpoint", "a run without a folder", "out=FOLDER; the checkpoint stands beside it")
    folder = working_folder(out)
    if folder.exists() and not taken_over:
        _refuse_other_files(folder)
        if (folder / STATE).exists() and not overwrite:
            raise ResultError(f"{folder}: an unfinished run is there; resume it or overwrite it")
        cleared(folder)  # without a checkpoint nothing is lost
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
    try:
        yield folder
    except BaseException:
        if not (folder / STATE).exists():
            cleared(folder)
        raise
    if not checkpoints.keep or not (folder / STATE).exists():
        cleared(folder)


def cleared(folder: Path) -> None:
    """Remove a working folder; what no run wrote stays, and the folder with it."""
    with suppress(OSError):
        for path in sorted(folder.iterdir(), key=lambda path: path.name != STATE):
            if _is_part(path):
                path.unlink()
        folder.rmdir()


def _is_part(path: Path) -> bool:
    known = (STATE, *PARTS)
    return any(fnmatch(path.name, pattern) for pattern in known) and path.is_file() and not path.is_symlink()


def _refuse_other_files(folder: Path) -> None:
    """ResultError if the folder, which is about to be replaced, has files that no run wrote."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    other = [path.name for path in paths if not _is_part(path)]
    if other:
        raise ResultError(f"{folder}: found {other[0]}, expected the checkpoint of a run or no such folder")
