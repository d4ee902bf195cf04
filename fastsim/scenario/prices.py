"""Prices of GPUs by the hour: fixed ones, spot prices recorded by AWS and Azure, and Google's list prices.

A folder of recorded prices holds ``aws/logs/us-east-1/*.json``, the answers of `describe-spot-price-history`, and
``azure/logs/ZONE.csv``, one line a day: `Date,NC6,NC6s v2,NC6s v3` and `01/31/2020,$0.18,,$0.61` (empty = unknown).
Second 0 of a run is the earliest record of an instance type; before its first record a zone costs as much as then.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.columns.content_equality import ComparedByContent
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.knobs import SERIES
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.option_texts import elements
from fastsim.foundation.parquet import one_line

Floats = npt.NDArray[np.float64]
Records = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
"""Instance type -> zone -> (seconds of the calendar, $/h)."""

CLOUDS = ("aws", "gcp", "azure")
"""Clouds whose prices are known; the cheapest of those chosen counts."""
MODELS = ("k80", "p100", "v100")
"""GPU models that have prices."""
GCP = {"k80": 0.135, "p100": 0.43, "v100": 0.74}
"""Google's price of a preemptible GPU, $/h."""
AWS = {"k80": ("p2.xlarge", 1.0), "p100": ("p2.xlarge", 1.5), "v100": ("p3.2xlarge", 1.0)}
"""Instance type at AWS and the factor on its price; AWS has no P100."""
AZURE = {"k80": ("NC6", 1.0), "p100": ("NC6s v2", 1.0), "v100": ("NC6s v3", 1.0)}
"""Instance type at Azure and the factor on its price."""

MOST_PRICE = 1_000_000.0
"""Highest price of a GPU, $/h; sums of much higher ones lose their cents."""


@whole_process
@dataclass(frozen=True, eq=False)
class Prices(ComparedByContent):
    """$/h of one GPU of each model: row `t` of `price__tg` holds from `since_s[t]` on, the first row from the start."""

    gpu_models: tuple[str, ...]
    since_s: Floats
    price__tg: Floats

    def __post_init__(self) -> None:
        for name in ("since_s", "price__tg"):
            values = np.array(getattr(self, name), np.float64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        SERIES.refuse(self.price__tg.size, name="prices: since_s")
        shape = (len(self.since_s), len(self.gpu_models))
        if self.price__tg.shape != shape or not len(self.since_s) or (np.diff(self.since_s) <= 0).any():
            raise InputError("prices", f"shape {self.price__tg.shape}", f"{shape}, a row for each of rising times")
        wrong = ~((self.price__tg >= 0) & (self.price__tg <= MOST_PRICE))
        if wrong.any():
            found = f"{self.price__tg[wrong][0]:g} $/h"
            raise InputError("prices", found, f"0 to {MOST_PRICE:,.0f} $/h of one GPU")

    @classmethod
    def fixed(cls, price: Mapping[str, float]) -> Prices:
        """Prices by GPU model that never change, $/h."""
        return cls(tuple(price), np.zeros(1), np.array([list(price.values())], np.float64))

    @classmethod
    def from_folder(
        cls,
        path: str | os.PathLike[str],
        clouds: Sequence[str] = CLOUDS,
        gpu_models: Sequence[str] = MODELS,
        azure_last_zone: bool = False,
    ) -> Prices:
        """Recorded prices: of each model the cheapest zone of the cheapest of the `clouds`.

        azure_last_zone: as the original does it, Azure's price is that of the last zone by name, not of the cheapest.
        """
        folder = Path(path)
        clouds = elements("prices.clouds", clouds, "a list of names", alone=(str,))
        gpu_models = elements("prices.gpu_models", gpu_models, "a list of names", alone=(str,))
        for cloud in clouds:
            if cloud not in CLOUDS:
                raise ScenarioError("prices.clouds", repr(cloud), f"some of: {', '.join(CLOUDS)}")
        for model in gpu_models:
            if model not in MODELS:
                raise ScenarioError("prices.gpu_models", repr(model), f"some of: {', '.join(MODELS)}")
        aws = _aws(folder) if "aws" in clouds else {}
        azure = _azure(folder) if "azure" in clouds else {}
        series: dict[str, list[_Series]] = {model: [] for model in gpu_models}
        for model, prices in series.items():
            prices += _of_model(aws, *AWS[model])
            prices += _of_model(azure, *AZURE[model], last_zone=azure_last_zone)
            if "gcp" in clouds:
                prices.append(_Series(np.zeros(1), np.array([GCP[model]])))
            if not prices:
                raise InputError(f"{folder}: {model}", f"no price at {', '.join(clouds) or 'no cloud'}", "one or more")
        return cls(tuple(gpu_models), *_table(list(series.values())))

    def content(self) -> Hashable:
        """Models, times and prices."""
        return self.checksum()

    def checksum(self) -> str:
        """SHA-256 of models, times and prices."""
        table = self.since_s.tobytes() + np.ascontiguousarray(self.price__tg).tobytes()
        return hashlib.sha256(repr(self.gpu_models).encode() + table).hexdigest()

    def at(self, now_s: float) -> Floats:
        """Price of each model at a time, $/h; read-only."""
        row: Floats = self.price__tg[max(0, int(np.searchsorted(self.since_s, now_s, "right")) - 1)]
        return row

    def next_change_s(self, now_s: float) -> float:
        """The first time after `now_s` at which a price changes; infinite if none does any more."""
        row = max(1, int(np.searchsorted(self.since_s, now_s, "right")))
        return float(self.since_s[row]) if row < len(self.since_s) else math.inf

    def restricted(self, gpu_models: Sequence[str]) -> Prices:
        """The prices of these models, in this order; a model without a price is an InputError."""
        gpu_models = elements("prices.gpu_models", gpu_models, "a list of names", alone=(str,))
        for model in gpu_models:
            if model not in self.gpu_models:
                found, known = f"none of {model}", ", ".join(self.gpu_models)
                do = f"add &{model}=PRICE to fixed?..., in $/h of a GPU"
                raise InputError("prices", found, f"one of every GPU model of the cluster, as of {known}", do)
        take = [self.gpu_models.index(model) for model in gpu_models]
        return Prices(tuple(gpu_models), *_changes(self.since_s, self.price__tg[:, take]))


class _Series(NamedTuple):
    """Prices, each from its time on."""

    since_s: Floats
    price: Floats

    def at(self, times: Floats) -> Floats:
        """The price at each time; before the first record it is the first."""
        prices: Floats = self.price[np.maximum(np.searchsorted(self.since_s, times, "right") - 1, 0)]
        return prices


def _of_model(records: Records, instance: str, factor: float, last_zone: bool = False) -> list[_Series]:
    """One series of the cheapest (or the last) zone, or none if nothing was recorded."""
    zones = records.get(instance, {})
    if not zones:
        return []
    start = min(time for rows in zones.values() for time, _ in rows)
    series = []
    for name in sorted(zones):
        rows = sorted(zones[name], key=lambda row: row[0])
        series.append(_Series(np.array([t - start for t, _ in rows]), factor * np.array([p for _, p in rows])))
    if last_zone:
        return series[-1:]
    times = np.unique(np.concatenate([one.since_s for one in series]))
    return [_Series(times, np.min([one.at(times) for one in series], axis=0))]


def _table(models: list[list[_Series]]) -> tuple[Floats, Floats]:
    """Times and the cheapest price of each model."""
    times = np.unique(np.concatenate([one.since_s for series in models for one in series] + [np.zeros(1)]))
    return _changes(times, np.array([np.min([one.at(times) for one in series], axis=0) for series in models]).T)


def _changes(times: Floats, price__tg: Floats) -> tuple[Floats, Floats]:
    """Only the rows that differ from the one before."""
    keep = np.r_[True, (price__tg[1:] != price__tg[:-1]).any(axis=1)]
    return times[keep], price__tg[keep]


# ---------------------------------------------------------------------- reading


def _aws(folder: Path) -> Records:
    by_instance: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for path in _files(folder / "aws/logs/us-east-1", "*.json"):
        try:
            records = json_value(_text(path))["SpotPriceHistory"]
            rows = list(enumerate(records))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(str(path), one_line(error), "JSON with a list SpotPriceHistory") from None
        for index, record in rows:
            try:
                when = datetime.fromisoformat(record["Timestamp"])
                row = when.replace(tzinfo=when.tzinfo or UTC).timestamp(), _dollars(record["SpotPrice"])
                zones = by_instance.setdefault(record["InstanceType"], {})
                zones.setdefault(record["AvailabilityZone"], []).append(row)
            except (ValueError, KeyError, TypeError) as error:
                expected = "InstanceType, AvailabilityZone, Timestamp and SpotPrice"
                raise InputError(f"{path}: SpotPriceHistory[{index}]", one_line(error), expected) from None
    return by_instance


def _azure(folder: Path) -> Records:
    by_instance: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for path in _files(folder / "azure/logs", "*.csv"):
        reader = csv.reader(_text(path).splitlines())
        header = next(reader, [])
        if header[:1] != ["Date"]:
            raise InputError(f"{path}:1", ",".join(header)[:60], "Date and instance types")
        for fields in filter(None, reader):
            where = f"{path}:{reader.line_num}"
            if len(fields) != len(header):
                raise InputError(where, f"{len(fields)} fields", f"{len(header)}")
            for instance, row in _daily(where, header, fields):
                by_instance.setdefault(instance, {}).setdefault(path.stem, []).append(row)
    return by_instance


def _daily(where: str, header: Sequence[str], fields: Sequence[str]) -> Iterable[tuple[str, tuple[float, float]]]:
    try:
        when = datetime.strptime(fields[0], "%m/%d/%Y").replace(tzinfo=UTC).timestamp()
        for instance, field in zip(header[1:], fields[1:], strict=True):
            if field.strip():
                yield instance, (when, _dollars(field.strip().removeprefix("$")))
    except ValueError as error:
        raise InputError(where, one_line(error), "a date such as 01/31/2020 and prices such as $0.18") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), one_line(error), "text") from None


def _dollars(value: Any) -> float:
    price = float(value)
    if not (math.isfinite(price) and price >= 0):
        raise ValueError(f"price {value}")
    return price


def _files(folder: Path, pattern: str) -> list[Path]:
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise InputError(str(folder), "no such folder" if not folder.is_dir() else "no files", pattern)
    return paths
