"""Logs of FGD's and PWR's simulator (``simon apply``), and the tables that its ``analysis.py`` makes of them.

After each start and end of a pod, a log has lines with fragmentation, resources in use and, of PWR, the power. Amounts
and ratios are printed with two decimals, watts with one. The tables hold the same with a column for each run of a
folder: ``analysis_frag.csv``, ``analysis_allo.csv``, ``analysis_pwr.csv``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import polars as pl

from fastsim.engine.originals.original_run import OriginalRun, Printed, chosen, matches, numbers, refuse, texts
from fastsim.errors import InputError


class Logged(NamedTuple):
    """A number of a log: its column in the tables, our quantity, the factor to ours and half a printed digit."""

    column: str
    ours: str
    factor: float = 1.0
    half: float = 0.0


SECTIONS: dict[str, tuple[Logged, ...]] = {
    "Report": (
        Logged("origin_milli", "frag_milli", half=0.005), Logged("origin_ratio", "frag_ratio_pct", half=0.005),
        Logged("origin_q124", "q124_ratio_pct", half=0.005),
    ),
    "Alloc": (
        Logged("used_nodes", "active_nodes"), Logged("used_gpus", "active_node_gpus"),
        Logged("used_gpu_milli", "gpu_milli_alloc"), Logged("total_gpus", "gpu_milli_capacity", 1000),
        Logged("arrived_gpu_milli", "arrived_gpu_milli"),
    ),
    "AllocCPU": (
        Logged("used_cpu_milli", "cpu_milli_alloc"), Logged("arrived_cpu_milli", "arrived_cpu_milli"),
    ),
    "Power": (
        Logged("power_cluster", "power_w", half=0.05), Logged("power_cluster_CPU", "power_cpu_w", half=0.05),
        Logged("power_cluster_GPU", "power_gpu_w", half=0.05),
    ),
}  # fmt: skip
"""The numbers of each kind of line, in their order there."""
QUANTITIES = {quantity.column: quantity for section in SECTIONS.values() for quantity in section}
HALVES = {quantity.ours: quantity.half for quantity in QUANTITIES.values()}
"""Half a printed digit by our quantity."""
PATTERNS = {"event": r"\[(Report|AllocCPU|Alloc|Power)\];(.*)", "unplaced": r"there are (\d+) unscheduled pods"}
EXPECTED = "a log of simon with [Alloc] and [Report] lines, or analysis_allo.csv, analysis_frag.csv, analysis_pwr.csv"


def read(path: Path, wanted: str | None = None) -> OriginalRun:
    """The states after all events of one run; ``wanted`` is the beginning of its columns in a table of several."""
    if path.suffix == ".csv":
        return OriginalRun(f"fgd:{path}", {}, events=_events(path, _table(path, wanted)))
    values: dict[str, list[float]] = {}
    figures: dict[str, Printed] = {}
    for number, name, match in matches(path, PATTERNS):
        if name == "unplaced":
            figures["pods_unplaced"] = Printed(float(match[1]))
        elif "bellman" not in match[2]:
            _add(values, SECTIONS[match[1]], match[2], f"{path}:{number}")
    return OriginalRun(f"fgd:{path}", figures, events=_events(path, values))


def _add(values: dict[str, list[float]], section: tuple[Logged, ...], text: str, where: str) -> None:
    amounts = re.findall(r": *(-?\d+(?:\.\d+)?)", text)
    if not 0 < len(amounts) <= len(section):
        raise InputError(where, repr(text.strip()), f"{', '.join(quantity.column for quantity in section)}")
    for quantity, number in zip(section, amounts, strict=False):
        values.setdefault(quantity.column, []).append(float(number))


def _table(path: Path, wanted: str | None) -> dict[str, list[float]]:
    table = texts(path)
    columns = [name for name in table.columns if name.rpartition("-")[2] in QUANTITIES]
    if not columns:
        refuse(path, EXPECTED)
    run = chosen(path, sorted({name.rpartition("-")[0] for name in columns}), wanted)
    of_run = [name for name in columns if name.rpartition("-")[0] == run]
    return {name.rpartition("-")[2]: numbers(path, table[name]) for name in of_run}


def _events(path: Path, values: dict[str, list[float]]) -> pl.DataFrame:
    if not values:
        refuse(path, EXPECTED)
    counts = {name: len(column) for name, column in values.items()}
    if len(set(counts.values())) > 1:
        raise InputError(str(path), f"events by quantity {counts}", "as many of each")
    known = [QUANTITIES[name] for name in values]
    return pl.DataFrame({q.ours: [value * q.factor for value in values[q.column]] for q in known})
