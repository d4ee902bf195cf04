"""Ids in result tables of engines that number pods by arrival: those of the workload take the place of the numbers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from fastsim.engine.tables import named_columns
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held

if TYPE_CHECKING:
    from fastsim.workload import Workload

NUMBERS = (s.POD_ID, "mate_id")
"""Columns of pods in the tables of engines."""


class ArrivalIds:
    """Ids and names of the pods of a workload, by arrival number.

    Pods in memory and generated ones are read on first use. Those of a file are read at once: it may change later.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload, self.endless = workload, workload.endless() is not None
        if not self.endless and not isinstance(workload.source, Held):
            _ = self.rows

    @cached_property
    def rows(self) -> pl.DataFrame:
        """``pod_id`` and the names of each pod."""
        names = [s.POD_ID, *named_columns(self.workload.columns)]
        schema = {name: pl.Int64 if name == s.POD_ID else pl.String for name in names}
        parts = [pl.DataFrame(pl.from_arrow(batch.select(names))) for batch in self.workload.batches()]
        return pl.concat([pl.DataFrame(schema=schema), *parts], rechunk=True)

    def named(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A table with the pods' own ids instead of arrival numbers, and with their names.

        Jobs that are drawn without end have no other ids than these numbers.
        """
        if self.endless:
            return frame
        columns = [self.rows[s.POD_ID].gather(frame[name]).alias(name) for name in NUMBERS if name in frame.columns]
        names = self.names_of(frame[s.POD_ID]) if s.NATIVE_ID in frame.columns else None
        return frame.with_columns(columns).with_columns([] if names is None else names.get_columns())

    def names_of(self, seq: pl.Series) -> pl.DataFrame | None:
        """The names of the pods with these arrival numbers; None if the workload has none."""
        names = self.rows.drop(s.POD_ID)
        return names.select(pl.all().gather(seq)) if names.columns else None
