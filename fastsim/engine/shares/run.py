"""The rounds engine: drives the compiled loop, asks the policy, collects what happened."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.checkpoint import Keeper, RoundCheckpoint, RoundKeeping, decisions
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.job_checks import runnable
from fastsim.engine.rounds.options import QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.outcome import RoundRun
from fastsim.engine.rounds.records import GANG, MOMENT
from fastsim.engine.shares.dialogue import answer, nothing_runs, view_of
from fastsim.engine.shares.plan import RoundPlan
from fastsim.engine.tables import ROW
from fastsim.errors import PolicyError, ScenarioError
from fastsim.foundation import interrupts
from fastsim_ext.build import CHECKED
from fastsim_ext.rounds.cluster_metrics import Gauge
from fastsim_ext.rounds.share_loop import Rounds
from fastsim_ext.rounds.snapshot import doubt, snapshot

STOPS = ("done", "ask", "hungry", "price", "drain", "stuck", "pause")
"""Why the compiled loop stops, in the order it counts in."""
PAUSE_ROUNDS, PAUSE_JOB_ROUNDS = 4096, 2_000_000
"""Most rounds, and most rounds of jobs, between two looks at progress and Ctrl-C."""
MOST_WAITING = 20_000
"""Active jobs of a stream without end at which it is clear that the line only grows."""
RECORDS = {"gone": GANG, "tasks": MOMENT, "held": np.dtype(np.int32), "rows": ROW}
"""What the loop has handed out so far, by its name in the driver and in a checkpoint."""


@dataclass
class Driver:
    """What goes between the compiled loop and the rest of the world."""

    setting: Setting
    plan: Any
    options: RoundOptions
    batches: Iterator[JobBatch]
    tenants: Sequence[str]
    progress: Callable[[int], None] | None
    loop: Any
    """``Rounds``, or what plays rounds of another kind; so with the plan."""
    price: npt.NDArray[np.float64]
    gone: list[npt.NDArray[Any]] = field(default_factory=list)
    tasks: list[npt.NDArray[Any]] = field(default_factory=list)
    held: list[npt.NDArray[Any]] = field(default_factory=list)
    rows: list[npt.NDArray[Any]] = field(default_factory=list)
    ahead: JobBatch | None = None
    solver_s: float = 0.0
    decided: dict[str, Any] = field(default_factory=dict)
    keeper: Keeper | None = None
    records: ClassVar[dict[str, Any]] = RECORDS

    def ask(self) -> None:
        """Let the policy say what it thinks of the jobs."""
        interrupts.check()
        rows = np.frombuffer(self.loop.table.rows(), GANG)
        beliefs = self.plan.beliefs
        if beliefs is not None:
            self.drain()
            for job_a, job_b, model in self.loop.table.observed():
                beliefs.observe(job_a, job_b, model)
        view = view_of(rows, self.setting, self.loop.now_s, self.price, self.tenants, beliefs)
        said = answer(self.plan, view)
        if said is not None:
            self.solver_s += said.solver_s
            try:
                self.loop.assign(said.first, said.second, said.share__rg)
            except ValueError as error:
                raise PolicyError("allocation", str(error), "rows of active jobs, singles before pairs") from None

    def hungry(self) -> None:
        """Hand over the next jobs."""
        # One batch is read ahead, so that the loop knows that the last one is the last one.
        now, self.ahead = self.ahead, next(self.batches, None)
        columns = now if now is not None else JobBatch.of([])
        self.loop.feed(*columns, self.ahead is None, self.guise(columns))

    def guise(self, columns: JobBatch) -> npt.NDArray[np.int32] | None:
        """What the next jobs are believed to be."""
        if self.plan.beliefs is None:
            return None
        jobs = enumerate(columns.kind.tolist(), self.loop.table.added)
        return np.array([self.plan.beliefs.arrive(job, kind) for job, kind in jobs], np.int32)

    def price_changed(self) -> None:
        """Tell the loop what GPUs cost from now on."""
        prices = self.options.prices
        if prices is not None:
            self.price = prices.at(self.loop.now_s)
            self.loop.reprice(self.price, prices.next_change_s(self.loop.now_s))

    def drain(self) -> None:
        """Take what the loop has noted."""
        gone, tasks, held = self.loop.ledger.drained()
        self.gone.append(np.frombuffer(gone, GANG))
        if self.plan.beliefs is not None:
            for job in self.gone[-1]["id"].tolist():
                self.plan.beliefs.leave(job)
        self.tasks.append(np.frombuffer(tasks, MOMENT))
        self.held.append(np.frombuffer(held, np.int32))
        if self.loop.gauge is not None:
            self.rows.append(np.frombuffer(self.loop.gauge.drained(), ROW))

    def stuck(self) -> None:
        """Complain: nothing will ever happen."""
        raise nothing_runs(np.frombuffer(self.loop.table.rows(), GANG), self.loop.now_s)

    def look(self) -> None:
        """Tell how far the run is, and stop one that will never end."""
        interrupts.check()
        if self.options.endless and self.options.window is not None and self.loop.table.n > MOST_WAITING:
            found = f"{self.loop.table.n:,} jobs at once at {self.loop.now_s:g} s"
            raise ScenarioError("rounds", found, "fewer: more jobs arrive than the cluster finishes")
        if self.progress is not None:
            self.progress(int(self.loop.ended))

    def pause(self) -> None:
        """Between two rounds: progress and checkpoints."""
        self.look()
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
        self.drain()
        numbers, parts = self.snapshot()
        for name in self.records:
            lists = getattr(self, name)
            lists[:] = [np.concatenate(lists)] if lists else []
            parts[name] = lists[0].tobytes() if lists else b""
        meta = {
            "loop": numbers, "solver_s": self.solver_s, "decided": self.decided, "policy": self.plan.identity,
            "memory": self.memory(), "note": {} if self.keeper is None else self.keeper.keeping.note(),
            "beliefs": None if self.plan.beliefs is None else self.plan.beliefs.kept(),
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

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The loop's numbers and bytes."""
        return snapshot(self.loop)

    def memory(self) -> dict[str, Any] | None:
        """What the policy remembers, as JSON has it."""
        kept: dict[str, Any] = self.plan.allocator.kept()
        return kept

    def remember(self, meta: dict[str, Any]) -> None:
        """Give policy and estimates their memory back; another policy begins without one."""
        if self.plan.beliefs is not None:
            self.plan.beliefs.restored(meta["beliefs"])
        if meta["policy"] is None:
            doubt(self.loop)
        else:
            self.plan.allocator.restored(meta["memory"])

    def play(self, checkpoint: RoundKeeping | None, resume: RoundCheckpoint | None) -> None:
        """Go through the rounds, from the first one or from a checkpoint to the end."""
        loop = self.loop
        if resume is not None:
            self.take_over(resume)
        if checkpoint is not None:
            self.keeper = Keeper(checkpoint, loop.rounds, loop.table.added)
        self.ahead = next(self.batches, None)
        if self.options.prices is not None and resume is None:
            loop.reprice(self.price, -1.0)  # the first prices are those of the first moment
        deeds: dict[str, Callable[[], None]] = {
            "ask": self.ask, "hungry": self.hungry, "price": self.price_changed, "drain": self.drain,
            "stuck": self.stuck, "pause": self.pause,
        }  # fmt: skip
        while (stop := STOPS[loop.advance(self.budget())]) != "done":
            if CHECKED:
                loop.verify()
            deeds[stop]()
            if stop == "hungry":
                self.look()  # only a pause lies between two rounds, where a checkpoint can be taken
        if checkpoint is not None and checkpoint.at_end:
            self.state().write(checkpoint.path)


def run_rounds(
    setting: Setting,
    plan: RoundPlan,
    batches: Iterable[JobBatch],
    options: RoundOptions,
    *,
    gpus_per_server: tuple[int, ...] = (),
    tenants: Sequence[str] = (),
    record_tasks: bool = False,
    gauge: Gauge | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: RoundKeeping | None = None,
    resume: RoundCheckpoint | None = None,
) -> RoundRun:
    """Play jobs in rounds until those that count have finished; ``progress`` is told how many have.

    With ``checkpoint`` the state is written now and then, with ``resume`` the run begins from one that was.
    """
    sizes = gpus_per_server or (1,) * len(setting.gpu_models)
    # GPUs that fill no server are not used.
    gpus = tuple(int(n) // size * size for n, size in zip(setting.gpus__g, sizes, strict=True))
    loop = _loop(setting, plan, options, gpus, record_tasks, gauge)
    price = np.zeros(len(gpus))
    driver = Driver(setting, plan, options, runnable(batches, setting, gpus), tenants, progress, loop, price)
    driver.decided = decisions(setting, options, gpus, record_tasks, gauge is not None) | {
        "beliefs": "none" if plan.beliefs is None else str(plan.beliefs)
    }  # another policy that goes on believes them too
    driver.play(checkpoint, resume)
    return _finished(driver, gpus)


def _loop(
    setting: Setting, plan: RoundPlan, options: RoundOptions, gpus: tuple[int, ...], record: bool, gauge: Gauge | None
) -> Rounds:
    fastest = [setting.gpu_models.index(m) for m in setting.oracle.fastest_first if m in setting.gpu_models]
    first, last = options.window or (0, -1)
    return Rounds(
        gpus, setting.oracle.alone__kg, setting.oracle.shared__kkg, fastest,
        random.Random(setting.seed + 5).getstate()[1],  # the stream the original gives to its shuffler
        round_s=options.round_s, realloc_s=options.gap_s(plan), restart_s=options.restart_s, until_s=options.until_s,
        first=first, last=last, recorded=record, endless=options.endless,
        quirks=[options.quirk(name) for name in QUIRKS],
        pairs=plan.pairs, shuffled=plan.visit == "shuffled", strict=plan.strict, one_line=options.global_queue,
        gauge=gauge, guessed=plan.beliefs is not None,
    )  # fmt: skip


def _finished(driver: Driver, gpus: tuple[int, ...]) -> RoundRun:
    loop = driver.loop
    if loop.gauge is not None:
        loop.gauge.close(loop.now_s)
    driver.drain()
    jobs = np.concatenate([*driver.gone, np.frombuffer(loop.table.rows(), GANG)])
    return RoundRun(
        driver.setting, driver.options, jobs[np.argsort(jobs["id"])], np.concatenate(driver.tasks),
        np.concatenate(driver.held), np.concatenate([*driver.rows, np.zeros(0, ROW)]),
        int(loop.rounds), int(loop.calls), float(loop.now_s), int(loop.max_active), int(loop.job_rounds),
        int(loop.leases.extensions), int(loop.leases.opportunities), np.array(loop.leases.busy()), gpus,
        driver.solver_s, loop.gauge, float(loop.spoilt_gpu_s),
    )  # fmt: skip
