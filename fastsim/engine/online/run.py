"""Online runs: drives the compiled loop with a stream of pods, and makes the result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from fastsim.engine.driving.drive import Handlers, Stop, drive
from fastsim.engine.online.arrivals import NO_ARRIVALS, Arrivals, arrivals, positions, with_last
from fastsim.engine.online.closing_stages import closing_stages, deschedule
from fastsim.engine.online.headway import PodHeadway, WorkAhead
from fastsim.engine.online.kernel_columns import (
    CACHED_KERNELS,
    COLUMN_SETTINGS,
    ModelIds,
    change_columns,
    indexable,
    node_columns,
    node_kinds,
    plan_columns,
)
from fastsim.engine.online.memo_pool import MEMOS, memo_key, target
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import RULES, OnlinePlan
from fastsim.engine.online.recorder import FileTables, MemoryTables, Recorder, node_names, tables_and_provenance
from fastsim.engine.online.rule_columns import RuleColumns, needs_rules
from fastsim.engine.online.user_scorers import UserScorers
from fastsim.engine.result import Result
from fastsim.engine.tables import OUTCOME, ROW, named_columns
from fastsim.engine.totals.pod_totals import Tenants, charge
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.background_writer import Background, Inline
from fastsim.foundation.parquet import streaming
from fastsim.scenario.column_values import SortColumns
from fastsim.scenario.sort_keys import line_order, queue_key
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
    import pyarrow as pa

    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.checkpointing import OnlineCheckpointWriter
    from fastsim.engine.sampling.telemetry_hook import TelemetryHook
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods

RECORDS = ("none", "summary", "timeline", "placements", "all")
BATCH_ROWS = 32_768
"""Pods read at a time: larger batches cost less time, smaller ones less memory for rows that wait to be written."""
CHECK_S = 0.1
"""Aim for the time between two checks of Ctrl-C and progress, seconds."""


SPELLING = "index"
"""Selection of nodes where a plan allows both: ``index`` keeps scores, ``scan`` scores every node each time."""


class OnlineRun:
    """A run in progress: owns the compiled tables and collects their rows.

    With ``checkpoint_writer``, tables are written to the folder at the end, and checkpoints to another one meanwhile.
    """

    def __init__(
        self, cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions,
        checkpoint_writer: OnlineCheckpointWriter | None = None,
    ) -> None:  # fmt: skip
        self.cluster, self.workload, self.plan, self.typical, self.options = cluster, workload, plan, typical, options
        self.ids = ModelIds(cluster.nodes["gpu_model"].unique().to_pylist())
        self.classes = PodClasses()
        self.columns = node_columns(cluster, self.ids)
        self.checkpoint_writer = checkpoint_writer
        if checkpoint_writer is not None:
            checkpoint_writer.take_over_nodes(cluster, self.columns)
        self.telemetry_hook = self._telemetry_hook(options)
        self.scorers = UserScorers(
            plan,
            self.columns,
            self.classes,
            {} if self.telemetry_hook is None else self.telemetry_hook.columns,
            options.merged,
        )
        self.memo: tuple[str, Memo] | None = None
        self.nodes = NodeTable(self.columns, self._target(typical))
        self.work, self.tenants = WorkTable(), Tenants()
        self.positions = positions(cluster, workload)
        charge(self.work, cluster, options.prices)
        self.select = self._selector(plan_columns(plan, len(cluster)))
        stored_rules = checkpoint_writer is not None and checkpoint_writer.has_rules
        ruled = stored_rules or needs_rules(plan, options.rules, workload.columns)
        self.rule_columns = self._rules() if ruled else None
        self.queue_loop: QueueLoop | None = None
        self.online = self._loop()
        self.main_typical_count = max(typical.kept, 1)  # count of the main run; closing stages may retarget
        self.pods = 0
        self.first_s: float | None = None
        self.budget, self.loop_s = 256, 0.0  # events between two checks; seconds in the loop
        self.class_of: list[Any] = []  # of every pod, if inflation will clone some
        self.stages: list[tuple[str, Any, int]] = []
        self.recorder = self._recorder()
        self.headway = PodHeadway(options.folder is None)
        self.ahead = WorkAhead(cluster, options, options.folder is None)
        self.writer: Inline | Background = Inline() if options.folder is None else Background()
        self._batches: Iterator[tuple[Any, bool]] = iter(())

    def _rules(self) -> RuleColumns:
        return RuleColumns(
            cluster=self.cluster,
            rules=self.options.rules,
            seed=self.options.seed,
            width=self.nodes.width,
            asked=self.workload.columns,
            weights=self.plan.preference_weights,
            sorting=SortColumns(queue_key(self.plan.queue), self.workload),
        )

    def _telemetry_hook(self, options: OnlineOptions) -> TelemetryHook | None:
        """The telemetry of the run, for a table or for scorers that read samples; None without either."""
        seen = any(getattr(term.scorer, "sees_telemetry", False) for term in self.plan.terms)
        if options.telemetry is None and not seen:
            return None
        if self.checkpoint_writer is not None:
            raise ScenarioError("checkpoint", "one", "none: a run whose policy sees readings keeps no checkpoints")
        from fastsim.engine.sampling.telemetry_hook import TelemetryHook
        from fastsim.telemetry.telemetry import Telemetry

        recorded, telemetry = options.telemetry is not None, options.telemetry or Telemetry()
        return TelemetryHook(telemetry, self.cluster, options.seed, recorded=recorded, seen=seen, folder=options.folder)

    def _recorder(self) -> Recorder:
        names, named = node_names(self.cluster), named_columns(self.workload.schema.names)
        schema, folder, record = self.workload.schema, self.options.folder, self.options.record
        if folder is None:
            tables = MemoryTables(names, named)
            return Recorder(schema, tables, record, sha256=self.workload.known_checksum)
        if self.checkpoint_writer is None:
            return Recorder(schema, FileTables(names, folder, named), record, sha256=self.workload.known_checksum)
        return Recorder(
            schema, self.checkpoint_writer.journal(names, folder, named), record, self.checkpoint_writer.waits()
        )

    def _selector(self, terms: dict[str, Any]) -> Selector:
        seed = self.options.seed % 2**64
        if SPELLING == "scan" or not indexable(self.plan, self.cluster):
            return Selector(self.nodes, self.work, terms, seed, self.scorers)
        memo, kind = self._acquired_memo()
        terms |= {"memo": memo, "kind": kind, "state": np.full(len(kind), -1, np.int32)}
        return IndexedSelector(self.nodes, self.work, terms, seed, self.scorers)

    def _target(self, typical: TypicalPods) -> TypicalTable:
        """The table of a target workload, against which fragmentation is measured."""
        columns, self.target_key = target(typical, tuple(self.ids.number))
        self.target_cpus = columns["groups"]["cpu"]
        return TypicalTable(columns)

    def _acquired_memo(self) -> tuple[Memo, Any]:
        """A memo of points for this run's nodes, plan and typical pods, and the kind of every node."""
        self.release_memo()
        plan = [(term.kernel, term.dim, term.norm) for term in self.plan.terms if term.kernel in CACHED_KERNELS]
        coarse = {kernel for kernel, _, _ in plan} == {"fgd"}
        kinds, kind = ("", self.columns["model"]) if coarse else node_kinds(self.columns)
        cpus = self.target_cpus if coarse else None
        key = memo_key(kinds, plan, self.nodes.width, self.target_key)
        most_bytes = int(COLUMN_SETTINGS["memo_bytes"] + COLUMN_SETTINGS["memo_node_bytes"] * len(self.cluster))
        self.memo = key, MEMOS.acquire(key, self.nodes.width, len(plan), most_bytes, cpus)
        return self.memo[1], kind

    def _loop(self) -> OnlineLoop:
        """The plain loop, or the loop with rules if the run has any."""
        if self.rule_columns is None:
            return OnlineLoop(self.nodes, self.work, self.select, self._loop_options())
        self.queue_loop = QueueLoop(
            self.nodes, self.work, self.select, self._loop_options() | self.rule_columns.options()
        )
        return self.queue_loop

    def _loop_options(self) -> dict[str, Any]:
        options = self.options
        record = 0 if options.record not in ("timeline", "all") else 1 if options.sample_s is None else 2
        times = sorted({d.at_s for d in options.deschedule if d.at_s is not None})
        queue = self.plan.queue
        return {
            "queue": RULES.index(queue) if queue in RULES else len(RULES) + queue.endswith("_skip"), "record": record,
            "checked": CHECKED, "draws": self.plan.draws, "starts_recorded": self.telemetry_hook is not None,
            "until_s": np.inf if options.until_s is None else options.until_s, "sample_s": options.sample_s or 0.0,
            "deschedule_t": np.array(times, np.float64), **change_columns(self.cluster), **line_order(queue),
        }  # fmt: skip

    def play(self) -> None:
        """Stream the whole workload through the loop, then run the closing stages."""
        batches = self.workload.batches(BATCH_ROWS)
        if self.checkpoint_writer is not None:
            batches = self.checkpoint_writer.batches(self.workload)
            self.checkpoint_writer.take_over(self, batches)
        self.stream(batches)
        self.online.reach_end()
        closing_stages(self, self.options.deschedule, self.options.inflation, self.options.retarget)
        self.online.finish(self.collect_records)
        self.collect_records()
        if self.telemetry_hook is not None:
            self.telemetry_hook.close(self.online.now)

    def number(self, batch: Any) -> Arrivals:
        """Register the pods of the next batch; their columns."""
        cls = self.classes.intern(batch)
        if self.telemetry_hook is not None:
            self.telemetry_hook.arrive(batch)
            self.online.sample_gpus_at(self.telemetry_hook.due_s)
        if self.rule_columns is not None and self.queue_loop is not None:
            self.rule_columns.feed_members(self.queue_loop, batch)  # first, so that names are numbered as pods come
        self._add_classes()
        if self.options.inflation is not None:
            self.class_of.append(cls)
        if self.options.each_batch is not None:
            self.options.each_batch(batch)
        columns = arrivals(batch, cls, self.tenants.numbers(batch), self.positions)
        if self.options.oversized is not None:  # pods that are bound have their places whatever they ask for
            self.options.oversized.add(self.classes, cls if columns.node is None else cls[columns.node < 0])
        self.ahead.add(columns.submit_s, columns.duration_s)
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
            if self.rule_columns is not None and self.queue_loop is not None:
                self.rule_columns.add_rules(self.queue_loop, first, self.classes, rows["models"])

    def stream(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Feed these pods, and play on until no event is left; those that come after the end are read, too."""
        self._batches = with_last(batches)
        coming: tuple[pa.RecordBatch | None, bool] | None = next(self._batches, (None, True))
        while coming is not None:  # once without pods: nodes may still be added and removed
            self.feed_batch(*coming)
            drive(self.advance, self._handlers())
            self._between_steps()
            coming = next(self._batches, None)

    def advance(self) -> int:
        """Run the loop for a short time, or to its next stop."""
        began = time.perf_counter()
        stop: int = self.online.advance(self.budget)
        took_s = time.perf_counter() - began
        self.loop_s += took_s
        if stop == Stop.PAUSE and took_s < CHECK_S / 2:
            self.budget *= 2
        elif took_s > 2 * CHECK_S and self.budget > 1:
            self.budget //= 2
        return stop

    def _handlers(self) -> Handlers:
        return {
            Stop.PAUSE: self._between_steps, Stop.WANT_ARRIVALS: self._next_batch,
            Stop.DESCHEDULE_DUE: self._deschedule_now, Stop.WANT_NODE_CHANGES: self._feed_changes,
            Stop.GPU_SAMPLE: self._sample_gpus,
        }  # fmt: skip

    def _next_batch(self) -> None:
        self._between_steps()
        self.feed_batch(*next(self._batches))

    def feed_batch(self, batch: pa.RecordBatch | None, last: bool) -> None:
        """Give the loop the pods of a batch; None has no pods."""
        if batch is None:
            self.online.feed(*NO_ARRIVALS, last)
            return
        self.writer.do(self.recorder.arrivals, batch)
        self.online.feed(*self.number(batch), last)

    def _between_steps(self) -> None:
        """Collect rows, write a checkpoint if one is due, report progress."""
        interrupts.check()
        self.ahead.check(self.online.now)
        if self.work.n_outcomes:
            now = np.frombuffer(self.online.state()[0], ROW)[0]
            ended = int(now["finished"] + now["unplaced"] + now["lost"])
            self.headway.add_stays(self.work.n_outcomes, ended, self.online.arrived, self.online.now)
        self.collect_records()
        if self.checkpoint_writer is not None and self.checkpoint_writer.due(self):
            self.writer.do(self.checkpoint_writer.write, self.checkpoint_writer.state(self), self.recorder)
        if self.options.progress is not None:
            self.options.progress(self.online.arrived)

    def _feed_changes(self) -> None:
        assert self.rule_columns is not None and self.queue_loop is not None, "only a loop with rules asks for changes"
        self.rule_columns.feed_changes(self.queue_loop)
        self._between_steps()

    def _sample_gpus(self) -> None:
        assert self.telemetry_hook is not None, "only a hook asks for samples"
        self.collect_records()
        self.telemetry_hook.look(self.online.next_s)
        self.online.sample_gpus_at(self.telemetry_hook.due_s)
        self._between_steps()

    def _deschedule_now(self) -> None:
        for step in self.options.deschedule:
            if step.at_s == self.online.now:
                deschedule(self, step)
        self.online.note_deschedule()
        self._between_steps()

    def collect_records(self) -> None:
        """Pass the rows that the compiled tables have written to the recorder."""
        if self.online.n_rows:
            self.headway.add_rows(self.online.n_rows)
            rows = np.frombuffer(self.online.drain_rows(), ROW)
            self.writer.do(self.recorder.events, rows, max(self.typical.kept, 1))
        if self.work.n_outcomes and not self.recorder.listed and self.telemetry_hook is None:
            room = self.recorder.waits.room(self.work.n_outcomes)
            self.writer.do(self.recorder.spans, room, *self.work.spans(room))
        elif self.work.n_outcomes:
            out = np.frombuffer(self.work.drain(), OUTCOME)
            ends = out if self.telemetry_hook is None else self.telemetry_hook.outcomes(out, self.online.now)
            self.writer.do(self.recorder.outcomes, ends)

    def release_memo(self) -> None:
        """Return the memo to the pool."""
        if self.memo is not None:
            MEMOS.release(*self.memo)
        self.memo = None

    def retarget(self, typical: TypicalPods) -> None:
        """Measure fragmentation against another target workload from now on."""
        self.collect_records()
        self.typical = typical
        self.nodes.retarget(self._target(typical))
        if isinstance(self.select, IndexedSelector):
            self.select.restart(self._acquired_memo()[0])

    def note_stage(self, tag: str) -> None:
        """Record the current state as a stage with this name."""
        final, _, _ = self.online.state()
        self.stages.append((tag, np.frombuffer(final, ROW)[0], max(self.typical.kept, 1)))


def run_online(cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods,
               options: OnlineOptions | None = None,
               checkpoint_writer: OnlineCheckpointWriter | None = None) -> Result:  # fmt: skip
    """The result of placing every pod of the workload."""
    options = options or OnlineOptions()
    if options.record not in RECORDS:
        raise InputError("record", options.record, f"one of {', '.join(RECORDS)}")
    options.rules.refuse(plan.queue, workload.columns, bool(options.deschedule))
    with nullcontext() if options.folder is None else streaming():
        return _played(cluster, workload, plan, typical, options, checkpoint_writer)


def _played(
    cluster: Cluster, workload: Workload, plan: OnlinePlan, typical: TypicalPods, options: OnlineOptions,
    checkpoint_writer: OnlineCheckpointWriter | None,
) -> Result:  # fmt: skip
    """The result of one run; after any failure no incomplete files are left."""
    began, cpu_began = time.perf_counter(), time.process_time()
    run = OnlineRun(cluster, workload, plan, typical, options, checkpoint_writer)
    try:
        run.play()
        run.writer.close()
        workload.note_checksum(run.recorder.checksum.hexdigest())
        frames, provenance = tables_and_provenance(run)
    except BaseException:
        run.writer.drop()
        run.recorder.drop()
        if run.telemetry_hook is not None:
            run.telemetry_hook.drop()
        raise
    run.recorder.waits.close()
    run.release_memo()
    spent = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu_began, "loop_s": run.loop_s}
    if run.checkpoint_writer is not None:
        spent = run.checkpoint_writer.spent(spent)
    timing = {**spent, "pods_per_s": run.pods / spent["wall_s"]}
    return Result(frames, provenance, timing)
