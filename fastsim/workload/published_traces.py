"""Importers of published traces by name; each is a module of `importers` with `import_jobs`.

Where a trace is a table, its module is a mapping of columns and :func:`table_of`. Options that all have: `where`, a
condition over the columns of the file, and `origin`, as in `Workload.from_csv`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import polars as pl

from fastsim.cluster.column_mapping import Columns
from fastsim.cluster.table_sources import Source, source_of
from fastsim.errors import ScenarioError, reading, suggestion
from fastsim.foundation.limits.packed_file import file_checksum, is_archived
from fastsim.foundation.option_texts import refuse_options
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import pods_of
from fastsim.workload.texts import PUBLISHED

if TYPE_CHECKING:
    from fastsim.workload.workload import Workload

LAST = "last_moment"
"""Column of the latest moment of a table, at which rows without an end were seen last."""
NODE_PODS = {
    s.NUM_GPU: "CEIL(gpu_num / node_num)", s.CPU_MILLI: "1000 * cpu_num / node_num", s.JOB_ID: "job_id",
    s.GANG_SIZE: "node_num",
}  # fmt: skip
"""Columns of a job as pods, one for each of its nodes, where a table has `gpu_num`, `cpu_num`, `node_num`, `job_id`."""


def import_trace(kind: str, path: str | os.PathLike[str], **options: Any) -> Workload:
    """The jobs of a published trace; options as in `import_jobs` of its module."""
    if kind not in PUBLISHED:
        raise ScenarioError("trace", repr(kind), f"one of: {', '.join(PUBLISHED)}", suggestion(kind, PUBLISHED))
    importer = import_module(f"fastsim.workload.importers.{kind}").import_jobs
    known = dict(list(inspect.signature(importer).parameters.items())[1:])
    refuse_options(f"{kind} {path}", options, tuple(known))
    for option, value in options.items():
        if isinstance(known[option].default, bool) and not isinstance(value, bool):
            raise ScenarioError(f"{kind} {path}: {option}", repr(value), "true or false")
    with reading(f"{kind} {path}", "a trace that can be read"):
        workload: Workload = importer(path, **options)
    workload.metadata["fastsim.converter"] = f"fastsim import {kind}"
    return workload


def table_of(
    source: Source | str | os.PathLike[str], columns: Columns, title: str, *, where: Sequence[str | None] = (),
    origin: str = "min", expand: bool = False,
) -> Workload:  # fmt: skip
    """The pods of a published table; rows are kept for which all conditions of ``where`` hold."""
    read = source if isinstance(source, Source) else source_of(source)
    notes = {"fastsim.source": title}
    if os.path.isfile(read.name) or is_archived(read.name):
        notes["fastsim.source_sha256"] = file_checksum(read.name)
    return pods_of(
        read, columns, origin=origin, where=[one for one in where if one], identity=False, expand=expand, metadata=notes
    )


def with_last_moment(source: Source, names: Sequence[str]) -> Source:
    """The table and, in every row of a further column, the latest of these columns' dates or numbers."""
    found = [_latest(source.frame[name]) for name in names if name in source.frame.columns]
    known = sorted((one for one in found if one is not None), key=lambda one: (type(one).__name__, one))
    return source._replace(frame=source.frame.with_columns(pl.lit(known[-1] if known else None).alias(LAST)))


def _latest(cells: pl.Series) -> Any:
    if cells.dtype != pl.String:
        return cells.max()
    dates = cells.filter(cells.str.contains(r"^\d{4}-").fill_null(False))
    numbers = cells.cast(pl.Float64, strict=False)
    return dates.max() if len(dates) else numbers.filter(numbers.is_finite()).max()


def chosen(option: str, value: object, choices: Sequence[str]) -> str:
    """A value among choices; anything else is a ScenarioError."""
    if value not in choices:
        raise ScenarioError(f"import.{option}", repr(value), f"one of: {', '.join(choices)}")
    return str(value)
