"""Drives the compiled loop of any kind of rounds: feeds jobs, collects records, writes checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.checkpoints.clock import CheckpointClock, CheckpointSchedule
from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.state_file import restoring
from fastsim.engine.checkpoints.value_checks import records_of
from fastsim.engine.driving.drive import Handlers, Stop, drive
from fastsim.engine.driving.headway import Headway
from fastsim.engine.rounds.checkpoint import check_decided, jobs_to_come
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.rounds.restored_state import check_state
from fastsim.engine.tables import ROW
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.knobs import DECISIONS, ROUND_S
from fastsim_ext.build import CHECKED
from fastsim_ext.rounds.snapshot import restore, snapshot

PAUSE_ROUNDS, PAUSE_JOB_ROUNDS = 4096, 2_000_000
"""Most rounds, and most rounds of jobs, between two reports of progress, at which Ctrl-C is noticed."""
MOST_WAITING = 20_000
"""Active jobs of a stream without end at which it is clear that the line only grows."""
STATE = "the state of a run in rounds"
"""The expected kind of checkpoint, in messages."""
RECORDS = {"ended_jobs": GANG, "tasks": MOMENT, "held": np.dtype(np.int32), "rows": ROW}
"""Types of the records that the loop has drained, by attribute of the driver; a checkpoint has the same names."""


def nothing_runs(rows: npt.NDArray[Any], now_s: float) -> PolicyError:
    """The error when these jobs wait and no future event can start one."""
    waiting = rows["id"].tolist()
    listed = ", ".join(map(str, waiting[:5])) + (", ..." if len(waiting) > 5 else "")
    found = f"nothing runs at {now_s:g} s and nothing would change that; waiting: jobs {listed}"
    return PolicyError("rounds", found, "a policy that lets some job run")


@dataclass
class Driver(ABC):
    """Drives the compiled loop: feeds jobs, calls the policy, collects records, writes checkpoints."""

    setting: Setting
    plan: Any
    options: RoundOptions
    batches: Iterator[JobBatch]
    tenants: Sequence[str]
    progress: Callable[[int], None] | None
    loop: Any
    """The compiled rounds; the class follows from that of the plan."""
    price: npt.NDArray[np.float64]
    ended_jobs: list[npt.NDArray[Any]] = field(default_factory=list)
    tasks: list[npt.NDArray[Any]] = field(default_factory=list)
    held: list[npt.NDArray[Any]] = field(default_factory=list)
    rows: list[npt.NDArray[Any]] = field(default_factory=list)
    ahead: JobBatch | None = None
    solver_s: float = 0.0
    decided: dict[str, Any] = field(default_factory=dict)
    clock: CheckpointClock | None = None
    headway: Headway = field(default_factory=lambda: Headway("jobs", ROUND_S, DECISIONS))
    paused: int = 0
    """Rounds played before the last pause."""
    counted: int = 0
    """Rounds played before the headway was looked at last."""
    records: ClassVar[dict[str, Any]] = RECORDS
    engine: ClassVar[str]
    """The engine that goes on with a state of this driver."""

    @abstractmethod
    def ask_policy(self) -> None:
        """Give the loop the policy's decision about the active jobs."""

    def feed_next(self) -> None:
        """Feed the loop its next batch of arrivals."""
        # One batch is read ahead: the loop takes the last batch with a mark.
        batch, self.ahead = self.ahead, next(self.batches, None)
        self.feed(batch if batch is not None else JobBatch.of([]))

    def feed(self, columns: JobBatch) -> None:
        """Add these jobs to the loop."""
        self.loop.feed(*columns, self.ahead is None)

    def price_changed(self) -> None:
        """Set the prices of GPUs from now on."""
        prices = self.options.prices
        if prices is not None:
            self.price = prices.at(self.loop.now_s)
            self.loop.reprice(self.price, prices.next_change_s(self.loop.now_s))

    def collect_records(self) -> None:
        """Move the records that the loop has written into the lists of this driver."""
        ended, tasks, held = self.loop.log.drained()
        self.ended_jobs.append(np.frombuffer(ended, GANG))
        self.tasks.append(np.frombuffer(tasks, MOMENT))
        self.held.append(np.frombuffer(held, np.int32))
        if self.loop.metrics is not None:
            self.rows.append(np.frombuffer(self.loop.metrics.drained(), ROW))

    def report_deadlock(self) -> None:
        """Raise PolicyError: jobs wait and no future event can start one."""
        raise nothing_runs(np.frombuffer(self.loop.table.rows(), GANG), self.loop.now_s)

    def count_rounds(self) -> None:
        """Count the rounds since a job ended; ScenarioError beyond their budget."""
        loop = self.loop
        rounds, self.counted = int(loop.rounds) - self.counted, int(loop.rounds)
        if loop.ended != self.headway.ended:
            self.headway.see(int(loop.ended))
        else:
            self.headway.add(ROUND_S, rounds, loop.now_s)

    def report_progress(self) -> None:
        """Report how far the run is; ScenarioError if its queue grows without end."""
        interrupts.check()
        self.count_rounds()
        if self.options.endless and self.options.window is not None and self.loop.table.n > MOST_WAITING:
            found = f"{self.loop.table.n:,} jobs at once at {self.loop.now_s:g} s"
            raise ScenarioError("rounds", found, "fewer: more jobs arrive than the cluster finishes")
        if self.progress is not None:
            self.progress(int(self.loop.ended))

    def pause(self) -> None:
        """Between two rounds: progress and checkpoints."""
        self.paused = int(self.loop.rounds)
        self.report_progress()
        clock, loop = self.clock, self.loop
        if clock is not None and clock.due(loop.rounds, loop.table.added):
            self.state().write(clock.schedule.path)
            clock.restart(loop.rounds, loop.table.added)

    def budget(self) -> int:
        """Rounds to play before the next pause; those before a call of the policy count."""
        most = max(1, min(PAUSE_ROUNDS, PAUSE_JOB_ROUNDS // max(1, self.loop.table.n)))
        rounds = max(0, self.paused + most - int(self.loop.rounds))
        return rounds if self.clock is None else self.clock.budget(self.loop.rounds, rounds)

    def state(self) -> RunState:
        """The complete state between two rounds."""
        self.collect_records()
        numbers, parts = snapshot(self.loop)
        for name, kind in self.records.items():
            lists = getattr(self, name)
            parts[name] = b"".join(one.tobytes() for one in lists)  # np.concatenate does not copy bytes between fields
            lists[:] = [np.frombuffer(parts[name], kind)] if lists else []
        meta = {
            "now_s": numbers["now_s"], "arrived": int(self.loop.table.added), "loop": numbers,
            "solver_s": self.solver_s, "decided": self.decided, "policy": self.plan.identity,
            "memory": self.memory(), "note": {} if self.clock is None else self.clock.schedule.note(),
            "estimates": self.estimates(), "record_bytes": {name: len(parts[name]) for name in self.records},
        }  # fmt: skip
        return RunState(self.engine, meta, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()})

    def take_over(self, state: RunState) -> None:
        """Restore a checkpoint, before the first round."""
        with restoring("checkpoint", STATE):
            check_decided(state, self.decided, self.plan.identity)
            check_state(state.meta, state.arrays, len(self.setting.oracle.kinds))
            restore(self.loop, state.meta["loop"], state.arrays)
            self.batches = jobs_to_come(state, self.batches)
            self.price = state.arrays["price"].view(np.float64).copy()
            self.solver_s = state.meta["solver_s"]
            for name, kind in self.records.items():
                getattr(self, name).append(records_of(state.arrays, name, kind))
            self.restore_memory(state.meta)

    def memory(self) -> dict[str, Any] | None:
        """The policy's state as JSON values; None if it has none, as an order."""
        return None

    def estimates(self) -> Any:
        """The state of the estimates of pair rates; None without estimates."""
        return None

    def restore_memory(self, meta: dict[str, Any]) -> None:
        """Restore the states of policy and estimates; another policy begins without a state."""
        assert self.memory() is None, "a policy with a state restores it"

    def decide(self) -> None:
        """Let the policy decide about the active jobs, unless it has done so too often since a job ended."""
        interrupts.check()
        self.count_rounds()
        self.headway.add(DECISIONS, 1, self.loop.now_s)
        self.ask_policy()

    def take_arrivals(self) -> None:
        """Feed the next batch, and report progress; only a pause lies between two rounds, where checkpoints are."""
        self.feed_next()
        self.report_progress()

    def advance(self) -> int:
        """Play the loop to its next stop."""
        stop: int = self.loop.advance(self.budget())
        if CHECKED and stop != Stop.DONE:
            self.loop.verify()
        return stop

    def handlers(self) -> Handlers:
        """What is done at each stop of the loop."""
        return {
            Stop.ASK_POLICY: self.decide, Stop.WANT_ARRIVALS: self.take_arrivals, Stop.PAUSE: self.pause,
            Stop.PRICE_CHANGE: self.price_changed, Stop.DRAIN: self.collect_records,
            Stop.DEADLOCK: self.report_deadlock,
        }  # fmt: skip

    def play(self, checkpoint: CheckpointSchedule | None, resume: RunState | None) -> None:
        """Play the rounds to the end, from the first one or from a checkpoint."""
        loop = self.loop
        if resume is not None:
            self.take_over(resume)
            self.paused = self.counted = int(loop.rounds)
        if checkpoint is not None:
            self.clock = CheckpointClock(checkpoint, loop.rounds, loop.table.added)
        self.ahead = next(self.batches, None)
        if self.options.prices is not None and resume is None:
            loop.reprice(self.price, -1.0)  # the first prices hold from the first instant
        handlers = self.handlers()
        if resume is not None and resume.meta.get("memory") is not None:  # the policy's state may have been edited
            handlers = {stop: restoring("checkpoint", STATE)(handler) for stop, handler in handlers.items()}
        drive(self.advance, handlers)
        if checkpoint is not None and checkpoint.at_end:
            self.state().write(checkpoint.path)
