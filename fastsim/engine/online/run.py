"""The online engine's Python side: streams a workload through the compiled loop into a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.engine.online.arrivals import Arrivals, arrivals, positions, stream
from fastsim.engine.online.closing_stages import Deschedule, Inflation, closing_stages, deschedule
from fastsim.engine.online.kernel_columns import (
    COLUMN_SETTINGS,
    REMEMBERED,
    ModelIds,
    change_columns,
    indexable,
    node_columns,
    node_kinds,
    plan_columns,
)
from fastsim.engine.online.memo_pool import MEMOS, memo_key, target
from fastsim.engine.online.plan import QUEUES, OnlinePlan
from fastsim.engine.online.recorder import FileTables, MemoryTables, Recorder, gathered, node_names
from fastsim.engine.online.rule_columns import RuleColumns, needs_rules
from fastsim.engine.online.telemetry_hook import TelemetryHook
from fastsim.engine.online.user_scorers import UserScorers
from fastsim.engine.result import Result
from fastsim.engine.tables import OUTCOME, ROW
from fastsim.engine.totals.pod_totals import Tenants, charge
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.background_writer import Background, Inline
from fastsim.foundation.parquet import streaming
from fastsim.scenario.run_rules import NO_RULES, Rules
from fastsim.scenario.sort_keys import line_order
from fastsim.telemetry.telemetry import Telemetry
from fastsim.workload.pod_classes import PodClasses
from fastsim_ext.build import CHECKED
from fastsim_ext.online.loop import OnlineLoop
from fastsim_ext.online.queue_loop import QueueLoop
from fastsim_ext.select.indexed import IndexedSelector
from fastsim_ext.select.scan import Selector
from fastsim_ext.select.state_memo import Memo
from fastsim_ext.state.node_table import NodeTable, TypicalTable
from fastsim_ext.state.pod_table import WorkTable

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.checkpointing import CheckpointWriter
    from fastsim.scenario.prices import Prices
    from fastsim.workload import Workload
    from fastsim.workload.oversized_pods import Oversized
    from fastsim.workload.typical_pods import TypicalPods

DONE, WANT_ARRIVALS, PAUSE, DESCHEDULE_DUE, WANT_NODE_CHANGES, GPU_SAMPLE = range(6)
RECORDS = ("none", "summary", "timeline", "placements", "all")
BATCH_ROWS = 32_768
"""Pods read at a time: enough to make reading cheap, few enough to keep what waits to be written small."""
BREATH_S = 0.1
"""How long the loop runs, about, before it lets Python look at Ctrl-C and show progress."""


@dataclass(frozen=True)
class OnlineOptions:
    """How a run goes, apart from what is placed where.

    ``sample_s`` is the distance of timeline rows in seconds (None: a row for every event), ``until_s`` the
    time after which nothing happens, ``progress`` a function that is told the pods arrived so far, ``oversized``
    counts pods larger than any node. Tables go to files in the existing ``folder`` while the run goes on, or stay
    in memory. With ``saving``, they go there at the end, and checkpoints to another folder meanwhile. ``telemetry``
    is a table, too. ``prices`` has all GPU models of the cluster.
    """

    seed: int = 0
    sample_s: float | None = None
    until_s: float | None = None
    record: str = "all"
    deschedule: Sequence[Deschedule] = ()
    inflation: Inflation | None = None
    retarget: TypicalPods | None = None
    progress: Callable[[int], None] | None = None
    regime: Rules = NO_RULES
    oversized: Oversized | None = None
    folder: Path | None = None
    saving: CheckpointWriter | None = None
    telemetry: Telemetry | None = None
    prices: Prices | None = None


SPELLING = "index"
"""How decisions are spelled where a plan allows both: ``index``, or ``scan`` to look at every node each time."""


class OnlineRun:
    """One run in progress: owns the compiled tables and collects what they write."""

    def __init__(
        self, cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions
    ) -> None:
        self.cluster, self.workload, self.plan, self.typical, self.options = cluster, workload, plan, typical, options
        self.ids = ModelIds(cluster.nodes["gpu_model"].unique().to_pylist())
        self.classes = PodClasses()
        self.columns = node_columns(cluster, self.ids)
        if options.saving is not None:
            options.saving.take_over_nodes(self.columns)
        self.watching = self._watching(options)
        self.scorers = UserScorers(
            plan, self.columns, self.classes, {} if self.watching is None else self.watching.columns
        )
        self.memo: tuple[str, Memo] | None = None
        self.nodes = NodeTable(self.columns, self._target(typical))
        self.work, self.tenants = WorkTable(), Tenants()
        self.positions = positions(cluster, workload)
        charge(self.work, cluster, options.prices)
        self.select = self._selector(plan_columns(plan, len(cluster)))
        self.rules: RuleColumns | None = None
        kept = options.saving is not None and options.saving.ruled
        if kept or needs_rules(plan, options.regime, workload.columns):
            self.rules = RuleColumns(cluster, options.regime, options.seed, self.nodes.width)
        self.ruled: QueueLoop | None = None
        self.online = self._loop()
        self.main_kept = max(typical.kept, 1)  # what the main run is measured against, whatever follows it
        self.pods = 0
        self.first_s: float | None = None
        self.budget, self.loop_s = 256, 0.0  # events of a breath; seconds in the loop
        self.class_of: list[Any] = []  # of every pod, if clones of them will be asked for
        self.stages: list[tuple[str, Any, int]] = []
        self.saving = options.saving
        self.recorder = self._recorder()
        self.scribe: Inline | Background = Inline() if options.folder is None else Background()

    def _watching(self, options: OnlineOptions) -> TelemetryHook | None:
        """What samples GPUs: for a table, or only for scorers that look at it."""
        seen = any(getattr(term.scorer, "sees_telemetry", False) for term in self.plan.terms)
        if options.telemetry is None and not seen:
            return None
        if options.saving is not None:
            raise ScenarioError("checkpoint", "one", "none: a run with telemetry keeps no checkpoints")
        told, how = options.telemetry is not None, options.telemetry or Telemetry()
        return TelemetryHook(how, self.cluster, options.seed, recorded=told, seen=seen, folder=options.folder)

    def _recorder(self) -> Recorder:
        names = node_names(self.cluster)
        schema, folder, record = self.workload.schema, self.options.folder, self.options.record
        if folder is None:
            held = MemoryTables(names, "native_id" in schema.names)
            return Recorder(schema, held, record, sha256=self.workload.known_checksum)
        if self.saving is None:
            return Recorder(schema, FileTables(names, folder), record, sha256=self.workload.known_checksum)
        return Recorder(schema, self.saving.journal(names, folder), record, self.saving.waits())

    def _selector(self, terms: dict[str, Any]) -> Selector:
        seed = self.options.seed % 2**64
        if SPELLING == "scan" or not indexable(self.plan, self.cluster):
            return Selector(self.nodes, self.work, terms, seed, self.scorers)
        memo, kind = self._lent()
        terms |= {"memo": memo, "kind": kind, "state": np.full(len(kind), -1, np.int32)}
        return IndexedSelector(self.nodes, self.work, terms, seed, self.scorers)

    def _target(self, typical: TypicalPods) -> TypicalTable:
        """What fragmentation is measured against from now on."""
        columns, self.target_key = target(typical, tuple(self.ids.number))
        self.target_cpus = columns["groups"]["cpu"]
        return TypicalTable(columns)

    def _lent(self) -> tuple[Memo, Any]:
        """A memo for points as they follow from this run's nodes, plan and typical pods; the kind of every node."""
        self.release_memo()
        plan = [(term.kernel, term.dim, term.norm) for term in self.plan.terms if term.kernel in REMEMBERED]
        coarse = {kernel for kernel, _, _ in plan} == {"fgd"}
        kinds, kind = ("", self.columns["model"]) if coarse else node_kinds(self.columns)
        cpus = self.target_cpus if coarse else None
        key = memo_key(kinds, plan, self.nodes.width, self.target_key)
        most_bytes = int(COLUMN_SETTINGS["memo_bytes"] + COLUMN_SETTINGS["memo_node_bytes"] * len(self.cluster))
        self.memo = key, MEMOS.acquire(key, self.nodes.width, len(plan), most_bytes, cpus)
        return self.memo[1], kind

    def _loop(self) -> OnlineLoop:
        """The plain loop, or the one that keeps rules where there are any."""
        if self.rules is None:
            return OnlineLoop(self.nodes, self.work, self.select, self._loop_options())
        self.ruled = QueueLoop(self.nodes, self.work, self.select, self._loop_options() | self.rules.options())
        return self.ruled

    def _loop_options(self) -> dict[str, Any]:
        options = self.options
        record = 0 if options.record not in ("timeline", "all") else 1 if options.sample_s is None else 2
        times = sorted({d.at_s for d in options.deschedule if d.at_s is not None})
        return {
            "queue": QUEUES.index(self.plan.queue), "record": record, "checked": CHECKED,
            "starts_recorded": self.watching is not None,
            "until_s": np.inf if options.until_s is None else options.until_s, "sample_s": options.sample_s or 0.0,
            "deschedule_t": np.array(times, np.float64), **change_columns(self.cluster), **line_order(self.plan.queue),
        }  # fmt: skip

    def play(self) -> None:
        """Stream the whole workload through the loop, and everything that was asked to follow."""
        batches = self.workload.batches(BATCH_ROWS) if self.saving is None else self.saving.batches(self.workload)
        if self.saving is not None:
            self.saving.take_over(self, batches)
        stream(self, batches)
        self.online.reach_end()
        closing_stages(self)
        self.online.finish(self.collect_records)
        self.collect_records()
        if self.watching is not None:
            self.watching.close(self.online.now)

    def number(self, batch: Any) -> Arrivals:
        """Take note of the pods that come next; their columns."""
        cls = self.classes.intern(batch)
        if self.watching is not None:
            self.watching.arrive(batch)
            self.online.sample_gpus_at(self.watching.due_s)
        if self.rules is not None and self.ruled is not None:
            self.rules.feed_members(self.ruled, batch)  # first, so that names are numbered as pods come
        self._add_classes()
        if self.options.inflation is not None:
            self.class_of.append(cls)
        if self.options.oversized is not None:
            self.options.oversized.look(self.classes, cls)
        columns = arrivals(batch, cls, self.tenants.numbers(batch), self.positions)
        if self.first_s is None:
            self.first_s = float(columns.submit_s[0])
        self.pods += batch.num_rows
        return columns

    def _add_classes(self) -> None:
        first = self.work.n_classes
        rows = self.classes.rows(first)
        if len(rows):
            masks = np.array([self.ids.mask(names) for names in self.classes.model_lists], np.uint64)
            cpu, mem, num_gpu, milli = (
                np.ascontiguousarray(rows[name]) for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
            )
            self.work.add_classes(cpu, mem, num_gpu, milli, masks[rows["models"]], self.classes.mig_milli(rows))
            if self.rules is not None and self.ruled is not None:
                self.rules.add_rules(self.ruled, first, self.classes, rows["models"])

    def advance(self) -> None:
        """Run the loop in breaths, so that Ctrl-C and progress get their turn."""
        status = PAUSE
        while status not in (DONE, WANT_ARRIVALS):
            began = time.perf_counter()
            status = self.online.advance(self.budget)
            took_s = time.perf_counter() - began
            self.loop_s += took_s
            if status == DESCHEDULE_DUE:
                self._deschedule_now()
            elif self.watching is not None and status == GPU_SAMPLE:
                self.collect_records()
                self.watching.look(self.online.next_s)
                self.online.sample_gpus_at(self.watching.due_s)
            elif self.rules is not None and self.ruled is not None and status == WANT_NODE_CHANGES:
                self.rules.feed_changes(self.ruled)
            elif status == PAUSE and took_s < BREATH_S / 2:
                self.budget *= 2
            elif took_s > 2 * BREATH_S and self.budget > 1:
                self.budget //= 2
            self._breathe()

    def _breathe(self) -> None:
        """What the loop wrote is passed on, a checkpoint written if one is due, progress told."""
        interrupts.check()
        self.collect_records()
        if self.saving is not None and self.saving.due(self):
            self.scribe.do(self.saving.write, self.saving.state(self), self.recorder)
        if self.options.progress is not None:
            self.options.progress(self.online.arrived)

    def _deschedule_now(self) -> None:
        for step in self.options.deschedule:
            if step.at_s == self.online.now:
                deschedule(self, step)
        self.online.note_deschedule()

    def collect_records(self) -> None:
        """Collect what the compiled tables wrote since the last time."""
        if self.online.n_rows:
            rows = np.frombuffer(self.online.drain_rows(), ROW)
            self.scribe.do(self.recorder.events, rows, max(self.typical.kept, 1))
        if self.work.n_outcomes and not self.recorder.listed and self.watching is None:
            room = self.recorder.waits.room(self.work.n_outcomes)
            self.scribe.do(self.recorder.spans, room, *self.work.spans(room))
        elif self.work.n_outcomes:
            out = np.frombuffer(self.work.drain(), OUTCOME)
            kept = out if self.watching is None else self.watching.outcomes(out, self.online.now)
            self.scribe.do(self.recorder.outcomes, kept)

    def release_memo(self) -> None:
        """Leave what was worked out to the next run."""
        if self.memo is not None:
            MEMOS.release(*self.memo)
        self.memo = None

    def retarget(self, typical: TypicalPods) -> None:
        """Measure fragmentation against another target workload from now on."""
        self.collect_records()
        self.typical = typical
        self.nodes.retarget(self._target(typical))
        if isinstance(self.select, IndexedSelector):
            self.select.restart(self._lent()[0])

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
    options.regime.refuse(plan.queue, workload.columns, bool(options.deschedule))
    with nullcontext() if options.folder is None else streaming():
        return _played(cluster, workload, plan, typical, options)


def _played(
    cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions
) -> Result:
    """The result of one run from beginning to end; whatever fails, nothing is left half-written."""
    began, cpu_began = time.perf_counter(), time.process_time()
    run = OnlineRun(cluster, workload, plan, typical, options)
    try:
        run.play()
        run.scribe.close()
        workload.note_checksum(run.recorder.checksum.hexdigest())
        frames, provenance = gathered(run)
    except BaseException:
        run.scribe.drop()
        run.recorder.drop()
        if run.watching is not None:
            run.watching.drop()
        raise
    run.recorder.waits.close()
    run.release_memo()
    spent = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu_began, "loop_s": run.loop_s}
    if run.saving is not None:
        spent = run.saving.spent(spent)
    timing = {**spent, "pods_per_s": run.pods / spent["wall_s"]}
    return Result(frames, provenance, timing)
