"""The table of sensitivities: the speed of each workload by CPUs and memory, a row for each point.

============  =====================================================================================================
workload      name of the program of a job, its `workload`
task          family it belongs to, such as `image`; mixes are given by task
point         `demand`: the point a job requests, one row for each workload (and each `cpus_per_gpu`);
              `grid`: one point of the whole surface, CPUs x memory
cpus_per_gpu  CPUs for each GPU of the servers that the row was measured on; empty = holds for any
batch_size    samples in a batch
iteration_s   seconds of an iteration at the fair share (`demand` rows)
cpu           CPUs for each GPU
memory_gb     GB for each GPU
storage_mb_s  bandwidth of the storage for each GPU, MB/s (`demand` rows)
speedup       rate there over the rate at the fair share
============  =====================================================================================================

The order of workloads and tasks is that of their first rows: mixes count them in that order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import column_of
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import parquet_table

Floats = npt.NDArray[np.float64]

SENSITIVITY_SCHEMA = pa.schema(
    [
        pa.field("workload", pa.string(), nullable=False),
        pa.field("task", pa.string()),
        pa.field("point", pa.string(), nullable=False),
        pa.field("cpus_per_gpu", pa.float64()),
        pa.field("batch_size", pa.int32()),
        pa.field("iteration_s", pa.float64()),
        pa.field("cpu", pa.float64(), nullable=False),
        pa.field("memory_gb", pa.float64(), nullable=False),
        pa.field("storage_mb_s", pa.float64()),
        pa.field("speedup", pa.float64(), nullable=False),
    ]
)
"""Columns of a table of sensitivities; see above."""
DEMAND, GRID = "demand", "grid"
"""Kinds of rows."""

_NEEDED = tuple(field.name for field in SENSITIVITY_SCHEMA if not field.nullable)


class Grid(NamedTuple):
    """``speedup__cm[c, m]``: rate with ``cpu__c[c]`` CPUs and ``memory_gb__m[m]`` GB a GPU, over the fair share's."""

    cpu__c: Floats
    memory_gb__m: Floats
    speedup__cm: Floats

    def at(self, cpu: float, memory_gb: float) -> float:
        """The best speedup among the points that need no more than this; 0 if there is none."""
        fits: Any = np.ix_(self.cpu__c <= cpu, self.memory_gb__m <= memory_gb)
        return float(self.speedup__cm[fits].max(initial=0.0))


class WorkloadProfile(NamedTuple):
    """One workload: demand of one GPU, speedup with it, and the whole surface if it is known."""

    workload: str
    task: str
    batch_size: int
    iteration_s: float
    cpu: float
    memory_gb: float
    storage_mb_s: float
    speedup: float
    grid: Grid | None


Where = Callable[[int], str]
"""Names row `i` (from 0) of the input, as in "models.csv:17"."""


def sensitivity_rows(path: str | os.PathLike[str]) -> tuple[pa.Table, Where]:
    """The table of a CSV (plain or .gz) or Parquet file, and where each row stands, for messages."""
    if str(path).endswith(".parquet"):
        return parquet_table(path, Work.TABLE_ROWS), lambda row: f"{path}:{row + 1}"
    table = read_csv(path, {field.name: field.type for field in SENSITIVITY_SCHEMA}, _NEEDED)
    return table, lambda row: f"{path}:{csv_line(path, row)}"


def profiles(
    table: pa.Table, name: str, where: Where, cpus_per_gpu: float | None = None
) -> tuple[WorkloadProfile, ...]:
    """Profiles in the order of their first rows, for servers of ``cpus_per_gpu``; None = the fewest in the table."""
    rows = _checked(table, name, where)
    ratios = sorted({row["cpus_per_gpu"] for row in rows if row["cpus_per_gpu"] is not None})
    wanted = (ratios[0] if ratios else None) if cpus_per_gpu is None else float(cpus_per_gpu)
    if cpus_per_gpu is not None and wanted not in ratios:
        known = ", ".join(f"{ratio:g}" for ratio in ratios) or "none in particular"
        raise InputError(f"{name}: cpus_per_gpu", f"{cpus_per_gpu:g}", f"one of the table's: {known}")
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_workload = rows_of.setdefault(row["workload"], [])
        if row["cpus_per_gpu"] in (None, wanted):
            of_workload.append(row)
    return tuple(_profile(workload, of_workload, name) for workload, of_workload in rows_of.items())


def profile_table(workloads: tuple[WorkloadProfile, ...], cpus_per_gpu: float | None = None) -> pa.Table:
    """The rows of these profiles, as measured on servers of ``cpus_per_gpu``."""
    rows = []
    for p in workloads:
        shared = {"workload": p.workload, "task": p.task, "cpus_per_gpu": cpus_per_gpu}
        rows.append(
            shared | {"point": DEMAND, "batch_size": p.batch_size or None, "iteration_s": p.iteration_s, "cpu": p.cpu,
                      "memory_gb": p.memory_gb, "storage_mb_s": p.storage_mb_s, "speedup": p.speedup}
        )  # fmt: skip
        if p.grid is not None:
            points = [(c, m) for c in range(len(p.grid.cpu__c)) for m in range(len(p.grid.memory_gb__m))]
            for c, m in points:
                at = {"cpu": float(p.grid.cpu__c[c]), "memory_gb": float(p.grid.memory_gb__m[m])}
                rows.append(shared | {"point": GRID, **at, "speedup": float(p.grid.speedup__cm[c, m])})
    return pa.Table.from_pylist(rows, schema=SENSITIVITY_SCHEMA)


def _checked(table: pa.Table, name: str, where: Where) -> list[dict[str, Any]]:
    missing = [column for column in _NEEDED if column not in table.column_names]
    if missing:
        raise InputError(f"{name}: {missing[0]}", f"columns {', '.join(table.column_names)}", "this required column")
    absent = {field.name: None for field in SENSITIVITY_SCHEMA if field.name not in table.column_names}
    known = [field for field in SENSITIVITY_SCHEMA if field.name in table.column_names]
    typed = pa.table({field.name: column_of(table, field.name, field.type, where) for field in known})
    rows = [absent | row for row in typed.to_pylist()]
    if not rows:
        raise InputError(name, "no rows", "one workload or more")
    for number, row in enumerate(rows):
        if not row["workload"]:
            raise InputError(f"{where(number)}: workload", repr(row["workload"]), "a name")
        if row["point"] not in (DEMAND, GRID):
            raise InputError(f"{where(number)}: point", repr(row["point"]), f"{DEMAND} or {GRID}")
        positive = ("cpu", "speedup", "iteration_s") if row["point"] == DEMAND else ("cpu",)
        columns = tuple(name for name in ("storage_mb_s", "cpus_per_gpu") if row[name] is not None)
        for column in dict.fromkeys((*positive, "memory_gb", "speedup", *columns)):
            value, above = row[column], column in positive
            if value is None or not math.isfinite(value) or value < 0 or (above and value == 0):
                expected = "a number above 0" if above else "a number, 0 or more"
                raise InputError(f"{where(number)}: {column}", value, expected)
    return rows


def _profile(workload: str, rows: list[dict[str, Any]], name: str) -> WorkloadProfile:
    demand_rows = [row for row in rows if row["point"] == DEMAND]
    if len(demand_rows) != 1:
        ratios = "for these CPUs per GPU" if not demand_rows else "for the same CPUs per GPU"
        raise InputError(f"{name}: {workload}", f"{len(demand_rows)} rows with its demand {ratios}", "exactly one")
    row = demand_rows[0]
    return WorkloadProfile(
        workload=workload,
        task=row["task"] or workload,
        batch_size=row["batch_size"] or 0,
        iteration_s=row["iteration_s"],
        cpu=row["cpu"],
        memory_gb=row["memory_gb"],
        storage_mb_s=row["storage_mb_s"] or 0.0,
        speedup=row["speedup"],
        grid=_grid(workload, [r for r in rows if r["point"] == GRID], name),
    )


def _grid(workload: str, rows: list[dict[str, Any]], name: str) -> Grid | None:
    if not rows:
        return None
    cpu, memory = (sorted({row[column] for row in rows}) for column in ("cpu", "memory_gb"))
    if len(rows) != len(cpu) * len(memory):
        expected = f"one for each of {len(cpu)} x {len(memory)} points"
        raise InputError(f"{name}: {workload}", f"{len(rows)} rows of its grid", expected)
    speedup = np.full((len(cpu), len(memory)), np.nan)
    for row in rows:
        speedup[cpu.index(row["cpu"]), memory.index(row["memory_gb"])] = row["speedup"]
    if np.isnan(speedup).any():
        c, m = (int(i[0]) for i in np.nonzero(np.isnan(speedup)))
        raise InputError(f"{name}: {workload}", f"no row for {cpu[c]:g} CPUs and {memory[m]:g} GB", "every point once")
    return Grid(np.array(cpu), np.array(memory), speedup)
