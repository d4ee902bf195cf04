"""Runs in ordered rounds: drives the compiled loop, and asks for the best points where a mechanism wants them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclasses_field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.cluster.server import GB_MIB
from fastsim.engine.orders.plan import MECHANISMS, OrderPlan, ResourcePoint
from fastsim.engine.orders.server_demands import RESOURCES, ServerDemands
from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping, decisions
from fastsim.engine.rounds.driver import RECORDS, Driver
from fastsim.engine.rounds.job_batches import JobBatch, runnable
from fastsim.engine.rounds.options import TURN_QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.outcome import GANG, TURN, RoundOutcome
from fastsim.engine.tables import EVENTS, ROW
from fastsim.errors import InputError, PolicyError
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.ordered_loop import OrderedLoop
from fastsim_ext.rounds.server_allocation import ServerAllocation
from fastsim_ext.rounds.snapshot import ordered_snapshot

Floats = npt.NDArray[np.float64]
BY_ROUND = {
    "cpu_milli_used": "cpu_used", "memory_mib_used": "memory_used", "cpu_milli_demand": "cpu_demand",
    "memory_mib_demand": "memory_demand", "jobs_at_fair_share": "at_fair",
}  # fmt: skip
"""Columns of the timeline that are known when a round begins, null in other rows; their names in a round's record."""


@dataclass
class OrderedOutcome(RoundOutcome):
    """A run in ordered rounds that has finished; ``turns`` has a record (``TURN``) of every round."""

    turns: npt.NDArray[Any] = dataclasses_field(default_factory=lambda: np.zeros(0, TURN))
    needs: ServerDemands | None = None
    even: ClassVar[bool] = True
    reclaims: int = 0
    """How often servers took back what jobs had above their fair shares."""

    def timeline_columns(self) -> Mapping[str, pl.Series]:
        """CPUs and memory that are of use, those that jobs need, and jobs no faster than with their fair share."""
        return timeline_columns(self)

    def kind_figures(self) -> Mapping[str, Any]:
        """Means of those over the rounds, and GPUs that jobs ask for."""
        return turn_figures(self)


@dataclass
class TurnDriver(Driver):
    """What goes between the compiled loop and the rest of the world."""

    needs: ServerDemands = dataclasses_field(kw_only=True)
    turns: list[npt.NDArray[Any]] = dataclasses_field(default_factory=list)
    found: dict[bytes, dict[int, list[ResourcePoint]]] = dataclasses_field(default_factory=dict)
    records: ClassVar[dict[str, Any]] = RECORDS | {"turns": TURN}

    def ask_policy(self) -> None:
        """Say what the jobs of this round get: jobs of a kind in their order, the fastest points first."""
        rows = self.loop.chosen_rows()
        kinds = np.frombuffer(self.loop.table.rows(), GANG)["kind"][rows]
        parts = self.parts(kinds)
        queue = {k: [part for part in listed for _ in range(part.jobs)] for k, listed in parts.items()}
        told = [queue[k].pop(0) for k in kinds.tolist()]
        need = np.array([(p.cpu * 1000, p.memory_gb * GB_MIB, 0.0) for p in told], np.float64)
        speedup = np.array([p.speedup for p in told], np.float64)
        self.loop.set_shares(need.reshape(len(told), len(RESOURCES)), speedup)

    def parts(self, kinds: npt.NDArray[Any]) -> dict[int, list[ResourcePoint]]:
        """What jobs of these kinds get, by kind; the same jobs always get the same."""
        count__k = np.bincount(kinds, minlength=len(self.needs.speedup__k))
        key = count__k.tobytes()
        if key not in self.found:
            chooser, demands = self.plan.chooser, self.needs.demands
            assert chooser is not None and demands is not None
            found: dict[int, list[ResourcePoint]] = defaultdict(list)
            for part in chooser.parts(demands, count__k.tolist(), len(self.needs.num_gpu__s)):
                found[part.kind].append(part)
            self.found[key] = found
            self.solver_s = chooser.solver_s
        return self.found[key]

    def collect_records(self) -> None:
        """Take what the loop has noted."""
        super().collect_records()
        self.turns.append(np.frombuffer(self.loop.drained(), TURN))

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The loop's numbers and bytes."""
        return ordered_snapshot(self.loop)

    def memory(self) -> None:
        """An order remembers nothing."""

    def remember(self, meta: dict[str, Any]) -> None:
        """An order remembers nothing."""


def run_turns(
    setting: Setting,
    plan: OrderPlan,
    needs: ServerDemands,
    batches: Iterable[JobBatch],
    options: RoundOptions,
    *,
    tenants: Sequence[str] = (),
    record_tasks: bool = False,
    gauge: ClusterMetrics | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: RoundKeeping | None = None,
    resume: RoundCheckpoint | None = None,
) -> OrderedOutcome:
    """Play jobs in ordered rounds until those that count have finished; as ``run_rounds``."""
    needs.check(plan)
    if plan.mechanism == "opt" and plan.chooser is None:
        raise PolicyError("mechanism opt", "a plan without a chooser", "one that says what jobs get")
    gpus = needs.gpus__g
    loop = looped(needs, plan, options, record_tasks, gauge)
    jobs = _placeable(runnable(batches, setting, gpus), plan, needs)
    driver = TurnDriver(
        setting, plan, options, jobs, tenants, progress, loop, np.zeros(len(gpus)), needs=needs
    )  # fmt: skip
    decided = decisions(setting, options, gpus, record_tasks, gauge is not None)
    driver.decided = decided | {
        "policies": "of orders",
        "beliefs": "none",
        "rates": f"{decided['rates']} {_tables(needs)}",
    }
    driver.play(checkpoint, resume)
    return _finished(driver, gpus)


def looped(
    needs: ServerDemands,
    plan: OrderPlan,
    options: RoundOptions,
    record: bool = True,
    gauge: ClusterMetrics | None = None,
) -> OrderedLoop:
    """The compiled loop of a run that has not begun."""
    first, last = options.window or (0, -1)
    return OrderedLoop(
        needs.gpus__g, needs.num_gpu__s, needs.cap__sr, needs.base, np.nan_to_num(needs.need__kr), needs.speedup__k,
        needs.step_s__kg, plan.terms, np.array(plan.level_s, np.float64), packed__k(needs, plan),
        mechanism=MECHANISMS.index(plan.mechanism), narrow=plan.narrow,
        sticky=plan.sticky, blocking=plan.blocking, admit=plan.admit, round_s=options.round_s,
        begin_s=options.begin_s, restart_s=options.restart_s, until_s=options.until_s, starving_s=plan.starving_s,
        first=first, last=last, recorded=record, quirks=[options.quirk(name) for name in TURN_QUIRKS],
        metrics=gauge,
    )  # fmt: skip


def packed__k(needs: ServerDemands, plan: OrderPlan) -> npt.NDArray[np.uint8]:
    """By kind: whether gangs are kept together."""
    names = needs.workload__k or ("",) * len(needs.speedup__k)
    return np.array([plan.packs(name) for name in names], np.uint8)


def room_for(needs: ServerDemands, mechanism: str) -> npt.NDArray[np.int64]:
    """GPUs that empty servers of one model could give to jobs of each kind; 1 for a job without GPUs that fits."""
    seats = ServerAllocation(needs.num_gpu__s, needs.cap__sr, needs.base)
    need = np.nan_to_num(needs.need__kr) if mechanism == "greedy" else np.zeros(needs.need__kr.shape)
    return np.array(seats.rooms(needs.size__k, need), np.int64)


def _placeable(batches: Iterable[JobBatch], plan: OrderPlan, needs: ServerDemands) -> Iterator[JobBatch]:
    """The batches, each refused if one of its jobs cannot run even on empty servers."""
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
    """What checkpoints compare of the tables."""
    import hashlib

    total = hashlib.sha256(repr((needs.num_gpu__s, needs.base)).encode())
    for table in (needs.cap__sr, needs.need__kr, needs.speedup__k, needs.step_s__kg):
        total.update(np.ascontiguousarray(table).tobytes())
    return total.hexdigest()


def _finished(driver: TurnDriver, gpus: tuple[int, ...]) -> OrderedOutcome:
    loop = driver.loop
    end_s = loop.end_s
    if loop.metrics is not None:
        loop.metrics.close(end_s)
    driver.collect_records()
    jobs = np.concatenate([*driver.gone, np.frombuffer(loop.table.rows(), GANG)])
    return OrderedOutcome(
        driver.setting, driver.options, jobs[np.argsort(jobs["id"])], np.concatenate(driver.tasks),
        np.concatenate(driver.held), np.concatenate([*driver.rows, np.zeros(0, ROW)]),
        int(loop.rounds), int(loop.calls), float(end_s), int(loop.max_active), int(loop.job_rounds),
        int(loop.leases.extensions), int(loop.leases.opportunities), np.array(loop.leases.busy()), gpus,
        driver.solver_s, loop.metrics, float(loop.spoilt_gpu_s), np.concatenate(driver.turns),
        driver.needs, int(loop.shares.reclaims),
    )  # fmt: skip


def timeline_columns(run: OrderedOutcome) -> dict[str, pl.Series]:
    """Columns beside the timeline's own: what of the CPUs and memory held is of use to the jobs at work, what those
    would need, how many of them go no faster than with their fair share."""
    begins = run.rows["kind"] == EVENTS.index("sample")
    row = pl.Series(np.where(begins, np.searchsorted(run.turns["round"], run.rows["seq"]), 0))
    turns = {name: pl.Series(np.ascontiguousarray(run.turns[field])) for name, field in BY_ROUND.items()}
    return {name: column.gather(row).set(~pl.Series(begins), None) for name, column in turns.items()}


def turn_figures(run: OrderedOutcome) -> dict[str, Any]:
    """Means over the rounds that were played, percent of the cluster; and over time, GPUs that jobs there ask for."""
    assert run.needs is not None
    caps = run.needs.cap__sr.sum(axis=0)
    found: dict[str, Any] = {}
    for name, cap in (("cpu", float(caps[0])), ("memory", float(caps[1]))):
        for kind in ("alloc", "used", "demand"):
            found[f"round_{name}_{kind}_pct"] = _mean(run.turns[f"{name}_{kind}"], cap)
    running = run.turns["running"].sum()
    found["fair_share_pct"] = float(100 * run.turns["at_fair"].sum() / running) if running else None
    found["gpu_demand_pct"] = gpu_demand_pct(run)
    found["reclaims"] = run.reclaims
    return found


def gpu_demand_pct(run: OrderedOutcome) -> float | None:
    """GPUs of all jobs that are there, waiting or at work, over those of the cluster; mean over the run, percent."""
    jobs, gpus = run.jobs, sum(run.gpus__g)
    if not len(jobs) or not gpus:
        return None
    begin_s, end_s = float(jobs["submit_s"].min()), run.makespan_s
    stay_s = np.where(np.isnan(jobs["finish_s"]), end_s, jobs["finish_s"]) - jobs["submit_s"]
    return float(100 * (jobs["num_gpu"] * stay_s).sum() / (gpus * (end_s - begin_s))) if end_s > begin_s else None


def _mean(values: Floats, cap: float) -> float | None:
    return float(100 * values.mean() / cap) if len(values) and cap else None
