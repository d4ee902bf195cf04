"""Tables of a run that may be stopped at any moment: rows go to a journal that can be cut and continued.

A Parquet file has its directory at the end, so one that was not closed is lost. A journal is an Arrow stream: it can
be cut after any row. Every start of the run adds a segment of its own; when the run is complete, the segments are
written as Parquet, in the same row groups as if the rows had gone there at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pyarrow as pa
from pyarrow import ipc

from fastsim.engine.online.recorder import TABLES, FileTables, FrameTables
from fastsim.engine.tables import arrow
from fastsim.foundation import interrupts

Extents = Mapping[str, list[tuple[str, int]]]
"""For each table its segments, in order, and how many bytes of each count."""


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
