"""Checkpoints of online runs: the writer, the restored state, and tables that can be cut at a checkpoint.

A Parquet file has its directory at the end, so a file that was not closed is lost. Rows of a run with checkpoints go to
a journal instead: an Arrow stream, which can be cut after any row. Every start of the run adds a segment of its own; at
the end, the segments become Parquet files with the same row groups as those of an uninterrupted run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import ipc

from fastsim.engine.checkpoints.clock import CheckpointClock, Checkpoints
from fastsim.engine.checkpoints.state import PartChecksums, RunState, other_than
from fastsim.engine.checkpoints.state_file import restoring
from fastsim.engine.checkpoints.value_checks import check_range
from fastsim.engine.checkpoints.writer import CheckpointWriter
from fastsim.engine.online.arrivals import pieces
from fastsim.engine.online.recorder import TABLES, FileTables, FrameTables, RecordedRun
from fastsim.engine.online.restored_state import check_header, check_nodes, check_pods, check_rules, slots_of
from fastsim.engine.summary import Waits
from fastsim.engine.tables import ROW, arrow
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation import interrupts
from fastsim.foundation.limits.knobs import CHECKPOINT_PODS

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.engine.online.arrivals import Arrivals
    from fastsim.engine.online.recorder import Recorder
    from fastsim.scenario.run_rules import Rules
    from fastsim.workload import Workload

NODE_STATE = ("cpu_left", "mem_left", "pods", "gpu_left", "mig_used", "tags", "present")
"""Columns of free resources; everything else about nodes follows from them."""
BATCH_ROWS = 16_384
"""Rows of a batch: a checkpoint can be start between two of them, or when nothing arrives any more."""
SAME = ("cluster", "typical_pods", "plan", "seed", "sample_s", "until_s", "record", "deschedule", "rules", "outages",
        "prices")  # fmt: skip
"""Properties of a run that a resumed run must share; a state lists those that a fork changes as ``may_change``."""
Extents = Mapping[str, list[tuple[str, int]]]
"""For each table its segments, in order, and how many bytes of each count."""


class StoredRun(RecordedRun, Protocol):
    """A run that checkpoints store and restore; ``loop_s`` are its seconds in the loop."""

    loop_s: float

    def number(self, batch: pa.RecordBatch) -> Arrivals:
        """Register the pods of the next batch; their columns."""


class OnlineCheckpointWriter(CheckpointWriter):
    """Writes the state of a run of pods, whose tables go to journals.

    A checkpoint of a fork may come from a run with another plan, seed and end.
    """

    def __init__(
        self, folder: Path, checkpoints: Checkpoints, scenario: Mapping[str, Any], start: RunState | None = None
    ) -> None:
        super().__init__(folder, checkpoints, scenario, start)
        self._arrived = 0 if start is None else start.arrived
        self.clock = CheckpointClock(self.schedule, 0, self._arrived)
        self._events = -1
        self._decided: dict[str, Any] = {}
        self._checksums = PartChecksums(folder)

    @property
    def has_rules(self) -> bool:
        """Whether the run of the checkpoint had rules, so that this one needs them."""
        return self.start is not None and "rules" in self.start.meta

    # ------------------------------------------------------------------ writing

    def due(self, run: StoredRun) -> bool:
        """Whether to write a checkpoint now: all pods read so far have arrived, and the interval has passed."""
        arrived, events = run.online.arrived, run.online.events
        if arrived != run.pods or events == self._events or not self.clock.due(0, arrived):
            return False
        self.clock.restart(0, arrived)
        self._events = events
        return True

    def state(self, run: StoredRun) -> RunState:
        """A copy of the current state, which can be written while the run goes on."""
        slots, ends = run.work.snapshot()
        departures, scheduled = run.online.departures.snapshot()
        arrays = {name: run.columns[name].copy() for name in NODE_STATE}
        arrays |= {"slots": np.frombuffer(slots, np.uint8), "departures": np.frombuffer(departures, np.uint8)}
        arrays["in_system"] = np.array(sorted(run.work.present()), np.int64)
        meta = {
            "note": self.note(loop_s=run.loop_s), "now_s": run.online.now, "arrived": run.online.arrived,
            "decided": self._decisions(run), "loop": run.online.snapshot(), "line": ends, "scheduled": scheduled,
            "stages": [(tag, row.tobytes().hex(), count) for tag, row, count in run.stages],
        }  # fmt: skip
        if run.rule_columns is not None and run.queue_loop is not None:
            rule_arrays, meta["rules"] = run.rule_columns.state(run.queue_loop)
            arrays |= rule_arrays
        return RunState("pods", meta, arrays)

    def write(self, state: RunState, recorder: Recorder) -> None:
        """Write a state; all rows that the loop wrote before it must have reached the recorder."""
        self.secured(state, recorder).write(self.schedule.path)

    def secured(self, state: RunState, recorder: Recorder) -> RunState:
        """The state with the sizes of its tables and waits, which are flushed to disk."""
        tables = recorder.tables
        assert isinstance(tables, JournalTables)
        secured = state.having(
            tables=tables.durable(), waits=recorder.waits.durable(), sha256=recorder.checksum.hexdigest()
        )
        sums = {name: self._checksums.of(name, size) for name, size in secured.parts().items()}
        return secured.having(checksums=sums)

    def _decisions(self, run: StoredRun) -> dict[str, Any]:
        """Everything that decides the result of the run."""
        if not self._decided:
            options = run.options
            plan = asdict(replace(run.plan, terms=tuple(replace(term, scorer=None) for term in run.plan.terms)))
            steps = [(type(s.policy).__qualname__, vars(s.policy), s.ratio, s.at_s) for s in options.deschedule]
            self._decided = {
                "cluster": run.cluster.checksum(), "plan": plan, "seed": options.seed, "sample_s": options.sample_s,
                "until_s": options.until_s, "record": options.record, "deschedule": repr(steps),
                "prices": None if options.prices is None else options.prices.checksum(),
                "typical_pods": hashlib.sha256(repr(run.typical).encode()).hexdigest(), **decided_by(options.rules),
            }  # fmt: skip
        return self._decided

    # ------------------------------------------------------------------ going on

    def journal(self, names: pl.Series, folder: Path, named: Sequence[str]) -> JournalTables:
        """The tables as journals, cut at the checkpoint; pods have names in the columns ``named``."""
        extents = None if self.start is None else self.start.meta["tables"]
        return JournalTables(names, folder, self.folder, extents, named)

    def refuse_many(self, rows: int | None) -> None:
        """ScenarioError if a workload of so many rows (None: unknown) makes more checkpoints than their budget."""
        if rows is not None and self.checkpoints.pods is not None:
            CHECKPOINT_PODS.refuse(rows - self._arrived, self.checkpoints.pods)

    def waits(self) -> Waits:
        """The waits up to the checkpoint."""
        return Waits(self.folder, None if self.start is None else self.start.meta["waits"])

    def batches(self, workload: Workload) -> Iterator[pa.RecordBatch]:
        """The workload, cut where checkpoints are due and where the run starts."""
        return pieces(workload.batches(BATCH_ROWS), self.checkpoints.pods or 0, self._arrived)

    def take_over_nodes(self, cluster: Cluster, columns: dict[str, Any]) -> None:
        """Restore the free resources of all nodes; tables are made of the columns afterwards."""
        if self.start is None:
            return
        with restoring(self.folder):
            check_header(self.start.meta)
            self._compare_cluster(self.start, cluster)
            self._restore_nodes(self.start, columns)
            check_nodes(columns)

    def _compare_cluster(self, start: RunState, cluster: Cluster) -> None:
        then, now = start.meta["decided"]["cluster"], cluster.checksum()
        if then != now:
            raise other_than(f"{self.folder}: cluster", now, then)

    def _restore_nodes(self, start: RunState, columns: dict[str, Any]) -> None:
        for name in NODE_STATE:
            stored = start.arrays[name]
            if stored.shape != columns[name].shape or stored.dtype != columns[name].dtype:
                raise ValueError(f"{name} of {stored.dtype} and shape {stored.shape}")
            columns[name][...] = stored

    def take_over(self, run: StoredRun, batches: Iterator[pa.RecordBatch]) -> None:
        """Read the pods that had arrived, compare them with those of the checkpoint, and restore the tables."""
        if self.start is None:
            return
        meta, arrays = self.start.meta, self.start.arrays
        with restoring(self.folder):
            self.compare(run, self.start)
            _check_system(arrays["in_system"], self.start.arrived)
        where, rows = run.workload.name, self.start.arrived
        while run.pods < rows:
            batch = next(batches, None)
            if batch is None:
                raise InputError(where, f"{run.pods} pods", f"at least {rows}, as when the checkpoint was written")
            run.recorder.restore_arrivals(batch, arrays["in_system"])
            run.number(batch)
            if run.rule_columns is not None:
                run.rule_columns.restore_arrivals(batch, run.pods - batch.num_rows, arrays["in_system"])
        if run.recorder.checksum.hexdigest() != meta["sha256"]:
            raise InputError(where, "other pods", f"those that had arrived at the checkpoint (the first {rows})")
        with restoring(self.folder):
            self._restore(run, meta, arrays)

    def _restore(self, run: StoredRun, meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        check_pods(run, meta, arrays)
        if run.rule_columns is not None:
            check_rules(run, arrays, meta)
        run.work.restore(arrays["slots"], meta["line"])
        run.online.departures.restore(arrays["departures"], meta["scheduled"])
        if run.rule_columns is not None and run.queue_loop is not None:
            pods = slots_of(arrays)["seq"].tolist()
            run.rule_columns.take_over(run.queue_loop, arrays, meta, run.columns["present"], pods)
        run.online.restore(meta["loop"])
        run.stages += [(tag, np.frombuffer(bytes.fromhex(row), ROW)[0], count) for tag, row, count in meta["stages"]]

    def compare(self, run: StoredRun, start: RunState) -> None:
        """ScenarioError if this run differs from that of the checkpoint in a property that must be the same."""
        then, now = start.meta["decided"], self._decisions(run)
        for name in SAME:
            if then[name] != _as_read(now[name]) and not _may_change(start, name, now):
                raise other_than(f"{self.folder}: {name}", now[name], then[name])
        if now["plan"]["queue"] == "drop" and start.meta["line"]["waiting"]:
            found = f"{start.meta['line']['waiting']} waiting pods"
            raise ScenarioError(f"{self.folder}: queue", found, "a queue for them to stand in")


def _check_system(numbers: Any, arrived: int) -> None:
    """ValueError unless these are arrival numbers in order."""
    if numbers.dtype != np.int64 or numbers.ndim != 1:
        raise ValueError(f"in_system of {numbers.dtype} and shape {numbers.shape}")
    check_range(numbers, 0, arrived - 1, "in_system")
    check_range(np.diff(numbers), 1, arrived, "steps of in_system")


def _may_change(start: RunState, name: str, now: Mapping[str, Any]) -> bool:
    """Whether a fork may change this property; with random failures the seed belongs to the past."""
    return name in start.meta.get("may_change", ()) and not (name == "seed" and now["failures"])


def decided_by(rules: Rules) -> dict[str, Any]:
    """The part of the properties that rules decide: those a fork may change, and outages, which it may not."""
    fields, outages = asdict(rules), rules.outages
    del fields["outages"]
    windows = hashlib.sha256(repr(outages.maintenance).encode()).hexdigest() if outages.maintenance else ""
    return {
        "rules": json.dumps(fields, sort_keys=True), "failures": outages.mtbf_s is not None,
        "outages": [outages.mtbf_s, outages.mttr_s, windows],
    }  # fmt: skip


def _as_read(value: Any) -> Any:
    """The value as it comes back from JSON."""
    return json.loads(json.dumps(value))


class JournalTables(FrameTables):
    """Journals in the working folder ``work``, which become Parquet files in ``folder`` at the end."""

    def __init__(
        self, names: pl.Series, folder: Path, work: Path, extents: Extents | None = None, named: Sequence[str] = ()
    ) -> None:
        super().__init__(names)
        self.folder, self.work, self.named = folder, work, named
        self._segments = {name: [(file, size) for file, size in (extents or {}).get(name, [])] for name in TABLES}
        self._open: dict[str, tuple[BinaryIO, ipc.RecordBatchStreamWriter]] = {}
        self._cut()

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Append rows to the journal of a table."""
        table = arrow(frame)
        if not table.num_rows:  # a stream without rows has no bytes yet: cut there, it could not be read
            return
        if name not in self._open:
            self._begin(name, table.schema)
        self._open[name][1].write_table(table)

    def durable(self) -> dict[str, list[tuple[str, int]]]:
        """Flush all rows to disk; the segments and their sizes for a checkpoint."""
        for name, (file, _) in self._open.items():
            file.flush()
            os.fsync(file.fileno())
            self._segments[name][-1] = (self._segments[name][-1][0], file.tell())
        return {name: list(segments) for name, segments in self._segments.items()}

    def close(self) -> None:
        """Write the journals as Parquet."""
        self.drop()
        tables = FileTables(self.names, self.folder, self.named)
        try:
            for name, segments in self._segments.items():
                for file, _ in segments:
                    with pa.OSFile(str(self.work / file)) as source, ipc.open_stream(source) as reader:
                        for batch in reader:
                            interrupts.check()
                            tables.writers[name].add(batch)
            tables.close()
        except BaseException:
            tables.drop()
            raise

    def drop(self) -> None:
        """Close the journals as they are."""
        for file, writer in self._open.values():
            writer.close()
            file.close()
        self._open = {}

    def _begin(self, name: str, schema: pa.Schema) -> None:
        segment = f"{name}.{len(self._segments[name])}.arrows"
        file = (self.work / segment).open("wb")
        self._open[name] = file, ipc.new_stream(file, schema, options=ipc.IpcWriteOptions(compression="lz4"))
        self._segments[name].append((segment, 0))

    def _cut(self) -> None:
        """Drop the rows that were written after the checkpoint."""
        sizes = {file: size for segments in self._segments.values() for file, size in segments}
        for path in self.work.glob("*.arrows"):
            if path.name in sizes:
                os.truncate(path, sizes[path.name])
            else:
                path.unlink()
