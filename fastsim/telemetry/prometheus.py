"""Readings of GPUs from a Prometheus server, through its HTTP API."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fastsim.errors import InputError, ScenarioError, on_one_line
from fastsim.foundation.http.answers import MOST_BYTES, answer_of, base_address, failure
from fastsim.foundation.limits.knobs import RANGE
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.telemetry.metric_names import Metric, by_name
from fastsim.telemetry.readings_table import Sample, table_of, unix_ms

MOST_POINTS = 11_000
"""Most points of a series in one answer; the server refuses more."""
PAGE_S = 10_800
"""Seconds of stored samples in one request."""


class Doubtful(UserWarning):
    """The server has doubts about its answer: it may lack series, as a partial response of Thanos does."""


@dataclass(frozen=True)
class Prometheus:
    """A server by its base address, such as ``http://127.0.0.1:9090``; it may take `timeout_s` seconds to answer."""

    url: str
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        base_address(self.url, "prometheus: url", "http://127.0.0.1:9090")

    def readings(
        self, start_s: int, end_s: int, step_s: int = 1, *, where: str = "",
        names: Mapping[str, Metric] | None = None, unknown: Counter[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """All known readings from `start_s` to `end_s`, Unix seconds, both included, every `step_s`.

        ``where`` narrows them down with label matchers such as ``Hostname="n1"``. The server repeats a value for five
        minutes after its last sample.
        """
        known = by_name() if names is None else names
        samples = (
            sample
            for name in known
            for sample in self.samples(f"{name}{{{where}}}" if where else name, start_s, end_s, step_s)
        )
        return table_of(samples, known, unknown, self.url)

    def stored(
        self, start_s: float, end_s: float, *, where: str = "", names: Mapping[str, Metric] | None = None,
        unknown: Counter[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """All known readings from `start_s` to `end_s`, Unix seconds, both included, as they are stored.

        Nothing is repeated and nothing is left out: times are those of the samples, to the millisecond.
        """
        known = by_name() if names is None else names
        narrowed = f"{{{where}}}" if where else ""
        samples = (sample for name in known for sample in self.stored_samples(f"{name}{narrowed}", start_s, end_s))
        return table_of(samples, known, unknown, self.url)

    def stored_samples(self, selector: str, start_s: float, end_s: float) -> Iterator[Sample]:
        """The samples of the series of a selector such as ``up{job="gpu"}``, requested `PAGE_S` seconds at a time."""
        first_ms, last_ms = round(1000 * start_s), round(1000 * end_s)
        if last_ms < first_ms:
            raise ScenarioError("prometheus: range", f"{start_s:f} to {end_s:f} s", "an end after the start")
        for begin_ms in range(first_ms, last_ms + 1, 1000 * PAGE_S):
            end_ms = min(begin_ms + 1000 * PAGE_S - 1, last_ms)
            # Whether a range includes its own beginning differs between versions, so more is requested than used.
            form = {"query": f"{selector}[{PAGE_S + 1}s]", "time": f"{end_ms // 1000}.{end_ms % 1000:03}"}
            for series in self._answer("query", form):
                yield from (sample for sample in series_samples(self.url, series) if begin_ms <= sample.ts_ms <= end_ms)

    def samples(self, query: str, start_s: int, end_s: int, step_s: int = 1) -> Iterator[Sample]:
        """The samples of a range query, requested page by page, so that no answer has too many points of a series."""
        if step_s < 1 or end_s < start_s:
            raise ScenarioError("prometheus: range", f"{start_s} to {end_s} by {step_s} s", "1 s or more, end >= start")
        RANGE.refuse(end_s - start_s, step_s)
        page_s = (MOST_POINTS - 1) * step_s
        for begin in range(start_s, end_s + 1, page_s + step_s):
            end = min(begin + page_s, end_s)
            form = {"query": query, "start": begin, "end": end, "step": step_s}
            for series in self._answer("query_range", form):
                yield from series_samples(self.url, series)

    def _answer(self, verb: str, form: Mapping[str, object]) -> Sequence[Any]:
        """The result of one request; anything but a complete and successful answer is an InputError."""
        address = f"{self.url.rstrip('/')}/api/v1/{verb}"
        body = answer_of(address, "a Prometheus", form, timeout_s=self.timeout_s, most_bytes=MOST_BYTES)
        return _matrix(address, body)


def saved_samples(path: str | os.PathLike[str]) -> Iterator[Sample]:
    """The samples of a saved JSON answer to a query of a range or an instant."""
    try:
        body = Path(path).read_bytes()
    except OSError as error:
        raise InputError(str(path), one_line(error), "the JSON of an answer of Prometheus") from None
    for series in _matrix(str(path), body):
        yield from series_samples(str(path), series)


def _matrix(where: str, body: bytes) -> list[Any]:
    """The series of a complete and successful answer."""
    try:
        document = json_value(body)
        if document["status"] == "success" and document["data"]["resultType"] in ("matrix", "vector"):
            series = list(document["data"]["result"])
            _warn(where, document)
            return series
        refused = failure(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        refused = None
    if refused is not None:
        raise InputError(where, refused, "a successful answer of Prometheus")
    raise InputError(where, repr(body[:60].decode("utf-8", "replace")), "a matrix of series as JSON, or a vector")


def _warn(where: str, document: Mapping[str, Any]) -> None:
    """One warning with the texts in an answer's ``warnings`` and ``infos``."""
    fields = [document.get(name) or [] for name in ("warnings", "infos")]
    texts = [text for field in fields for text in (field if isinstance(field, list) else [field])]
    if texts:
        listed = on_one_line("; ".join(dict.fromkeys(map(str, texts))), 1000)
        warnings.warn(f"{where}: the answer of Prometheus warns: {listed}", Doubtful, stacklevel=2)


def series_samples(where: str, series: Any) -> Iterator[Sample]:
    """The samples of one series of an answer; a native histogram is one without a value, ``NAME (histogram)``."""
    try:
        labels = {str(name): str(value) for name, value in series["metric"].items()}
        name = labels.pop("__name__", "")
        if "histograms" in series or "histogram" in series:
            yield Sample(f"{name} (histogram)", labels, 0, math.nan)
            if "values" not in series:
                return
        pairs = series["values"] if "values" in series else [series["value"]]
        points = [(unix_ms(1000 * float(time)), float(value)) for time, value in pairs]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InputError(f"{where}: a series", one_line(error), "its labels, and pairs of time and value") from None
    yield from (Sample(name, labels, ts_ms, value) for ts_ms, value in points)
