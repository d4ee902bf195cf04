"""How a run writes its checkpoints, and how it goes on from one."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import ipc

from fastsim.engine.checkpoint_folder import Checkpoint, Checkpoints, PartChecksums, unfinished
from fastsim.engine.online.arrivals import pieces
from fastsim.engine.online.recorder import TABLES, FileTables, FrameTables
from fastsim.engine.summary import Waits
from fastsim.engine.tables import ROW, arrow
from fastsim.errors import InputError, ResultError, ScenarioError
from fastsim.foundation import interrupts

if TYPE_CHECKING:
    from fastsim.engine.online.recorder import Recorder
    from fastsim.engine.online.run import OnlineRun
    from fastsim.scenario.run_rules import Rules
    from fastsim.workload import Workload

NODE_STATE = ("cpu_left", "mem_left", "pods", "gpu_left", "mig_used", "tags", "present")
"""Columns that say what is free on a node; everything else about nodes follows from them."""
BATCH_ROWS = 16_384
"""Rows of a batch: a checkpoint can be taken between two of them, or when nothing arrives any more."""
SAME = ("cluster", "typical_pods", "plan", "seed", "sample_s", "until_s", "record", "deschedule", "regime", "outages",
        "prices")  # fmt: skip
"""What must be as it was for the same bytes."""
FORK_MAY_CHANGE = ("plan", "seed", "until_s", "regime")
"""What may be different in the run that goes on; checkpoints of a fork say so."""
Extents = Mapping[str, list[tuple[str, int]]]
"""For each table its segments, in order, and how many bytes of each count."""


class CheckpointWriter:
    """Writes the state of a run to its working folder now and then; begins with the state it is given, if any.

    ``scenario`` is stored with every checkpoint: what a later start needs to build the same run. A checkpoint that
    was made for a fork may come from a run with another plan, seed and end.
    """

    def __init__(
        self, folder: Path, keeping: Checkpoints, scenario: Mapping[str, Any], taken: Checkpoint | None = None
    ) -> None:
        self.folder, self.keeping, self.scenario, self.taken = folder, keeping, dict(scenario), taken
        self.forked_from: dict[str, Any] | None = None if taken is None else taken.meta.get("forked_from")
        self._pods = 0 if taken is None else int(taken.meta["loop"]["arrived"])
        self._events = -1
        self._began_s, self._began_cpu_s = time.monotonic(), time.process_time()
        self._at = self._began_s
        self._decided: dict[str, Any] = {}
        self._checksums = PartChecksums(folder)

    @property
    def ruled(self) -> bool:
        """Whether the run that left the checkpoint kept rules, so that this one has to know them."""
        return self.taken is not None and "rules" in self.taken.meta

    # ------------------------------------------------------------------ writing

    def due(self, run: OnlineRun) -> bool:
        """Whether to write a checkpoint now: every pod that was read has arrived, and enough happened since."""
        arrived, events = run.online.arrived, run.online.events
        if arrived != run.pods or events == self._events:
            return False
        by_pods = self.keeping.pods is not None and arrived - self._pods >= self.keeping.pods
        now = time.monotonic()
        if not by_pods and (self.keeping.wall_s is None or now - self._at < self.keeping.wall_s):
            return False
        self._pods, self._events, self._at = arrived, events, now
        return True

    def state(self, run: OnlineRun) -> Checkpoint:
        """The state of now, copied, so that it can be written while the run goes on."""
        slots, ends = run.work.snapshot()
        departures, scheduled = run.online.departures.snapshot()
        arrays = {name: run.columns[name].copy() for name in NODE_STATE}
        arrays |= {"slots": np.frombuffer(slots, np.uint8), "departures": np.frombuffer(departures, np.uint8)}
        arrays["in_system"] = np.array(sorted(run.work.present()), np.int64)
        wall_s, cpu_s = time.monotonic() - self._began_s, time.process_time() - self._began_cpu_s
        spent = self.spent({"wall_s": wall_s, "cpu_s": cpu_s, "loop_s": run.loop_s})
        meta = {
            "scenario": self.scenario, "forked_from": self.forked_from,
            "decided": self._decisions(run), "process": os.getpid(),
            "keeping": asdict(self.keeping), "loop": run.online.snapshot(), "line": ends, "scheduled": scheduled,
            "stages": [(tag, row.tobytes().hex(), kept) for tag, row, kept in run.stages], "spent": spent,
        }  # fmt: skip
        if run.rules is not None and run.ruled is not None:
            rules, meta["rules"] = run.rules.state(run.ruled)
            arrays |= rules
        return Checkpoint(meta, arrays)

    def write(self, state: Checkpoint, recorder: Recorder) -> None:
        """Write a state, now that everything the loop wrote until then has reached the recorder."""
        self.secured(state, recorder).write(self.folder)

    def secured(self, state: Checkpoint, recorder: Recorder) -> Checkpoint:
        """The state with what belongs to it, which is in files from now on."""
        tables = recorder.tables
        assert isinstance(tables, JournalTables)
        kept = {"tables": tables.durable(), "waits": recorder.waits.durable(), "sha256": recorder.checksum.hexdigest()}
        secured = Checkpoint(state.meta | kept, state.arrays)
        sums = {name: self._checksums.of(name, size) for name, size in secured.parts().items()}
        return Checkpoint(secured.meta | {"checksums": sums}, secured.arrays)

    def spent(self, spent: Mapping[str, float]) -> dict[str, float]:
        """Seconds of this start and of those before it."""
        before = {} if self.taken is None else self.taken.meta["spent"]
        return {name: seconds + before.get(name, 0.0) for name, seconds in spent.items()}

    def _decisions(self, run: OnlineRun) -> dict[str, Any]:
        """What decides the bytes of the run."""
        if not self._decided:
            options = run.options
            plan = asdict(replace(run.plan, terms=tuple(replace(term, scorer=None) for term in run.plan.terms)))
            steps = [(type(s.policy).__qualname__, vars(s.policy), s.ratio, s.at_s) for s in options.deschedule]
            self._decided = {
                "cluster": run.cluster.checksum(), "plan": plan, "seed": options.seed, "sample_s": options.sample_s,
                "until_s": options.until_s, "record": options.record, "deschedule": repr(steps),
                "prices": None if options.prices is None else options.prices.checksum(),
                "typical_pods": hashlib.sha256(repr(run.typical).encode()).hexdigest(), **decided_by(options.regime),
            }  # fmt: skip
        return self._decided

    # ------------------------------------------------------------------ going on

    def journal(self, names: pl.Series, folder: Path) -> JournalTables:
        """The tables: journals, cut where the checkpoint says."""
        return JournalTables(names, folder, self.folder, None if self.taken is None else self.taken.meta["tables"])

    def waits(self) -> Waits:
        """The waiting times up to the checkpoint."""
        return Waits(self.folder, None if self.taken is None else self.taken.meta["waits"])

    def batches(self, workload: Workload) -> Iterator[pa.RecordBatch]:
        """The workload, cut where checkpoints are due and where this one was taken."""
        return pieces(workload.batches(BATCH_ROWS), self.keeping.pods or 0, self._pods)

    def take_over_nodes(self, columns: dict[str, Any]) -> None:
        """What is free on every node, before tables are made of it."""
        if self.taken is None:
            return
        for name in NODE_STATE:
            kept = self.taken.arrays[name]
            if kept.shape != columns[name].shape or kept.dtype != columns[name].dtype:
                found = f"{len(columns[name])} nodes that differ from its own"
                raise ScenarioError(f"{self.folder}: cluster", found, "the cluster of the checkpoint")
            columns[name][...] = kept

    def take_over(self, run: OnlineRun, batches: Iterator[pa.RecordBatch]) -> None:
        """Read the pods that had arrived, compare them with those of the checkpoint, and restore the tables."""
        if self.taken is None:
            return
        self.compare(run, self.taken)
        meta, arrays = self.taken.meta, self.taken.arrays
        where, rows = run.workload.name, int(meta["loop"]["arrived"])
        while run.pods < rows:
            batch = next(batches, None)
            if batch is None:
                raise InputError(where, f"{run.pods} pods", f"at least {rows}, as when the checkpoint was written")
            run.recorder.recall(batch, arrays["in_system"])
            run.number(batch)
            if run.rules is not None:
                run.rules.recall(batch, run.pods - batch.num_rows, arrays["in_system"])
        if run.recorder.checksum.hexdigest() != meta["sha256"]:
            raise InputError(where, "other pods", f"those that had arrived at the checkpoint (the first {rows})")
        try:
            self._restore(run, meta, arrays)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, AssertionError) as error:
            told = " ".join(str(error).split())[:200]
            raise ResultError(f"{self.folder}: found {told}, expected the checkpoint of a run") from error

    def _restore(self, run: OnlineRun, meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        run.work.restore(arrays["slots"], meta["line"])
        run.online.departures.restore(arrays["departures"], meta["scheduled"])
        if run.rules is not None and run.ruled is not None:
            run.rules.take_over(run.ruled, arrays, meta, run.columns["present"])
        run.online.restore(meta["loop"])
        run.stages += [(tag, np.frombuffer(bytes.fromhex(row), ROW)[0], kept) for tag, row, kept in meta["stages"]]

    def compare(self, run: OnlineRun, taken: Checkpoint) -> None:
        """ScenarioError if this run decides otherwise than the one of the checkpoint did."""
        then, now = taken.meta["decided"], self._decisions(run)
        for name in SAME:
            if then[name] != _as_read(now[name]) and not _may_change(taken, name, now):
                raise ScenarioError(f"{self.folder}: {name}", _short(now[name]), f"{_short(then[name])}, as before")
        if now["plan"]["queue"] == "drop" and taken.meta["line"]["waiting"]:
            found = f"{taken.meta['line']['waiting']} waiting pods"
            raise ScenarioError(f"{self.folder}: queue", found, "a queue for them to stand in")


def _may_change(taken: Checkpoint, name: str, now: Mapping[str, Any]) -> bool:
    """Whether a fork may differ in this; random failures belong to the past, and so does the seed they follow."""
    return name in taken.meta.get("may_change", ()) and not (name == "seed" and now["failures"])


def opened_writer(
    stack: ExitStack, scenario: Mapping[str, Any], out: Path | None, overwrite: bool, keeping: Checkpoints,
    taken: Checkpoint | None,
) -> CheckpointWriter:  # fmt: skip
    """The saving of a run to ``out``; its working folder is taken care of when the stack is left."""
    keeping.check()
    if out is None:
        raise ScenarioError("checkpoint", "a run without a folder", "out=FOLDER; the checkpoint stands beside it")
    folder = stack.enter_context(unfinished(out, keeping, taken is not None, overwrite))
    return CheckpointWriter(folder, keeping, scenario, taken)


def decided_by(regime: Rules) -> dict[str, Any]:
    """What a regime decides: the rules that a fork may change, and the outages, which are part of the past."""
    rules, outages = asdict(regime), regime.outages
    del rules["outages"]
    windows = hashlib.sha256(repr(outages.maintenance).encode()).hexdigest() if outages.maintenance else ""
    return {
        "regime": json.dumps(rules, sort_keys=True), "failures": outages.mtbf_s is not None,
        "outages": [outages.mtbf_s, outages.mttr_s, windows],
    }  # fmt: skip


def _as_read(value: Any) -> Any:
    """The value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 80 else f"{text[:77]}..."


class JournalTables(FrameTables):
    """Journals in the working folder ``work``, which become Parquet files in ``folder`` at the end."""

    def __init__(self, names: pl.Series, folder: Path, work: Path, kept: Extents | None = None) -> None:
        super().__init__(names)
        self.folder, self.work = folder, work
        self._segments = {name: [(file, size) for file, size in (kept or {}).get(name, [])] for name in TABLES}
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
        """What is safe on disk now, for a checkpoint."""
        for name, (file, _) in self._open.items():
            file.flush()
            os.fsync(file.fileno())
            self._segments[name][-1] = (self._segments[name][-1][0], file.tell())
        return {name: list(segments) for name, segments in self._segments.items()}

    def close(self) -> None:
        """Write the journals as Parquet."""
        self.drop()
        tables = FileTables(self.names, self.folder)
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
        """Forget what was written after the checkpoint."""
        kept = {file: size for segments in self._segments.values() for file, size in segments}
        for path in self.work.glob("*.arrows"):
            if path.name in kept:
                os.truncate(path, kept[path.name])
            else:
                path.unlink()
