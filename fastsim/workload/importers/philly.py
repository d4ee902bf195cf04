"""Importer of the Philly trace (Microsoft, 2017): the log of jobs with their attempts, or its reduced form.

The log is a JSON list of `{status, vc, jobid, submitted_time, user, attempts: [{start_time, end_time, detail:
[{ip, gpus: [...]}]}]}`; times are local text without a zone, null or "None" if unknown; GPUs only follow from where an
attempt ran. The reduced form is CSV, `timestamp,duration,num_gpus,gpu_time,cluster`. Every job becomes one row that
runs for the sum of its attempts; CPUs and memory are not recorded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError, short
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import file_checksum, opened_text
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import one_line
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows

SOURCE = "philly-traces"
"""Name of the trace in the metadata."""
RULES = ("all", "synergy")
"""Which jobs are kept: all that ran, or those that Synergy's experiments keep."""
RAN = "an attempt ran for a known time on known GPUs"
"""What holds for the jobs that the first of the rules keeps."""
MOST_GPUS = 2**15 - 1
"""Most GPUs of a job that a workload holds."""
SYNERGY_GPUS = (1, 2, 4, 8, 16)
"""Numbers of GPUs of those experiments."""
SYNERGY_DURATION_S = (60 * 10**1.5, 60 * 10.0**4)
"""Durations between these bounds, seconds, are kept there."""
SYNERGY_HOURS, SYNERGY_JOBS = (2400, 3000), 8000
"""Hours between which jobs arrive whose arrivals and durations are the log's own, and how many at most."""
LOG_BEGAN = datetime(2017, 8, 7)
"""Day of the first job of the log; the reduced form begins a month later, and these hours are those of the log."""


class Attempt(NamedTuple):
    """Seconds an attempt ran, null if it is not known, its GPUs, and when it began and ended on the trace's clock."""

    duration_s: float | None
    num_gpu: int
    start: datetime | None
    end: datetime | None


class PhillyJob(NamedTuple):
    """A job of the log; ``submit`` is on the trace's clock."""

    submit: datetime
    attempts: tuple[Attempt, ...]
    status: str | None
    tenant: str | None
    native_id: str | None


class _Kept(NamedTuple):
    submit_s: float
    duration_s: float
    num_gpu: int
    job: PhillyJob


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, rules: str = "all", exponential: bool = False, multi_gpu: bool = True
) -> PodRows:
    """The jobs of a log (.json, .json.gz) or of the reduced form (.csv, .csv.gz), by arrival.

    rules: `all` = every job with an attempt that ran for a known time on known GPUs; it has the GPUs of its last such
    attempt. `synergy` = the jobs of Synergy's experiments: attempts that did not run are left out, and with
    `multi_gpu` those with more than 16 GPUs; jobs count whose last attempt is left and that ran between 32 minutes and
    a week. With `exponential` other numbers of GPUs than 1, 2, 4, 8 and 16 become 1, and `pod_id` is a job's place in
    the log: jobs whose arrivals are drawn are taken in that order. Without it such attempts are left out and the first
    8,000 jobs that arrived after 2,400 and before 3,000 hours of the log are kept; 8,000 begin at 0 s, fewer do not.
    """
    if rules not in RULES:
        raise ScenarioError("import philly: rules", repr(rules), f"one of {', '.join(RULES)}")
    text = str(path).removesuffix(".gz")
    reduced = text.endswith(".csv")
    jobs = _reduced(path) if reduced else list(_logged(str(path), _document(path)))
    # The clock begins with the first job that was ever tried.
    tried = [job for job in jobs if job.attempts]
    if not tried:
        raise InputError(str(path), "no jobs with attempts", "one at least")
    origin = min(job.submit for job in tried)
    if reduced and rules == "synergy" and not exponential:
        origin = min(origin, LOG_BEGAN)
    chosen = _by_synergy(tried, origin, exponential, multi_gpu) if rules == "synergy" else _all(tried, origin)
    workload = _workload(path, chosen, rules, exponential, multi_gpu)
    if rules == "all" and len(chosen) < len(jobs):
        workload.metadata |= {"fastsim.where": RAN, "fastsim.left_out": str(len(jobs) - len(chosen))}
    return workload


def _all(jobs: list[PhillyJob], origin: datetime) -> list[_Kept]:
    chosen = []
    for job in jobs:
        ran = [a for a in job.attempts if a.duration_s is not None and a.duration_s > 0 and a.num_gpu > 0]
        if ran:
            seconds = sum(attempt.duration_s or 0.0 for attempt in ran)
            chosen.append(_Kept((job.submit - origin).total_seconds(), seconds, ran[-1].num_gpu, job))
    return chosen


def _by_synergy(jobs: list[PhillyJob], origin: datetime, exponential: bool, multi_gpu: bool) -> list[_Kept]:
    chosen: list[_Kept] = []
    for job in jobs:
        sizes = [_synergy_size(attempt, exponential, multi_gpu) for attempt in job.attempts]
        pairs = zip(sizes, job.attempts, strict=True)
        seconds = sum(attempt.duration_s or 0.0 for size, attempt in pairs if size)
        submit_s = (job.submit - origin).total_seconds()
        early, late = (3600 * hours for hours in SYNERGY_HOURS)
        inside = exponential or (early < submit_s < late and len(chosen) < SYNERGY_JOBS)
        if sizes[-1] and SYNERGY_DURATION_S[0] < seconds < SYNERGY_DURATION_S[1] and inside:
            chosen.append(_Kept(submit_s, seconds, sizes[-1], job))
    if exponential or len(chosen) < SYNERGY_JOBS:  # the original's clock moves where it stops reading, nowhere else
        return chosen
    first = min(row.submit_s for row in chosen)
    return [row._replace(submit_s=row.submit_s - first) for row in chosen]


def _synergy_size(attempt: Attempt, exponential: bool, multi_gpu: bool) -> int:
    """GPUs of an attempt; 0 if it is left out."""
    if attempt.duration_s is None or attempt.duration_s <= 0 or attempt.num_gpu <= 0:
        return 0
    if not multi_gpu or attempt.num_gpu in SYNERGY_GPUS:
        return attempt.num_gpu
    return 1 if exponential and attempt.num_gpu <= max(SYNERGY_GPUS) else 0


def in_order_of_log(workload: PodRows) -> bool:
    """Whether `pod_id` is the place in the log: the jobs are those of Synergy's experiments with drawn arrivals."""
    if workload.metadata.get("fastsim.source") != SOURCE:
        return False
    parameters = json.loads(workload.metadata.get("fastsim.params", "{}"))
    return parameters.get("rules") == "synergy" and parameters.get("exponential") is True


def _workload(
    path: str | os.PathLike[str], kept: list[_Kept], rules: str, exponential: bool, multi_gpu: bool
) -> PodRows:
    if not kept:
        raise InputError(str(path), f"no job that the rules {rules!r} keep", "one at least")
    rows, by_arrival = len(kept), sorted(range(len(kept)), key=lambda place: kept[place].submit_s)
    kept = [kept[place] for place in by_arrival]
    columns: dict[str, Any] = {
        s.POD_ID: np.array(by_arrival) if exponential else np.arange(rows),
        s.SUBMIT_S: np.array([row.submit_s for row in kept], np.float64),
        s.CPU_MILLI: np.zeros(rows, np.int64), s.MEMORY_MIB: np.zeros(rows, np.int64),
        s.NUM_GPU: np.array([row.num_gpu for row in kept], np.int16), s.GPU_MILLI: np.full(rows, 1000, np.int16),
        s.DURATION_S: np.array([row.duration_s for row in kept], np.float64),
        s.TENANT: pa.array([row.job.tenant for row in kept], pa.string()),
        s.ORIG_STATUS: pa.array([row.job.status for row in kept], pa.string()),
        s.NATIVE_ID: pa.array([row.job.native_id for row in kept], pa.string()),
    }  # fmt: skip
    for name, ends in ((s.ORIG_START_S, min), (s.ORIG_END_S, max)):
        columns[name] = pa.array([_edge(row, ends) for row in kept], pa.float64())
    schema = s.pod_schema(columns)
    table = pa.table([pa.array(columns[field.name]).cast(field.type) for field in schema], schema=schema)
    parameters = {"rules": rules, "exponential": exponential, "multi_gpu": multi_gpu}
    metadata = {
        "fastsim.source": SOURCE,
        "fastsim.source_license": "CC-BY-4.0",
        "fastsim.source_sha256": file_checksum(path),
        "fastsim.converter": "fastsim import philly",
        "fastsim.params": json.dumps(parameters, sort_keys=True),
    }
    return PodRows(Held(table), table.column_names, name=str(path), rows=rows, metadata=metadata)


def _edge(row: _Kept, edge: Callable[..., datetime]) -> float | None:
    """First start or last end in the row's seconds; null if the log has no such time."""
    times = [time for a in row.job.attempts for time in ((a.start,) if edge is min else (a.end,)) if time is not None]
    return row.submit_s + (edge(times) - row.job.submit).total_seconds() if times else None


def _document(path: str | os.PathLike[str]) -> Any:
    try:
        with opened_text(path) as text:
            return json_value(text.read())
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a Philly log (JSON)") from error
    except (OSError, EOFError, ValueError) as error:
        raise InputError(str(path), one_line(error), "a Philly log (JSON), plain or gzipped") from error


def _logged(name: str, document: Any) -> Iterator[PhillyJob]:
    if not isinstance(document, list):
        raise InputError(name, f"JSON of type {type(document).__name__}", "a list of jobs")
    for number, entry in enumerate(document, start=1):
        where = f"{name}: job {number}"
        try:
            submit, attempts = _time(entry["submitted_time"]), tuple(_attempt(attempt) for attempt in entry["attempts"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            expected = "submitted_time, and attempts with start_time, end_time and detail of ip and gpus"
            raise InputError(where, f"{type(error).__name__}: {one_line(error)}", expected) from None
        if submit is None:
            raise InputError(f"{where}: submitted_time", "nothing", "a time such as 2017-10-07 01:11:39")
        status, tenant, job, _ = (_text(entry, name, where) for name in ("status", "vc", "jobid", "user"))
        yield PhillyJob(submit, attempts, status, tenant, job)


def _text(entry: dict[str, Any], name: str, where: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: {name}", short(value), "a text")
    return value


def _attempt(given: dict[str, Any]) -> Attempt:
    start, end = _time(given["start_time"]), _time(given["end_time"])
    known = None if start is None or end is None else (end - start).total_seconds()
    lists = [place["gpus"] for place in given["detail"]]
    for gpus in lists:
        if not isinstance(gpus, list):
            raise TypeError(f"gpus of {short(gpus)} are no list")
    if (gpus := sum(map(len, lists))) > MOST_GPUS:
        raise ValueError(f"{gpus:,} GPUs are more than {MOST_GPUS:,}")
    return Attempt(known, gpus, start, end)


def _time(text: str | None) -> datetime | None:
    if text in (None, "None", ""):
        return None
    time = datetime.fromisoformat(str(text))
    if time.tzinfo is not None:  # a difference of times with and without a zone has no meaning
        raise ValueError(f"{text!r} has a time zone, times of the log are local")
    return time


def _reduced(path: str | os.PathLike[str]) -> list[PhillyJob]:
    types = {"timestamp": pa.string(), "duration": pa.float64(), "num_gpus": pa.int64(), "gpu_time": pa.float64(),
             "cluster": pa.string()}  # fmt: skip
    rows = read_csv(path, types, ("timestamp", "duration", "num_gpus")).to_pylist()
    jobs = []
    for number, row in enumerate(rows):
        try:
            submit = _time(row["timestamp"])
        except ValueError:
            submit = None
        gpus = row["num_gpus"]
        if submit is None or row["duration"] is None or gpus is None or gpus > MOST_GPUS:
            where = f"{path}:{csv_line(path, number)}"
            expected = f"a time, a duration in seconds and GPUs, {MOST_GPUS:,} at most"
            raise InputError(where, f"{row['timestamp']}, {row['duration']}, {gpus}", expected)
        jobs.append(PhillyJob(submit, (Attempt(row["duration"], gpus, None, None),), None, row.get("cluster"), None))
    return jobs
