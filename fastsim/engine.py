"""The online engine's Python side: streams a workload through the compiled loop into a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.columns import (
    ModelIds,
    change_columns,
    node_columns,
    node_kinds,
    plan_columns,
    read_only,
    typical_columns,
)
from fastsim.errors import InputError, PolicyError
from fastsim.frames import OUTCOME, ROW
from fastsim.memo import MEMOS, memo_key
from fastsim.plan import QUEUES, OnlinePlan, PodRequest
from fastsim.result import Result, gathered
from fastsim.stages import Deschedule, Inflation, closing_stages, deschedule
from fastsim.workload.classes import PodClasses
from fastsim_ext.build import CHECKED
from fastsim_ext.index import Indexed
from fastsim_ext.memo import Memo
from fastsim_ext.nodes import NodeTable, TypicalTable
from fastsim_ext.online import Online
from fastsim_ext.select import Selector
from fastsim_ext.work import WorkTable

if TYPE_CHECKING:
    from fastsim.cluster import Cluster
    from fastsim.typical import TypicalPods
    from fastsim.workload import Workload

DONE, WANT_ARRIVALS, TIRED, DESCHEDULE_NOW = range(4)
RECORDS = ("none", "summary", "timeline", "placements", "all")
MAX_TERMS = 8
LARGEST_POINTS = 100_000
"""No kernel answers more points than this, nor fewer than its negative."""
BREATH_S = 0.1
"""How long the loop runs, about, before it lets Python look at Ctrl-C and show progress."""


@dataclass(frozen=True)
class OnlineOptions:
    """How a run goes, apart from what is placed where.

    ``sample_s`` is the distance of timeline rows in seconds (None: a row for every event), ``until_s`` the
    time after which nothing happens, ``progress`` a function that is told the pods arrived so far.
    """

    seed: int = 0
    sample_s: float | None = None
    until_s: float | None = None
    record: str = "all"
    deschedule: Sequence[Deschedule] = ()
    inflation: Inflation | None = None
    retarget: TypicalPods | None = None
    progress: Callable[[int], None] | None = None


SPELLING = "index"
"""How decisions are spelled where a plan allows both: ``index``, or ``scan`` to look at every node each time."""


def indexable(plan: OnlinePlan) -> bool:
    """Whether kept scores can answer for the plan: points of a node must follow from its state and the pod alone."""
    if SPELLING == "scan" or len(plan.terms) > MAX_TERMS:
        return False
    alone = all(term.kernel not in ("random", "python") for term in plan.terms)
    return alone and sum(abs(term.weight) for term in plan.terms) * LARGEST_POINTS < 2**29


class UserScorers:
    """The plan's Python scorers behind one call, with read-only columns for them to look at."""

    def __init__(self, plan: OnlinePlan, columns: dict[str, Any]) -> None:
        self.plan = plan
        self.feasible = np.zeros(len(columns["cpu_cap"]), np.uint8)
        seen = {"cpu_milli": "cpu_cap", "cpu_free": "cpu_left", "memory_mib": "mem_cap", "memory_free": "mem_left",
                "num_gpu": "num_gpu", "gpu_free": "gpu_left", "gpu_model": "model", "pods": "pods"}  # fmt: skip
        views = read_only({name: columns[column] for name, column in seen.items()} | {"feasible": self.feasible})
        self.nodes = type("Nodes", (), views)()
        self.requests: list[PodRequest] = []

    def __call__(self, term: int, cls: int) -> Any:
        """Integer points of every node from the scorer of one term, for a pod of one class."""
        scorer = self.plan.terms[term].scorer
        assert scorer is not None
        points = np.asarray(scorer(self.nodes, self.requests[cls]))
        if points.shape != self.feasible.shape or points.dtype.kind not in "iub":
            found = f"an array of {points.dtype} with shape {points.shape}"
            raise PolicyError(f"scorer {scorer!r}", found, f"{len(self.feasible)} integers, one for every node")
        return np.ascontiguousarray(points, np.int64)


class OnlineRun:
    """One run in progress: owns the compiled tables and collects what they write."""

    def __init__(self, cluster: Cluster, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions) -> None:
        self.cluster, self.plan, self.typical, self.options = cluster, plan, typical, options
        self.ids = ModelIds(cluster.nodes["gpu_model"].to_pylist())
        self.classes = PodClasses()
        self.columns = node_columns(cluster, self.ids)
        self.scorers = UserScorers(plan, self.columns)
        self.memo: tuple[str, Memo] | None = None
        self.nodes = NodeTable(self.columns, TypicalTable(typical_columns(typical, self.ids)))
        self.work = WorkTable()
        self.select = self._selector(plan_columns(plan, len(cluster)))
        self.online = Online(self.nodes, self.work, self.select, self._loop_options())
        self.main_kept = max(typical.kept, 1)  # what the main run is measured against, whatever follows it
        self.pods = 0
        self.first_s: float | None = None
        self.pod_ids: list[Any] = []
        self.natives: list[Any] = []
        self.class_of: list[Any] = []
        self.outcomes: list[Any] = []
        self.rows: list[Any] = []
        self.row_kept: list[Any] = []
        self.stages: list[tuple[str, Any, int]] = []

    def _selector(self, terms: dict[str, Any]) -> Selector:
        seed = self.options.seed % 2**64
        if not indexable(self.plan):
            return Selector(self.nodes, self.work, terms, seed, self.scorers)
        _, kind = node_kinds(self.columns)
        terms |= {"memo": self._lent(), "kind": kind, "state": np.full(len(kind), -1, np.int32)}
        return Indexed(self.nodes, self.work, terms, seed, self.scorers)

    def _lent(self) -> Memo:
        """A memo for points as they follow from this run's nodes, plan and typical pods."""
        self.give_back()
        kinds, _ = node_kinds(self.columns)
        tags = self.nodes.n_tags if any(term.kernel == "gpu_clustering" for term in self.plan.terms) else 0
        plan = [(term.kernel, term.dim, term.norm) for term in self.plan.terms]
        key = memo_key(kinds, plan, self.nodes.width, tags, typical_columns(self.typical, self.ids))
        self.memo = key, MEMOS.lend(key, self.nodes.width, tags, len(plan))
        return self.memo[1]

    def _loop_options(self) -> dict[str, Any]:
        options = self.options
        record = 0 if options.record not in ("timeline", "all") else 1 if options.sample_s is None else 2
        times = sorted({d.at_s for d in options.deschedule if d.at_s is not None})
        return {
            "queue": QUEUES.index(self.plan.queue), "record": record, "checked": CHECKED,
            "until_s": np.inf if options.until_s is None else options.until_s,
            "sample_s": options.sample_s or 0.0,
            "deschedule_t": np.array(times, np.float64), **change_columns(self.cluster),
        }  # fmt: skip

    def play(self, workload: Workload) -> None:
        """Stream the whole workload through the loop."""
        fed = False
        for batch, last in _with_last(workload.batches()):
            self._feed(batch, last)
            self._advance()
            fed = True
        if not fed:  # nodes may still come and go
            self.online.feed(np.zeros(0, np.int32), np.zeros(0), np.zeros(0), np.zeros(0, np.int32), True)
            self._advance()

    def _feed(self, batch: Any, last: bool) -> None:
        cls = self.classes.intern(batch)
        self._add_classes()
        self.class_of.append(cls)
        self.pod_ids.append(batch.column("pod_id").to_numpy(zero_copy_only=False))
        names = batch.schema.names
        self.natives.append(pl.from_arrow(batch.column("native_id")) if "native_id" in names else None)
        submit = _floats(batch, "submit_s")
        if len(submit) and self.first_s is None:
            self.first_s = float(submit[0])
        self.pods += len(submit)
        self.online.feed(cls, submit, _floats(batch, "duration_s"), _priorities(batch), last)

    def _add_classes(self) -> None:
        c = self.classes
        for k in range(self.work.n_classes, len(c)):
            request = PodRequest(int(c.cpu_milli[k]), int(c.memory_mib[k]), int(c.num_gpu[k]), int(c.gpu_milli[k]),
                                 tuple(c.gpu_models[k]))  # fmt: skip
            self.scorers.requests.append(request)
            self.work.add_class(request.cpu_milli, request.memory_mib, request.num_gpu, request.gpu_milli,
                                self.ids.mask(request.gpu_models))  # fmt: skip

    def _advance(self) -> None:
        """Run the loop in breaths, so that Ctrl-C and progress get their turn."""
        budget = 256
        while True:
            began = time.perf_counter()
            status = self.online.advance(budget)
            if status in (DONE, WANT_ARRIVALS):
                break
            if status == DESCHEDULE_NOW:
                self._deschedule_now()
            elif time.perf_counter() - began < BREATH_S / 2:
                budget *= 2
            self.drain()
            self._tell()
        self.drain()
        self._tell()

    def _tell(self) -> None:
        if self.options.progress is not None:
            self.options.progress(self.online.arrived)

    def _deschedule_now(self) -> None:
        for step in self.options.deschedule:
            if step.at_s == self.online.now:
                deschedule(self, step)
        self.online.note_deschedule()

    def drain(self) -> None:
        """Collect what the compiled tables wrote since the last time."""
        rows = np.frombuffer(self.online.drain_rows(), ROW)
        if len(rows):
            self.rows.append(rows)
            self.row_kept.append(np.full(len(rows), max(self.typical.kept, 1), np.int64))
        out = np.frombuffer(self.work.drain(), OUTCOME)
        if len(out) and self.options.record != "none":
            self.outcomes.append(out)

    def give_back(self) -> None:
        """Leave what was worked out to the next run."""
        if self.memo is not None:
            MEMOS.give_back(*self.memo)
        self.memo = None

    def retarget(self, typical: TypicalPods) -> None:
        """Measure fragmentation against another target workload from now on."""
        self.drain()
        self.typical = typical
        self.nodes.retarget(TypicalTable(typical_columns(typical, self.ids)))
        if isinstance(self.select, Indexed):
            self.select.restart(self._lent())

    def note_stage(self, tag: str) -> None:
        """Remember the state of now under a name."""
        final, _, _ = self.online.state()
        self.stages.append((tag, np.frombuffer(final, ROW)[0], max(self.typical.kept, 1)))


def run_online(cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods,
               options: OnlineOptions | None = None) -> Result:  # fmt: skip
    """Place every pod of the workload and answer with the result."""
    options = options or OnlineOptions()
    if options.record not in RECORDS:
        raise InputError("record", options.record, f"one of {', '.join(RECORDS)}")
    began, cpu_began = time.perf_counter(), time.process_time()
    run = OnlineRun(cluster, plan, typical, options)
    run.play(workload)
    closing_stages(run)
    run.online.finish()
    run.drain()
    run.give_back()
    timing = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu_began}
    return gathered(run, workload, timing)


def _with_last(batches: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Each batch with whether it is the last one."""
    held = next(batches, None)
    while held is not None:
        following = next(batches, None)
        yield held, following is None
        held = following


def _floats(batch: Any, name: str) -> Any:
    """A float64 column; null or absent becomes NaN."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, np.nan)
    return np.ascontiguousarray(batch.column(name).to_numpy(zero_copy_only=False), np.float64)


def _priorities(batch: Any) -> Any:
    if "priority" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int32)
    return np.ascontiguousarray(batch.column("priority").fill_null(0).to_numpy(zero_copy_only=False), np.int32)
