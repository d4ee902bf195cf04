"""Importer of Slurm's jobs: `sacct --allocations --parsable2 --format=ALL`, `sacct --json`, or `squeue --json`.

Of the columns of a text, JobIDRaw or JobID, Submit, Start, End, State and AllocTRES or ReqTRES are used; User, Account,
Partition, QOS, Priority, Timelimit, Elapsed and NNodes if they are there. Steps of jobs are left out, and so are jobs
that have not started. Jobs that have not ended are `censored`: they take what they have run so far, by Elapsed or else
up to the last moment of the list. GPUs are `gres/gpu`, memory `mem`, CPUs `cpu` of the job's resources. The GPUs of
`gres/gpu:a100` are A100, those of `gres/gpu:v100` any V100 of the catalogue; a name that is not there stays as it is.

Of `squeue --json` jobs that run or wait are kept, too: they take their time limit, and for ever without one. A waiting
array is as many jobs as it has tasks.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import Any

import polars as pl

from fastsim.cluster.table_sources import Source, source_of
from fastsim.errors import InputError, short
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import opened_text
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.hardware.gpu_products import models_called
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import LAST, table_of, with_last_moment
from fastsim.workload.pod_rows import PodRows

JOBS = {
    s.SUBMIT_S: "Submit[iso]", s.DURATION_S: f"COALESCE(End[iso], {LAST}[iso]) - Start[iso]",
    s.CENSORED: '"End" IS NULL', s.ORIG_START_S: "Start[iso]", s.ORIG_END_S: "End[iso]", s.CPU_MILLI: "1000 * cpus",
    s.MEMORY_MIB: "mib", s.NUM_GPU: "gpus", s.ORIG_STATUS: "State", s.NATIVE_ID: "id",
}  # fmt: skip
"""Columns of a job; the last ones in small letters are worked out here."""
PARTS = {
    s.CPU_MILLI: "1000 * cpus / NNodes", s.MEMORY_MIB: "mib / NNodes", s.NUM_GPU: "CEIL(gpus / NNodes)",
    s.JOB_ID: "id", s.GANG_SIZE: "NNodes",
}  # fmt: skip
"""The same as pods, one for each node of the job."""
FURTHER = {s.TENANT: "User", s.QOS: "QOS", s.PRIORITY: "Priority", s.EST_DURATION_S: "Timelimit[hms]"}
"""Columns that are used if they are there."""
ELAPSED = {s.DURATION_S: f"COALESCE(End[iso] - Start[iso], Elapsed[hms], {LAST}[iso] - Start[iso])"}
"""The duration where the list has the column."""
QUEUED: dict[str, str | None] = {s.DURATION_S: "COALESCE(End[iso] - Start[iso], Timelimit[hms])", s.CENSORED: None}
"""Of a job of `squeue`, what differs."""
THERE = ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "RESIZING", "REQUEUED", "SIGNALING")
"""States of jobs that have not ended."""
MOST_TASKS = 4_000_001
"""Most tasks that an array may have in Slurm."""
RAN = "Start IS NOT NULL"
TYPED = re.compile(r"gres/gpu:([^=,]+)=[1-9]")
"""A GPU model in the resources of a job."""
UNKNOWN = ("Unknown", "None", "UNLIMITED", "Partition_Limit", "INVALID")
MODELS = "models"
"""Column with the GPU models of a job."""
TASK = "Task"
"""Column of `squeue` with a number of its own for every row."""
MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""MiB of the units of memory."""


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, gangs: bool = False, models: bool = True, where: str | None = None,
    origin: str = "min",
) -> PodRows:  # fmt: skip
    """The jobs, one row each; ``gangs``: one pod for each node that a job ran on, which start together.

    ``models``: GPUs are of the models that the resources of the job name, any of several; without, of any model.
    """
    source = _json_jobs(path) if _is_json(path) else source_of(path, delimiter="|")
    source = _with_resources(source, gangs)
    columns: dict[str, str | None] = {**JOBS}
    columns |= {target: text for target, text in FURTHER.items() if text.split("[")[0] in source.frame.columns}
    columns |= PARTS if gangs else {}
    columns |= {s.GPU_MODELS: MODELS} if models else {}
    columns |= ELAPSED if "Elapsed" in source.frame.columns else {}
    unused = [] if models else [MODELS]
    ran = RAN
    if TASK in source.frame.columns:
        columns |= QUEUED | ({s.JOB_ID: TASK} if gangs else {})
        unused += [LAST] if gangs else [LAST, TASK]
        ran = f"Start IS NOT NULL AND End IS NOT NULL OR State IN ({', '.join(map(repr, THERE))})"
    source = source._replace(frame=source.frame.drop(unused))
    return table_of(source, columns, "Slurm accounting", where=(ran, where), origin=origin, expand=gangs)


def _is_json(path: str | os.PathLike[str]) -> bool:
    return str(path).endswith((".json", ".json.gz"))


def _with_resources(source: Source, gangs: bool) -> Source:
    """The allocations among the rows, with `id`, `cpus`, `gpus`, `models`, `mib` and the last moment of the list."""
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
        Start=pl.when(~pl.col("State").str.starts_with("PENDING").fill_null(False)).then("Start"),
        models=text.map_batches(_models, pl.String),
    ).with_columns(pl.col("cpus").fill_null(0.0))  # fmt: skip
    places = rows.to_list()
    read = Source(kept.with_columns(unknown), source.name, lambda row: source.place(places[row]))
    return with_last_moment(read, ("Submit", "Start", "End"))


def _models(resources: pl.Series) -> pl.Series:
    """GPU models of jobs as `A|B`, null where their resources name none."""
    names = {
        text: "|".join(dict.fromkeys(model for name in TYPED.findall(text) for model in models_called(name))) or None
        for text in resources.drop_nulls().unique().to_list()
    }
    return pl.Series([names.get(text) for text in resources.to_list()], dtype=pl.String)


def _amount(text: pl.Expr, name: str) -> pl.Expr:
    return text.str.extract(rf"(?:^|,){name}=(\d+)").cast(pl.Float64)


# ---------------------------------------------------------------------- JSON


def _json_jobs(path: str | os.PathLike[str]) -> Source:
    """The jobs of `sacct --json` under the names of `sacct --parsable2`."""
    try:
        with opened_text(path) as text:
            document = json_value(text.read())
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "accounting of Slurm") from error
    except (OSError, ValueError) as error:
        raise InputError(str(path), one_line(error), "a complete JSON text") from error
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not jobs:
        raise InputError(f"{path}: jobs", short(jobs), "a list of jobs, as sacct --json writes it")
    queued = isinstance(jobs[0], dict) and "submit_time" in jobs[0]
    rows: list[dict[str, str | None]] = []
    places: list[int] = []
    for number, job in enumerate(jobs):
        found = (_queue_rows if queued else _json_rows)(f"{path}: jobs[{number}]", job)
        rows += [{**row, TASK: str(len(rows) + k)} for k, row in enumerate(found)] if queued else found
        places += [number] * len(found)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    return Source(frame, str(path), lambda row: f"{path}: jobs[{places[row]}]")


def _json_rows(where: str, job: Any) -> list[dict[str, str | None]]:
    try:
        times, tres = job["time"], job["tres"]["allocated"] or job["tres"]["requested"]
        state = job["state"]["current"]
        return [{
            "JobID": str(job["job_id"]),
            **{name: _date(times[key]) for name, key in (("Submit", "submission"), ("Start", "start"), ("End", "end"))},
            "State": str(state if isinstance(state, str) else state[0]),
            "AllocTRES": ",".join(_tres(one) for one in tres),
            **{name: _text(job.get(name.lower())) for name in ("User", "QOS", "Partition")},
            "NNodes": str(job.get("allocation_nodes") or 1), "Elapsed": _elapsed(times.get("elapsed")),
        }]  # fmt: skip
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, OSError) as error:
        raise InputError(where, f"no {error}", "a job with job_id, time, tres and state.current") from None


def _queue_rows(where: str, job: Any) -> list[dict[str, str | None]]:
    """The tasks of a job of `squeue`."""
    try:
        state = job["job_state"]
        state = str(state if isinstance(state, str) else state[0])
        ended, limit = state not in THERE, _number(job.get("time_limit"))
        row = {
            "Submit": _date(job["submit_time"]), "Start": None if state == "PENDING" else _date(job["start_time"]),
            "End": _date(job["end_time"]) if ended else None, "State": state,
            "AllocTRES": str(job.get("tres_alloc_str") or job["tres_req_str"]), "User": _text(job.get("user_name")),
            **{name: _text(job.get(name.lower())) for name in ("QOS", "Partition")},
            "NNodes": str(_number(job.get("node_count")) or 1), "Timelimit": f"{limit}:00" if limit else None,
        }  # fmt: skip
        return [{"JobID": f"{job['job_id']}{task}", **row} for task in _tasks(job.get("array_task_string") or "")]
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, OSError) as error:
        raise InputError(where, f"no {error}", "a job with job_id, job_state, submit_time and tres_req_str") from None


def _tasks(text: str) -> list[str]:
    """Endings of the names of an array's tasks, `1-5,8-12:2%4`; one without a name for what is no array."""
    if not text:
        return [""]
    tasks: list[str] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if not match or int(match[2] or 0) > MOST_TASKS:
            raise ValueError(f"list of tasks in {text!r} (all of them: SLURM_BITSTR_LEN=0 squeue --json)")
        tasks += [f"_{task}" for task in range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))]
    return tasks


def _number(value: Any) -> int | None:
    """A number of Slurm's JSON, plain or with marks; None if it is not set or infinite."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set", True) and not value.get("infinite") else None
    return None if value is None else int(value)


def _elapsed(value: Any) -> str | None:
    """Seconds in the form of `Elapsed`."""
    seconds = _number(value)
    return None if seconds is None else f"0:{seconds}"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _date(second: Any) -> str | None:
    """Seconds since 1970 as a date; 0 is none."""
    number = second["number"] if isinstance(second, dict) else second
    return datetime.fromtimestamp(int(number), UTC).replace(tzinfo=None).isoformat() if number else None


def _tres(one: Any) -> str:
    name = "/".join(filter(None, (one["type"], one.get("name"))))
    return f"{name}={int(one['count'])}{'M' if name == 'mem' else ''}"
