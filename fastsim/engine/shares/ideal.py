"""The ideal limit of rounds: all jobs progress at once, each on every GPU model for its share of the time.

There are no rounds, no leases and no restarts. The state changes only when a job arrives or completes, or when prices
change; between two such events every job progresses at the sum of share times rate, pairs at their rates while
sharing. Where an allocation takes more GPUs of a model than there are, as some do for gangs, all its shares of that
model are scaled down alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.driving.drive import Stop, drive
from fastsim.engine.driving.headway import Headway
from fastsim.engine.rounds.job_batches import JobBatch, runnable
from fastsim.engine.rounds.job_driver import nothing_runs
from fastsim.engine.rounds.options import PATIENCE, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, MOMENT, RoundOutcome
from fastsim.engine.shares.allocation_checks import checked_allocation
from fastsim.engine.shares.models_in_use import EveryModel, models_with_gpus, options_on, setting_on
from fastsim.engine.shares.plan import ALONE, Allocation, Floats, Ints, SharePlan, view_of
from fastsim.engine.tables import ROW
from fastsim.errors import ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.knobs import DECISIONS

Records = npt.NDArray[Any]

ROUNDING = 1e-9
"""Relative excess of allocated over existing GPUs that is rounding of summed shares."""
PAUSE_EVENTS = 256
"""Events between two reports of progress."""


def run_ideal(
    setting: Setting,
    plan: SharePlan,
    batches: Iterable[JobBatch],
    options: RoundOptions,
    *,
    realloc_s: float = 0.0,
    tenants: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> RoundOutcome:
    """Run jobs without rounds until those that count have finished; ``progress`` is called with the finished number.

    ``realloc_s`` is the least time between two allocations, seconds; of ``options`` only ``until_s``, ``window`` and
    ``prices`` count. In the result a round is an event, and a job's ``rounds`` are the spans in which it progressed.
    """
    if not 0 <= realloc_s < float("inf"):
        raise ScenarioError("realloc_s", realloc_s, "seconds, finite and not negative")
    gpus_of_all = tuple(int(count) for count in setting.gpus__g)
    models = models_with_gpus(gpus_of_all)
    gpus, setting_used, options_used = (
        tuple(gpus_of_all[g] for g in models),
        setting_on(setting, gpus_of_all, models),
        options_on(options, models),
    )
    arrivals = JobArrivals(runnable(batches, setting_used, gpus))
    run = IdealRun(
        setting=setting_used, plan=plan, options=options_used, arrivals=arrivals, realloc_s=realloc_s, tenants=tenants
    )
    drive(run.advance, {Stop.PAUSE: lambda: None if progress is None else progress(run.ended)})
    jobs = np.concatenate([*run.ended_jobs, run.jobs])
    outcome = RoundOutcome(
        setting=setting_used,
        options=options_used,
        jobs=jobs[np.argsort(jobs["id"])],
        tasks=np.zeros(0, MOMENT),
        held=np.zeros(0, np.int32),
        rows=np.zeros(0, ROW),
        rounds=run.events,
        calls=run.calls,
        makespan_s=run.now_s,
        max_active=run.max_active,
        job_rounds=run.job_events,
        extensions=0,
        opportunities=0,
        busy_s=np.repeat(run.busy_s__g / gpus, gpus),
        gpus__g=gpus,
        solver_s=run.solver_s,
    )
    return EveryModel(setting, options, gpus_of_all).widened(outcome)


class JobArrivals:
    """Future jobs as records, one batch at a time; ``added`` counts those that arrived."""

    def __init__(self, batches: Iterator[JobBatch]) -> None:
        self.added = 0
        self._batches, self._coming = batches, np.zeros(0, GANG)
        self._refill()

    @property
    def next_s(self) -> float:
        """Arrival of the next job, seconds; infinite if there is none."""
        return float(self._coming["submit_s"][0]) if len(self._coming) else float("inf")

    def until(self, now_s: float) -> Records:
        """Remove the jobs that arrive until ``now_s``, and return them."""
        arrived = [np.zeros(0, GANG)]
        while self.next_s <= now_s:
            count = int(np.searchsorted(self._coming["submit_s"], now_s, side="right"))
            arrived.append(self._coming[:count])
            self._coming, self.added = self._coming[count:], self.added + count
            self._refill()
        return np.concatenate(arrived)

    def _refill(self) -> None:
        while not len(self._coming) and (batch := next(self._batches, None)) is not None:
            self._coming = records(batch, self.added)


def records(batch: JobBatch, first_id: int) -> Records:
    """Records (``GANG``) of jobs that have not run, numbered from ``first_id``."""
    jobs = np.zeros(len(batch.kind), GANG)
    names = ("submit_s", "kind", "num_gpu", "total", "weight", "deadline_s", "tenant")
    for name, column in zip(names, batch, strict=True):
        jobs[name] = column
    jobs["id"] = np.arange(first_id, first_id + len(jobs))
    jobs["first_s"] = jobs["finish_s"] = np.nan
    jobs["task"] = -1
    return jobs


class IdealRun:
    """State of a run: the active jobs by id, and their rates, spending and GPUs until the next event."""

    def __init__(
        self, setting: Setting, plan: SharePlan, options: RoundOptions, arrivals: JobArrivals, realloc_s: float,
        tenants: Sequence[str],
    ) -> None:  # fmt: skip
        self.setting, self.plan, self.options = setting, plan, options
        self.arrivals, self.realloc_s, self.tenants = arrivals, realloc_s, tenants
        self.jobs, self.ended_jobs = np.zeros(0, GANG), list[Records]()
        width = len(setting.gpu_models)
        self.price__g, self.busy_s__g, self.use__g = np.zeros(width), np.zeros(width), np.zeros(width)
        self.rate, self.spending, self.finish_s = np.zeros(0), np.zeros(0), np.zeros(0)
        self.allocation: Allocation | None = None
        self.headway = Headway("jobs", DECISIONS)
        self.wanted, self.due_s = True, 0.0
        self.next_price_s = 0.0 if options.prices is not None else float("inf")
        self.now_s = self.solver_s = 0.0
        self.events = self.calls = self.ended = self.max_active = self.job_events = self.quiet = 0

    def finished(self) -> bool:
        """Whether the jobs that count have ended, or ``until_s`` is reached."""
        if self.now_s >= self.options.until_s:
            return True
        first, last = self.options.window or (0, None)
        if self.arrivals.next_s == float("inf"):
            last = self.arrivals.added if last is None else min(last, self.arrivals.added)
        return last is not None and self.ended >= last - first

    def advance(self) -> int:
        """Play the run to its end or to the next report of progress."""
        while not self.finished():
            self.step()
            if self.events % PAUSE_EVENTS == 0:
                return Stop.PAUSE
        return Stop.DONE

    def step(self) -> None:
        """Advance to the next event and handle it."""
        interrupts.check()
        event_s = self.next_event_s()
        idle = not (self.rate > 0).any()
        if event_s == float("inf") or self.quiet == PATIENCE:
            raise nothing_runs(self.jobs, self.now_s)
        self.progress_until(min(event_s, self.options.until_s))
        self.events += 1
        self.leave()
        arrived = self.arrive()
        self.quiet = self.quiet + 1 if idle and not arrived else 0
        if self.now_s >= self.next_price_s:
            self.reprice()
        if self.wanted and len(self.jobs) and self.now_s >= self.due_s:
            self.ask_policy()
        self.apply()
        self.job_events += len(self.jobs)

    def next_event_s(self) -> float:
        """The next arrival, completion, allocation or change of prices, seconds; infinite if nothing is left."""
        times = [self.arrivals.next_s, float(self.finish_s.min(initial=np.inf))]
        if len(self.jobs):
            times += [self.next_price_s, self.due_s if self.wanted else np.inf]
        return max(self.now_s, min(times))

    def progress_until(self, until_s: float) -> None:
        """Advance all jobs at their rates to this second."""
        span, jobs = until_s - self.now_s, self.jobs
        running = self.rate > 0
        done = self.finish_s <= until_s
        jobs["run"] = np.where(done, jobs["total"], np.minimum(jobs["run"] + self.rate * span, jobs["total"]))
        jobs["cost"] += self.spending * span
        jobs["first_s"] = np.where(running & np.isnan(jobs["first_s"]), self.now_s, jobs["first_s"])
        jobs["rounds"] += running & (span > 0)
        jobs["finish_s"] = np.where(done, until_s, np.nan)
        jobs["ended"] = done
        self.busy_s__g += self.use__g * span
        self.now_s = until_s

    def leave(self) -> None:
        """Remove the jobs that are complete."""
        done = self.jobs["ended"] == 1
        if not done.any():
            return
        first, last = self.options.window or (0, None)
        ids = self.jobs["id"][done]
        self.ended += int(((ids >= first) & (last is None or ids < last)).sum())
        self.ended_jobs.append(self.jobs[done])
        self.jobs, self.wanted = self.jobs[~done], True

    def arrive(self) -> bool:
        """Add the jobs that have arrived; whether any has."""
        new = self.arrivals.until(self.now_s)
        if len(new):
            self.jobs, self.wanted = np.concatenate([self.jobs, new]), True
            self.max_active = max(self.max_active, len(self.jobs))
        return len(new) > 0

    def reprice(self) -> None:
        """Apply the current prices; a change requires a new allocation."""
        assert self.options.prices is not None
        price = self.options.prices.at(self.now_s)
        self.wanted |= bool((price != self.price__g).any())
        self.price__g, self.next_price_s = price, self.options.prices.next_change_s(self.now_s)

    def ask_policy(self) -> None:
        """Replace the allocation by the policy's shares for the active jobs."""
        self.wanted, self.due_s = False, self.now_s + self.realloc_s
        self.calls += 1
        self.headway.see(self.arrivals.added - len(self.jobs))
        self.headway.add(DECISIONS, 1, self.now_s)
        view = view_of(self.jobs, self.setting, self.now_s, self.price__g, self.tenants)
        allocation = self.allocation = checked_allocation(self.plan, view)
        if allocation is not None:
            self.solver_s += allocation.solver_s

    def rows_of(self, ids: Ints) -> Ints:
        """Rows of active jobs, -1 for all others."""
        row = np.searchsorted(self.jobs["id"], ids)
        active = row < len(self.jobs)
        active[active] = self.jobs["id"][row[active]] == ids[active]
        return np.where(active, row, -1)

    def apply(self) -> None:
        """Rates, spending and completions under the current allocation; candidates with a job that left do not run."""
        count = len(self.jobs)
        self.rate, self.spending, self.use__g = np.zeros(count), np.zeros(count), np.zeros(len(self.price__g))
        if self.allocation is not None:
            self._divide(self.allocation)
        left = self.jobs["total"] - self.jobs["run"]
        span = np.divide(left, self.rate, out=np.full(count, np.inf), where=self.rate > 0)
        self.finish_s = self.now_s + span

    def _divide(self, allocation: Allocation) -> None:
        """Rates, spending and GPUs in use under these shares, of candidates that fit and run."""
        row, mate = self.rows_of(allocation.first), self.rows_of(allocation.second)
        pair = allocation.second != ALONE
        active = (row >= 0) & (~pair | (mate >= 0))
        row, mate, pair, share = row[active], mate[active], pair[active], allocation.share__rg[active]
        one, two = self._rates(row, mate, pair)
        num_gpu = self.jobs["num_gpu"][row][:, None]
        held = share * num_gpu * ((one > 0) & (~pair[:, None] | (two > 0)) & (num_gpu <= self.setting.gpus__g))
        allocated = held.sum(axis=0)
        over = allocated > self.setting.gpus__g * (1 + ROUNDING)
        held *= np.where(over, self.setting.gpus__g / np.where(over, allocated, 1.0), 1.0)
        self.use__g = held.sum(axis=0)
        for rows, rates in ((row, one), (mate[pair], two[pair])):
            part = held if rows is row else held[pair]
            count = len(self.jobs)
            self.rate += np.bincount(rows, (part / self.jobs["num_gpu"][rows][:, None] * rates).sum(axis=1), count)
            self.spending += np.bincount(rows, part @ self.price__g / 3600, count)

    def _rates(self, row: Ints, mate: Ints, pair: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Rates of the first and of the second job of each candidate, steps/s; unknown rates are 0."""
        oracle, kind = self.setting.oracle, self.jobs["kind"]
        one, two = oracle.alone__kg[kind[row]], np.zeros((len(row), len(self.price__g)))
        a, b = kind[row[pair]], kind[mate[pair]]
        one[pair], two[pair] = oracle.shared__kkg[a, b], oracle.shared__kkg[b, a]
        return np.nan_to_num(one), np.nan_to_num(two)
