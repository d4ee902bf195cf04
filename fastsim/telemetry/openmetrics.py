"""Readings of GPUs as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`, and back.

Text that an exporter serves has no times: all its samples get the time at which the file was written.

Prometheus silently drops late samples, reads a whole file again for each block and accepts nothing after the last
line. So the samples of a series are in order of time, a file covers a day at most, and readings without a
representation are refused.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.parquet import replacing
from fastsim.telemetry.metric_names import LABELS, Labels, Metric, by_name, metrics
from fastsim.telemetry.readings_table import (
    KEYS,
    PIECE_ROWS,
    Sample,
    evaluated,
    lazily,
    ordered_rows,
    table_of,
    unix_ms,
)

DAY_S = 86_400
"""Longest time that one file covers, seconds."""
END = "# EOF"
"""The last line of a file."""
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*(?:,|(?=\}))', re.ASCII)
_NAME = re.compile(r"[a-zA-Z_:][\w:]*", re.ASCII)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


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
    """The readings of OpenMetrics files (``.om``), of what `promtool tsdb dump` printed, or of what exporters serve."""
    return table_of(file_samples(paths), by_name(names), unknown, ", ".join(map(str, paths)))


def file_samples(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Sample]:
    """The samples of such files."""
    return (sample for path in paths for sample in _samples(str(path)))


def _samples(path: str) -> Iterator[Sample]:
    try:
        with open(path, encoding="utf-8", newline="\n") as text:
            yield from _parsed(path, text, _Times(os.stat(path).st_mtime_ns // 1_000_000))
    except FileNotFoundError:
        raise InputError(path, "no such file or folder", "readings, or the folder of a run that has them") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, " ".join(str(error).split()), "OpenMetrics text or a dump of promtool") from None


def _parsed(path: str, text: Iterable[str], times: _Times) -> Iterator[Sample]:
    """The samples of lines; the part before value and time is the same in many lines, and parsed once."""
    ended = False
    heads: dict[str, Series] = {}
    series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
    for number, whole in enumerate(text, start=1):
        line = whole.removesuffix("\n")
        if number == 1 and line.startswith("{"):  # a dump has milliseconds, and no last line
            times.ms_per = 1
        if ended:
            raise InputError(f"{path}:{number}", repr(line[:60]), f"nothing after {END}")
        if line == END:
            ended = True
            continue
        if not line or line.startswith("#"):
            continue
        head, _, rest = line.rpartition("} ")
        known = heads.get(head) if head else None
        sample = None if known is None else _quick(known, rest, times.ms_per)
        if sample is None:
            sample = _sample(line, f"{path}:{number}", times)
            key = sample.name, frozenset(sample.labels.items())
            known = series.setdefault(key, Series(sample.name, sample.labels))
            if head and _quick(known, rest, times.ms_per) is not None:  # a label may have "} " in it
                heads[head] = known
            sample = Sample(known.name, known.labels, sample.ts_ms, sample.value)
        assert known is not None
        if known.last_ms is not None and known.last_ms >= sample.ts_ms:
            expected = "samples of a series in order of time" if times.given else "one of a series, as none has a time"
            raise InputError(f"{path}:{number}", f"{sample.ts_ms} ms after {known.last_ms} ms", expected)
        known.last_ms = sample.ts_ms
        yield sample
    if not (times.ms_per == 1 or ended or times.given is False):
        raise InputError(path, "an end without a last line", f"{END}, which says that nothing is missing")


@dataclass
class _Times:
    """Times of the samples of a file: `given` in every line or in none; without, all are the file's own time."""

    written_ms: int
    ms_per: int = 1000
    given: bool | None = None

    def ms(self, words: Sequence[str]) -> int:
        """The time of a sample with these words behind its value; ValueError if it is no time, or one too many."""
        if len(words) > 1 or self.given not in (None, bool(words)):
            raise ValueError
        self.given = bool(words)
        return unix_ms(float(words[0]) * self.ms_per) if words else self.written_ms


@dataclass
class Series:
    """A series of a file, and the time of its last sample."""

    name: str
    labels: Mapping[str, str]
    last_ms: int | None = None


def _quick(series: Series, rest: str, ms_per: int) -> Sample | None:
    """The sample of a line whose beginning is known, if nothing but a value and a time follows."""
    try:
        value, time = rest.split()
        return Sample(series.name, series.labels, unix_ms(float(time) * ms_per), float(value))
    except (ValueError, OverflowError):
        return None


def _sample(line: str, where: str, times: _Times) -> Sample:
    name = _NAME.match(line)
    place = name.end() if name else 0
    labels: dict[str, str] = {}
    if line[place : place + 1] == "{":
        place += 1
        while (pair := _LABEL.match(line, place)) is not None:
            labels[pair[1]] = re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), pair[2])
            place = pair.end()
        if line[place : place + 1] != "}":
            raise InputError(where, repr(line[place : place + 40]), 'labels such as gpu="0", and }')
        place += 1
    words = line[place:].split()
    metric = labels.pop("__name__", "") if name is None else name[0]
    try:
        if not (metric and words):
            raise ValueError
        return Sample(metric, labels, times.ms(words[1:]), float(words[0]))
    except (ValueError, OverflowError):
        raise InputError(where, repr(line[:60]), "a name, labels, a value and a time") from None
