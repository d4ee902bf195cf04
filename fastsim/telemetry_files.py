"""Readings of GPUs in files: Parquet, what Prometheus told, and one small CSV file for each series.

=====================  ========================================================================
``*.parquet``          a table of readings (see ``fastsim.telemetry_table``)
a folder               that of a run which recorded them
``*.json``             the answer to a range query of Prometheus, saved
anything else          OpenMetrics text, or what ``promtool tsdb dump`` printed
=====================  ========================================================================
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.metric_names import by_name
from fastsim.openmetrics import read_files
from fastsim.prometheus import saved_samples
from fastsim.tabular import one_line, parquet_table
from fastsim.telemetry_table import KEYS, SCHEMA, ordered, table_of

OF_A_RUN = "telemetry.parquet"
"""Readings in the folder of a run."""


def readings_of(
    paths: Sequence[str | os.PathLike[str]], names: str | os.PathLike[str] | None = None,
    unknown: Counter[str] | None = None,
) -> pa.Table:  # fmt: skip
    """All readings of these files; what stands in several of them counts once."""
    return ordered(pa.concat_tables([_readings(Path(path), names, unknown) for path in paths]))


def _readings(path: Path, names: str | os.PathLike[str] | None, unknown: Counter[str] | None) -> pa.Table:
    if path.is_dir():
        if not (path / OF_A_RUN).is_file():
            raise InputError(str(path), f"no {OF_A_RUN}", "the folder of a run that recorded telemetry")
        return _parquet(path / OF_A_RUN)
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".json":
        return table_of(saved_samples(path), by_name(names), unknown)
    return read_files(path, names=names, unknown=unknown)


def _parquet(path: Path) -> pa.Table:
    table = parquet_table(path)
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise InputError(str(path), f"no column {missing[0]}", f"the columns {', '.join(SCHEMA.names)}")
    try:
        return table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(str(path), one_line(error), "columns of the types of a table of readings") from None


def write_csv_files(table: pa.Table, folder: str | os.PathLike[str]) -> list[Path]:
    """One file for each series, ``t_rel`` (seconds after the first reading of all) and ``value``; the paths.

    Names are made of node, device, pod and metric.
    """
    rows = pl.DataFrame(pl.from_arrow(ordered(table))).with_columns(ms=pl.col("ts").dt.epoch("ms"))
    rows = rows.with_columns(t_rel=(pl.col("ms") - pl.col("ms").min()) / 1000)
    Path(folder).mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    taken: Counter[str] = Counter()
    for _, series in rows.partition_by(list(KEYS), as_dict=True, maintain_order=True).items():
        row = series.row(0, named=True)
        parts = (row["node"], row["gpu_uuid"] if row["gpu_index"] is None else row["gpu_index"], row["pod"])
        told = [re.sub(r"[^\w.=-]+", "_", str(part)) for part in (*parts, row["metric"]) if part is not None]
        name = "-".join(told)
        taken[name] += 1
        path = Path(folder) / f"{name}{'' if taken[name] == 1 else f'-{taken[name]}'}.csv"
        with open(path, "w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(["t_rel", "value"])
            writer.writerows(series.select("t_rel", "value").iter_rows())
        written.append(path)
    return written
