"""The table of samples of a run: a file of its folder, or rows in memory."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa

from fastsim.engine.sampling.telemetry_sampler import STAMP
from fastsim.foundation.parquet import TableWriter
from fastsim.telemetry.readings_table import SCHEMA

TABLE = "telemetry"
"""Name of the table of samples."""


class SampleTable:
    """Rows of the telemetry table: in a file of a folder, or in memory."""

    def __init__(self, folder: Path | None) -> None:
        self._latest: list[pa.RecordBatch] = []
        self._writer = None if folder is None else TableWriter(folder / f"{TABLE}.parquet", SCHEMA, STAMP)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._writer is None:
            self._latest.append(batch)
        else:
            self._writer.add(batch)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()

    def drop(self) -> None:
        """Close and remove an incomplete file."""
        if self._writer is not None:
            self._writer.drop()

    def frame(self) -> pl.DataFrame:
        """The rows, if they are in memory."""
        return pl.DataFrame(pl.from_arrow(pa.Table.from_batches(self._latest, SCHEMA)))
