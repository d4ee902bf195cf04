"""Importer of Slurm's accounting: `sacct --allocations --parsable2 --format=ALL`, or `sacct --json`.

Of the columns of a text, JobIDRaw or JobID, Submit, Start, End, State and AllocTRES or ReqTRES are used; User, Account,
Partition, QOS, Priority, Timelimit and NNodes if they are there. Steps of jobs are left out, and so are jobs that have
not ended. GPUs are `gres/gpu`, memory `mem`, CPUs `cpu` of the job's resources.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import polars as pl

from fastsim.cluster.column_mapping import Source, source_of
from fastsim.errors import InputError, short
from fastsim.foundation.limits.packed_file import opened_text
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.workload import schema as s
from fastsim.workload.published_traces import table_of
from fastsim.workload.workload import Workload

JOBS = {
    s.SUBMIT_S: "Submit[iso]", s.DURATION_S: "End[iso] - Start[iso]", s.ORIG_START_S: "Start[iso]",
    s.ORIG_END_S: "End[iso]", s.CPU_MILLI: "1000 * cpus", s.MEMORY_MIB: "mib", s.NUM_GPU: "gpus",
    s.ORIG_STATUS: "State", s.NATIVE_ID: "id",
}  # fmt: skip
"""Columns of a job; the last ones in small letters are worked out here."""
PARTS = {
    s.CPU_MILLI: "1000 * cpus / NNodes", s.MEMORY_MIB: "mib / NNodes", s.NUM_GPU: "CEIL(gpus / NNodes)",
    s.JOB_ID: "id", s.GANG_SIZE: "NNodes",
}  # fmt: skip
"""The same as pods, one for each node of the job."""
FURTHER = {s.TENANT: "User", s.QOS: "QOS", s.PRIORITY: "Priority", s.EST_DURATION_S: "Timelimit[hms]"}
"""Columns that are used if they are there."""
RAN = "Start IS NOT NULL AND End IS NOT NULL"
UNKNOWN = ("Unknown", "None", "UNLIMITED", "Partition_Limit", "INVALID")
MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""MiB of the units of memory."""


def import_jobs(
    path: str | os.PathLike[str], *, gangs: bool = False, where: str | None = None, origin: str = "min"
) -> Workload:
    """The jobs, one row each; ``gangs``: one pod for each node that a job ran on, which start together."""
    source = _json_jobs(path) if _is_json(path) else source_of(path, delimiter="|")
    source = _with_resources(source, gangs)
    columns = JOBS | {target: text for target, text in FURTHER.items() if text.split("[")[0] in source.frame.columns}
    columns |= PARTS if gangs else {}
    return table_of(source, columns, "Slurm accounting", where=(RAN, where), origin=origin, expand=gangs)


def _is_json(path: str | os.PathLike[str]) -> bool:
    return str(path).endswith((".json", ".json.gz"))


def _with_resources(source: Source, gangs: bool) -> Source:
    """The allocations among the rows, with `id`, `cpus`, `gpus` and `mib`."""
    frame = source.frame.drop("", strict=False)  # --parsable ends every line with a delimiter
    name = next((one for one in ("JobIDRaw", "JobID") if one in frame.columns), "JobID")
    tres = next((one for one in ("AllocTRES", "ReqTRES") if one in frame.columns), "AllocTRES")
    needed = (name, "Submit", "Start", "End", "State", tres, *(("NNodes",) if gangs else ()))
    for column in needed:
        if column not in frame.columns:
            found = f"columns {', '.join(frame.columns)}"
            raise InputError(f"{source.name}: {column}", found, "this column: sacct --parsable2 --format=ALL")
    rows = frame.select((~pl.col(name).str.contains(".", literal=True)).fill_null(False).arg_true()).to_series()
    text = pl.coalesce(*(one for one in ("AllocTRES", "ReqTRES") if one in frame.columns))
    memory = text.str.extract_groups(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
    typed = text.str.extract_all(r"gres/gpu:[^=,]+=\d+")
    unknown = pl.when(pl.col(pl.String).is_in(UNKNOWN)).then(None).otherwise(pl.col(pl.String)).name.keep()
    kept = frame[rows].with_columns(
        id=pl.col(name),
        cpus=_amount(text, "cpu"),
        gpus=pl.coalesce(_amount(text, "gres/gpu"), typed.list.eval(_amount(pl.element(), "[^=]+")).list.sum(), 0.0),
        mib=(memory.struct[0].cast(pl.Float64) * memory.struct[1].replace_strict(MIB)).fill_null(0.0),
        State=pl.col("State").str.extract(r"^(\S+)"),
    ).with_columns(pl.col("cpus").fill_null(0.0))  # fmt: skip
    places = rows.to_list()
    return Source(kept.with_columns(unknown), source.name, lambda row: source.place(places[row]))


def _amount(text: pl.Expr, name: str) -> pl.Expr:
    return text.str.extract(rf"(?:^|,){name}=(\d+)").cast(pl.Float64)


# ---------------------------------------------------------------------- JSON


def _json_jobs(path: str | os.PathLike[str]) -> Source:
    """The jobs of `sacct --json` under the names of `sacct --parsable2`."""
    try:
        with opened_text(path, encoding="utf-8-sig") as text:
            document = json_value(text.read())
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "accounting of Slurm") from error
    except (OSError, ValueError) as error:
        raise InputError(str(path), one_line(error), "a complete JSON text") from error
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not jobs:
        raise InputError(f"{path}: jobs", short(jobs), "a list of jobs, as sacct --json writes it")
    rows = [_json_row(f"{path}: jobs[{number}]", job) for number, job in enumerate(jobs)]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    return Source(frame, str(path), lambda row: f"{path}: jobs[{row}]")


def _json_row(where: str, job: Any) -> dict[str, str | None]:
    try:
        times, tres = job["time"], job["tres"]["allocated"] or job["tres"]["requested"]
        state = job["state"]["current"]
        return {
            "JobID": str(job["job_id"]),
            **{name: _date(times[key]) for name, key in (("Submit", "submission"), ("Start", "start"), ("End", "end"))},
            "State": str(state if isinstance(state, str) else state[0]),
            "AllocTRES": ",".join(_tres(one) for one in tres),
            **{name: _text(job.get(name.lower())) for name in ("User", "QOS", "Partition")},
            "NNodes": str(job.get("allocation_nodes") or 1),
        }
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, OSError) as error:
        raise InputError(where, f"no {error}", "a job with job_id, time, tres and state.current") from None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _date(second: Any) -> str | None:
    """Seconds since 1970 as a date; 0 is none."""
    number = second["number"] if isinstance(second, dict) else second
    return datetime.fromtimestamp(int(number), UTC).replace(tzinfo=None).isoformat() if number else None


def _tres(one: Any) -> str:
    name = "/".join(filter(None, (one["type"], one.get("name"))))
    return f"{name}={int(one['count'])}{'M' if name == 'mem' else ''}"
