"""Ids in result tables of engines that number pods by arrival: those of the workload take the place of the numbers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from fastsim.workload import schema as s
from fastsim.workload.workload import Held

if TYPE_CHECKING:
    from fastsim.workload import Workload

NAMES = (s.NATIVE_ID, s.NATIVE_JOB_ID)
"""Columns of names that result tables have: the first always, the others if the workload has them."""
NUMBERS = (s.POD_ID, "mate_id")
"""Columns of pods in the tables of engines."""


def named_columns(columns: list[str]) -> list[str]:
    """Those of ``NAMES`` among the columns of a workload."""
    return [name for name in NAMES if name in columns]


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
        if s.NATIVE_ID in frame.columns:
            columns += [self.rows[name].gather(frame[s.POD_ID]) for name in self.rows.columns[1:]]
        return frame.with_columns(columns)

    def names_of(self, seq: pl.Series) -> pl.Series | None:
        """The names of the pods with these arrival numbers; None if the workload has none."""
        return self.rows[s.NATIVE_ID].gather(seq) if s.NATIVE_ID in self.workload.columns else None
