"""Readings of GPUs in files: Parquet, answers of Prometheus, and one small CSV file for each series.

=====================  ========================================================================
``*.parquet``          a table of readings (see ``fastsim.telemetry.readings_table``)
a folder               that of a run which recorded them
``*.json``             the answer to a query of Prometheus, saved
anything else          OpenMetrics text, what exporters or ``/federate`` serve, or a dump of promtool
=====================  ========================================================================
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError, reading
from fastsim.foundation.columns.physical_types import column_of
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import open_parquet, parquet_table
from fastsim.telemetry.metric_names import by_name
from fastsim.telemetry.openmetrics import read_files
from fastsim.telemetry.prometheus import saved_samples
from fastsim.telemetry.readings_table import (
    KEYS,
    SCHEMA,
    Gathered,
    evaluated,
    gathered,
    lazily,
    ordered,
    ordered_rows,
    table_of,
)
from fastsim.telemetry.sample_lines import file_samples

READINGS = "readings of GPUs"
"""The expected content of files, in messages."""
LONGEST_NAME = 200
"""Bytes of the name of a file of a series, before its number and ending; file systems take 255."""
OF_A_RUN = "telemetry.parquet"
"""Readings in the folder of a run."""


def readings_of(
    paths: Sequence[str | os.PathLike[str]], names: str | os.PathLike[str] | None = None,
    unknown: Counter[str] | None = None,
) -> pa.Table:  # fmt: skip
    """All readings of these files; a reading in several of them counts once."""
    with reading(", ".join(map(str, paths)), READINGS):
        return ordered(pa.concat_tables([_readings(Path(path), names, unknown) for path in paths]))


def collected(
    paths: Sequence[str | os.PathLike[str]], names: str | os.PathLike[str] | None = None,
    unknown: Counter[str] | None = None,
) -> pa.Table | Gathered:  # fmt: skip
    """All readings of these files; those of text files are held as numbers, which take less memory than a table."""
    if any(Path(path).is_dir() or Path(path).suffix in (".parquet", ".json") for path in paths):
        return readings_of(paths, names, unknown)
    with reading(", ".join(map(str, paths)), READINGS):
        known = by_name(names)
        return gathered(file_samples(paths, known), known, unknown, ", ".join(map(str, paths)))


def scanned(
    paths: Sequence[str | os.PathLike[str]], names: str | os.PathLike[str] | None = None,
    unknown: Counter[str] | None = None,
) -> pl.LazyFrame:  # fmt: skip
    """All readings of these files, unsorted; Parquet tables of readings are read only when collected."""
    with reading(", ".join(map(str, paths)), READINGS):
        return pl.concat([_scanned(Path(path), names, unknown) for path in paths])


def _scanned(path: Path, names: str | os.PathLike[str] | None, unknown: Counter[str] | None) -> pl.LazyFrame:
    file = path / OF_A_RUN if path.is_dir() else path
    if file.suffix == ".parquet" and file.is_file():
        with open_parquet(file) as parquet:
            if parquet.schema_arrow.remove_metadata().equals(SCHEMA):
                return pl.scan_parquet(file)
    return lazily(_readings(path, names, unknown))


def _readings(path: Path, names: str | os.PathLike[str] | None, unknown: Counter[str] | None) -> pa.Table:
    if path.is_dir():
        if not (path / OF_A_RUN).is_file():
            raise InputError(str(path), f"no {OF_A_RUN}", "the folder of a run that recorded telemetry")
        return _parquet(path / OF_A_RUN)
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".json":
        return table_of(saved_samples(path), by_name(names), unknown, str(path))
    return read_files(path, names=names, unknown=unknown)


def _parquet(path: Path) -> pa.Table:
    table = parquet_table(path, Work.READINGS)
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise InputError(str(path), f"no column {missing[0]}", f"the columns {', '.join(SCHEMA.names)}")
    columns = [column_of(table, field.name, field.type, lambda row: f"{path}:{row + 1}") for field in SCHEMA]
    for field, column in zip(SCHEMA, columns, strict=True):
        if column.null_count and not field.nullable:
            row = pc.index(column.is_null(), True).as_py()
            raise InputError(f"{path}:{row + 1}: {field.name}", "null", f"a value ({field.type})")
    return pa.table(columns, schema=SCHEMA)


def write_csv_files(table: pa.Table | pl.LazyFrame, folder: str | os.PathLike[str]) -> list[Path]:
    """One file for each series, ``t_rel`` (seconds after the first reading of all) and ``value``; the paths.

    Names are made of node, device, pod and metric.
    """
    moved = lazily(table).with_columns(ms=pl.col("ts").dt.epoch("ms"))
    first = evaluated(moved.select(pl.col("ms").min())).item()
    kinds = evaluated(moved.select(pl.col("metric").unique())).to_series().sort().to_list()
    Path(folder).mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    taken: set[str] = set()
    for kind in kinds:  # one quantity at a time is held in memory
        rows = ordered_rows(evaluated(moved.filter(pl.col("metric") == kind)))
        rows = rows.with_columns(t_rel=(pl.col("ms") - first) / 1000)
        for series in rows.partition_by(list(KEYS), maintain_order=True):
            path = Path(folder) / f"{_untaken(_series_name(series.row(0, named=True)), taken)}.csv"
            series.select("t_rel", "value").write_csv(path)
            written.append(path)
    return written


def _series_name(row: dict[str, Any]) -> str:
    parts = (row["node"], row["gpu_uuid"] if row["gpu_index"] is None else row["gpu_index"], row["pod"])
    parts_of_name = [re.sub(r"[^\w.=-]+", "_", str(part)) for part in (*parts, row["metric"]) if part is not None]
    return "-".join(parts_of_name)


def _untaken(name: str, taken: set[str]) -> str:
    """The name, cut to what file systems take, with a number if a file has it already, in any letters' case."""
    short = name.encode()[:LONGEST_NAME].decode(errors="ignore")
    numbered = (short if number == 1 else f"{short}-{number}" for number in count(1))
    chosen = next(one for one in numbered if one.lower() not in taken)
    taken.add(chosen.lower())
    return chosen
