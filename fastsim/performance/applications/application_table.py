"""The table of applications: one row each, with all its measurements and recorded epochs inside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import column_of
from fastsim.foundation.parquet import write_parquet
from fastsim.performance.applications.application import Application
from fastsim.performance.applications.step_times import StepRow, StepTimes
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve

EPOCH = pa.struct(
    [
        ("batch_size", pa.int64()),
        ("epoch", pa.int32()),
        ("progress", pa.float64()),
        ("iteration", pa.float64()),
        ("metric", pa.float64()),
        ("grad_sqr", pa.float64()),
        ("grad_var", pa.float64()),
    ]
)
"""The end of an epoch, see `training_curve.EpochRow`."""
STEP = pa.struct(
    [
        ("gpu_model", pa.string()),
        ("placement", pa.string()),
        ("num_nodes", pa.int32()),
        ("num_gpu", pa.int32()),
        ("atomic", pa.float64()),
        ("step_s", pa.float64()),
        ("sync_s", pa.float64()),
    ]
)
"""A measurement, see `step_times.StepRow`; their order is part of the data."""
LIMIT = pa.struct([("gpu_model", pa.string()), ("low", pa.int64()), ("high", pa.int64()), ("stages", pa.int32())])
"""Samples that a GPU of a model takes at once, and the length of pipelines in GPUs."""

APP_SCHEMA = pa.schema(
    [
        pa.field("application", pa.string(), nullable=False),
        pa.field("restart_s", pa.float64(), nullable=False),
        pa.field("believed_restart_s", pa.float64(), nullable=False),
        pa.field("slowdown", pa.float64(), nullable=False),
        pa.field("limits", pa.list_(LIMIT), nullable=False),
        pa.field("epochs", pa.list_(EPOCH), nullable=False),
        pa.field("steps", pa.list_(STEP), nullable=False),
    ]
)
"""Columns of a table of applications; `restart_s` and `believed_restart_s` are seconds."""
SORTED_BY = ("application",)
"""Sort key of a table of applications."""
_STAMP = {"fastsim.schema": "applications", "fastsim.schema_version": "1.0"}


def applications(table: pa.Table, where: str) -> dict[str, Application]:
    """The applications of a table by name; the first wrong cell is an InputError."""
    by_name: dict[str, Application] = {}
    for row in _canonical(table, where).to_pylist():
        name = row["application"]
        if name in by_name:
            raise InputError(f"{where}: application", f"{name!r} twice", "each of them once")
        curve = TrainingCurve(f"{where}: {name}", (EpochRow(**epoch) for epoch in row["epochs"]))
        steps: dict[str, list[StepRow]] = {limit["gpu_model"]: [] for limit in row["limits"]}
        for step in row["steps"]:
            model = step.pop("gpu_model")
            if model not in steps:
                raise InputError(f"{where}: {name}: steps", repr(model), f"a GPU model of limits: {', '.join(steps)}")
            steps[model].append(StepRow(**step))
        times = {}
        for limit in row["limits"]:
            model = limit.pop("gpu_model")
            times[model] = StepTimes(f"{where}: {name} on {model}", steps[model], **limit)
        by_name[name] = Application(
            name=name,
            curve=curve,
            steps=times,
            restart_s=row["restart_s"],
            believed_restart_s=row["believed_restart_s"],
            slowdown=row["slowdown"],
        )
    return by_name


def application_rows(known: Mapping[str, Application]) -> pa.Table:
    """Applications as rows, sorted by name."""
    rows = [_row(known[name]) for name in sorted(known)]
    return pa.Table.from_pylist(rows, APP_SCHEMA)


def write_applications(table: pa.Table, path: str | os.PathLike[str]) -> int:
    """Writes canonical Parquet, complete or not at all, and returns the number of applications."""
    return write_parquet(path, table.to_batches(), table.schema, _STAMP, SORTED_BY)


def _row(app: Application) -> dict[str, Any]:
    limits = [{"gpu_model": m, "low": t.low, "high": t.high, "stages": t.stages} for m, t in app.steps.items()]
    return {
        "application": app.name,
        "restart_s": app.restart_s,
        "believed_restart_s": app.believed_restart_s,
        "slowdown": app.slowdown,
        "limits": limits,
        "epochs": [row._asdict() for row in app.curve.rows],
        "steps": [{"gpu_model": m, **row._asdict()} for m, times in app.steps.items() for row in times.rows],
    }


def _canonical(table: pa.Table, where: str) -> pa.Table:
    missing = [name for name in APP_SCHEMA.names if name not in table.column_names]
    if missing:
        raise InputError(f"{where}: {missing[0]}", f"columns {', '.join(table.column_names)}", "this required column")
    columns = []
    for field in APP_SCHEMA:
        columns.append(column_of(table, field.name, field.type, lambda row: f"{where}:{row + 1}"))
        if columns[-1].null_count:
            raise InputError(f"{where}: {field.name}", "null", "a value in every row")
    return pa.table(columns, schema=APP_SCHEMA)
