"""Drives any loop of rounds: stops, budgets, progress, checkpoints, whatever its jobs are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypedDict

from fastsim.engine.checkpoints.clock import CheckpointClock, CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.state_file import restoring
from fastsim.engine.driving.drive import Handlers, Stop, drive
from fastsim.engine.driving.headway import Headway
from fastsim.foundation import interrupts
from fastsim.foundation.limits.knobs import DECISIONS, GENERATIONS, ROUND_S
from fastsim_ext.build import CHECKED
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

PAUSE_ROUNDS, PAUSE_JOB_ROUNDS = 4096, 2_000_000
"""Most rounds, and most rounds of jobs, between two reports of progress, at which Ctrl-C is noticed."""


class RunHooks(TypedDict, total=False):
    """Whom a run in rounds tells how far it is, when it writes checkpoints, and the one that it begins with."""

    progress: Callable[[int], None] | None
    """A function that takes the number of jobs that have ended."""
    checkpoint: CheckpointSchedule | None
    """The schedule of checkpoints."""
    resume: RunState | None
    """The state that the run begins with."""


class RunRecords(RunHooks, total=False):
    """What a run in rounds records beside its jobs, and what goes along with it."""

    record_tasks: bool
    """Whether every task of every round is kept."""
    metrics: ClusterMetrics | None
    """Those of the cluster; None in a run without a timeline."""


class JobCounts(NamedTuple):
    """Jobs that have arrived, those of them that have not ended, and jobs that count and have ended."""

    arrived: int
    active: int
    ended: int


@dataclass
class Driver(ABC):
    """Drives a loop of rounds: calls the policy, reports progress, writes checkpoints.

    A loop has ``rounds`` that were played, ``now_s`` and ``verify``.
    """

    loop: Any
    _: KW_ONLY
    record_tasks: bool = False
    metrics: ClusterMetrics | None = None
    progress: Callable[[int], None] | None = None
    checkpoint: CheckpointSchedule | None = None
    resume: RunState | None = None
    """As :class:`RunRecords` has it."""
    clock: CheckpointClock | None = None
    headway: Headway = field(default_factory=lambda: Headway("jobs", ROUND_S, DECISIONS, GENERATIONS))
    paused: int = 0
    """Rounds played before the last pause."""
    generations: int = 0
    """Generations of the search that each decision makes."""
    counted: int = 0
    """Rounds played before the headway was looked at last."""
    pause_rounds: ClassVar[int] = PAUSE_ROUNDS
    """Most rounds between two pauses."""
    kept: ClassVar[str] = "the state of a run in rounds"
    """The expected kind of checkpoint, in messages."""

    # ------------------------------------------------------------------ of each kind of jobs

    @abstractmethod
    def count_jobs(self) -> JobCounts:
        """The jobs of the loop by now."""

    @abstractmethod
    def decisions(self) -> dict[str, Any]:
        """The properties that decide the run. Only a state needs them: they are read off whole tables."""

    @abstractmethod
    def begin(self, resumed: bool) -> None:
        """Prepare the first stop of a new or a resumed run."""

    @abstractmethod
    def play_on(self, rounds: int) -> int:
        """Play the loop to its next stop, at most so many rounds."""

    @abstractmethod
    def ask_policy(self) -> None:
        """Give the loop the policy's decision about the active jobs."""

    @abstractmethod
    def collect_records(self) -> None:
        """Move the records that the loop has written into the lists of this driver."""

    @abstractmethod
    def report_deadlock(self) -> None:
        """Raise PolicyError: jobs wait and no future event can start one."""

    @abstractmethod
    def state(self) -> RunState:
        """The complete state between two rounds."""

    @abstractmethod
    def take_over(self, state: RunState) -> None:
        """Restore a checkpoint, before the first round."""

    # ------------------------------------------------------------------ of all

    @property
    def arrived(self) -> int:
        """Jobs that have arrived."""
        return self.count_jobs().arrived

    @property
    def active(self) -> int:
        """Jobs that have arrived and not ended."""
        return self.count_jobs().active

    @property
    def ended(self) -> int:
        """Jobs that count and have ended."""
        return self.count_jobs().ended

    @cached_property
    def decided(self) -> dict[str, Any]:
        """The properties that decide the run, besides its jobs and its policy."""
        return self.decisions()

    def play(self) -> None:
        """Play the rounds to the end, from the first one or from a checkpoint."""
        checkpoint, resume = self.checkpoint, self.resume
        if resume is not None:
            self.take_over(resume)
            self.paused = self.counted = int(self.loop.rounds)
        if checkpoint is not None:
            self.clock = CheckpointClock(checkpoint, self.loop.rounds, self.arrived)
        self.begin(resume is not None)
        advance, handlers = self.advance, self.handlers()
        if resume is not None and resume.meta.get("memory") is not None:  # the stored state may have been edited
            guarded = restoring("checkpoint", self.kept)
            advance = guarded(advance)
            handlers = {stop: guarded(handler) for stop, handler in handlers.items()}
        drive(advance, handlers)
        if checkpoint is not None and checkpoint.at_end:
            self.state().write(checkpoint.path)

    def handlers(self) -> Handlers:
        """The handler of each stop of the loop."""
        return {
            Stop.ASK_POLICY: self.decide, Stop.PAUSE: self.pause, Stop.DRAIN: self.collect_records,
            Stop.DEADLOCK: self.report_deadlock,
        }  # fmt: skip

    def advance(self) -> int:
        """Play the loop to its next stop."""
        stop = self.play_on(self.budget())
        if CHECKED and stop != Stop.DONE:
            self.loop.verify()
        return stop

    def decide(self) -> None:
        """Let the policy decide about the active jobs, unless it has done so too often since a job ended."""
        interrupts.check()
        self.count_rounds()
        self.headway.add(DECISIONS, 1, self.loop.now_s)
        self.headway.add(GENERATIONS, self.generations, self.loop.now_s)
        self.ask_policy()

    def pause(self) -> None:
        """Between two rounds: checkpoints, then progress, which may end the run."""
        clock, rounds = self.clock, int(self.loop.rounds)
        self.paused = rounds
        if clock is not None and clock.due(rounds, self.arrived):
            self.state().write(clock.schedule.path)
            clock.restart(rounds, self.arrived)
        self.report_progress()

    def report_progress(self) -> None:
        """Report how far the run is."""
        interrupts.check()
        self.count_rounds()
        if self.progress is not None:
            self.progress(self.ended)

    def count_rounds(self) -> None:
        """Count the rounds since a job ended; ScenarioError beyond their budget."""
        rounds, self.counted = int(self.loop.rounds) - self.counted, int(self.loop.rounds)
        if self.ended != self.headway.ended:
            self.headway.see(self.ended)
        else:
            self.headway.add(ROUND_S, rounds, self.loop.now_s)

    def budget(self) -> int:
        """Rounds to play before the next pause; those before a call of the policy count."""
        most = max(1, min(self.pause_rounds, PAUSE_JOB_ROUNDS // max(1, self.active)))
        rounds = max(0, self.paused + most - int(self.loop.rounds))
        return rounds if self.clock is None else self.clock.budget(self.loop.rounds, rounds)

    def note(self) -> dict[str, Any]:
        """The notes of the next checkpoint; none without a schedule."""
        return {} if self.clock is None else dict(self.clock.schedule.note())
