"""What is kept of a run while it goes on: tables in memory or in files, waits, and the checksum of what came in.

Rows leave the loop when something ends, so that is the order of a table in files: ``placements`` by the end of
the interval, ``jobs`` by the end of the pod (what still runs or waits at the end of the run comes last), and the
``timeline`` by event. Tables in memory are sorted by arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from fastsim.frames import OUTCOME, ROW, jobs_frame, placements_frame, timeline_frame
from fastsim.native_ids import NativeIds
from fastsim.summary import Waits
from fastsim.tabular import ContentChecksum, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("timeline", "placements", "jobs")
"""Tables that grow with the run."""


class Tables(Protocol):
    """Where rows of the three tables go."""

    def events(self, rows: Any, kept: int) -> None:
        """Timeline rows, and the typical pods' total count in force."""

    def outcomes(self, out: Any, natives: pl.Series | None) -> None:
        """Outcome rows and the names of their pods."""

    def close(self) -> Mapping[str, pl.DataFrame] | None:
        """The tables, unless they are in files."""

    def drop(self) -> None:
        """Let go of everything."""


class MemoryTables:
    """Rows as the loop wrote them; they become frames, sorted by arrival, at the end."""

    def __init__(self, names: pl.Series, named: bool) -> None:
        self.names, self.named = names, named
        self._rows: list[Any] = [np.zeros(0, ROW)]
        self._kept: list[Any] = [np.zeros(0, np.int64)]
        self._outcomes: list[Any] = [np.zeros(0, OUTCOME)]
        self._natives: list[pl.Series] = [pl.Series("native_id", [], pl.String)]

    def events(self, rows: Any, kept: int) -> None:
        """Keep timeline rows."""
        self._rows.append(rows)
        self._kept.append(np.full(len(rows), kept, np.int64))

    def outcomes(self, out: Any, natives: pl.Series | None) -> None:
        """Keep outcome rows."""
        self._outcomes.append(out)
        if natives is not None:
            self._natives.append(natives)

    def close(self) -> Mapping[str, pl.DataFrame]:
        """The three frames."""
        out = np.concatenate(self._outcomes)
        order = np.lexsort((out["closes"], out["attempt"], out["seq"]))
        out = out[order]
        natives = pl.concat(self._natives).gather(pl.Series(order)) if self.named else None
        return {
            "timeline": timeline_frame(np.concatenate(self._rows), np.concatenate(self._kept)),
            "placements": placements_frame(out, natives, self.names),
            "jobs": jobs_frame(out, natives),
        }

    def drop(self) -> None:
        """Nothing to let go of."""


class FrameTables:
    """Rows become frames as they come; where a frame goes is said by ``add``."""

    def __init__(self, names: pl.Series) -> None:
        self.names = names

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Take rows of one of the tables."""
        raise NotImplementedError

    def events(self, rows: Any, kept: int) -> None:
        """Write timeline rows."""
        self.add("timeline", timeline_frame(rows, kept))

    def outcomes(self, out: Any, natives: pl.Series | None) -> None:
        """Write placements and jobs."""
        self.add("placements", placements_frame(out, natives, self.names))
        self.add("jobs", jobs_frame(out, natives))


class FileTables(FrameTables):
    """Parquet files in a folder, written row group by row group."""

    def __init__(self, names: pl.Series, folder: Path) -> None:
        super().__init__(names)
        none = np.zeros(0, OUTCOME)
        empty = (timeline_frame(np.zeros(0, ROW), 1), placements_frame(none, None, names), jobs_frame(none, None))
        self.writers = {
            name: TableWriter(folder / f"{name}.parquet", arrow(frame).schema, {"fastsim.schema": name})
            for name, frame in zip(TABLES, empty, strict=True)
        }

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Write rows of one of the tables."""
        for batch in arrow(frame).to_batches():
            self.writers[name].add(batch)

    def close(self) -> None:
        """Complete the files."""
        for writer in self.writers.values():
            writer.close()

    def drop(self) -> None:
        """Let go of files that will never be complete."""
        for writer in self.writers.values():
            writer.drop()


class Recorder:
    """Takes what comes in and what comes out of a run, in order, and keeps what was asked for."""

    def __init__(self, schema: pa.Schema, tables: Tables, record: str, waits: Waits | None = None) -> None:
        self.tables, self.waits, self.checksum = tables, waits or Waits(), ContentChecksum(schema)
        self.listed = record in ("placements", "all")
        self.timed = record in ("timeline", "all")
        self.waited = record != "none"
        self.natives = NativeIds(self.listed and "native_id" in schema.names)

    def arrivals(self, batch: pa.RecordBatch) -> None:
        """Pods that are about to be fed to the loop."""
        self.checksum.add(batch)
        self.natives.add(batch)

    def recall(self, batch: pa.RecordBatch, present: Any) -> None:
        """Pods that arrived before a checkpoint; those whose arrival numbers are ``present`` are still there."""
        self.checksum.add(batch)
        self.natives.add(batch, present)

    def events(self, rows: Any, kept: int) -> None:
        """Timeline rows, and the typical pods' total count in force."""
        if self.timed and len(rows):
            self.tables.events(rows, kept)

    def outcomes(self, out: Any) -> None:
        """Outcome rows."""
        if self.waited and len(out):
            self.waits.add(out)
        if self.listed and len(out):
            self.tables.outcomes(out, self.natives.of(out))

    def drop(self) -> None:
        """Let go of everything after a failure."""
        self.waits.close()
        self.tables.drop()


def arrow(frame: pl.DataFrame) -> pa.Table:
    """A frame as it is written."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
