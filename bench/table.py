"""Prints the figures of one benchmark file (--benchmark-json) as a Markdown table: python bench/table.py FILE."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def lines(report: dict[str, Any]) -> list[str]:
    """The machine, then one row for each benchmark."""
    machine = report["machine_info"]
    where = f"{machine['cpu'].get('brand_raw', 'unknown CPU')}, {machine['cpu'].get('count', '?')} cores"
    rows = [
        f"{where}; CPython {machine['python_version']}, {machine['system']}; {report['datetime'][:10]}",
        "",
        "| benchmark | seconds | items/s | ratio to the calibration loop | budget |",
        "|---|---:|---:|---:|---:|",
    ]
    for found in report["benchmarks"]:
        extra = found["extra_info"]
        name = found["name"].removeprefix("bench_").replace("_", " ")
        seconds = f"{found['stats']['min']:.3g}"
        budget = "" if extra["budget"] is None else f"{extra['budget']:g}"
        rows.append(f"| {name} | {seconds} | {extra['per_s']:,} | {extra['ratio']:g} | {budget} |")
    return [*rows, *peers(report)]


def peers(report: dict[str, Any]) -> list[str]:
    """Speed relative to other programs at the same work in the same process."""
    found = [(b["param"] or b["name"], b["extra_info"].get("ours_is_times_as_fast")) for b in report["benchmarks"]]
    lines = [f"- {times:,g} times as fast as {name}" for name, times in found if times is not None]
    return ["", *lines] if lines else []


if __name__ == "__main__":
    print("\n".join(lines(json.loads(Path(sys.argv[1]).read_text()))))
