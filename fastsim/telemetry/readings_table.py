"""Readings of GPUs as one long table: a row for each reading of each device, from any source.

Columns: ``ts`` (milliseconds, UTC), ``node``, ``gpu_uuid``, ``gpu_index``, ``model``, ``namespace``, ``pod``,
``container``, ``metric`` (a quantity with its unit, such as ``power_w``) and ``value``. Rows are sorted by metric,
node, device and pod, then by time; missing readings have no row.
"""

from __future__ import annotations

import os
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.parquet import write_parquet
from fastsim.telemetry.metric_names import FOUND_AS, INSTANCE, INSTANCE_PROFILE, Metric, is_exporter, metric_of

KEYS = ("metric", "node", "gpu_uuid", "gpu_index", "pod", "namespace", "container", "model")
"""Columns that identify a series, in the order of sorting."""
POD = ("pod", "namespace", "container")
"""Columns of the pod on a device."""
SCHEMA = pa.schema([
    pa.field("ts", pa.timestamp("ms", "UTC"), nullable=False), pa.field("node", pa.string()),
    pa.field("gpu_uuid", pa.string()), pa.field("gpu_index", pa.int32()), pa.field("model", pa.string()),
    pa.field("namespace", pa.string()), pa.field("pod", pa.string()), pa.field("container", pa.string()),
    pa.field("metric", pa.string(), nullable=False), pa.field("value", pa.float64(), nullable=False),
])  # fmt: skip
"""The table's columns."""
PIECE_ROWS = 1 << 17
"""Rows that are made of numbers at a time."""
MOST_MS = 253_402_300_800_000
"""The end of the year 9999 in milliseconds since 1970; libraries write no later date."""
BLANK_FROM = 2.0**47
"""Values from which DCGM means that there is no reading; no reading in any unit is as large."""


class Sample(NamedTuple):
    """One reading of an exporter: name, labels, milliseconds, value."""

    name: str
    labels: Mapping[str, str]
    ts_ms: int
    value: float


class NoNumber(UserWarning):
    """Samples that are no numbers were left out."""


def table_of(
    samples: Iterable[Sample], names: Mapping[str, Metric], unknown: Counter[str] | None = None,
    where: str = "telemetry",
) -> pa.Table:  # fmt: skip
    """The readings as a table; samples of unknown names are counted, those without a value are left out.

    One device's reading at one time stands there once; two that contradict each other are an InputError.
    """
    return pa.Table.from_batches(gathered(samples, names, unknown, where).batches(), SCHEMA)


class Gathered:
    """Readings added one by one, as numbers: a table of texts would take many times the memory.

    A reading takes 20 bytes, and three times that while `batches` puts all of them in order.
    ``renaming`` are Prometheus' jobs whose targets rename the exporter's labels.
    """

    def __init__(self) -> None:
        self._series: dict[tuple[object, ...], int] = {}
        self.renaming: set[str] = set()
        self._which, self._ms, self._values = array("i"), array("q"), array("d")

    def __len__(self) -> int:
        return len(self._values)

    def series(self, row: Mapping[str, object], job: str | None = None) -> int:
        """The number of the series with these values of `KEYS`; its pod counts unless ``job`` is in ``renaming``."""
        return self._series.setdefault((*(row[name] for name in KEYS), job), len(self._series))

    def add(self, series: int, ms: int, value: float) -> None:
        """One reading."""
        self._which.append(series)
        self._ms.append(ms)
        self._values.append(value)

    def _rows(self) -> list[tuple[object, ...]]:
        """Values of `KEYS` of every series, without the pod if that is the exporter."""
        return [
            tuple(None if key[-1] in self.renaming and name in POD else key[at] for at, name in enumerate(KEYS))
            for key in self._series
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them in the table's order, each once; readings that contradict each other are an InputError."""
        kinds = {name: pl.Int32 if name == "gpu_index" else pl.String for name in KEYS}
        table = pl.DataFrame(self._rows(), schema=kinds, orient="row").with_row_index("number")
        table = table.sort(KEYS, nulls_last=False)
        rank = np.empty(len(table), np.int32)
        rank[table["number"].to_numpy()] = table.select(pl.struct(KEYS).rle_id()).to_series().to_numpy()
        table = table.unique(KEYS, keep="first", maintain_order=True)
        which, ms, values = rank[np.array(self._which)], np.array(self._ms), np.array(self._values)
        order = np.lexsort((values, ms, which))
        which, ms, values = which[order], ms[order], values[order]
        again = np.zeros(len(which), bool)
        again[1:] = (which[1:] == which[:-1]) & (ms[1:] == ms[:-1])
        for at in np.flatnonzero(again)[values[again] != values[np.flatnonzero(again) - 1]].tolist():
            row = table.row(int(which[at]), named=True) | {"ts": f"{ms[at]} ms", "value": values[at]}
            raise two_values(row, values[at - 1])
        which, ms, values = which[~again], ms[~again], values[~again]
        columns_of_series = table.select(KEYS).to_arrow().combine_chunks()
        for at in range(0, len(which), PIECE_ROWS):
            rows = slice(at, at + PIECE_ROWS)
            columns = {name: columns_of_series[name].take(pa.array(which[rows])) for name in KEYS}
            columns |= {"ts": pa.array(ms[rows], SCHEMA.field("ts").type), "value": pa.array(values[rows])}
            piece = pa.table([columns[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA)
            yield from piece.combine_chunks().to_batches()


def gathered(
    samples: Iterable[Sample], names: Mapping[str, Metric], unknown: Counter[str] | None = None,
    where: str = "telemetry",
) -> Gathered:  # fmt: skip
    """The readings in samples, see `table_of`; one warning counts those that are no numbers.

    Where a job of Prometheus renames labels of exporters (``exported_pod``), the label ``pod`` is the exporter's own.
    So it is where it names an exporter, which holds no GPU.
    """
    readings, numberless = Gathered(), 0
    known: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    name, labels, series, metric = "", None, 0, None
    for sample in samples:
        if sample.labels is not labels or sample.name != name:  # most come series by series
            name, labels = sample.name, sample.labels
            metric = metric_of(name, labels, names)
            if metric is not None:
                key = name, frozenset(labels.items())
                if key not in known:
                    job = labels.get("job", "")
                    renamed = bool(labels.get(FOUND_AS["pod"][0]))
                    if renamed or is_exporter(labels):
                        readings.renaming.add(job)
                    row = device_columns(labels) | {"metric": metric.quantity}
                    known[key] = readings.series(row, None if renamed else job)
                series = known[key]
        if metric is None:
            if unknown is not None:
                unknown[name] += 1
        elif -BLANK_FROM < sample.value < BLANK_FROM:
            readings.add(series, sample.ts_ms, metric.ours(sample.value))
        elif not isfinite(sample.value):
            numberless += 1
    if numberless:
        text = f"{where}: samples that are NaN or infinite, which are left out: {numberless:,}"
        warnings.warn(text, NoNumber, stacklevel=2)
    return readings


def unix_ms(ms: float) -> int:
    """A time in whole milliseconds since 1970; ValueError or OverflowError beyond the years that dates have."""
    if not abs(ms) < MOST_MS:
        raise ValueError(f"a time of {ms:g} ms, expected less than {MOST_MS} ms since 1970")
    return round(ms)


def device_columns(labels: Mapping[str, str]) -> dict[str, object]:
    """The columns of a device and its pod from the labels of a series; an empty label is None.

    An instance of a partitioned GPU is a device ``MIG-GPU-…/7`` of a model such as ``A100-MIG-1g.10gb``.
    """
    columns: dict[str, object] = {
        column: next((labels[name] for name in names if labels.get(name)), None) for column, names in FOUND_AS.items()
    }
    index = columns["gpu_index"]
    if index is not None and not (str(index).isascii() and str(index).isdigit() and len(str(index)) < 10):
        raise InputError("telemetry: label gpu", repr(index), "the number of a device")
    columns["gpu_index"] = None if index is None else int(str(index))
    if labels.get("instance") == columns["node"] and columns["node"] is not None:
        columns["node"] = str(columns["node"]).rpartition(":")[0] or columns["node"]
    if labels.get(INSTANCE):
        columns["gpu_uuid"] = f"MIG-{columns['gpu_uuid'] or index}/{labels[INSTANCE]}"
        if columns["model"] and labels.get(INSTANCE_PROFILE):
            columns["model"] = f"{columns['model']}-MIG-{labels[INSTANCE_PROFILE].replace('+', '.')}"
    return columns


def ordered(table: pa.Table) -> pa.Table:
    """The rows in the table's order, each once."""
    return ordered_rows(pl.DataFrame(pl.from_arrow(table))).to_arrow().cast(SCHEMA)


def lazily(rows: pa.Table | pl.LazyFrame) -> pl.LazyFrame:
    """Rows of a table, or of a file that is read only when collected."""
    return rows if isinstance(rows, pl.LazyFrame) else pl.DataFrame(pl.from_arrow(rows)).lazy()


def evaluated(rows: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a query; a file that cannot be read is an InputError."""
    try:
        return rows.collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError("telemetry", " ".join(str(error).split())[:200], "complete Parquet files") from None


def ordered_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of a frame in the table's order, each once."""
    frame = frame.sort([*KEYS, "ts", "value"], nulls_last=False)
    # Rows of one series and moment are neighbours, so each is compared with the one before it only.
    keys = pl.col(*KEYS, "ts")
    again = frame.select(pl.all_horizontal(keys.eq_missing(keys.shift(1))) & (pl.int_range(pl.len()) > 0)).to_series()
    if not again.any():
        return frame
    repeated = frame.with_columns(other=pl.col("value").shift(1)).filter(again)
    for row in repeated.filter(pl.col("value") != pl.col("other")).rows(named=True):
        raise two_values(row, row["other"])
    return frame.filter(~again)


def two_values(row: Mapping[str, object], other: float) -> InputError:
    """Readings that contradict each other."""
    where = f"telemetry: {row['metric']} of {row['gpu_uuid'] or row['gpu_index']} at {row['ts']}"
    return InputError(where, f"{other:g} and {row['value']:g}", "one value")


def write(table: pa.Table | Gathered, path: str | os.PathLike[str], sources: Sequence[str] = ()) -> int:
    """Writes Parquet, complete or not at all; the number of rows."""
    stamp = {"fastsim.schema": "telemetry", "fastsim.schema_version": "1.0", "fastsim.source": ", ".join(sources)}
    batches = table.batches() if isinstance(table, Gathered) else ordered(table).to_batches()
    return write_parquet(path, batches, SCHEMA, stamp, ())
