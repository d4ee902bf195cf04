"""Drives the compiled loop of any kind of rounds: feeds jobs, collects records, writes checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.checkpoint import CheckpointClock, RoundCheckpoint, RoundKeeping
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT
from fastsim.engine.tables import ROW
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim_ext.build import CHECKED

PAUSE_ROUNDS, PAUSE_JOB_ROUNDS = 4096, 2_000_000
"""Most rounds, and most rounds of jobs, between two looks at progress and Ctrl-C."""
MOST_WAITING = 20_000
"""Active jobs of a stream without end at which it is clear that the line only grows."""
RECORDS = {"gone": GANG, "tasks": MOMENT, "held": np.dtype(np.int32), "rows": ROW}
"""What the loop has handed out so far, by its name in the driver and in a checkpoint."""


class Stop(IntEnum):
    """Why the compiled loop returned; the numbers are those of ``fastsim_ext/rounds/share_loop.pxd``."""

    DONE = 0
    ASK_POLICY = 1
    WANT_ARRIVALS = 2
    PRICE_CHANGE = 3
    DRAIN = 4
    DEADLOCK = 5
    PAUSE = 6


def nothing_runs(rows: npt.NDArray[Any], now_s: float) -> PolicyError:
    """The complaint when these jobs wait and would do so for ever."""
    waiting = rows["id"].tolist()
    named = ", ".join(map(str, waiting[:5])) + (", ..." if len(waiting) > 5 else "")
    found = f"nothing runs at {now_s:g} s and nothing would change that; waiting: jobs {named}"
    return PolicyError("rounds", found, "a policy that lets some job run")


@dataclass
class Driver(ABC):
    """What goes between the compiled loop and the rest of the world."""

    setting: Setting
    plan: Any
    options: RoundOptions
    batches: Iterator[JobBatch]
    tenants: Sequence[str]
    progress: Callable[[int], None] | None
    loop: Any
    """What plays the rounds; its kind goes with that of the plan."""
    price: npt.NDArray[np.float64]
    gone: list[npt.NDArray[Any]] = field(default_factory=list)
    tasks: list[npt.NDArray[Any]] = field(default_factory=list)
    held: list[npt.NDArray[Any]] = field(default_factory=list)
    rows: list[npt.NDArray[Any]] = field(default_factory=list)
    ahead: JobBatch | None = None
    solver_s: float = 0.0
    decided: dict[str, Any] = field(default_factory=dict)
    keeper: CheckpointClock | None = None
    records: ClassVar[dict[str, Any]] = RECORDS

    @abstractmethod
    def ask_policy(self) -> None:
        """Let the policy say what it thinks of the jobs."""

    def feed_next(self) -> None:
        """Feed the loop its next batch of arrivals."""
        # One batch is read ahead, so that the loop knows that the last one is the last one.
        now, self.ahead = self.ahead, next(self.batches, None)
        self.feed(now if now is not None else JobBatch.of([]))

    def feed(self, columns: JobBatch) -> None:
        """Give the loop these jobs."""
        self.loop.feed(*columns, self.ahead is None)

    def price_changed(self) -> None:
        """Tell the loop what GPUs cost from now on."""
        prices = self.options.prices
        if prices is not None:
            self.price = prices.at(self.loop.now_s)
            self.loop.reprice(self.price, prices.next_change_s(self.loop.now_s))

    def collect_records(self) -> None:
        """Move the records of the loop into the lists of this driver."""
        gone, tasks, held = self.loop.log.drained()
        self.gone.append(np.frombuffer(gone, GANG))
        self.tasks.append(np.frombuffer(tasks, MOMENT))
        self.held.append(np.frombuffer(held, np.int32))
        if self.loop.metrics is not None:
            self.rows.append(np.frombuffer(self.loop.metrics.drained(), ROW))

    def report_deadlock(self) -> None:
        """Raise PolicyError: jobs wait and no future event can start one."""
        raise nothing_runs(np.frombuffer(self.loop.table.rows(), GANG), self.loop.now_s)

    def report_progress(self) -> None:
        """Report jobs that have ended; raise ScenarioError if the queue grows without end."""
        interrupts.check()
        if self.options.endless and self.options.window is not None and self.loop.table.n > MOST_WAITING:
            found = f"{self.loop.table.n:,} jobs at once at {self.loop.now_s:g} s"
            raise ScenarioError("rounds", found, "fewer: more jobs arrive than the cluster finishes")
        if self.progress is not None:
            self.progress(int(self.loop.ended))

    def pause(self) -> None:
        """Between two rounds: progress and checkpoints."""
        self.report_progress()
        keeper, loop = self.keeper, self.loop
        if keeper is not None and keeper.due(loop.rounds, loop.table.added):
            self.state().write(keeper.keeping.path)
            keeper.restart(loop.rounds, loop.table.added)

    def budget(self) -> int:
        """Rounds to play before the next pause."""
        rounds = max(1, min(PAUSE_ROUNDS, PAUSE_JOB_ROUNDS // max(1, self.loop.table.n)))
        return rounds if self.keeper is None else self.keeper.budget(self.loop.rounds, rounds)

    def state(self) -> RoundCheckpoint:
        """All that there is between two rounds."""
        self.collect_records()
        numbers, parts = self.snapshot()
        for name in self.records:
            lists = getattr(self, name)
            lists[:] = [np.concatenate(lists)] if lists else []
            parts[name] = lists[0].tobytes() if lists else b""
        meta = {
            "loop": numbers, "solver_s": self.solver_s, "decided": self.decided, "policy": self.plan.identity,
            "memory": self.memory(), "note": {} if self.keeper is None else self.keeper.keeping.note(),
            "beliefs": self.estimates(),
        }  # fmt: skip
        return RoundCheckpoint(meta, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()})

    def take_over(self, state: RoundCheckpoint) -> None:
        """Begin where that run was."""
        state.check(self.decided, self.plan.identity)
        state.restore(self.loop)
        self.batches = state.rest(self.batches)
        self.price = state.arrays["price"].view(np.float64).copy()
        self.solver_s = state.meta["solver_s"]
        for name, kind in self.records.items():
            getattr(self, name).append(state.arrays[name].view(kind))
        self.remember(state.meta)

    @abstractmethod
    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The loop's numbers and bytes."""

    @abstractmethod
    def memory(self) -> dict[str, Any] | None:
        """What the policy remembers, as JSON has it; None if nothing."""

    def estimates(self) -> Any:
        """What the estimates of sharing remember; None without any."""
        return None

    @abstractmethod
    def remember(self, meta: dict[str, Any]) -> None:
        """Give policy and estimates their memory back; another policy begins without one."""

    def play(self, checkpoint: RoundKeeping | None, resume: RoundCheckpoint | None) -> None:
        """Go through the rounds, from the first one or from a checkpoint to the end."""
        loop = self.loop
        if resume is not None:
            self.take_over(resume)
        if checkpoint is not None:
            self.keeper = CheckpointClock(checkpoint, loop.rounds, loop.table.added)
        self.ahead = next(self.batches, None)
        if self.options.prices is not None and resume is None:
            loop.reprice(self.price, -1.0)  # the first prices are those of the first moment
        handlers: dict[Stop, Callable[[], None]] = {
            Stop.ASK_POLICY: self.ask_policy, Stop.WANT_ARRIVALS: self.feed_next, Stop.PRICE_CHANGE: self.price_changed,
            Stop.DRAIN: self.collect_records, Stop.DEADLOCK: self.report_deadlock, Stop.PAUSE: self.pause,
        }  # fmt: skip
        while (stop := Stop(loop.advance(self.budget()))) is not Stop.DONE:
            if CHECKED:
                loop.verify()
            handlers[stop]()
            if stop is Stop.WANT_ARRIVALS:
                self.report_progress()  # only a pause lies between two rounds, where a checkpoint can be taken
        if checkpoint is not None and checkpoint.at_end:
            self.state().write(checkpoint.path)
