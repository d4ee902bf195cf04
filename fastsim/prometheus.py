"""Readings of GPUs from a Prometheus server, through its HTTP API."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.metric_names import Metric, by_name
from fastsim.tabular import one_line
from fastsim.telemetry_table import Sample, table_of

MOST_POINTS = 11_000
"""Most points of a series in one answer; the server refuses more."""
MOST_BYTES = 1 << 28
"""Longest answer that is read."""


@dataclass(frozen=True)
class Prometheus:
    """A server by its base address, such as ``http://127.0.0.1:9090``; it may take `timeout_s` seconds to answer."""

    url: str
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).netloc:
            raise ScenarioError("prometheus: url", repr(self.url), "an address such as http://127.0.0.1:9090")

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
        return table_of(samples, known, unknown)

    def samples(self, query: str, start_s: int, end_s: int, step_s: int = 1) -> Iterator[Sample]:
        """What a range query finds, asked for page by page, so that no series has too many points in an answer."""
        if step_s < 1 or end_s < start_s:
            raise ScenarioError("prometheus: range", f"{start_s} to {end_s} by {step_s} s", "1 s or more, end >= start")
        page_s = (MOST_POINTS - 1) * step_s
        for begin in range(start_s, end_s + 1, page_s + step_s):
            end = min(begin + page_s, end_s)
            asked = {"query": query, "start": begin, "end": end, "step": step_s}
            for series in self._answer("query_range", asked):
                yield from _series(self.url, series)

    def _answer(self, verb: str, asked: Mapping[str, object]) -> Sequence[Any]:
        """The result of one request; anything but a complete and successful answer is an InputError."""
        address = f"{self.url.rstrip('/')}/api/v1/{verb}"
        request = urllib.request.Request(address, urlencode(asked).encode())
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:
                body = answer.read(MOST_BYTES + 1)
                missing = answer.length or 0
        except urllib.error.HTTPError as error:
            raise InputError(address, f"{error.code} {_reason(error)}", "an answer", "is it a Prometheus?") from None
        except (OSError, http.client.HTTPException) as error:
            raise InputError(address, one_line(error), "a complete answer of a Prometheus server") from None
        if len(body) > MOST_BYTES:
            raise InputError(address, f"more than {MOST_BYTES:,} bytes", "a shorter answer", "ask for less at a time")
        if missing:
            raise InputError(address, f"an answer that lacks {missing:,} bytes", "a complete one", "ask again")
        try:
            told = json.loads(body)
            if told["status"] == "success" and told["data"]["resultType"] == "matrix":
                return list(told["data"]["result"])
        except (ValueError, KeyError, TypeError):
            pass
        raise InputError(address, repr(body[:60].decode("utf-8", "replace")), "a matrix of series as JSON")


def _reason(error: urllib.error.HTTPError) -> str:
    """What the server says was wrong, if it says so in its own form."""
    try:
        return str(json.loads(error.read(65_536))["error"])
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return str(error.reason)


def _series(url: str, series: Any) -> Iterator[Sample]:
    try:
        labels = {str(name): str(value) for name, value in series["metric"].items()}
        name = labels.pop("__name__", "")
        points = [(round(1000 * float(time)), float(value)) for time, value in series["values"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{url}: a series", one_line(error), "its labels, and pairs of time and value") from None
    yield from (Sample(name, labels, ts_ms, value) for ts_ms, value in points)
