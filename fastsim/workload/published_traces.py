"""Importers of published traces by name; each is a module of `importers` with `import_jobs`, some with `import_nodes`.

Where a trace is a table, its module is a mapping of columns and :func:`table_of`. Options that all have: `where`, a
condition over the columns of the file, and `origin`, as in `Workload.from_csv`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import polars as pl

from fastsim.cluster.column_mapping import Columns, Source, source_of
from fastsim.cluster.importers import nodes_of
from fastsim.errors import InputError, ScenarioError, reading, suggestion
from fastsim.foundation.limits.packed_file import file_checksum, is_archived
from fastsim.hardware.gpu_products import with_products
from fastsim.hardware.model_catalog import Catalog
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import pods_of
from fastsim.workload.texts import TRACES

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.workload import Workload

NODES = ("pai", "alibaba")
"""Those whose nodes are published, too."""
LAST = "last_moment"
"""Column of the latest moment of a table, at which rows without an end were seen last."""
NODE_PODS = {
    s.NUM_GPU: "CEIL(gpu_num / node_num)", s.CPU_MILLI: "1000 * cpu_num / node_num", s.JOB_ID: "job_id",
    s.GANG_SIZE: "node_num",
}  # fmt: skip
"""Columns of a job as pods, one for each of its nodes, where a table has `gpu_num`, `cpu_num`, `node_num`, `job_id`."""


def import_trace(kind: str, path: str | os.PathLike[str], **options: Any) -> Workload:
    """The jobs of a published trace; options as in `import_jobs` of its module."""
    workload: Workload = _called(kind, "import_jobs", path, options)
    workload.metadata["fastsim.converter"] = f"fastsim import {kind}"
    return workload


def import_nodes(kind: str, path: str | os.PathLike[str], **options: Any) -> Cluster:
    """The nodes of a published trace; models of unknown watts draw 0 W."""
    if kind in TRACES and kind not in NODES:
        raise ScenarioError(f"nodes of {kind}", "no list of nodes", f"one of: {', '.join(NODES)}")
    cluster: Cluster = _called(kind, "import_nodes", path, options)
    return cluster


def _called(kind: str, name: str, path: str | os.PathLike[str], options: Mapping[str, Any]) -> Any:
    if kind not in TRACES:
        raise ScenarioError("trace", repr(kind), f"one of: {', '.join(TRACES)}", suggestion(kind, TRACES))
    importer = getattr(import_module(f"fastsim.workload.importers.{kind}"), name)
    known = dict(list(inspect.signature(importer).parameters.items())[1:])
    for option, value in options.items():
        if option not in known:
            expected = f"options among {', '.join(known)}" if known else "no options"
            raise ScenarioError(f"{kind} {path}", f"unknown option {option!r}", expected, suggestion(option, known))
        if isinstance(known[option].default, bool) and not isinstance(value, bool):
            raise ScenarioError(f"{kind} {path}: {option}", repr(value), "true or false")
    with reading(f"{kind} {path}", "a trace that can be read"):
        return importer(path, **options)


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


def nodes_table(source: Source, columns: Columns, models: str) -> Cluster:
    """The nodes of a published table; ``models`` is the column of their GPU models."""
    if models not in source.frame.columns:
        have = ", ".join(source.frame.columns)
        raise InputError(f"{source.name}: {models}", f"columns {have}", "this required column")
    names = [str(name) for name in source.frame[models].drop_nulls().unique(maintain_order=True)]
    catalog, _ = with_products(Catalog.default(), names)
    return nodes_of(source, columns, catalog=catalog, identity=False)


def chosen(option: str, value: object, choices: Sequence[str]) -> str:
    """A value among choices; anything else is a ScenarioError."""
    if value not in choices:
        raise ScenarioError(f"import.{option}", repr(value), f"one of: {', '.join(choices)}")
    return str(value)
