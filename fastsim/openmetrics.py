"""Readings of GPUs as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`, and back.

Prometheus drops what comes late without a word, reads a whole file again for each block and wants nothing after the
last line. So the samples of a series are in order of time, a file covers a day at most, and what cannot be told is
refused.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.metric_names import LABELS, Labels, Metric, by_name, metrics
from fastsim.tabular import replacing
from fastsim.telemetry_table import KEYS, Sample, ordered, table_of

DAY_S = 86_400
"""Longest time that one file covers, seconds."""
END = "# EOF"
"""The last line of a file."""
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*(?:,|(?=\}))', re.ASCII)
_NAME = re.compile(r"[a-zA-Z_:][\w:]*", re.ASCII)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def write_files(
    table: pa.Table, folder: str | os.PathLike[str], *, profile: str = "dcgm2", epoch_s: int = 0, slice_s: int = DAY_S,
    names: str | os.PathLike[str] | None = None,
) -> list[Path]:  # fmt: skip
    """One file for each day, or `slice_s`, that has readings; `epoch_s` is added to all times, Unix seconds.

    A simulation begins at second 0, which would be 1970. Each file is complete or not there; their names sort by time.
    """
    if not 1 <= slice_s <= DAY_S:
        raise ScenarioError("openmetrics: slice_s", slice_s, f"1 to {DAY_S} s")
    rows = pl.DataFrame(pl.from_arrow(ordered(table))).with_columns(ms=pl.col("ts").dt.epoch("ms") + 1000 * epoch_s)
    if len(rows) and rows.select(pl.col("ms").min()).item() < 0:
        raise InputError("openmetrics: ts", "a time before 1970", "a later one", "give another epoch_s")
    known = {metric.quantity: metric for metric in metrics(profile, names)}
    for quantity in rows["metric"].unique():
        if quantity not in known:
            raise InputError("openmetrics: metric", repr(quantity), f"one of {', '.join(known)}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    parts = rows.with_columns(part=pl.col("ms") // (1000 * slice_s)).partition_by("part", as_dict=True)
    for (part,), piece in sorted(parts.items()):
        path = Path(folder) / f"{int(part) * slice_s:012}.om"
        with replacing(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as text:
            for line in lines(piece, known, LABELS[profile]):
                text.write(f"{line}\n")
        written.append(path)
    return written


def lines(rows: pl.DataFrame, known: Mapping[str, Metric], labels: Labels) -> Iterator[str]:
    """The text of sorted readings with the column `ms`, line by line.

    Devices that have equal labels there are one series: readings that agree are told once, others are an InputError.
    """
    told = ["metric", *(column for column, label in labels._asdict().items() if label)]
    fewer = rows.select(*told, "ms", "value")
    if len(told) < len(KEYS):
        fewer = fewer.unique(maintain_order=True).sort([*(key for key in KEYS if key in told), "ms"], nulls_last=False)
        _refuse_two(fewer, told)
    for (quantity,), family in fewer.partition_by("metric", as_dict=True, maintain_order=True).items():
        metric = known[str(quantity)]
        yield f"# TYPE {metric.name} {metric.type}"
        for _, series in family.partition_by(told, as_dict=True, maintain_order=True).items():
            pairs = label_text(series.row(0, named=True), labels)
            for ms, value in series.select("ms", "value").iter_rows():
                yield f"{metric.name}{{{pairs}}} {metric.theirs(value)!r} {ms // 1000}.{ms % 1000:03}"
    yield END


def _refuse_two(rows: pl.DataFrame, told: Sequence[str]) -> None:
    twice = rows.filter(rows.select(*told, "ms").is_duplicated())
    if len(twice):
        row = twice.row(0, named=True)
        where = f"openmetrics: {row['metric']} of GPU {row['gpu_uuid'] or row['gpu_index']} at {row['ms']} ms"
        found = f"{twice['value'][0]:g} and {twice['value'][1]:g} under the same labels"
        raise InputError(where, found, "one value", "another profile has labels for pods")


def label_text(row: Mapping[str, Any], labels: Labels) -> str:
    """What stands between the braces for the device and pod of a row."""
    return ",".join(f'{label}="{escaped(row[column])}"' for column, label in labels._asdict().items() if label)


def escaped(value: object) -> str:
    """A label's text; nothing is an empty one, as exporters tell that no pod owns a device."""
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def read_files(
    *paths: str | os.PathLike[str], names: str | os.PathLike[str] | None = None, unknown: Counter[str] | None = None
) -> pa.Table:
    """The readings of OpenMetrics files (``.om``), or of what `promtool tsdb dump` printed, of any generation."""
    known = by_name(names)
    return table_of((sample for path in paths for sample in _samples(str(path))), known, unknown)


def _samples(path: str) -> Iterator[Sample]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, " ".join(str(error).split()), "OpenMetrics text or a dump of promtool") from None
    # A dump begins with a label set and has milliseconds; it does not say where it ends.
    dump, ended = text.startswith("{"), False
    before: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if ended and (line or number <= text.count("\n")):
            raise InputError(f"{path}:{number}", repr(line[:60]), f"nothing after {END}")
        if line == END:
            ended = True
        elif line and not line.startswith("#"):
            sample = _sample(line, f"{path}:{number}", 1 if dump else 1000)
            key = sample.name, frozenset(sample.labels.items())
            if before.get(key, sample.ts_ms - 1) >= sample.ts_ms:
                expected = "samples of a series in order of time"
                raise InputError(f"{path}:{number}", f"{sample.ts_ms} ms after {before[key]} ms", expected)
            before[key] = sample.ts_ms
            yield sample
    if not (dump or ended):
        raise InputError(path, "an end without a last line", f"{END}, which says that nothing is missing")


def _sample(line: str, where: str, ms_per: int) -> Sample:
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
    told = labels.pop("__name__", "") if name is None else name[0]
    try:
        value, time = (float(word) for word in words)
        if not told:
            raise ValueError
        return Sample(told, labels, round(time * ms_per), value)
    except (ValueError, OverflowError):
        raise InputError(where, repr(line[:60]), "a name, labels, a value and a time") from None
