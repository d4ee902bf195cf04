"""Drives the compiled rounds of jobs with given work: feeds jobs and prices, collects records, keeps states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.checkpoints.state import RunState
from fastsim.engine.checkpoints.state_file import restoring
from fastsim.engine.checkpoints.value_checks import records_of
from fastsim.engine.driving.drive import Handlers, Stop
from fastsim.engine.rounds.checkpoint import check_decided, decisions, jobs_to_come
from fastsim.engine.rounds.driver import Driver, JobCounts, RunRecords
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.node_outages import NodeChanges, NodeOutages
from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT, RoundOutcome
from fastsim.engine.rounds.restored_state import check_state
from fastsim.engine.tables import ROW
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim_ext.rounds.snapshot import restore, snapshot

if TYPE_CHECKING:
    from fastsim_ext.rounds.loop import _RoundArguments

MOST_WAITING = 20_000
"""Active jobs of a stream without end at which it is clear that the line only grows."""
RECORDS = {"ended_jobs": GANG, "tasks": MOMENT, "held": np.dtype(np.int32), "rows": ROW}
"""Types of the records that the loop has drained, by attribute of the driver; a checkpoint has the same names."""

Outcome = TypeVar("Outcome", bound=RoundOutcome)
Given = ParamSpec("Given")


class RunContext(RunRecords, total=False):
    """What else goes along with a run of jobs: names of their tenants, and outages of nodes."""

    tenants: Sequence[str]
    nodes: NodeOutages | None
    """None if all are there all the time."""


def nothing_runs(rows: npt.NDArray[Any], now_s: float) -> PolicyError:
    """The error when these jobs wait and no future event can start one."""
    waiting = rows["id"].tolist()
    listed = ", ".join(map(str, waiting[:5])) + (", ..." if len(waiting) > 5 else "")
    found = f"nothing runs at {now_s:g} s and nothing would change that; waiting: jobs {listed}"
    return PolicyError("rounds", found, "a policy that lets some job run")


def loop_arguments(options: RoundOptions, context: RunContext) -> _RoundArguments:
    """The arguments of the compiled loop, whatever is decided in its rounds."""
    first, last = options.window or (0, -1)
    return {
        "round_s": options.round_s, "restart_s": options.restart_s, "until_s": options.until_s, "first": first,
        "last": last, "recorded": context.get("record_tasks", False), "metrics": context.get("metrics"),
    }  # fmt: skip


@dataclass
class JobDriver(Driver, Generic[Outcome]):
    """Drives compiled rounds of jobs: feeds jobs and prices, collects records."""

    setting: Setting
    plan: Any
    options: RoundOptions
    gpus: tuple[int, ...]
    """GPUs of each model that jobs can hold."""
    batches: Iterator[JobBatch]
    tenants: Sequence[str] = ()
    price: npt.NDArray[np.float64] = field(init=False)
    ended_jobs: list[npt.NDArray[Any]] = field(default_factory=list)
    tasks: list[npt.NDArray[Any]] = field(default_factory=list)
    held: list[npt.NDArray[Any]] = field(default_factory=list)
    rows: list[npt.NDArray[Any]] = field(default_factory=list)
    nodes: NodeOutages | None = None
    """Outages of nodes; None if all are there all the time."""
    changes: NodeChanges | None = None
    ahead: JobBatch | None = None
    solver_s: float = 0.0
    records: ClassVar[dict[str, Any]] = RECORDS
    engine: ClassVar[str]
    """The engine that goes on with a state of this driver."""

    def __post_init__(self) -> None:
        self.price = np.zeros(len(self.gpus))

    def count_jobs(self) -> JobCounts:
        """The jobs of the loop by now."""
        return JobCounts(int(self.loop.table.added), int(self.loop.table.n), int(self.loop.ended))

    def decisions(self) -> dict[str, Any]:
        """The properties that decide the run, besides its jobs and its policy."""
        measured = self.metrics is not None
        return decisions(self.setting, self.options, self.gpus, self.record_tasks, measured, self.nodes)

    def begin(self, resumed: bool) -> None:
        """Read the first batch, and set the first prices of a new run."""
        self.ahead = next(self.batches, None)
        if self.nodes is not None and not resumed:
            submit_s = [0.0] if self.ahead is None else self.ahead.submit_s.tolist()
            self.nodes.refuse_too_many(max(self.options.round_s, submit_s[-1] - submit_s[0]))
            self.follow_nodes(submit_s[0])
        if self.options.prices is not None and not resumed:
            self.loop.reprice(self.price, -1.0)  # the first prices hold from the first instant

    def play_on(self, rounds: int) -> int:
        """Play the loop to its next stop, at most so many rounds."""
        stop: int = self.loop.advance(rounds)
        return stop

    def handlers(self) -> Handlers:
        """The handler of each stop of the loop, arrivals and prices included."""
        return {
            **super().handlers(), Stop.WANT_ARRIVALS: self.take_arrivals, Stop.PRICE_CHANGE: self.price_changed,
            Stop.WANT_NODE_CHANGES: self.feed_node_changes,
        }  # fmt: skip

    def report_progress(self) -> None:
        """Report how far the run is; ScenarioError if its queue grows without end."""
        super().report_progress()
        if self.options.endless and self.options.window is not None and self.active > MOST_WAITING:
            found = f"{self.active:,} jobs at once at {self.loop.now_s:g} s"
            raise ScenarioError("rounds", found, "fewer: more jobs arrive than the cluster finishes")

    def feed_next(self) -> None:
        """Feed the loop its next batch of arrivals."""
        # One batch is read ahead: the loop takes the last batch with a mark.
        batch, self.ahead = self.ahead, next(self.batches, None)
        self.feed(batch if batch is not None else JobBatch.of([]))

    def feed(self, columns: JobBatch) -> None:
        """Add these jobs to the loop."""
        self.loop.feed(*columns, self.ahead is None)

    def follow_nodes(self, begin_s: float) -> None:
        """Let nodes come and go; random failures begin at ``begin_s``."""
        assert self.nodes is not None
        self.changes = NodeChanges(self.nodes, self.setting.gpu_models, begin_s)
        self.loop.follow(self.changes.presence)

    def feed_node_changes(self) -> None:
        """Feed the loop the next nodes that come or go."""
        assert self.changes is not None
        interrupts.check()
        self.changes.feed()

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

    @abstractmethod
    def finished(self) -> Outcome:
        """The outcome of the run, which has been played."""

    def whole_run(self) -> Outcome:
        """Play jobs in rounds until those that count have finished."""
        self.play()
        return self.finished()

    def outcome(self, kind: type[Outcome], end_s: float, **further: Any) -> Outcome:
        """The outcome of the run, which ended at second ``end_s``; ``further`` are fields of this kind of outcomes."""
        loop = self.loop
        if loop.metrics is not None:
            loop.metrics.close(end_s)
        self.collect_records()
        records: dict[str, Any] = {
            name: np.concatenate([*getattr(self, name), np.zeros(0, record)]) for name, record in self.records.items()
        }
        jobs = np.concatenate([records.pop("ended_jobs"), np.frombuffer(loop.table.rows(), GANG)])
        return kind(
            self.setting, self.options, jobs[np.argsort(jobs["id"])], **records, rounds=loop.rounds,
            calls=loop.calls, makespan_s=end_s, max_active=loop.max_active, job_rounds=loop.job_rounds,
            extensions=loop.leases.extensions, opportunities=loop.leases.opportunities,
            busy_s=np.array(loop.leases.busy()), gpus__g=self.gpus, solver_s=self.solver_s, metrics=loop.metrics,
            wasted_gpu_s=loop.wasted_gpu_s, **further,
        )  # fmt: skip

    def report_deadlock(self) -> None:
        """Raise PolicyError: jobs wait and no future event can start one."""
        raise nothing_runs(np.frombuffer(self.loop.table.rows(), GANG), self.loop.now_s)

    def state(self) -> RunState:
        """The complete state between two rounds."""
        self.collect_records()
        numbers, parts = snapshot(self.loop)
        for name, kind in self.records.items():
            lists = getattr(self, name)
            parts[name] = b"".join(one.tobytes() for one in lists)  # np.concatenate does not copy bytes between fields
            lists[:] = [np.frombuffer(parts[name], kind)] if lists else []
        meta = {
            "now_s": numbers["now_s"], "arrived": self.arrived, "loop": numbers,
            "solver_s": self.solver_s, "decided": self.decided, "policy": self.plan.identity,
            "memory": self.memory(), "note": self.note(),
            "estimates": self.estimates(), "record_bytes": {name: len(parts[name]) for name in self.records},
        }  # fmt: skip
        if self.changes is not None:
            meta["failures_from_s"] = self.changes.begin_s
        return RunState(self.engine, meta, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()})

    def take_over(self, state: RunState) -> None:
        """Restore a checkpoint, before the first round."""
        with restoring("checkpoint", self.kept):
            check_decided(state, self.decided, self.plan.identity)
            check_state(state.meta, state.arrays, len(self.setting.oracle.kinds))
            if self.nodes is not None:
                self.follow_nodes(state.meta["failures_from_s"])
                assert self.changes is not None
                self.changes.go_on(state.meta["loop"]["nodes_s"], self.options.round_s)
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

    def take_arrivals(self) -> None:
        """Feed the next batch, and report progress; only a pause lies between two rounds, where checkpoints are."""
        self.feed_next()
        self.report_progress()


def whole_run_of(driver_of: Callable[Given, JobDriver[Outcome]]) -> Callable[Given, Outcome]:
    """The function that plays a whole run of what such a driver is made from."""

    def whole_run(*given: Given.args, **named: Given.kwargs) -> Outcome:
        return driver_of(*given, **named).whole_run()

    return whole_run
