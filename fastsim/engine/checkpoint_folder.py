"""Checkpoints: the state of a run at an instant, written beside its folder, from which it goes on to the same bytes.

A run that keeps checkpoints works in the folder ``OUT.checkpoint``: journals of the rows so far, waiting times, and
``state.npz``, which says how much of them counts. It is taken only when every pod that was read has arrived, so the
place in the workload is a number of rows. Kept scores are no part of it: no result depends on them.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Self

import numpy as np

from fastsim.errors import ResultError, ScenarioError
from fastsim.foundation.parquet import replacing

SUFFIX = ".checkpoint"
STATE = "state.npz"
PARTS = ("*.arrows", "*.f8", f".*{STATE}.*.partial")
"""What else is in a working folder: journals, waiting times, a state that was being written."""
SPANS = ("wait", "jct", "lost", "slowdown", "paused", "spoilt")
"""Values of pods that a run keeps beside its tables, eight bytes each, in the order of the compiled loop."""
VERSION = 4
"""Layout of the state file; another one is refused."""


@dataclass(frozen=True)
class Checkpoints:
    """How often checkpoints are written: after every ``pods`` arrivals, every ``wall_s`` seconds of work, or both.

    With ``keep`` the last one stays when the run is complete, so that other runs can fork from it.
    """

    pods: int | None = None
    wall_s: float | None = None
    keep: bool = False

    def check(self) -> None:
        """ScenarioError if these numbers mean nothing."""
        if self.pods is not None and (isinstance(self.pods, bool) or not isinstance(self.pods, int) or self.pods < 1):
            raise ScenarioError("checkpoint_pods", repr(self.pods), "a whole number of 1 or more")
        if self.wall_s is not None and not (isinstance(self.wall_s, int | float) and 0 <= self.wall_s < float("inf")):
            raise ScenarioError("checkpoint_s", repr(self.wall_s), "seconds of 0 or more")


@dataclass(frozen=True)
class Checkpoint:
    """A state: plain values and arrays."""

    meta: dict[str, Any]
    arrays: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Put it in the place of the one before, completely or not at all."""
        text = json.dumps({"version": VERSION, **self.meta})
        with replacing(folder / STATE) as partial, partial.open("wb") as file:
            np.savez(file, meta=np.frombuffer(text.encode(), np.uint8), **self.arrays)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The state in a working folder."""
        path = folder / STATE
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored)
            meta = json.loads(arrays.pop("meta").tobytes())
        except FileNotFoundError as error:
            raise ResultError(f"{folder}: found no {STATE}, expected the checkpoint of a run") from error
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ResultError(f"{path}: cannot be read, expected the checkpoint of a run") from error
        if meta.pop("version", None) != VERSION:
            raise ResultError(f"{path}: found the checkpoint of another version of fastsim, expected version {VERSION}")
        return cls(meta, arrays)

    def parts(self) -> dict[str, int]:
        """The files that belong to the state, and how many bytes of each count."""
        tables, waits = self.meta["tables"].values(), self.meta["waits"]
        sizes = {file: size for segments in tables for file, size in segments}
        return sizes | {f"{name}.f8": 8 * waits[name] for name in SPANS}

    def check_parts(self, folder: Path) -> None:
        """ResultError if one of them is missing in this folder, or has lost its end."""
        for name, size in self.parts().items():
            path = folder / name
            found = path.stat().st_size if path.is_file() else None
            if found is None or found < size:
                told = "no such file" if found is None else f"{found} bytes"
                raise ResultError(f"{path}: found {told}, expected at least {size} bytes, as its checkpoint says")


def working_folder(out: Path) -> Path:
    """Where a run to this folder keeps its checkpoint; the working folder itself is taken for what it is."""
    return out if out.name.endswith(SUFFIX) else out.with_name(out.name + SUFFIX)


@contextmanager
def unfinished(out: Path, keeping: Checkpoints, taken_over: bool, overwrite: bool) -> Iterator[Path]:
    """The working folder of a run: removed when the run is complete, kept when there is something to go on from."""
    folder = working_folder(out)
    if folder.exists() and not taken_over:
        _refuse_strangers(folder)
        if (folder / STATE).exists() and not overwrite:
            raise ResultError(f"{folder}: an unfinished run is there; resume it or overwrite it")
        cleared(folder)  # one that was killed before its first checkpoint is no loss
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
    try:
        yield folder
    except BaseException:
        if not (folder / STATE).exists():
            cleared(folder)
        raise
    if not keeping.keep or not (folder / STATE).exists():
        cleared(folder)


def cleared(folder: Path) -> None:
    """Remove a working folder; what no run wrote stays, and the folder with it."""
    with suppress(OSError):
        for path in sorted(folder.iterdir(), key=lambda path: path.name != STATE):
            if _is_ours(path):
                path.unlink()
        folder.rmdir()


def _is_ours(path: Path) -> bool:
    known = (STATE, *PARTS)
    return any(fnmatch(path.name, pattern) for pattern in known) and path.is_file() and not path.is_symlink()


def _refuse_strangers(folder: Path) -> None:
    """ResultError if the folder, which is about to be replaced, holds anything that no run wrote."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    strange = [path.name for path in paths if not _is_ours(path)]
    if strange:
        raise ResultError(f"{folder}: found {strange[0]}, expected the checkpoint of a run or no such folder")
