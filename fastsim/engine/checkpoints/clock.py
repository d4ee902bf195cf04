"""When a checkpoint is due: after pods or jobs, after seconds of work, after rounds."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import CHECKPOINT_PODS

OFTEN = 64
"""Rounds between two readings of the clock, if checkpoints are due after seconds of work."""


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
class CheckpointSchedule:
    """The file of a run's checkpoints, each of which replaces the one before, and when one is due.

    ``every_rounds``: after so many rounds. ``every_jobs``: after so many arrivals, in rounds up to ``OFTEN`` rounds
    later. ``wall_s``: after so many seconds of work. ``at_job``: once, after the round in which the job with this id
    came, or the next one. ``at_end``: when the run ends. The file stays when the run is complete. ``note`` answers
    further values for each checkpoint, as JSON has them.
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
