"""The writer of checkpoints: notes for a later start, seconds spent so far, the file that each state replaces."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastsim.engine.checkpoints.clock import Checkpoints, CheckpointSchedule
from fastsim.engine.checkpoints.folder import STATE
from fastsim.engine.checkpoints.state import RunState


class CheckpointWriter:
    """Writes the state of a run to its working folder; ``start`` is the state that the run begins with, if any.

    ``scenario`` is stored with every checkpoint, so that a later start can build the same run.
    """

    def __init__(
        self, folder: Path, checkpoints: Checkpoints, scenario: Mapping[str, Any], start: RunState | None = None
    ) -> None:
        self.folder, self.checkpoints, self.scenario, self.start = folder, checkpoints, dict(scenario), start
        self.forked_from: dict[str, Any] | None = None if start is None else start.note.get("forked_from")
        self.schedule = CheckpointSchedule(
            folder / STATE, wall_s=checkpoints.wall_s, every_jobs=checkpoints.pods, note=self.note
        )
        self._began = (time.perf_counter(), time.process_time())

    def spent(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Seconds spent in this start and in earlier ones, by kind."""
        before = {} if self.start is None else self.start.note.get("spent", {})
        return {name: spent + before.get(name, 0.0) for name, spent in seconds.items()}

    def note(self, **seconds: float) -> dict[str, Any]:
        """The notes (``NOTES``) for a later start; ``seconds`` are spent besides those of wall and CPU."""
        wall_s, cpu_s = (
            now - then for now, then in zip((time.perf_counter(), time.process_time()), self._began, strict=True)
        )
        return {
            "scenario": self.scenario, "checkpoints": asdict(self.checkpoints), "forked_from": self.forked_from,
            "process": os.getpid(), "spent": self.spent({"wall_s": wall_s, "cpu_s": cpu_s, **seconds}),
        }  # fmt: skip
