"""Checkpoints: the state of a run at an instant, beside its folder, from which a resumed run writes the same bytes.

A run with checkpoints works in the folder ``OUT.checkpoint``: journals of the rows so far, waiting times, and
``state.npz``, which has their valid sizes. A checkpoint is taken only when all pods read so far have arrived, so the
position in the workload is a number of rows. Cached scores are left out: no result depends on them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Self

import numpy as np

from fastsim.errors import ResultError, ScenarioError, StoredError
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import replacing

SUFFIX = ".checkpoint"
STATE = "state.npz"
PARTS = ("*.arrows", "*.f8", f".*{STATE}.*.partial")
"""Other files of a working folder: journals, waiting times, an incomplete state."""
SPANS = ("wait", "jct", "lost", "slowdown", "paused", "wasted")
"""Values of pods that a run stores beside its tables, eight bytes each, in the order of the compiled loop."""
VERSION = 6
"""Layout of the state file; another one is refused."""
MOST = 1 << 62
"""More than any count or amount in a state."""
LATEST = 1e300
"""Later than any time in a state, seconds."""
COUNT, SPAN, TIME = (0, MOST), (0.0, LATEST), (-LATEST, LATEST)
"""Ranges of counts, of seconds, and of times."""
UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, OverflowError, MemoryError, RuntimeError,
    SyntaxError, struct.error, zipfile.BadZipFile,
)  # fmt: skip
"""Exceptions from reading a damaged file, or one that is no state."""


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
        write_state(folder / STATE, "meta", {"version": VERSION}, self.meta, self.arrays)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The state in a working folder."""
        path = folder / STATE
        try:
            meta, arrays = stored_state_of(path, "meta")
        except FileNotFoundError as error:
            raise ResultError(f"{folder}: found no {STATE}, expected the checkpoint of a run") from error
        except UNREADABLE as error:
            raise StoredError(f"{path}: cannot be read, expected the checkpoint of a run") from error
        checksum = meta.pop("checksum", None)
        if meta.pop("version", None) != VERSION:
            raise StoredError(f"{path}: found the checkpoint of another version of fastsim, expected version {VERSION}")
        if checksum != state_checksum(meta, arrays):
            raise StoredError(f"{path}: found other bytes than were written, expected the checkpoint of a run")
        return cls(meta, arrays)

    def parts(self) -> dict[str, int]:
        """The files that belong to the state, and their valid sizes in bytes."""
        tables, waits = self.meta["tables"].values(), self.meta["waits"]
        sizes = {file: size for segments in tables for file, size in segments}
        return sizes | {f"{name}.f8": 8 * waits[name] for name in SPANS}

    def check_parts(self, folder: Path) -> None:
        """StoredError if a file of the state is missing in this folder, has lost its end or holds other bytes."""
        checksums = PartChecksums(folder)
        for name, size in self.parts().items():
            path = folder / name
            actual = path.stat().st_size if path.is_file() else None
            if actual is None or actual < size:
                found = "no such file" if actual is None else f"{actual} bytes"
                raise StoredError(f"{path}: found {found}, expected at least {size} bytes, as its checkpoint has it")
            if checksums.of(name, size) != self.meta.get("checksums", {}).get(name):
                raise StoredError(f"{path}: found other bytes than were written, expected those of the checkpoint")


class PartChecksums:
    """SHA-256 of the beginnings of files that only grow; each byte is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[int, Any]] = {}

    def of(self, name: str, size: int) -> str:
        """The checksum of the first ``size`` bytes, in hexadecimal digits."""
        done, total = self._known.get(name, (0, None))
        if total is None or done > size:  # a file that was cut
            done, total = 0, hashlib.sha256()
        with open(self._folder / name, "rb") as file:
            file.seek(done)
            while done < size and (piece := file.read(min(size - done, 1 << 20))):
                total.update(piece)
                done += len(piece)
        self._known[name] = done, total
        return str(total.hexdigest())


def write_state(
    path: Path, header: str, layout: Mapping[str, Any], meta: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Put a state in the place of the file, completely or not at all; ``header`` names the entry without arrays.

    ``layout`` comes first in the header, then the checksum of everything else, then ``meta``.
    """
    plain = json.loads(json.dumps(meta))
    text = json.dumps({**layout, "checksum": state_checksum(plain, arrays), **plain})
    with replacing(path) as partial, partial.open("wb") as file:
        parts: dict[str, Any] = {header: np.frombuffer(text.encode(), np.uint8), **arrays}
        np.savez(file, **parts)
        file.flush()
        os.fsync(file.fileno())


def stored_state_of(path: str | os.PathLike[str], header: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file; one of ``UNREADABLE`` if it is something else."""
    with open(path, "rb") as file:
        with zipfile.ZipFile(file) as stored:
            # A state has no compressed parts: with them refused, no part is larger than the file.
            if any(part.compress_type != zipfile.ZIP_STORED for part in stored.infolist()):
                raise ValueError("packed arrays")
            for name in stored.namelist():
                _refuse_shape(stored, name)
        file.seek(0)
        with np.load(file, allow_pickle=False) as parts:
            arrays = dict(parts)
    meta = json_value(arrays.pop(header).tobytes())
    if not isinstance(meta, dict):
        raise ValueError("no mapping")
    return meta, arrays


def _refuse_shape(stored: zipfile.ZipFile, name: str) -> None:
    """ValueError if the declared shape of an array does not match its bytes, before memory is allocated for it."""
    with stored.open(name) as part:
        major, _ = np.lib.format.read_magic(part)
        header_of = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, kind = header_of(part)
        if kind.hasobject or math.prod(shape) * kind.itemsize + part.tell() != stored.getinfo(name).file_size:
            raise ValueError(f"{name} of another size than its header has")


def state_checksum(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """SHA-256 of a state, its values as JSON has them, in hexadecimal digits."""
    total = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"{name}:{arrays[name].dtype.str}:{arrays[name].shape};".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


def check_range(values: Any, low: Any, high: Any, name: str, *, missing: bool = False) -> None:
    """ValueError naming the first of the values that is not from ``low`` to ``high``, and its position.

    NaN is within no range, but passes if values may be ``missing``.
    """
    values = np.asarray(values)
    wrong = ~((values >= low) & (values <= high))
    if missing:
        wrong &= ~np.isnan(values)
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        least, most = (np.broadcast_to(bound, values.shape)[at] for bound in (low, high))
        where = f"[{', '.join(map(str, at))}]" if at else ""
        raise ValueError(f"{name}{where} = {values[at]} (allowed: {least} to {most})")


def check_records(records: Any, ranges: Mapping[str, tuple[Any, ...]], name: str) -> None:
    """:func:`check_range` for fields of records, whose ranges may end with True: values may be missing."""
    for field, limits in ranges.items():
        low, high = limits[:2]
        check_range(records[field], low, high, f"{name}.{field}", missing=limits[2:] == (True,))


def check_numbers(numbers: Any, ranges: Mapping[str, tuple[Any, ...]], name: str) -> None:
    """ValueError unless ``numbers`` has a number within the range of each name, whole where both ends are."""
    if not isinstance(numbers, Mapping):
        raise ValueError(f"{name} of type {type(numbers).__name__}")
    for key, (low, high, *missing) in ranges.items():
        value, whole = numbers.get(key), isinstance(low, int) and isinstance(high, int)
        if not isinstance(value, int if whole else int | float) or (not whole and isinstance(value, bool)):
            raise ValueError(f"{name}.{key} of type {type(value).__name__}")
        if not low <= value <= high and not (missing and value != value):
            raise ValueError(f"{name}.{key} = {value} (allowed: {low} to {high})")


def records_of(arrays: Mapping[str, Any], name: str, kind: np.dtype[Any], count: int | None = None) -> Any:
    """An array of bytes as records of this type; ValueError if it is none, or has another ``count`` of them."""
    part = arrays[name]
    if part.dtype != np.uint8 or part.ndim != 1 or part.nbytes % kind.itemsize:
        raise ValueError(f"{name} of {part.dtype} and shape {part.shape}, no bytes of records")
    records = part.view(kind)
    if count is not None and len(records) != count:
        raise ValueError(f"{len(records)} records of {name}, expected {count}")
    return records


def check_stored_run(scenario: Any, checkpoints: Any) -> None:
    """ValueError unless these are the scenario and the interval of checkpoints that a state has for a later start."""
    fields, objects = scenario["fields"], scenario["objects"]
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in objects):
        raise ValueError("scenario, no fields and names of objects")
    Checkpoints(**checkpoints).check()


@contextmanager
def restoring(where: Path | str, expected: str = "the checkpoint of a run") -> Iterator[None]:
    """Errors because of wrong values in a state that is restored become a StoredError."""
    try:
        yield
    except (*UNREADABLE, IndexError, AssertionError, RecursionError) as error:
        missing = f"no {error}" if isinstance(error, KeyError) else ""
        reason = " ".join((missing or str(error) or type(error).__name__).split())[:200]
        raise StoredError(f"{where}: found {reason}, expected {expected}") from error


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
