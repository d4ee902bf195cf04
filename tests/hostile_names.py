"""Names that mean something to a browser, runs that have them everywhere, and what a browser reads in a page."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import fastsim as fs
from fastsim.simulation.simulate import run

CONTROLS = "\x01\x07\x1b[31m\x7f\x85<b>"
"""Signs that move a terminal's cursor or are none in XML."""
NAMES = (
    "</script><script>alert(1)</script>", "</SCRIPT ><img src=x onerror=alert(1)>", "<!--<script>",
    "\"'><svg onload=alert(1)>", "]]>&lt;/script&gt;<!-- -->", "a\u2028b\u2029c\u202ed", "${alert(1)}`\\u003c/script>",
    "javascript:alert(1)", "{{alert(1)}}'\"]);alert(1)//", CONTROLS,
)  # fmt: skip
"""Texts that end a script, begin another, hide an end, leave an attribute or a text of JavaScript, or turn letters."""
HARMLESS = {
    "html", "head", "meta", "title", "style", "body", "script", "div", "table", "thead", "tbody", "tr", "th", "td",
    "caption", "small", "header", "main", "h1", "h2", "h3", "p", "pre", "button", "figure", "figcaption", "details",
    "summary", "dl", "dt", "dd", "label", "input", "span", "select", "option", "output", "svg", "line", "g", "path",
    "circle", "a",
}  # fmt: skip
"""Tags that pages of ours have; ``img`` is none of them, and ``svg`` has no handlers."""


@dataclass
class Content:
    """What stands in a page: title, text, tags, JSON of its data by name, programs, and handlers in attributes."""

    title: str = ""
    text: str = ""
    tags: set[str] = field(default_factory=set)
    data: dict[str, Any] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.content, self.inside, self.text = Content(), "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.content.tags.add(tag)
        names = dict(attrs)
        calls = [name for name, value in attrs if name in ("href", "src") and "script:" in (value or "")]
        self.content.handlers += [*calls, *(name for name in names if name.startswith("on"))]
        if tag in ("script", "title"):
            self.inside, self.text = (names.get("id") or tag) if names.get("type") == "application/json" else tag, ""

    def handle_data(self, data: str) -> None:
        self.text += data
        self.content.text += data if not self.inside else ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self.content.title = self.text
        elif tag == "script" and self.inside == "script":
            self.content.programs.append(self.text)
        elif tag == "script":
            self.content.data[self.inside] = json.loads(self.text)
        self.inside = "" if tag in ("title", "script") else self.inside


def content_of(html: str) -> Content:
    """What a browser reads; an AssertionError if something in a script could hide its end."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert "<!--" not in html and html.lower().count("<script") == html.lower().count("</script")
    return reader.content


def hostile_cluster(name: str) -> fs.Cluster:
    """Four nodes that have the name in their own names and as a model of GPU."""
    return fs.Cluster.from_arrow(
        pa.table({
            "name": [f"{name}{number}" for number in range(4)], "cpu_milli": [64_000] * 4, "memory_mib": [256_000] * 4,
            "num_gpu": [4] * 4, "gpu_model": ["T4", "T4", name, name], "gpu_idle_w": [10.0] * 4,
            "gpu_peak_w": [70.0] * 4, "gpu_memory_mib": [15_109] * 4,
        }), name=name,
    )  # fmt: skip


def hostile_pods(name: str) -> fs.Workload:
    """Twelve pods that have the name as their tenant, their workload and in their own names."""
    several = [name] * 12
    return fs.Workload.from_arrow(
        pa.table({
            "pod_id": range(12), "submit_s": [60.0 * number for number in range(12)], "cpu_milli": [1000] * 12,
            "memory_mib": [1000] * 12, "num_gpu": [1] * 12, "gpu_milli": [1000] * 12, "duration_s": [900.0] * 12,
            "tenant": several, "workload": several, "name": [f"{name}{number}" for number in range(12)],
        })
    )  # fmt: skip


@cache
def hostile_runs(folder: Path) -> tuple[Path, ...]:
    """A saved run for each name, which has it as its label and wherever else a user may put it."""
    runs = []
    for number, name in enumerate(NAMES):
        out = folder / "runs" / str(number)
        fields: dict[str, Any] = {"telemetry": 60.0, "sample_s": 60.0, "name": name, "out": str(out)}
        run(fs.Scenario(hostile_cluster(name), hostile_pods(name), "fgd", **fields))
        record = json.loads((out / "run.json").read_text())
        record["provenance"]["policy"] = name
        record["provenance"]["scenario"] = {"policy": name, "cluster": name, "workload": name, "name": name}
        (out / "run.json").write_text(json.dumps(record))
        _name_metrics(out, name)
        runs.append(out)
    return tuple(runs)


def _name_metrics(run: Path, name: str) -> None:
    """Put the name where a folder of another's may have it: a metric of readings, a figure, a stage, a column."""
    readings, summary = run / "telemetry.parquet", run / "summary.parquet"
    known = pl.read_parquet(readings).sort("metric", maintain_order=True)
    last = known.tail(4).with_columns(metric=pl.lit(name))
    pl.concat([known, last]).write_parquet(readings)
    pl.read_parquet(summary).with_columns(pl.lit(1.0).alias(name)).write_parquet(summary)
    stages = pl.read_parquet(run / "stages.parquet")
    stages.with_columns(stage=pl.lit(name)).write_parquet(run / "stages.parquet")
    timeline = pl.read_parquet(run / "timeline.parquet")
    timeline.with_columns(pl.lit(name).alias(name)).write_parquet(run / "timeline.parquet")
