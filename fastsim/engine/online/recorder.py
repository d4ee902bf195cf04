"""The recorder of a run: tables in memory or in files, waits, native ids, and the checksum of the pods.

Rows leave the loop when something ends, so that is the order of a table in files: ``placements`` by the end of
the interval, ``jobs`` by the end of the pod (pods that run or wait at the end of the run come last), and the
``timeline`` by event. Tables in memory are sorted by arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.engine.online.closing_stages import StagedRun
from fastsim.engine.online.kernel_columns import once_each
from fastsim.engine.online.outcome_columns import NODE, JobColumns, OutcomeColumns, PlacementColumns
from fastsim.engine.result import FolderFrames, Frames, provenance_of_build, write_table
from fastsim.engine.summary import Waits, frag_milli, row_frame, summary_row
from fastsim.engine.tables import (
    OUTCOME,
    POD,
    ROW,
    FrameMakers,
    LazyFrames,
    arrow,
    jobs_frame,
    named_columns,
    placements_frame,
    timeline_frame,
)
from fastsim.engine.totals.job_totals import JobTotals
from fastsim.foundation.columns.checksum import ContentChecksum
from fastsim.foundation.parquet import QUICK_LEVEL, TableWriter

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.options import OnlineOptions
    from fastsim.engine.online.plan import OnlinePlan
    from fastsim.engine.online.rule_columns import RuleColumns
    from fastsim.engine.sampling.telemetry_hook import TelemetryHook
    from fastsim.workload import Workload
    from fastsim.workload.typical_pods import TypicalPods
    from fastsim_ext.online.queue_loop import QueueLoop

TABLES = ("timeline", "placements", "jobs")
"""Tables that grow with the run."""
WITH_STATISTICS = ("pod_id", "submit_s", "start_s", "end_s", "t_s", "event_seq")
"""Columns with statistics, by which queries skip row groups; values of others are mixed in every row group."""
SPARSE = 4
"""A batch of names is compacted when less than one in so many may still be needed."""


@once_each
def node_names(cluster: Cluster) -> pl.Series:
    """Names of the nodes by position."""
    return pl.Series(pl.from_arrow(cluster.nodes["name"]), dtype=pl.String)


class Tables(Protocol):
    """A destination of rows of the three tables."""

    def events(self, rows: Any, typical_count: int) -> None:
        """Add timeline rows; ``typical_count`` is the total count of the typical pods at these rows."""

    def outcomes(self, out: Any, natives: pl.DataFrame | None) -> None:
        """Add outcome rows and the names of their pods."""

    def close(self) -> FrameMakers | None:
        """Functions that make the tables on first use; None if they are in files."""

    def drop(self) -> None:
        """Release memory and files."""


class MemoryTables:
    """Rows as the loop wrote them; they become frames, sorted by arrival, on first use."""

    def __init__(self, names: pl.Series, named: Sequence[str]) -> None:
        self.names, self.named = names, named
        self._rows: list[Any] = []
        self._typical_counts: list[Any] = [np.zeros(0, np.int64)]
        self._outcomes: list[Any] = []
        self._natives: list[pl.DataFrame] = [no_names(named)]

    def events(self, rows: Any, typical_count: int) -> None:
        """Keep timeline rows."""
        self._rows.append(rows)
        self._typical_counts.append(np.full(len(rows), typical_count, np.int64))

    def outcomes(self, out: Any, natives: pl.DataFrame | None) -> None:
        """Keep outcome rows."""
        self._outcomes.append(out)
        if natives is not None:
            self._natives.append(natives)

    def close(self) -> FrameMakers:
        """Functions that make the three frames."""
        return {"timeline": self._timeline, "placements": self._placements, "jobs": self._jobs}

    @cached_property
    def _sorted(self) -> tuple[Any, pl.DataFrame | None]:
        """Outcome rows by arrival, and the names of their pods."""
        out = _joined(self._outcomes, OUTCOME)
        order = np.argsort(out["seq"], kind="stable")
        seq = out["seq"][order]
        if (seq[1:] == seq[:-1]).any():  # some pod has several rows
            order = np.lexsort((out["closes"], out["attempt"], out["seq"]))
        natives = gathered(pl.concat(self._natives), order) if self.named else None
        self._outcomes, self._natives = [], []
        return out[order], natives

    def _timeline(self) -> pl.DataFrame:
        rows, typical_count = _joined(self._rows, ROW), np.concatenate(self._typical_counts)
        self._rows, self._typical_counts = [], []
        return timeline_frame(rows, typical_count)

    def _placements(self) -> pl.DataFrame:
        return placements_frame(*self._sorted, self.names)

    def _jobs(self) -> pl.DataFrame:
        return jobs_frame(*self._sorted)

    def drop(self) -> None:
        """Nothing to release."""


class FrameTables:
    """Rows become frames at once; :meth:`add` of a subclass stores them."""

    def __init__(self, names: pl.Series) -> None:
        self.names = names

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Store rows of one of the tables."""
        raise NotImplementedError

    def events(self, rows: Any, typical_count: int) -> None:
        """Write timeline rows."""
        self.add("timeline", timeline_frame(rows, typical_count))

    def outcomes(self, out: Any, natives: pl.DataFrame | None) -> None:
        """Write placements and jobs."""
        self.add("placements", placements_frame(out, natives, self.names))
        self.add("jobs", jobs_frame(out, natives))


class FileTables(FrameTables):
    """Parquet files in a folder, written row group by row group; placements and jobs without frames in between."""

    def __init__(self, names: pl.Series, folder: Path, named: Sequence[str] = ()) -> None:
        super().__init__(names)
        none, natives = np.zeros(0, OUTCOME), no_names(named)
        empty = (timeline_frame(np.zeros(0, ROW), 1), placements_frame(none, natives, names), jobs_frame(none, natives))
        schemas = {name: arrow(frame).schema for name, frame in zip(TABLES, empty, strict=True)}
        self.writers = {
            name: TableWriter(folder / f"{name}.parquet", schema, {"fastsim.schema": name}, level=QUICK_LEVEL,
                              coded={"node": NODE} if name == "placements" else None, extremes=WITH_STATISTICS)
            for name, schema in schemas.items()
        }  # fmt: skip
        self.outcome_columns: dict[str, OutcomeColumns] = {
            "placements": PlacementColumns(self.writers["placements"].schema, names),
            "jobs": JobColumns(schemas["jobs"]),
        }

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Write rows of one of the tables."""
        for batch in arrow(frame).to_batches():
            self.writers[name].add(batch)

    def outcomes(self, out: Any, natives: pl.DataFrame | None) -> None:
        """Write placements and jobs."""
        for name, columns in self.outcome_columns.items():
            for batch in columns.groups(out, natives):
                self.writers[name].group(batch)

    def close(self) -> None:
        """Complete the files."""
        for name, columns in self.outcome_columns.items():
            if columns.at:
                self.writers[name].group(columns.rest())
        for writer in self.writers.values():
            writer.close()

    def drop(self) -> None:
        """Close and remove incomplete files."""
        for writer in self.writers.values():
            writer.drop()


class KnownChecksum:
    """A checksum that is known before the rows are read, with the interface of :class:`ContentChecksum`."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256

    def add(self, batch: pa.RecordBatch) -> None:
        """Nothing to compute."""

    def hexdigest(self) -> str:
        """The checksum of all rows."""
        return self.sha256


class Recorder:
    """Records arrivals and rows of a run, in order, to the extent of ``record``."""

    def __init__(
        self, schema: pa.Schema, tables: Tables, record: str, waits: Waits | None = None, sha256: str | None = None
    ) -> None:
        self.tables, self.waits = tables, waits or Waits()
        self.checksum = ContentChecksum(schema) if sha256 is None else KnownChecksum(sha256)
        self.listed = record in ("placements", "all")
        self.timed = record in ("timeline", "all")
        self.waited = record != "none"
        self.natives = NativeIds(named_columns(schema.names) if self.listed else ())

    def arrivals(self, batch: pa.RecordBatch) -> None:
        """Add pods that are fed to the loop next."""
        self.checksum.add(batch)
        self.natives.add(batch)

    def restore_arrivals(self, batch: pa.RecordBatch, present: Any) -> None:
        """Add pods that arrived before a checkpoint; those with arrival numbers ``present`` are in the system."""
        self.checksum.add(batch)
        self.natives.add(batch, present)

    def events(self, rows: Any, typical_count: int) -> None:
        """Add timeline rows; ``typical_count`` is the total count of the typical pods at these rows."""
        if self.timed and len(rows):
            self.tables.events(rows, typical_count)

    def outcomes(self, out: Any) -> None:
        """Add outcome rows."""
        if self.waited and len(out):
            self.waits.add(out)
        if self.listed and len(out):
            self.tables.outcomes(out, self.natives.of(out))

    def spans(self, room: Any, counts: Sequence[int], preemptions: int, restarts: int) -> None:
        """Add the waits of outcome rows that are not listed, from ``WorkTable.spans``."""
        if self.waited:
            self.waits.take(room, counts, preemptions, restarts)

    def drop(self) -> None:
        """Release memory and files after a failure."""
        self.waits.close()
        self.tables.drop()


def _joined(rows: list[Any], kind: np.dtype[Any]) -> Any:
    """Rows of one kind as one array; as bytes, because numpy joins structures field by field."""
    return np.concatenate([np.zeros(0, np.uint8), *(part.view(np.uint8) for part in rows)]).view(kind)


class RecordedRun(StagedRun, Protocol):
    """A run whose rows go to a recorder, with all that decides them.

    ``queue_loop`` is the loop again if the run has rules, whose columns are then there, too. ``stages`` has names,
    states and total counts of the typical pods.
    """

    rule_columns: RuleColumns | None
    queue_loop: QueueLoop | None
    workload: Workload
    plan: OnlinePlan
    typical: TypicalPods
    options: OnlineOptions
    recorder: Recorder
    telemetry_hook: TelemetryHook | None
    stages: list[tuple[str, Any, int]]
    first_s: float | None
    main_typical_count: int


def totals_of(run: RecordedRun, gpu_s: float) -> JobTotals:
    """Totals of a run that has finished, whose pods held so many GPU seconds."""
    cost, by_tenant = run.work.paid()
    return replace(run.recorder.waits.totals(gpu_s), cost=cost, tenant_gpu_s=np.array(by_tenant) if by_tenant else None)


def tables_and_provenance(run: RecordedRun) -> tuple[Frames, dict[str, Any]]:
    """Those of a run that has finished; completes its folder, if it has one."""
    typical_count = max(run.typical.kept, 1)
    now, before, areas = run.online.state()
    final, at_capacity = np.frombuffer(now, ROW)[0], np.frombuffer(before, ROW)[0]
    seconds = max(0.0, float(final["t"]) - (run.first_s or 0.0))
    waits = run.recorder.waits
    totals = totals_of(run, areas["gpu_milli_alloc"] / 1000)
    row = summary_row(
        final=final,
        at_capacity=at_capacity,
        areas=areas,
        seconds=seconds,
        typical_counts=(typical_count, run.main_typical_count),
        waits=waits,
        totals=totals,
    )
    makers = {"summary": partial(row_frame, row), "stages": partial(_stages_frame, tuple(run.stages))}
    tables = run.recorder.tables.close()
    folder = run.options.folder
    if run.telemetry_hook is not None and run.telemetry_hook.samples is not None and tables is not None:
        tables = {**tables, "telemetry": run.telemetry_hook.samples.frame}
    if tables is not None or folder is None:
        return LazyFrames({}, {**makers, **(tables or {})}), _provenance(run)
    for name, make in makers.items():
        write_table(folder / f"{name}.parquet", name, make())
    return FolderFrames(folder), _provenance(run)


def _stages_frame(stages: Sequence[tuple[str, Any, int]]) -> pl.DataFrame:
    rows = [
        {"stage": tag, "pods_running": int(row["running"]), "gpu_milli_alloc": int(row["gpu_alloc"]),
         "cpu_milli_alloc": int(row["cpu_alloc"]), "memory_mib_alloc": int(row["mem_alloc"]),
         "active_nodes": int(row["nodes_used"]), "active_gpus": int(row["gpus_used"]),
         "frag_milli": frag_milli(row, typical_count), "power_w": float(row["cpu_mw"] + row["gpu_mw"]) / 1000}
        for tag, row, typical_count in stages
    ]  # fmt: skip
    integers = ("pods_running", "gpu_milli_alloc", "cpu_milli_alloc", "memory_mib_alloc", "active_nodes", "active_gpus")
    schema = {"stage": pl.String, **dict.fromkeys(integers, pl.Int64), "frag_milli": pl.Float64, "power_w": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def _provenance(run: RecordedRun) -> dict[str, Any]:
    """Everything that decides the result, and the versions that computed it."""
    terms = [asdict(replace(term, scorer=None)) for term in run.plan.terms]
    plan = asdict(replace(run.plan, terms=())) | {"terms": terms}
    options: dict[str, Any] = {n: getattr(run.options, n) for n in ("seed", "sample_s", "until_s", "record")}
    options["deschedule"] = [
        {"policy": type(step.policy).__qualname__, **vars(step.policy), "ratio": step.ratio, "at_s": step.at_s}
        for step in run.options.deschedule
    ]
    if run.telemetry_hook is not None:
        options["telemetry"] = repr(run.telemetry_hook.sampling.telemetry)
    if run.options.prices is not None:
        options["prices"] = run.options.prices.checksum()
    options["inflation"] = None if run.options.inflation is None else asdict(run.options.inflation)
    return {
        "plan": plan, "options": options,
        "cluster": {"nodes": len(run.cluster), "sha256": run.cluster.checksum()},
        "workload": {"name": run.workload.name, "pods": run.pods, "sha256": run.recorder.checksum.hexdigest()},
        "typical_pods": len(run.typical.count),
        **provenance_of_build(),
    }  # fmt: skip


def no_names(columns: Sequence[str]) -> pl.DataFrame:
    """No rows of names in these columns."""
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def gathered(names: pl.DataFrame, rows: Any) -> pl.DataFrame:
    """These rows of names."""
    return names.select(pl.all().gather(pl.Series(rows)))


class _Names:
    """The names of one batch that may still be needed, by rising arrival number."""

    def __init__(self, seq: Any, names: pa.RecordBatch) -> None:
        self.seq, self.names = seq, names
        self.open = np.ones(len(seq), bool)

    def names_of(self, seq: Any, closed: Any) -> pa.RecordBatch:
        """The names of these pods, the closed ones for the last time."""
        places = np.searchsorted(self.seq, seq)
        names = self.names.take(pa.array(places))
        self.open[places[closed]] = False
        left = int(self.open.sum())
        if left * SPARSE < len(self.seq):
            self.seq, self.names = self.seq[self.open], self.names.filter(pa.array(self.open))
            self.open = np.ones(left, bool)
        return names


class NativeIds:
    """Names of every pod in the system, in these columns; memory follows those pods and not the trace."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self._first: list[int] = []
        self._batches: list[_Names] = []
        self._arrived = 0

    def add(self, batch: pa.RecordBatch, only: Any = None) -> None:
        """Add the next arrivals; with ``only``, those of them with these arrival numbers."""
        if self.columns and batch.num_rows:
            seq, names = np.arange(self._arrived, self._arrived + batch.num_rows), batch.select(self.columns)
            if only is not None:
                chosen = np.isin(seq, only)
                seq, names = seq[chosen], names.filter(pa.array(chosen))
            self._first.append(self._arrived)
            self._batches.append(_Names(seq, names))
            self._arrived += batch.num_rows
            self._drop_empty()

    def of(self, out: Any) -> pl.DataFrame | None:
        """The names for these outcome rows, dropping those of pods that end; None without such columns."""
        if not self.columns:
            return None
        if len(self._batches) == 1:  # as in every short run
            joined = self._batches[0].names_of(out["seq"], out["closes"] & POD > 0)
            self._drop_empty()
            return pl.DataFrame(pl.from_arrow(joined))
        which = np.searchsorted(self._first, out["seq"], side="right") - 1
        order = np.argsort(which, kind="stable")
        numbers, starts = np.unique(which[order], return_index=True)
        parts = [
            self._batches[number].names_of(out["seq"][rows], out["closes"][rows] & POD > 0)
            for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
        ]
        self._drop_empty()
        inverse = np.empty(len(out), np.int64)
        inverse[order] = np.arange(len(out))
        return gathered(pl.DataFrame(pl.from_arrow(pa.Table.from_batches(parts).combine_chunks())), inverse)

    def _drop_empty(self) -> None:
        open_batches = [k for k, batch in enumerate(self._batches) if len(batch.seq)]
        if len(open_batches) < len(self._batches):
            self._first = [self._first[k] for k in open_batches]
            self._batches = [self._batches[k] for k in open_batches]
