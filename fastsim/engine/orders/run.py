"""Runs in ordered rounds: drives the compiled loop, and asks for the best points where a mechanism wants them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.cluster.server import GB_MIB
from fastsim.engine.orders.plan import MECHANISMS, OrderPlan, ResourcePoint
from fastsim.engine.orders.server_demands import RESOURCES, ServerDemands
from fastsim.engine.orders.tables import timeline_columns, turn_figures
from fastsim.engine.rounds.checkpoint import RoundCheckpoint, RoundKeeping, decisions
from fastsim.engine.rounds.driver import RECORDS, Driver
from fastsim.engine.rounds.job_batches import JobBatch
from fastsim.engine.rounds.job_checks import runnable
from fastsim.engine.rounds.options import TURN_QUIRKS, RoundOptions, Setting
from fastsim.engine.rounds.ordered_records import TURN
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.engine.rounds.records import GANG
from fastsim.engine.tables import ROW
from fastsim.errors import InputError, PolicyError
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.ordered_loop import OrderedLoop
from fastsim_ext.rounds.ordered_snapshot import snapshot
from fastsim_ext.rounds.server_allocation import ServerAllocation

if TYPE_CHECKING:
    import polars as pl


@dataclass
class OrderedOutcome(RoundOutcome):
    """A run in ordered rounds that has finished; ``turns`` has a record (``TURN``) of every round."""

    turns: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, TURN))
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

    needs: ServerDemands = field(kw_only=True)
    turns: list[npt.NDArray[Any]] = field(default_factory=list)
    found: dict[bytes, dict[int, list[ResourcePoint]]] = field(default_factory=dict)
    records: ClassVar[dict[str, Any]] = RECORDS | {"turns": TURN}

    def ask(self) -> None:
        """Say what the jobs of this round get: jobs of a kind in their order, the fastest points first."""
        rows = self.loop.asked()
        kinds = np.frombuffer(self.loop.table.rows(), GANG)["kind"][rows]
        parts = self.parts(kinds)
        queue = {k: [part for part in listed for _ in range(part.jobs)] for k, listed in parts.items()}
        told = [queue[k].pop(0) for k in kinds.tolist()]
        need = np.array([(p.cpu * 1000, p.memory_gb * GB_MIB, 0.0) for p in told], np.float64)
        speedup = np.array([p.speedup for p in told], np.float64)
        self.loop.tell(need.reshape(len(told), len(RESOURCES)), speedup)

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

    def drain(self) -> None:
        """Take what the loop has noted."""
        super().drain()
        self.turns.append(np.frombuffer(self.loop.drained(), TURN))

    def snapshot(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The loop's numbers and bytes."""
        return snapshot(self.loop)

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
        first=first, last=last, recorded=record, quirks=[options.quirk(name) for name in TURN_QUIRKS], gauge=gauge,
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
    if loop.gauge is not None:
        loop.gauge.close(end_s)
    driver.drain()
    jobs = np.concatenate([*driver.gone, np.frombuffer(loop.table.rows(), GANG)])
    return OrderedOutcome(
        driver.setting, driver.options, jobs[np.argsort(jobs["id"])], np.concatenate(driver.tasks),
        np.concatenate(driver.held), np.concatenate([*driver.rows, np.zeros(0, ROW)]),
        int(loop.rounds), int(loop.calls), float(end_s), int(loop.max_active), int(loop.job_rounds),
        int(loop.leases.extensions), int(loop.leases.opportunities), np.array(loop.leases.busy()), gpus,
        driver.solver_s, loop.gauge, float(loop.spoilt_gpu_s), np.concatenate(driver.turns),
        driver.needs, int(loop.portions.reclaims),
    )  # fmt: skip
