"""How a run in rounds keeps its checkpoints beside its folder, and what a later start finds written in them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastsim.engine.checkpoint_folder import STATE, Checkpoints, unfinished
from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping
from fastsim.errors import ResultError, ScenarioError

NOTES = ("scenario", "keeping", "forked_from", "process", "spent_s")
"""What is written with every state, so that a later start can build the same run."""


class RoundSaving:
    """Keeps the state of a run in its working folder; ``start`` is the state it begins with, if any.

    ``scenario`` is stored with every checkpoint, as :meth:`fastsim.scenario.scenario.Scenario.written` gives it.
    """

    def __init__(
        self, folder: Path, keeping: Checkpoints, scenario: Mapping[str, Any], start: RoundCheckpoint | None = None
    ) -> None:
        self.start, self.scenario, self.wanted = start, dict(scenario), keeping
        self.forked_from: dict[str, Any] | None = None if start is None else start.note.get("forked_from")
        self.keeping = RoundKeeping(folder / STATE, wall_s=keeping.wall_s, every_jobs=keeping.pods, note=self.note)
        self._began = (time.perf_counter(), time.process_time())

    @property
    def spent_s(self) -> tuple[float, float]:
        """Seconds of wall and of CPU in the starts before this one."""
        wall_s, cpu_s = (0.0, 0.0) if self.start is None else self.start.note.get("spent_s", (0.0, 0.0))
        return float(wall_s), float(cpu_s)

    def note(self) -> dict[str, Any]:
        """What a later start has to know."""
        now = (time.perf_counter(), time.process_time())
        spent_s = [before + at - began for before, at, began in zip(self.spent_s, now, self._began, strict=True)]
        return {
            "scenario": self.scenario, "keeping": asdict(self.wanted), "forked_from": self.forked_from,
            "process": os.getpid(), "spent_s": spent_s,
        }  # fmt: skip


def opened_writer(
    stack: ExitStack, scenario: Mapping[str, Any], out: Path | None, overwrite: bool, keeping: Checkpoints,
    start: RoundCheckpoint | None,
) -> RoundSaving:  # fmt: skip
    """The saving of a run to ``out``; its working folder is taken care of when the stack is left."""
    keeping.check()
    if out is None:
        raise ScenarioError("checkpoint", "a run without a folder", "out=FOLDER; the checkpoint stands beside it")
    return RoundSaving(
        stack.enter_context(unfinished(out, keeping, start is not None, overwrite)), keeping, scenario, start
    )


def is_of_rounds(work: Path) -> bool:
    """Whether a working folder holds the state of a run in rounds, and not of pods or of nothing."""
    import zipfile

    try:
        with zipfile.ZipFile(work / STATE) as stored:
            return "header.npy" in stored.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def stored_state(work: Path) -> RoundCheckpoint:
    """The state in a working folder with all its notes; ResultError if it is damaged or something else."""
    taken = RoundCheckpoint.read(work / STATE)
    missing = [name for name in NOTES if name not in taken.note]
    if missing:
        raise ResultError(f"{work / STATE}: found a state without {missing[0]}, expected the checkpoint of fs.simulate")
    return taken
