"""Checkpoints: the state of a run at an instant, beside its folder, from which a resumed run writes the same bytes.

A run with checkpoints works in the folder ``OUT.checkpoint``: journals of the rows so far, waiting times, and
``state.npz``, which has their valid sizes. A checkpoint is taken only when all pods read so far have arrived, so the
position in the workload is a number of rows. Cached scores are left out: no result depends on them.
"""

from __future__ import annotations

import json
import os
import shutil
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
"""Other files of a working folder: journals, waiting times, an incomplete state."""
SPANS = ("wait", "jct", "lost", "slowdown", "paused", "spoilt")
"""Values of pods that a run stores beside its tables, eight bytes each, in the order of the compiled loop."""
VERSION = 5
"""Layout of the state file; another one is refused."""


@dataclass(frozen=True)
class Checkpoints:
    """The interval of checkpoints: every ``pods`` arrivals, every ``wall_s`` seconds of work, or both.

    With ``keep`` the last one stays when the run is complete, so that other runs can fork from it.
    """

    pods: int | None = None
    wall_s: float | None = None
    keep: bool = False

    def check(self) -> None:
        """ScenarioError if one of the numbers is not valid."""
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
        """Replace the state in a folder, completely or not at all."""
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
        """The files that belong to the state, and their valid sizes in bytes."""
        tables, waits = self.meta["tables"].values(), self.meta["waits"]
        sizes = {file: size for segments in tables for file, size in segments}
        return sizes | {f"{name}.f8": 8 * waits[name] for name in SPANS}

    def check_parts(self, folder: Path) -> None:
        """ResultError if a file of the state is missing in this folder, or too short."""
        for name, size in self.parts().items():
            path = folder / name
            actual = path.stat().st_size if path.is_file() else None
            if actual is None or actual < size:
                found = "no such file" if actual is None else f"{actual} bytes"
                raise ResultError(f"{path}: found {found}, expected at least {size} bytes, as its checkpoint says")


def working_folder(out: Path) -> Path:
    """The folder of the checkpoint of a run to ``out``, which may be that folder itself."""
    return out if out.name.endswith(SUFFIX) else out.with_name(out.name + SUFFIX)


@contextmanager
def unfinished(out: Path, checkpoints: Checkpoints, taken_over: bool, overwrite: bool) -> Iterator[Path]:
    """The working folder of a run: removed when the run is complete, kept when it fails after a checkpoint."""
    folder = working_folder(out)
    if folder.exists() and not taken_over:
        _refuse_other_files(folder)
        if (folder / STATE).exists() and not overwrite:
            raise ResultError(f"{folder}: an unfinished run is there; resume it or overwrite it")
        shutil.rmtree(folder)  # without a checkpoint nothing is lost
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
    try:
        yield folder
    except BaseException:
        if not (folder / STATE).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if not checkpoints.keep or not (folder / STATE).exists():
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_other_files(folder: Path) -> None:
    """ResultError if the folder, which is about to be replaced, has files that no run wrote."""
    known = (STATE, *PARTS)
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [folder.name]
    other = [name for name in names if not any(fnmatch(name, pattern) for pattern in known)]
    if other:
        raise ResultError(f"{folder}: found {other[0]}, expected the checkpoint of a run or no such folder")
