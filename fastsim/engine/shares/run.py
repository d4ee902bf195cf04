"""Runs in rounds of shares: drives the compiled loop, calls the policy for shares, collects the outcome."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.job_batches import JobBatch, runnable
from fastsim.engine.rounds.job_driver import JobDriver, RunContext, loop_arguments, whole_run_of
from fastsim.engine.rounds.kept_state import kept_state, restored
from fastsim.engine.rounds.options import QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, RoundOutcome
from fastsim.engine.shares.allocation_checks import checked_allocation
from fastsim.engine.shares.estimate_checks import checked_kind
from fastsim.engine.shares.models_in_use import (
    EveryModel,
    PresentSettings,
    models_with_gpus,
    options_on,
    setting_on,
)
from fastsim.engine.shares.plan import SharePlan, view_of
from fastsim.foundation import interrupts
from fastsim_ext.rounds.share_loop import ShareLoop
from fastsim_ext.rounds.snapshot import request_allocation


@dataclass
class ShareDriver(JobDriver[RoundOutcome]):
    """Drives rounds of shares: calls the allocator, and feeds the estimates with the pairs that ran."""

    whole: EveryModel = field(kw_only=True)
    engine: ClassVar[str] = "shares"
    at_first: str = field(init=False)
    """The estimates before any job has come."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_first = "none" if self.plan.estimates is None else str(self.plan.estimates)

    def ask_policy(self) -> None:
        """Assign the shares that the policy allocates to the active jobs."""
        rows = np.frombuffer(self.loop.table.rows(), GANG)
        estimates = self.plan.estimates
        if estimates is not None:
            self.collect_records()
            for job_a, job_b, model in self.loop.table.observed():
                estimates.observe(job_a, job_b, model)
        gpus = None if self.nodes is None else self.loop.leases.present_gpus()
        setting = self.setting if gpus is None else self.present.of(gpus)
        if not setting.gpus__g.any():
            return  # the shares of before are forgotten, and no job can run
        view = view_of(
            rows=rows,
            setting=setting,
            now_s=self.loop.now_s,
            price__g=self.price,
            tenants=self.tenants,
            partner_rates=estimates,
        )
        allocation = checked_allocation(self.plan, view)
        if allocation is not None:
            self.solver_s += allocation.solver_s
            self.loop.assign(allocation.first, allocation.second, allocation.share__rg)

    @cached_property
    def present(self) -> PresentSettings:
        """The settings of a run whose nodes come and go."""
        return PresentSettings(self.setting)

    def feed(self, columns: JobBatch) -> None:
        """Add these jobs to the loop, with the kinds that estimates take them for."""
        self.loop.feed(*columns, self.ahead is None, self.estimated_kinds(columns))

    def estimated_kinds(self, columns: JobBatch) -> npt.NDArray[np.int32] | None:
        """The kind that each of these jobs is taken for when it shares GPUs; None without estimates."""
        estimates = self.plan.estimates
        if estimates is None:
            return None
        where, known = f"estimates {type(estimates).__qualname__}", len(self.setting.oracle.kinds)
        kinds = np.empty(len(columns.kind), np.int32)
        for row, kind in enumerate(columns.kind.tolist()):
            interrupts.check()  # to match a job takes milliseconds
            kinds[row] = checked_kind(estimates.arrive(self.loop.table.added + row, kind), known, where)
        return kinds

    def collect_records(self) -> None:
        """Collect the records that the loop has written, and remove jobs that have ended from the estimates."""
        super().collect_records()
        if self.plan.estimates is not None:
            for job in self.ended_jobs[-1]["id"].tolist():
                self.plan.estimates.leave(job)

    def finished(self) -> RoundOutcome:
        """The outcome of the run, with the models without GPUs."""
        return self.whole.widened(self.outcome(RoundOutcome, self.loop.now_s))

    def decisions(self) -> dict[str, Any]:
        """The properties that decide the run; another policy that resumes it keeps the estimates."""
        return super().decisions() | {"estimates": self.at_first}

    def memory(self) -> dict[str, Any] | None:
        """The allocator's state as JSON values."""
        return kept_state(self.plan.allocator)

    def estimates(self) -> Any:
        """The state of the estimates of pair rates; None without estimates."""
        return None if self.plan.estimates is None else kept_state(self.plan.estimates)

    def restore_memory(self, meta: dict[str, Any]) -> None:
        """Restore the states of allocator and estimates; another policy begins without a state."""
        if self.plan.estimates is not None:
            restored(self.plan.estimates, meta["estimates"])
        if meta["policy"] is None:
            request_allocation(self.loop)
        else:
            restored(self.plan.allocator, meta["memory"])


def share_driver(
    setting: Setting,
    plan: SharePlan,
    batches: Iterable[JobBatch],
    options: RoundOptions,
    *,
    gpus_per_server: tuple[int, ...] = (),
    **context: Unpack[RunContext],
) -> ShareDriver:
    """The driver of a run before its first round.

    A model without GPUs is in the figures, 0 busy, and nowhere else: the policy does not see it and no draw is among
    models with it.
    """
    every = _whole_servers(setting, gpus_per_server)
    models = models_with_gpus(every)
    gpus, used = tuple(every[g] for g in models), setting_on(setting, every, models)
    chosen = options_on(options, models)
    loop, whole = _loop(used, plan, chosen, gpus, context), EveryModel(setting, options, every)
    return ShareDriver(loop, used, plan, chosen, gpus, runnable(batches, used, gpus), whole=whole, **context)


run_rounds = whole_run_of(share_driver)
"""Plays jobs in rounds until those that count have finished; ``progress`` takes the number of those that have."""


def usable_jobs(setting: Setting, batches: Iterable[JobBatch]) -> Iterator[JobBatch]:
    """The jobs as a run reads them; InputError for one that could never run."""
    every = _whole_servers(setting, ())
    models = models_with_gpus(every)
    return runnable(batches, setting_on(setting, every, models), tuple(every[g] for g in models))


def _whole_servers(setting: Setting, gpus_per_server: tuple[int, ...]) -> tuple[int, ...]:
    """GPUs of each model, without those that fill no server, which are not used."""
    sizes = gpus_per_server or (1,) * len(setting.gpu_models)
    return tuple(int(n) // size * size for n, size in zip(setting.gpus__g, sizes, strict=True))


def _loop(
    setting: Setting,
    plan: SharePlan,
    options: RoundOptions,
    gpus: tuple[int, ...],
    context: RunContext,
) -> ShareLoop:
    fastest = [setting.gpu_models.index(m) for m in setting.oracle.fastest_first if m in setting.gpu_models]
    return ShareLoop(
        gpus, setting.oracle.alone__kg, setting.oracle.shared__kkg, fastest,
        random.Random(setting.seed + 5).getstate()[1],  # the stream the original gives to its shuffler
        realloc_s=options.gap_s(plan), endless=options.endless, quirks=[options.quirk(name) for name in QUIRKS],
        pairs=plan.pairs, shuffled=plan.visit == "shuffled", strict=plan.strict, one_line=options.global_queue,
        estimated=plan.estimates is not None, **loop_arguments(options, context),
    )  # fmt: skip
