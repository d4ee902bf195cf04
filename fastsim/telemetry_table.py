"""Readings of GPUs as one long table: a row for each reading of each device, whoever told it.

Columns: ``ts`` (milliseconds, UTC), ``node``, ``gpu_uuid``, ``gpu_index``, ``model``, ``namespace``, ``pod``,
``container``, ``metric`` (a quantity with its unit, such as ``power_w``) and ``value``. Rows are sorted by metric,
node, device and pod, then by time; what nobody read has no row.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.metric_names import FOUND_AS, Metric
from fastsim.tabular import write_parquet

KEYS = ("metric", "node", "gpu_uuid", "gpu_index", "pod", "namespace", "container", "model")
"""What tells one series from another, in the order of sorting."""
SCHEMA = pa.schema([
    pa.field("ts", pa.timestamp("ms", "UTC"), nullable=False), pa.field("node", pa.string()),
    pa.field("gpu_uuid", pa.string()), pa.field("gpu_index", pa.int32()), pa.field("model", pa.string()),
    pa.field("namespace", pa.string()), pa.field("pod", pa.string()), pa.field("container", pa.string()),
    pa.field("metric", pa.string(), nullable=False), pa.field("value", pa.float64(), nullable=False),
])  # fmt: skip
"""The table's columns."""
BLANK_FROM = 2.0**47
"""Values from which DCGM means that there is no reading; no reading in any unit is as large."""


class Sample(NamedTuple):
    """One reading as it was told: name, labels, milliseconds, value."""

    name: str
    labels: Mapping[str, str]
    ts_ms: int
    value: float


def table_of(samples: Iterable[Sample], names: Mapping[str, Metric], unknown: Counter[str] | None = None) -> pa.Table:
    """The readings as a table; samples of unknown names are counted, those that tell nothing are left out.

    One device's reading at one time stands there once; two that contradict each other are an InputError.
    """
    columns: dict[str, list[object]] = {name: [] for name in SCHEMA.names}
    known: dict[frozenset[tuple[str, str]], dict[str, object]] = {}
    for sample in samples:
        metric = names.get(sample.name)
        if metric is None:
            if unknown is not None:
                unknown[sample.name] += 1
            continue
        if not -BLANK_FROM < sample.value < BLANK_FROM:
            continue
        key = frozenset(sample.labels.items())
        if key not in known:
            known[key] = device_columns(sample.labels)
        for name, value in known[key].items():
            columns[name].append(value)
        columns["ts"].append(sample.ts_ms)
        columns["metric"].append(metric.quantity)
        columns["value"].append(metric.ours(sample.value))
    return ordered(pa.table([pa.array(columns[item.name], item.type) for item in SCHEMA], schema=SCHEMA))


def device_columns(labels: Mapping[str, str]) -> dict[str, object]:
    """The columns of a device and its pod from the labels of a series; an empty label tells nothing."""
    found: dict[str, object] = {
        column: next((labels[name] for name in names if labels.get(name)), None) for column, names in FOUND_AS.items()
    }
    index = found["gpu_index"]
    if index is not None and not (str(index).isascii() and str(index).isdigit() and len(str(index)) < 10):
        raise InputError("telemetry: label gpu", repr(index), "the number of a device")
    found["gpu_index"] = None if index is None else int(str(index))
    if labels.get("instance") == found["node"] and found["node"] is not None:
        found["node"] = str(found["node"]).rpartition(":")[0] or found["node"]
    return found


def ordered(table: pa.Table) -> pa.Table:
    """The rows in the table's order, each once."""
    frame = pl.DataFrame(pl.from_arrow(table)).unique(maintain_order=True).sort([*KEYS, "ts"], nulls_last=False)
    twice = frame.filter(frame.select([*KEYS, "ts"]).is_duplicated())
    if len(twice):
        row = twice.row(0, named=True)
        where = f"telemetry: {row['metric']} of {row['gpu_uuid'] or row['gpu_index']} at {row['ts']}"
        raise InputError(where, f"{twice['value'][0]:g} and {twice['value'][1]:g}", "one value")
    return frame.to_arrow().cast(SCHEMA)


def write(table: pa.Table, path: str | os.PathLike[str], sources: Sequence[str] = ()) -> int:
    """Writes Parquet, complete or not at all; the number of rows."""
    stamp = {"fastsim.schema": "telemetry", "fastsim.schema_version": "1.0", "fastsim.source": ", ".join(sources)}
    return write_parquet(path, ordered(table).to_batches(), SCHEMA, stamp, ())
