"""Applications as a flat table, CSV or Parquet: a row for each fact, which its column ``record`` names.

===============  =========================================================================================
``application``  once for each: ``restart_s``, ``believed_restart_s`` (empty: the same), ``slowdown`` (empty: 1)
``limits``       for each GPU model: ``low`` and ``high``, the samples a GPU takes at once; ``stages``, the GPUs of a
                 pipeline (empty: 1)
``step``         a throughput sample: ``gpu_model``, ``placement`` (may be empty), ``num_nodes``, ``num_gpu``,
                 ``atomic`` (samples a GPU takes at once), ``step_s``, ``sync_s``
``epoch``        the end of an epoch of training: ``batch_size``, ``epoch``, ``progress``, ``iteration``, ``metric``,
                 and the noise of gradients, ``grad_sqr`` and ``grad_var``
===============  =========================================================================================
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import column_of
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import parquet_table
from fastsim.performance.applications.application_table import APP_SCHEMA, EPOCH, LIMIT, STEP

NESTED = {"limits": LIMIT, "epoch": EPOCH, "step": STEP}
"""Records of which an application has several, and their fields."""
COLUMN = {"limits": "limits", "epoch": "epochs", "step": "steps"}
"""Their columns in a table of applications."""
OWN = {field.name: field.type for field in APP_SCHEMA if field.name not in ("application", *COLUMN.values())}
TYPES: dict[str, pa.DataType] = (
    {"application": pa.string(), "record": pa.string()}
    | OWN
    | {field.name: field.type for kind in NESTED.values() for field in kind}
)
"""Columns of the flat table."""
RECORDS = ("application", *NESTED)
MAY_BE_EMPTY = ("placement",)
DEFAULTS = {"slowdown": 1.0, "stages": 1}


def flat_rows(table: pa.Table) -> pa.Table:
    """The flat table of a table of applications."""
    rows: list[dict[str, Any]] = []
    for app in table.to_pylist():
        name = app["application"]
        rows.append({"application": name, "record": "application"} | {field: app[field] for field in OWN})
        rows += [{"application": name, "record": kind} | fact for kind in NESTED for fact in app[COLUMN[kind]]]
    return pa.Table.from_pylist(rows, pa.schema(list(TYPES.items())))


def application_table(path: str | os.PathLike[str]) -> pa.Table:
    """The table of applications that a file of either form has; the first wrong cell is an InputError."""
    if str(path).endswith(".parquet"):
        table = parquet_table(path, Work.TABLE_ROWS)
        return _nested(_typed(table, path), path) if "record" in table.column_names else table
    return _nested(read_csv(path, TYPES, ("application", "record")), path)


def _typed(table: pa.Table, path: str | os.PathLike[str]) -> pa.Table:
    """The known columns of a flat table in their types."""
    names = [name for name in TYPES if name in table.column_names]
    return pa.table({name: column_of(table, name, TYPES[name], lambda row: _where(path, row)) for name in names})


def _nested(table: pa.Table, path: str | os.PathLike[str]) -> pa.Table:
    by_name: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(table.to_pylist()):
        name, record = row["application"], row["record"]
        if not name or record not in RECORDS:
            column, expected = ("record", f"one of {', '.join(RECORDS)}") if name else ("application", "a name")
            raise InputError(f"{_where(path, number)}: {column}", repr(row[column]), expected)
        app = by_name.setdefault(name, {"application": name, "limits": [], "epochs": [], "steps": []})
        if record in NESTED:
            names = [field.name for field in NESTED[record]]
            app[COLUMN[record]].append({name: _cell(row, name, path, number) for name in names})
        elif "restart_s" in app:
            raise InputError(f"{_where(path, number)}: record", f"a second application row of {name!r}", "one of them")
        else:
            restart_s = _cell(row, "restart_s", path, number)
            scheduled = row.get("believed_restart_s")
            app["restart_s"], app["slowdown"] = restart_s, _cell(row, "slowdown", path, number)
            app["believed_restart_s"] = restart_s if scheduled is None else scheduled
    for name, app in by_name.items():
        if "restart_s" not in app:
            raise InputError(f"{path}: {name}", "no application row", "one, with restart_s")
    return pa.Table.from_pylist([by_name[name] for name in sorted(by_name)], APP_SCHEMA)


def _cell(row: dict[str, Any], name: str, path: str | os.PathLike[str], number: int) -> Any:
    value = row.get(name)
    if value is None and name not in MAY_BE_EMPTY:
        value = DEFAULTS.get(name)
        if value is None:
            raise InputError(f"{_where(path, number)}: {name}", "nothing", f"a value in {row['record']} rows")
    return value


def _where(path: str | os.PathLike[str], number: int) -> str:
    return f"{path}:{number + 1 if str(path).endswith('.parquet') else csv_line(path, number)}"
