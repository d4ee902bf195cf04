"""The rounds engine: drives the compiled loop, asks the policy, collects what happened."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping, decisions
from fastsim.engine.rounds.driver import Driver
from fastsim.engine.rounds.job_batches import JobBatch, runnable
from fastsim.engine.rounds.options import QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, RoundOutcome
from fastsim.engine.shares.plan import SharePlan, answer, view_of
from fastsim.engine.tables import ROW
from fastsim.errors import PolicyError
from fastsim.foundation import interrupts
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.share_loop import ShareLoop
from fastsim_ext.rounds.snapshot import doubt, snapshot


@dataclass
class ShareDriver(Driver):
    """Drives rounds from shares of the time: asks the allocator, and tells estimates of sharing what happened."""

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

    def feed(self, columns: JobBatch) -> None:
        """Give the loop these jobs, and what they are believed to be."""
        self.loop.feed(*columns, self.ahead is None, self.guise(columns))

    def guise(self, columns: JobBatch) -> npt.NDArray[np.int32] | None:
        """What the next jobs are believed to be."""
        if self.plan.beliefs is None:
            return None
        jobs = enumerate(columns.kind.tolist(), self.loop.table.added)
        return np.array([self.plan.beliefs.arrive(job, kind) for job, kind in jobs], np.int32)

    def drain(self) -> None:
        """Take what the loop has noted."""
        super().drain()
        if self.plan.beliefs is not None:
            for job in self.gone[-1]["id"].tolist():
                self.plan.beliefs.leave(job)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The loop's numbers and bytes."""
        return snapshot(self.loop)

    def memory(self) -> dict[str, Any] | None:
        """State of the allocator, as JSON values."""
        state: dict[str, Any] = self.plan.allocator.state()
        return state

    def estimates(self) -> Any:
        """State of the estimates of pair rates; None without estimates."""
        return None if self.plan.beliefs is None else self.plan.beliefs.state()

    def remember(self, meta: dict[str, Any]) -> None:
        """Restore allocator and estimates; another policy begins without a state."""
        if self.plan.beliefs is not None:
            self.plan.beliefs.restore(meta["beliefs"])
        if meta["policy"] is None:
            doubt(self.loop)
        else:
            self.plan.allocator.restore(meta["memory"])


def run_rounds(
    setting: Setting,
    plan: SharePlan,
    batches: Iterable[JobBatch],
    options: RoundOptions,
    *,
    gpus_per_server: tuple[int, ...] = (),
    tenants: Sequence[str] = (),
    record_tasks: bool = False,
    gauge: ClusterMetrics | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: RoundKeeping | None = None,
    resume: RoundCheckpoint | None = None,
) -> RoundOutcome:
    """Play jobs in rounds until those that count have finished; ``progress`` is told how many have.

    With ``checkpoint`` the state is written now and then, with ``resume`` the run begins from one that was.
    """
    sizes = gpus_per_server or (1,) * len(setting.gpu_models)
    # GPUs that fill no server are not used.
    gpus = tuple(int(n) // size * size for n, size in zip(setting.gpus__g, sizes, strict=True))
    loop = _loop(setting, plan, options, gpus, record_tasks, gauge)
    price = np.zeros(len(gpus))
    driver = ShareDriver(setting, plan, options, runnable(batches, setting, gpus), tenants, progress, loop, price)
    driver.decided = decisions(setting, options, gpus, record_tasks, gauge is not None) | {
        "beliefs": "none" if plan.beliefs is None else str(plan.beliefs)
    }  # another policy that goes on believes them too
    driver.play(checkpoint, resume)
    return _finished(driver, gpus)


def _loop(
    setting: Setting,
    plan: SharePlan,
    options: RoundOptions,
    gpus: tuple[int, ...],
    record: bool,
    gauge: ClusterMetrics | None,
) -> ShareLoop:
    fastest = [setting.gpu_models.index(m) for m in setting.oracle.fastest_first if m in setting.gpu_models]
    first, last = options.window or (0, -1)
    return ShareLoop(
        gpus, setting.oracle.alone__kg, setting.oracle.shared__kkg, fastest,
        random.Random(setting.seed + 5).getstate()[1],  # the stream the original gives to its shuffler
        round_s=options.round_s, realloc_s=options.gap_s(plan), restart_s=options.restart_s, until_s=options.until_s,
        first=first, last=last, recorded=record, endless=options.endless,
        quirks=[options.quirk(name) for name in QUIRKS],
        pairs=plan.pairs, shuffled=plan.visit == "shuffled", strict=plan.strict, one_line=options.global_queue,
        gauge=gauge, guessed=plan.beliefs is not None,
    )  # fmt: skip


def _finished(driver: ShareDriver, gpus: tuple[int, ...]) -> RoundOutcome:
    loop = driver.loop
    if loop.gauge is not None:
        loop.gauge.close(loop.now_s)
    driver.drain()
    jobs = np.concatenate([*driver.gone, np.frombuffer(loop.table.rows(), GANG)])
    return RoundOutcome(
        driver.setting, driver.options, jobs[np.argsort(jobs["id"])], np.concatenate(driver.tasks),
        np.concatenate(driver.held), np.concatenate([*driver.rows, np.zeros(0, ROW)]),
        int(loop.rounds), int(loop.calls), float(loop.now_s), int(loop.max_active), int(loop.job_rounds),
        int(loop.leases.extensions), int(loop.leases.opportunities), np.array(loop.leases.busy()), gpus,
        driver.solver_s, loop.gauge, float(loop.spoilt_gpu_s),
    )  # fmt: skip
