"""The state of a run between two steps, from which a resumed run writes the same bytes.

A run with checkpoints works in the folder ``OUT.checkpoint``, whose ``state.npz`` has the state. Runs of pods write
journals of their rows and waiting times beside it, of which the state has the valid sizes. Cached scores are left out:
no result depends on them.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from fastsim.engine.checkpoints.clock import Checkpoints
from fastsim.engine.checkpoints.folder import STATE
from fastsim.engine.checkpoints.state_file import (
    UNREADABLE,
    restoring,
    state_checksum,
    stored_state_of,
    write_state,
)
from fastsim.engine.checkpoints.value_checks import COUNT, SPAN, TIME, check_numbers
from fastsim.errors import ResultError, ScenarioError, StoredError

KIND = "fastsim.state"
"""Type of the file, as its header has it."""
VERSION = 12
"""Layout of the file; another one is refused."""
LAYOUT = ("kind", "version", "engine", "checksum")
"""Entries of the header that describe the file."""
ENGINES = ("pods", "shares", "orders", "adaptive")
"""Engines that keep checkpoints."""
SPANS = ("wait", "jct", "lost", "slowdown", "paused", "wasted")
"""Values of pods that a run stores beside its tables, eight bytes each, in the order of the compiled loop."""
NOTES: dict[str, Any] = {
    "scenario": dict, "checkpoints": dict, "forked_from": dict | None, "process": int, "spent": dict,
}  # fmt: skip
"""Notes beside a state, from which a later start can build the same run, and their types.

``scenario`` is stored as :meth:`fastsim.scenario.scenario.Scenario.written` gives it, ``spent`` has seconds of wall and
of CPU of all starts.
"""


@dataclass(frozen=True, eq=False)
class RunState:
    """The state of a run of an engine: ``meta`` are values as JSON has them."""

    engine: str
    meta: dict[str, Any]
    arrays: dict[str, Any]

    @property
    def note(self) -> dict[str, Any]:
        """Notes (``NOTES``) that the run wrote beside its state."""
        return dict(self.meta.get("note", {}))

    @property
    def now_s(self) -> float:
        """Simulated time, seconds."""
        return float(self.meta["now_s"])

    @property
    def arrived(self) -> int:
        """Pods or jobs that had arrived."""
        return int(self.meta["arrived"])

    def noted(self, **notes: Any) -> Self:
        """The same state with further or other notes."""
        return self.having(note=self.note | notes)

    def having(self, **values: Any) -> Self:
        """The same state with further or other plain values."""
        return replace(self, meta=self.meta | values)

    def without_memory(self) -> Self:
        """The same state for another policy, which begins without a state of its own."""
        return self.having(policy=None, memory=None)

    # ------------------------------------------------------------------ its file

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace the file, completely or not at all."""
        write_state(Path(path), {"kind": KIND, "version": VERSION, "engine": self.engine}, self.meta, self.arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The state in a file; ResultError if it is missing, damaged or something else."""
        expected = "expected the checkpoint of a run"
        try:
            meta, arrays = stored_state_of(path)
            kind, version, engine, checksum = (
                meta.pop(name, None) for name in ("kind", "version", "engine", "checksum")
            )
        except FileNotFoundError as error:
            raise ResultError(f"{path}: found no such file, {expected}") from error
        except UNREADABLE as error:
            raise StoredError(f"{path}: cannot be read, {expected}") from error
        if kind != KIND or version != VERSION or engine not in ENGINES:
            found = f"the state of a run of version {version}" if isinstance(version, int) else "another file"
            raise StoredError(f"{path}: found {found}, expected version {VERSION} of this fastsim")
        if checksum != state_checksum(meta, arrays):
            raise StoredError(f"{path}: found other bytes than were written, {expected}")
        return cls(engine, meta, arrays)

    # ------------------------------------------------------------------ files beside it

    def parts(self) -> dict[str, int]:
        """The files that belong to the state, and their valid sizes in bytes; jobs in rounds have none."""
        if "tables" not in self.meta:
            return {}
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


def stored_state(work: Path) -> RunState:
    """The state in a working folder with all its notes; StoredError if it is damaged or something else."""
    path = work / STATE
    state = RunState.read(path)
    missing = next((name for name in NOTES if name not in state.note), None)
    if missing is not None:
        raise StoredError(f"{path}: found a state without {missing}, expected the checkpoint of fs.simulate")
    with restoring(work):
        check_notes(state.note)
        check_numbers(state.meta, {"now_s": (-math.inf, TIME[1]), "arrived": COUNT}, "header")
    return state


def check_notes(note: Mapping[str, Any]) -> None:
    """ValueError unless the notes of a state are of their types, with a scenario and an interval of checkpoints."""
    for name, kind in NOTES.items():
        if not isinstance(note[name], kind):
            raise ValueError(f"note.{name} of type {type(note[name]).__name__}")
    scenario = note["scenario"]
    if not isinstance(scenario["fields"], dict) or not all(isinstance(name, str) for name in scenario["objects"]):
        raise ValueError("scenario, no fields and names of objects")
    Checkpoints(**note["checkpoints"]).check()
    check_numbers(note["spent"], dict.fromkeys(("wall_s", "cpu_s"), SPAN), "note.spent")


def short_text(value: Any) -> str:
    """A value for a message about a state, cut after 80 characters."""
    text = str(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def other_than(where: str, now: Any, then: Any) -> ScenarioError:
    """The error about a property of a resumed run that must be as it was before."""
    return ScenarioError(where, short_text(now), f"{short_text(then)}, as before")


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
