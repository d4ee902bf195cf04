"""A live exporter of recorded readings of GPUs: a record played at the pace of the clock, or N times as fast.

Prometheus drops samples whose time is far from its own clock, and still shows the target as up. So the text has no
times: a scrape gets the readings that hold at that moment. A reading holds until the next one of its device, and no
longer than ``hold_s`` of recorded time; pods that have ended do not appear beside their successors. Two readings with
equal labels would make the server drop the whole answer, so one of them is left out.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.http.replies import EXPOSITION, Reply, Request, json_reply
from fastsim.foundation.http.service import Route
from fastsim.telemetry.metric_names import LABELS, Metric, described, metrics
from fastsim.telemetry.openmetrics import label_text
from fastsim.telemetry.readings_table import KEYS, evaluated, lazily, ordered_rows
from fastsim.telemetry.sample_and_hold import STALE_S

AT_END = ("stop", "hold", "repeat")
"""After the last reading: no readings, the last one for ever, or the record from its start."""
MOST_GAPS = 1_000_000
"""Most readings from which the usual distance between readings is estimated."""
DEVICE = ("metric", "node", "gpu_uuid", "gpu_index")
"""Columns that identify a quantity of one device."""


@dataclass
class Pace:
    """Position in a record of `length_s` seconds that is played with `speed` recorded seconds a second."""

    length_s: float
    speed: float = 1.0
    at_end: str = "stop"
    clock: Callable[[], float] = time.monotonic
    started_s: float = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.speed < math.inf:
            raise ScenarioError("monitor: speed", f"{self.speed:g}", "more than 0 recorded seconds for each second")
        if self.at_end not in AT_END:
            raise ScenarioError("monitor: at_end", repr(self.at_end), f"one of {', '.join(AT_END)}")
        self.started_s = self.clock()

    @property
    def place_s(self) -> float:
        """Seconds of the record that have been played."""
        played_s = (self.clock() - self.started_s) * self.speed
        if self.at_end == "repeat" and self.length_s > 0:
            return played_s % self.length_s
        return min(played_s, self.length_s)

    @property
    def over(self) -> bool:
        """Whether the record has ended."""
        return self.at_end == "stop" and (self.clock() - self.started_s) * self.speed > self.length_s


class Record:
    """A table of readings, indexed by the seconds since the first of them."""

    def __init__(
        self, table: pa.Table | pl.LazyFrame, *, profile: str = "dcgm2", names: str | os.PathLike[str] | None = None,
        hold_s: float | None = None,
    ) -> None:  # fmt: skip
        source = lazily(table)
        ms = pl.col("ts").dt.epoch("ms")
        span = evaluated(source.select(low=ms.min(), high=ms.max())).row(0)
        if span[0] is None:
            raise InputError("telemetry", "no readings", "one at least")
        self.begin_ms, self.end_ms = (int(end) for end in span)
        self._span = self.end_ms - self.begin_ms + 1
        known = {metric.quantity: metric for metric in metrics(profile, names)}
        kinds = sorted(evaluated(source.select(pl.col("metric").unique())).to_series().to_list())
        left_out = sorted(set(kinds) - known.keys())
        if left_out:
            raise InputError("telemetry: metric", repr(left_out[0]), f"one of {', '.join(known)}")
        self._names: list[Metric] = []
        self._labels: list[str] = []
        self._nodes: list[str | None] = []
        self._devices = 0
        # One quantity at a time is held as a table; of all of them numbers are kept, 20 bytes of a reading.
        parts = [self._part(source.filter(pl.col("metric") == kind), known[kind], profile) for kind in kinds]
        self._keys, self._series, self._values = (np.concatenate(column) for column in zip(*parts, strict=True))
        self.hold_s = max(STALE_S, 2 * self._usual_gap_s()) if hold_s is None else hold_s

    def _part(self, source: pl.LazyFrame, metric: Metric, profile: str) -> tuple[Any, Any, Any]:
        """Places in the record (devices one after another), series and values of one quantity, in this order."""
        rows = ordered_rows(evaluated(source)).with_columns(
            ms=pl.col("ts").dt.epoch("ms") - self.begin_ms, device=pl.struct(DEVICE).rle_id() + self._devices,
            series=pl.struct(KEYS).rle_id() + len(self._names),
        )  # fmt: skip
        self._devices = int(rows["device"].max()) + 1  # type: ignore[arg-type]
        for row in rows.unique("series", keep="first", maintain_order=True).iter_rows(named=True):
            self._names.append(metric)
            self._labels.append(label_text(row, LABELS[profile]))
            self._nodes.append(row["node"])
        rows = rows.select("device", "ms", "series", "value").sort("device", "ms", "series")
        keys = rows["device"].to_numpy().astype(np.int64) * self._span + rows["ms"].to_numpy()
        return keys, rows["series"].to_numpy().astype(np.int32), rows["value"].to_numpy()

    @property
    def length_s(self) -> float:
        """Seconds from the first reading to the last."""
        return (self.end_ms - self.begin_ms) / 1000

    @property
    def series(self) -> int:
        """Number of series in the record."""
        return len({*zip(self._names, self._labels, strict=True)})

    def text(self, place_s: float, node: str | None = None) -> str:
        """Text of an exporter `place_s` seconds after the first reading, for all nodes or for one."""
        lines, before, written = [], None, set()
        for row in self._rows(round(1000 * place_s)).tolist():
            number = int(self._series[row])
            metric, labels = self._names[number], self._labels[number]
            if (node is not None and self._nodes[number] != node) or (metric.name, labels) in written:
                continue
            written.add((metric.name, labels))
            if metric is not before:
                before = metric
                lines += [f"# HELP {metric.name} {described(metric)}", f"# TYPE {metric.name} {metric.type}"]
            lines.append(f"{metric.name}{{{labels}}} {metric.theirs(float(self._values[row]))!r}")
        return "\n".join(lines) + "\n" if lines else ""

    def nodes(self) -> list[str]:
        """Names of the nodes that devices are on."""
        return sorted({node for node in self._nodes if node is not None})

    def _rows(self, place_ms: int) -> Any:
        """Rows of the newest readings of every device until `place_ms`, unless they are too old; by metric."""
        place = min(max(place_ms, 0), self._span - 1)
        starts = np.arange(self._devices, dtype=np.int64) * self._span
        last = np.searchsorted(self._keys, starts + place, side="right")
        first = np.searchsorted(self._keys, np.where(last > 0, self._keys[last - 1], 0), side="left")
        good = (last > 0) & (self._keys[last - 1] >= starts)
        good &= starts + place - self._keys[last - 1] <= 1000 * self.hold_s
        if not good.any():
            return np.zeros(0, np.int64)
        return np.concatenate([np.arange(a, b) for a, b in zip(first[good], last[good], strict=True)])

    def _usual_gap_s(self) -> float:
        gaps = np.diff(self._keys[:MOST_GAPS])
        gaps = gaps[(gaps > 0) & (gaps < self._span)]
        return float(np.median(gaps)) / 1000 if len(gaps) else 0.0


def routes(record: Record, pace: Pace) -> dict[tuple[str, str], Route]:
    """Paths of the live endpoint: ``/metrics``, ``/metrics?node=NAME``, and ``/targets``, which lists the nodes.

    Prometheus takes ``/targets`` (HTTP service discovery) if every node is to be a target of its own.
    """

    def scrape(request: Request) -> Reply:
        place_s, node = pace.place_s, request.query.get("node")
        own = (
            "# HELP fastsim_record_seconds Where the record that is played stands.\n"
            f"# TYPE fastsim_record_seconds gauge\nfastsim_record_seconds {place_s!r}\n"
        )
        return Reply((record.text(place_s, node) + own).encode(), EXPOSITION)

    def targets(request: Request) -> Reply:
        return json_reply([
            {"targets": [request.reached], "labels": {"__param_node": node, "instance": node}}
            for node in record.nodes()
        ])  # fmt: skip

    def front(_: Request) -> Reply:
        return Reply(b"fastsim: readings of GPUs at /metrics, nodes at /targets\n")

    return {("GET", "/metrics"): scrape, ("GET", "/targets"): targets, ("GET", "/"): front}
