"""Columns of the workload as arrays, and the values by which a sort key sorts.

``column(value)`` is the column ``value``, or ``native_value`` of the user's own, whose texts are numbers.
``column(deadline_s)`` is a deadline as jobs have it: without one the arrival plus ``slo`` times the ideal duration.
What has no value comes last, whichever the sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import cell_text
from fastsim.scenario.sort_keys import MOST_TERMS, column_of
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.workload import Workload

Floats = npt.NDArray[np.float64]


def filled(batch: pa.RecordBatch, name: str, missing: Any = np.nan, kind: Any = np.float64) -> npt.NDArray[Any]:
    """A column as numpy, null or absent replaced."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, missing, kind)
    column = batch.column(name)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(missing, column.type))
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False), kind)


def deadlines(batch: pa.RecordBatch, ideal_s: Any) -> Floats:
    """Deadlines in seconds, NaN without one; ``ideal_s`` is each row's duration without any wait."""
    absolute = filled(batch, s.DEADLINE_S)
    relative = filled(batch, s.SUBMIT_S) + filled(batch, s.SLO) * ideal_s
    return np.where(np.isnan(absolute), relative, absolute)


class SortColumns:
    """The columns of a key; InputError for one that the workload lacks or that has no numbers."""

    def __init__(self, key: Sequence[str], workload: Workload) -> None:
        terms = [(k, column_of(term), term[0] == "-") for k, term in enumerate(key)]
        self._columns = [(k, _found(name, workload), reverse) for k, name, reverse in terms if name]

    def __bool__(self) -> bool:
        return bool(self._columns)

    def values(self, batch: pa.RecordBatch, ideal_s: Any) -> Floats:
        """A value for each of MOST_TERMS terms, row after row; what comes first is smallest."""
        values = np.full((batch.num_rows, MOST_TERMS), np.inf)
        for k, name, reverse in self._columns:
            given = deadlines(batch, ideal_s) if name == s.DEADLINE_S else _numbers(batch, name)
            values[:, k] = np.where(np.isfinite(given), -given if reverse else given, np.inf)
        return values.ravel()


def _found(name: str, workload: Workload) -> str:
    """The column of a workload that a term names."""
    schema, where = workload.schema, f"{workload.name}: column({name})"
    names = dict.fromkeys([*schema.names, s.DEADLINE_S] if s.SLO in schema.names else schema.names)
    found = next((one for one in (name, f"native_{name}") if one in names), "")
    if not found:
        do = "Workload.from_polars and CSV files keep columns of your own, others if their names begin with native_"
        raise InputError(where, "no such column", f"one of {', '.join(names)}", do)
    kind = s.POD_SCHEMA.field(found).type if found in s.POD_SCHEMA.names else pa.float64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise InputError(where, f"a column of type {kind}", "a column of numbers")
    return found


def _numbers(batch: pa.RecordBatch, name: str) -> Floats:
    """A column as numbers, NaN for null."""
    if not s.is_native(name):
        return np.asarray(batch[name].to_numpy(zero_copy_only=False), np.float64)
    texts = pl.Series(batch[name])
    values = texts.cast(pl.Float64, strict=False)
    wrong = (values.is_null() & texts.is_not_null()).arg_true()
    if len(wrong):
        pod, found = (cell_text(batch[one], wrong[0]) for one in (s.POD_ID, name))
        raise InputError(f"pod {pod}: {name}", found, "a number to sort by")
    return values.to_numpy()
