"""Checkpoints of runs in rounds: when one is due, the file of a state, and the writer in a working folder.

A resumed run reads the same jobs again and skips those that had arrived; its result is that of an uninterrupted run,
to the bit. After ``RoundCheckpoint.without_memory`` another policy may resume, so that many policies share one warm-up;
its state is empty, and it allocates as soon as ``realloc_s`` allows.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fastsim.engine.checkpoint_folder import (
    STATE,
    UNREADABLE,
    Checkpoints,
    check_range,
    check_stored_run,
    restoring,
    state_checksum,
    stored_state_of,
    write_state,
)
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.tables import ROW
from fastsim.errors import InputError, PolicyError, ResultError, ScenarioError, StoredError
from fastsim.foundation.limits.knobs import CHECKPOINT_PODS
from fastsim_ext.rounds import snapshot as round_state
from fastsim_ext.rounds.loop import RoundLoop

KIND = "fastsim.rounds"
"""Type of the file, as its header has it."""
VERSION = 11
"""Layout of the file; another one is refused."""
OFTEN = 64
"""Rounds between two readings of the clock, if checkpoints are due after seconds of work."""
DECIDED = (
    "policies", "gpu_models", "gpus", "seed", "rates", "round_s", "realloc_s", "restart_s", "window", "global_queue",
    "prices", "compat", "endless", "recorded", "measured", "records", "estimates", "begin_s",
)  # fmt: skip
"""Properties of a run that a resumed run must share; the end of the run may differ."""
COLUMNS = ("submit_s", "kind", "num_gpu", "total", "weight", "deadline_s", "tenant")
"""Fields of a job's record in the order of the columns of a batch."""
NOTES = ("scenario", "checkpoints", "forked_from", "process", "spent_s")
"""Notes beside every state, from which a later start can build the same run."""


@dataclass(frozen=True)
class CheckpointSchedule:
    """The file of a run's checkpoints, each of which replaces the one before, and when one is due.

    ``every_rounds``: after so many rounds. ``every_jobs``: after so many arrivals, or up to ``OFTEN`` rounds later.
    ``wall_s``: after so many seconds of work. ``at_job``: once, after the round in which the job with this id came, or
    the next one. ``at_end``: when the run ends. The file stays when the run is complete. ``note`` answers further
    values for each checkpoint, as JSON has them.
    """

    path: str | os.PathLike[str]
    every_rounds: int | None = None
    wall_s: float | None = None
    at_job: int | None = None
    every_jobs: int | None = None
    at_end: bool = False
    note: Callable[[], Mapping[str, Any]] = dict

    def __post_init__(self) -> None:
        for name, low in (("every_rounds", 1), ("every_jobs", 1), ("at_job", 0)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < low):
                raise ScenarioError(f"checkpoint: {name}", repr(value), f"a whole number of {low} or more")
        if self.wall_s is not None and not 0 <= self.wall_s < math.inf:
            raise ScenarioError("checkpoint: wall_s", repr(self.wall_s), "seconds of 0 or more")


class CheckpointClock:
    """When the next checkpoint of a run is due; ``rounds`` and ``arrived`` count rounds and arrivals so far."""

    def __init__(self, schedule: CheckpointSchedule, rounds: int, arrived: int) -> None:
        self.schedule = schedule
        self._coming = schedule.at_job is not None and arrived <= schedule.at_job
        self._counted = 0
        self.restart(rounds, arrived)

    def restart(self, rounds: int, arrived: int) -> None:
        """A checkpoint has been written."""
        self._rounds, self._arrived, self._looked, self._at_s = rounds, arrived, rounds, time.monotonic()

    def budget(self, rounds: int, most: int) -> int:
        """Rounds that may be played before the next call of :meth:`due`; a round that has begun counts."""
        every = self.schedule.every_rounds
        until = rounds + most if every is None else self._rounds + every
        if self.schedule.wall_s is not None:
            until = min(until, self._looked + OFTEN)
        if self.schedule.every_jobs is not None:
            until = min(until, self._looked + min(OFTEN, self.schedule.every_jobs))
        if self._coming:
            until = min(until, self._looked + 1)
        return max(min(most, until - rounds), 0)

    def due(self, rounds: int, arrived: int) -> bool:
        """Whether a checkpoint should be written now, between two rounds."""
        schedule, self._looked = self.schedule, rounds
        came = self._coming and schedule.at_job is not None and arrived > schedule.at_job
        self._coming = self._coming and not came
        by_rounds = schedule.every_rounds is not None and rounds - self._rounds >= schedule.every_rounds
        by_time = schedule.wall_s is not None and time.monotonic() - self._at_s >= schedule.wall_s
        by_jobs = schedule.every_jobs is not None and arrived - self._arrived >= schedule.every_jobs
        self._counted += by_rounds or by_jobs
        CHECKPOINT_PODS.count(self._counted)
        return came or by_rounds or by_time or by_jobs


@dataclass(frozen=True, eq=False)
class RoundCheckpoint:
    """A state between two rounds: ``meta`` are values as JSON has them, ``arrays`` the bytes of records."""

    meta: dict[str, Any]
    arrays: dict[str, Any]

    @property
    def note(self) -> dict[str, Any]:
        """Values that the run wrote beside its state."""
        return dict(self.meta.get("note", {}))

    def noted(self, **notes: Any) -> Self:
        """The same state with further or other notes."""
        return replace(self, meta=self.meta | {"note": self.note | notes})

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self.meta["loop"]["rounds"])

    @property
    def now_s(self) -> float:
        """Simulated time, seconds."""
        return float(self.meta["loop"]["now_s"])

    def without_memory(self) -> Self:
        """The same state for another policy, which begins without a state of its own."""
        return replace(self, meta=self.meta | {"policy": None, "memory": None})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace the file, completely or not at all."""
        write_state(Path(path), "header", {"kind": KIND, "version": VERSION}, self.meta, self.arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The state in a file; ResultError if it is missing, damaged or something else."""
        expected = "expected the checkpoint of a run in rounds"
        try:
            meta, arrays = stored_state_of(path, "header")
            if not isinstance(meta.get("note", {}), dict):
                raise TypeError("notes that are no mapping")
            kind, version, checksum = (meta.pop(name) for name in ("kind", "version", "checksum"))
        except FileNotFoundError as error:
            raise ResultError(f"{path}: found no such file, {expected}") from error
        except UNREADABLE as error:
            raise StoredError(f"{path}: cannot be read, {expected}") from error
        if kind != KIND or version != VERSION:
            raise StoredError(f"{path}: found {kind!r} of version {version}, expected {KIND!r} of version {VERSION}")
        if checksum != state_checksum(meta, arrays):
            raise StoredError(f"{path}: found other bytes than were written, {expected}")
        return cls(meta, arrays)

    def check(self, decided: Mapping[str, Any], policy: list[Any]) -> None:
        """ScenarioError or PolicyError if a run with other properties or another policy is to resume from here."""
        then = self.meta["decided"]
        for name in DECIDED:
            if then[name] != decided[name]:
                raise ScenarioError(f"checkpoint: {name}", _short(decided[name]), f"{_short(then[name])}, as before")
        if self.meta["policy"] is not None and self.meta["policy"] != policy:
            expected = f"{_short(self.meta['policy'])}, as before"
            raise PolicyError("checkpoint", _short(policy), expected, "another policy goes on with without_memory()")

    def restore(self, loop: RoundLoop) -> None:
        """Restore the state of a loop that has not begun."""
        with restoring("checkpoint", "the state of a run in rounds"):
            round_state.restore(loop, self.meta["loop"], self.arrays)

    def rest(self, batches: Iterable[JobBatch]) -> Iterator[JobBatch]:
        """The jobs that had not arrived; those that had must be the same."""
        start = 0
        for batch in batches:
            rest = self._rest_of(batch, start)
            start += len(batch.kind)
            if len(rest.kind):
                yield rest
        if start < len(self.arrived):
            expected = f"at least {len(self.arrived)}, as when the checkpoint was written"
            raise InputError("workload", f"{start} jobs", expected)

    @property
    def jobs(self) -> int:
        """How many jobs had arrived."""
        return len(self.meta["jobs"]) if "jobs" in self.meta else len(self.arrived)

    @cached_property
    def arrived(self) -> npt.NDArray[Any]:
        """Records of the jobs that had arrived, by id."""
        jobs = np.concatenate([self.arrays[name].view(GANG) for name in ("ended_jobs", "gangs")])
        return jobs[np.argsort(jobs["id"])]

    def _rest_of(self, batch: JobBatch, start: int) -> JobBatch:
        here = self.arrived[start : start + len(batch.kind)]
        columns: list[npt.NDArray[Any]] = list(batch)
        for name, column in zip(COLUMNS, columns, strict=True):
            wrong = here[name] != column[: len(here)]
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                expected = f"{here[name][row]}, as when the checkpoint was written"
                raise InputError(f"job {start + row}: {name}", column[row], expected)
        return JobBatch(*(column[len(here) :] for column in columns))


def decisions(
    setting: Setting, options: RoundOptions, gpus: tuple[int, ...], recorded: bool, measured: bool
) -> dict[str, Any]:
    """Everything that decides a run in rounds besides its jobs and its policy."""
    names = ("round_s", "realloc_s", "restart_s", "global_queue", "endless", "begin_s")
    return {
        "policies": "of shares", "window": None if options.window is None else list(options.window),
        "gpu_models": list(setting.gpu_models), "gpus": list(gpus), "seed": setting.seed, "rates": _rates(setting),
        "prices": options.prices is not None, "compat": sorted(options.compat), "recorded": recorded,
        "measured": measured, "records": [repr(kind.descr) for kind in (GANG, MOMENT, ROW)],
        **{name: getattr(options, name) for name in names},
    }  # fmt: skip


def _rates(setting: Setting) -> str:
    total = hashlib.sha256(repr(setting.oracle.kinds).encode())
    for table in (setting.oracle.alone__kg, setting.oracle.shared__kkg):
        one = table.size > 1 and not any(table.strides)  # all cells are one place in memory
        total.update(repr(table.shape).encode() if one else b"")
        total.update(np.ascontiguousarray(table[:1, :1, :1] if one else table).tobytes())
    return total.hexdigest()


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 80 else f"{text[:77]}..."


class RoundCheckpointWriter:
    """Writes the state of a run to its working folder; ``start`` is the state that the run begins with, if any.

    ``scenario`` is stored with every checkpoint, as :meth:`fastsim.scenario.scenario.Scenario.written` gives it.
    """

    def __init__(
        self, folder: Path, checkpoints: Checkpoints, scenario: Mapping[str, Any], start: RoundCheckpoint | None = None
    ) -> None:
        self.start, self.scenario, self.checkpoints = start, dict(scenario), checkpoints
        self.forked_from: dict[str, Any] | None = None if start is None else start.note.get("forked_from")
        self.schedule = CheckpointSchedule(
            folder / STATE, wall_s=checkpoints.wall_s, every_jobs=checkpoints.pods, note=self.note
        )
        self._began = (time.perf_counter(), time.process_time())

    @property
    def spent_s(self) -> tuple[float, float]:
        """Seconds of wall and of CPU that earlier starts of the run took."""
        wall_s, cpu_s = (0.0, 0.0) if self.start is None else self.start.note.get("spent_s", (0.0, 0.0))
        return float(wall_s), float(cpu_s)

    def note(self) -> dict[str, Any]:
        """The notes (``NOTES``) for a later start."""
        now = (time.perf_counter(), time.process_time())
        spent_s = [before + at - began for before, at, began in zip(self.spent_s, now, self._began, strict=True)]
        return {
            "scenario": self.scenario, "checkpoints": asdict(self.checkpoints), "forked_from": self.forked_from,
            "process": os.getpid(), "spent_s": spent_s,
        }  # fmt: skip


def is_of_rounds(work: Path) -> bool:
    """Whether a working folder holds the state of a run in rounds, and not of pods or of nothing."""
    try:
        with zipfile.ZipFile(work / STATE) as stored:
            return "header.npy" in stored.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def stored_state(work: Path) -> RoundCheckpoint:
    """The state in a working folder with all its notes; StoredError if it is damaged or something else."""
    state = RoundCheckpoint.read(work / STATE)
    missing = [name for name in NOTES if name not in state.note]
    if missing:
        raise StoredError(f"{work / STATE}: found a state without {missing[0]}, expected the checkpoint of fs.simulate")
    with restoring(work):
        check_stored_run(state.note["scenario"], state.note["checkpoints"])
        check_range(np.array(state.note["spent_s"], float), 0.0, math.inf, "note.spent_s")
        if not isinstance(state.note["forked_from"], dict | None):
            raise ValueError(f"note.forked_from of type {type(state.note['forked_from']).__name__}")
        check_range([state.rounds, state.now_s, state.jobs], -math.inf, math.inf, "rounds, time and jobs")
    return state
