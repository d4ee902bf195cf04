"""Runs in ordered rounds: drives the compiled loop, calls the chooser of ``opt``, and adds columns to the tables.

Beside the columns of all rounds, tables have CPUs and memory that jobs hold, use and need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.cluster.server import GB_MIB
from fastsim.engine.orders.plan import MECHANISMS, OrderPlan, ResourcePoint
from fastsim.engine.orders.point_checks import checked_points
from fastsim.engine.orders.server_demands import RESOURCES, ServerDemands
from fastsim.engine.rounds.job_batches import JobBatch, runnable
from fastsim.engine.rounds.job_driver import RECORDS, JobDriver, RunContext, loop_arguments, whole_run_of
from fastsim.engine.rounds.options import ORDERED_QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, ROUND, RoundOutcome
from fastsim.engine.rounds.solver_time import solver_seconds
from fastsim.engine.tables import EVENTS
from fastsim.errors import InputError, PolicyError
from fastsim.scenario.sort_keys import column_of
from fastsim_ext.rounds.ordered_loop import OrderedLoop
from fastsim_ext.rounds.server_allocation import ServerAllocation

Floats = npt.NDArray[np.float64]
BY_ROUND = {
    "cpu_milli_used": "cpu_used", "memory_mib_used": "memory_used", "cpu_milli_demand": "cpu_demand",
    "memory_mib_demand": "memory_demand", "jobs_at_fair_share": "at_fair",
}  # fmt: skip
"""Columns of the timeline in rows of round starts, null elsewhere; their names in the record of a round."""


@dataclass
class OrderedOutcome(RoundOutcome):
    """A run in ordered rounds that has finished; ``round_records`` has a record (``ROUND``) of every round."""

    round_records: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, ROUND))
    needs: ServerDemands | None = None
    even: ClassVar[bool] = True
    reclaims: int = 0
    """Times that servers took back what jobs had above their fair shares."""

    def timeline_columns(self) -> Mapping[str, pl.Series]:
        """CPUs and memory used and needed, and jobs no faster than with their fair share."""
        return timeline_columns(self)

    def kind_figures(self) -> Mapping[str, Any]:
        """Means of these columns over the rounds, and GPUs that jobs demand."""
        return ordered_figures(self)


@dataclass
class OrderedDriver(JobDriver[OrderedOutcome]):
    """Drives ordered rounds; ``points`` are the chooser's answers, by the numbers of jobs of each kind.

    ``values`` of the columns that the order reads are there when their jobs are read.
    """

    needs: ServerDemands = field(kw_only=True)
    round_records: list[npt.NDArray[Any]] = field(default_factory=list)
    values: Sequence[Floats] = ()
    points: dict[bytes, dict[int, list[ResourcePoint]]] = field(default_factory=dict)
    records: ClassVar[dict[str, Any]] = RECORDS | {"round_records": ROUND}
    engine: ClassVar[str] = "orders"

    def decisions(self) -> dict[str, Any]:
        """The properties that decide the run, servers and demands of jobs among them."""
        decided = super().decisions()
        rates = f"{decided['rates']} {_tables(self.needs)}"
        return decided | {"policies": "of orders", "estimates": "none", "rates": rates}

    def feed(self, columns: JobBatch) -> None:
        """Add these jobs to the loop, and the values by which an order sorts all that were read so far."""
        self.loop.feed(*columns, self.ahead is None, None, np.concatenate(self.values) if self.values else None)

    def ask_policy(self) -> None:
        """Set CPUs and memory of the jobs of this round: jobs of a kind in their order, the fastest points first."""
        rows = self.loop.chosen_rows()
        kinds = np.frombuffer(self.loop.table.rows(), GANG)["kind"][rows]
        queue = {k: [point for point in points for _ in range(point.jobs)] for k, points in self.parts(kinds).items()}
        point__j = [queue[k].pop(0) for k in kinds.tolist()]
        need = np.array([(p.cpu * 1000, p.memory_gb * GB_MIB, 0.0) for p in point__j], np.float64)
        speedup = np.array([p.speedup for p in point__j], np.float64)
        self.loop.assign_shares(need.reshape(len(point__j), len(RESOURCES)), speedup)

    def parts(self, kinds: npt.NDArray[Any]) -> dict[int, list[ResourcePoint]]:
        """Resources of jobs of these kinds, by kind; equal sets of jobs have equal resources."""
        count__k = np.bincount(kinds, minlength=len(self.needs.speedup__k))
        key = np.append(count__k, self.loop.allocation.present).tobytes()  # what is chosen depends on both
        if key not in self.points:
            chooser, demands = self.plan.chooser, self.needs.demands
            assert chooser is not None and demands is not None
            counts, servers = count__k.tolist(), max(self.loop.allocation.present, 1)
            where = f"chooser {type(chooser).__qualname__}"
            answer = chooser.parts(demands, counts, servers)
            self.points[key] = checked_points(answer, counts, f"{where}: parts()")
            self.solver_s = solver_seconds(chooser.solver_s, where)
        return self.points[key]

    def finished(self) -> OrderedOutcome:
        """The outcome of the run."""
        return self.outcome(OrderedOutcome, self.loop.end_s, needs=self.needs, reclaims=self.loop.shares.reclaims)

    def collect_records(self) -> None:
        """Collect the records that the loop has written."""
        super().collect_records()
        self.round_records.append(np.frombuffer(self.loop.drained(), ROUND))


def ordered_driver(
    setting: Setting,
    plan: OrderPlan,
    needs: ServerDemands,
    batches: Iterable[JobBatch],
    options: RoundOptions,
    *,
    values: Sequence[Floats] | None = None,
    **context: Unpack[RunContext],
) -> OrderedDriver:
    """The driver of a run before its first round.

    ``values`` of ``batches`` are needed for an order that reads columns, see :class:`OrderedDriver`.
    """
    needs.check(plan)
    if values is None and any(map(column_of, plan.order)):
        raise PolicyError("order", "columns", "jobs with values of them")
    if plan.mechanism == "opt" and plan.chooser is None:
        raise PolicyError("mechanism opt", "a plan without a chooser", "one that allocates CPUs and memory")
    loop = ordered_loop_of(needs, plan, options, context)
    jobs = usable_jobs(setting, plan, needs, batches)
    known = () if values is None else values  # a list that grows
    return OrderedDriver(loop, setting, plan, options, needs.gpus__g, jobs, needs=needs, values=known, **context)


run_ordered = whole_run_of(ordered_driver)
"""Plays jobs in ordered rounds until those that count have finished; options as for ``run_rounds``."""


def ordered_loop_of(needs: ServerDemands, plan: OrderPlan, options: RoundOptions, context: RunContext) -> OrderedLoop:
    """The compiled loop of a run that has not begun."""
    return OrderedLoop(
        needs.gpus__g, needs.num_gpu__s, needs.cap__sr, needs.base, np.nan_to_num(needs.need__kr), needs.speedup__k,
        needs.step_s__kg, plan.terms, np.array(plan.level_s, np.float64), packed__k(needs, plan),
        mechanism=MECHANISMS.index(plan.mechanism), narrow=plan.narrow,
        sticky=plan.sticky, blocking=plan.blocking, admit=plan.admit, begin_s=options.begin_s,
        starving_s=plan.starving_s, quirks=[options.quirk(name) for name in ORDERED_QUIRKS],
        **loop_arguments(options, context),
    )  # fmt: skip


def packed__k(needs: ServerDemands, plan: OrderPlan) -> npt.NDArray[np.uint8]:
    """By kind: whether gangs are kept together."""
    names = needs.workload__k or ("",) * len(needs.speedup__k)
    return np.array([plan.packs(name) for name in names], np.uint8)


def room_for(needs: ServerDemands, mechanism: str) -> npt.NDArray[np.int64]:
    """GPUs that empty servers of one model could give to jobs of each kind; 1 for a job without GPUs that fits."""
    servers = ServerAllocation(needs.num_gpu__s, needs.cap__sr, needs.base)
    need = np.nan_to_num(needs.need__kr) if mechanism == "greedy" else np.zeros(needs.need__kr.shape)
    return np.array(servers.rooms(needs.size__k, need), np.int64)


def usable_jobs(
    setting: Setting, plan: OrderPlan, needs: ServerDemands, batches: Iterable[JobBatch]
) -> Iterator[JobBatch]:
    """The jobs as a run reads them; InputError for one that could never run."""
    return _placeable(runnable(batches, setting, needs.gpus__g), plan, needs)


def _placeable(batches: Iterable[JobBatch], plan: OrderPlan, needs: ServerDemands) -> Iterator[JobBatch]:
    """The batches; InputError for a job that cannot run even on empty servers."""
    start, rooms = 0, room_for(needs, plan.mechanism)
    refused = dict(needs.refused)
    for batch in batches:
        for row in np.flatnonzero(np.isin(batch.kind, list(refused))).tolist():
            error = refused[int(batch.kind[row])]
            raise InputError(f"job {start + row}: {error.where}", error.found, error.expected)
        lacking = np.flatnonzero(rooms[batch.kind] < np.maximum(batch.num_gpu, 1))
        if len(lacking):
            row = int(lacking[0])
            cpu, memory, storage = needs.need__kr[batch.kind[row]]
            expected = (
                f"CPUs, memory and storage of empty servers: it needs {cpu / 1000:g}, {memory:g} MiB, {storage:g}"
            )
            raise InputError(f"job {start + row}", f"{batch.num_gpu[row]} GPUs", f"{expected} MB/s in all")
        start += len(batch.kind)
        yield batch


def _tables(needs: ServerDemands) -> str:
    """Checksum of the tables, which checkpoints compare."""
    import hashlib

    total = hashlib.sha256(repr((needs.num_gpu__s, needs.base)).encode())
    for table in (needs.cap__sr, needs.need__kr, needs.speedup__k, needs.step_s__kg):
        total.update(np.ascontiguousarray(table).tobytes())
    return total.hexdigest()


def timeline_columns(run: OrderedOutcome) -> dict[str, pl.Series]:
    """Further columns of the timeline: CPUs and memory that running jobs have use for and need, and the number of
    running jobs that are no faster than with their fair share."""
    begins = run.rows["kind"] == EVENTS.index("sample")
    row = pl.Series(np.where(begins, np.searchsorted(run.round_records["round"], run.rows["seq"]), 0))
    columns = {name: pl.Series(np.ascontiguousarray(run.round_records[source])) for name, source in BY_ROUND.items()}
    return {name: column.gather(row).set(~pl.Series(begins), None) for name, column in columns.items()}


def ordered_figures(run: OrderedOutcome) -> dict[str, Any]:
    """Means over the rounds in percent of the cluster, and GPUs that jobs demand, mean over time."""
    assert run.needs is not None
    caps = run.needs.cap__sr.sum(axis=0)
    figures: dict[str, Any] = {}
    for name, cap in (("cpu", float(caps[0])), ("memory", float(caps[1]))):
        for kind in ("alloc", "used", "demand"):
            figures[f"round_{name}_{kind}_pct"] = _mean(run.round_records[f"{name}_{kind}"], cap)
    running = run.round_records["running"].sum()
    figures["fair_share_pct"] = float(100 * run.round_records["at_fair"].sum() / running) if running else None
    figures["gpu_demand_pct"] = gpu_demand_pct(run)
    figures["reclaims"] = run.reclaims
    return figures


def gpu_demand_pct(run: OrderedOutcome) -> float | None:
    """GPUs demanded by waiting and running jobs over those of the cluster; mean over the run, percent."""
    jobs, gpus = run.jobs, sum(run.gpus__g)
    if not len(jobs) or not gpus:
        return None
    begin_s, end_s = float(jobs["submit_s"].min()), run.makespan_s
    stay_s = np.where(np.isnan(jobs["finish_s"]), end_s, jobs["finish_s"]) - jobs["submit_s"]
    return float(100 * (jobs["num_gpu"] * stay_s).sum() / (gpus * (end_s - begin_s))) if end_s > begin_s else None


def _mean(values: Floats, cap: float) -> float | None:
    return float(100 * values.mean() / cap) if len(values) and cap else None
