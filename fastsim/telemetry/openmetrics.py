"""Readings of GPUs as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`, and back.

Prometheus silently drops late samples, reads a whole file again for each block and accepts nothing after the last
line. So the samples of a series are in order of time, a file covers a day at most, and readings without a
representation are refused.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.parquet import replacing
from fastsim.telemetry.metric_names import LABELS, Labels, Metric, by_name, metrics
from fastsim.telemetry.readings_table import KEYS, PIECE_ROWS, evaluated, lazily, ordered_rows, table_of
from fastsim.telemetry.sample_lines import END, file_samples

DAY_S = 86_400
"""Longest time that one file covers, seconds."""


def write_files(
    rows: pa.Table | pl.LazyFrame, folder: str | os.PathLike[str], *, profile: str = "dcgm2", epoch_s: int = 0,
    slice_s: int = DAY_S, names: str | os.PathLike[str] | None = None,
) -> list[Path]:  # fmt: skip
    """One file for each day, or `slice_s`, that has readings; `epoch_s` is added to all times, Unix seconds.

    A simulation begins at second 0, which would be 1970. Each file is complete or not there; their names sort by time.
    One quantity of one slice is held in memory at a time, if `rows` are in a file.
    """
    if not 1 <= slice_s <= DAY_S:
        raise ScenarioError("openmetrics: slice_s", slice_s, f"1 to {DAY_S} s")
    known = {metric.quantity: metric for metric in metrics(profile, names)}
    moved = lazily(rows).with_columns(ms=pl.col("ts").dt.epoch("ms") + 1000 * epoch_s)
    moved = moved.with_columns(part=pl.col("ms") // (1000 * slice_s))
    pieces = evaluated(moved.select("part", "metric").unique()).sort("part", "metric").rows()
    if pieces and pieces[0][0] < 0:
        raise InputError("openmetrics: ts", "a time before 1970", "a later one", "give another epoch_s")
    for _, quantity in pieces:
        if quantity not in known:
            raise InputError("openmetrics: metric", repr(quantity), f"one of {', '.join(known)}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for part, group in groupby(pieces, key=itemgetter(0)):
        path = Path(folder) / f"{part * slice_s:012}.om"
        with replacing(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as text:
            for _, quantity in group:
                piece = evaluated(moved.filter(pl.col("part") == part, pl.col("metric") == quantity).drop("part"))
                text.writelines(family_texts(ordered_rows(piece), known[quantity], LABELS[profile]))
            text.write(f"{END}\n")
        written.append(path)
    return written


def family_texts(rows: pl.DataFrame, metric: Metric, labels: Labels) -> Iterator[str]:
    """The text of sorted readings of one quantity with the column `ms`, many lines at a time.

    Devices with equal labels are one series: equal readings are written once, different ones are an InputError.
    """
    columns = ["metric", *(column for column, label in labels._asdict().items() if label)]
    if len(columns) < len(KEYS):
        rows = rows.select(*columns, "ms", "value").unique(maintain_order=True)
        rows = rows.sort([*(key for key in KEYS if key in columns), "ms"], nulls_last=False)
        _refuse_two(rows, columns)
    yield f"# TYPE {metric.name} {metric.type}\n"
    rows = rows.with_columns(series=pl.struct(columns).rle_id())
    firsts = rows.unique("series", keep="first", maintain_order=True).iter_rows(named=True)
    heads = pl.Series([f"{metric.name}{{{label_text(row, labels)}}} " for row in firsts], dtype=pl.String)
    for piece in rows.iter_slices(PIECE_ROWS):
        # Floats become the shortest texts that are them again.
        value, ms = (pl.col("value") * metric.per).cast(pl.String), pl.col("ms")
        time = (pl.lit(" "), (ms // 1000).cast(pl.String), pl.lit("."), (ms % 1000).cast(pl.String).str.zfill(3))
        lines = piece.select(pl.concat_str(heads.gather(piece["series"]), value, *time, pl.lit("\n"))).to_series()
        yield "".join(lines)


def _refuse_two(rows: pl.DataFrame, columns: Sequence[str]) -> None:
    twice = rows.filter(rows.select(*columns, "ms").is_duplicated())
    if len(twice):
        row = twice.row(0, named=True)
        where = f"openmetrics: {row['metric']} of GPU {row['gpu_uuid'] or row['gpu_index']} at {row['ms']} ms"
        values = f"{twice['value'][0]:g} and {twice['value'][1]:g} under the same labels"
        raise InputError(where, values, "one value", "another profile has labels for pods")


def label_text(row: Mapping[str, Any], labels: Labels) -> str:
    """Text of the labels between braces for the device and pod of a row."""
    return ",".join(f'{label}="{escaped(row[column])}"' for column, label in labels._asdict().items() if label)


def escaped(value: object) -> str:
    """A label's text; None is empty, as in exporters' labels of a device without a pod."""
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def read_files(
    *paths: str | os.PathLike[str], names: str | os.PathLike[str] | None = None, unknown: Counter[str] | None = None
) -> pa.Table:
    """The readings of text files, see ``fastsim.telemetry.sample_lines``."""
    known = by_name(names)
    return table_of(file_samples(paths, known), known, unknown, ", ".join(map(str, paths)))
