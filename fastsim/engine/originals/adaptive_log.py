"""Logs of Sia's and Pollux's simulators, and of Pollux's monitor of a real cluster: a line of JSON for each round.

A line has ``timestamp``, seconds or a Unix time, and ``submitted_jobs``; of each job ``name``, ``allocation`` from then
on (GPU model and a node for each GPU, or the nodes alone), ``submission_time``, ``completion_time`` and, of the
simulators, ``num_restarts``. Of a folder of lists the simulators write ``summary.json`` with completion times alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.originals.original_run import HOUR_S, OriginalRun, Printed, chosen, lines, refuse
from fastsim.engine.result import Result
from fastsim.errors import ResultError, reading
from fastsim.foundation.nested_text import json_value
from fastsim.foundation.parquet import replacing

EXPECTED = "a line of JSON for each round, with timestamp and submitted_jobs"
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)


def read(path: Path, wanted: str | None = None) -> OriginalRun:
    """The figures of a log, or of one list of a ``summary.json``."""
    return _summary(path, wanted) if path.suffix == ".json" else _log(path)


def rank_p99(times: Iterable[float]) -> float:
    """The 99th percentile as the originals' scripts take it: a value by its rank."""
    ordered = sorted(times)
    return ordered[int(0.99 * len(ordered))]


def _summary(path: Path, wanted: str | None) -> OriginalRun:
    with reading(path, 'JSON with {"jcts": {LIST: {JOB: seconds}}}', WRONG):
        lists = json_value("".join(line for _, line in lines(path)))["jcts"]
        name = chosen(path, list(lists), wanted)
        times = {job: float(value) for job, value in lists[name].items()}
        return OriginalRun(f"{path}?run={name}", _figures(times), {"jct_s": _exact(times)})


def _log(path: Path) -> OriginalRun:
    held: list[tuple[float, int]] = []
    jobs: dict[str, Mapping[str, Any]] = {}
    active = 0
    for number, line in lines(path):
        with reading(f"{path}:{number}", EXPECTED, WRONG):
            record = json_value(line)
            active_jobs = [job for job in record["submitted_jobs"] if job["completion_time"] is None]
            held.append((float(record["timestamp"]), sum(map(_gpus, active_jobs))))
            active += len(active_jobs)
            jobs |= {str(job["name"]): _checked(job) for job in record["submitted_jobs"]}
    if not jobs:
        refuse(path, EXPECTED)
    ends = {name: job["completion_time"] for name, job in jobs.items() if job["completion_time"] is not None}
    times = {name: end - jobs[name]["submission_time"] for name, end in ends.items()}
    figures = _figures(times)
    if len(times) == len(jobs):
        figures["makespan_s"] = Printed(max(ends.values()) - min(job["submission_time"] for job in jobs.values()))
        gpu_s = reduce(add, (gpus * (then - now) for (now, gpus), (then, _) in pairwise(held)), 0.0)
        figures["round_gpu_hours_mean"] = Printed(gpu_s / HOUR_S / len(jobs))
        figures["job_rounds"] = Printed(float(active))
    restarts = {name: float(job["num_restarts"]) for name, job in jobs.items() if job["num_restarts"] is not None}
    return OriginalRun(str(path), figures, {"jct_s": _exact(times), "charged_restarts": _exact(restarts)})


def _gpus(job: Mapping[str, Any]) -> int:
    """The GPUs that a job holds."""
    allocation = job["allocation"]
    return len(allocation[1] if len(allocation) == 2 and isinstance(allocation[1], list) else allocation)


def _checked(job: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: _seconds(job[name]) for name in ("submission_time", "completion_time")}
    if times["submission_time"] is None:
        raise ValueError("submission_time null")
    return {**times, "num_restarts": job.get("num_restarts")}


def _seconds(value: Any) -> float | None:
    """Seconds; monitors of real clusters write times as texts."""
    if value is None:
        return None
    seconds = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"time {value}")
    return seconds


def _exact(values: Mapping[str, float]) -> dict[str, Printed]:
    return {name: Printed(value) for name, value in values.items()}


def _figures(times: Mapping[str, float]) -> dict[str, Printed]:
    if not times:
        return {}
    return {
        "jct_mean_s": Printed(reduce(add, times.values()) / len(times)),
        "jct_p99_rank_s": Printed(rank_p99(times.values())),
    }


# ---------------------------------------------------------------------- writing


def write_log(result: Result, path: Path) -> int:
    """Write the log of a run of adaptive jobs, complete or not at all, and return its lines, one for each round.

    Epochs and batch sizes within a run are not recorded: both are null, and the epoch of a complete job is its last.
    """
    jobs = result.jobs
    if "charged_restarts" not in jobs.columns:
        raise ResultError(f"{path}: found a run without adaptive jobs, expected a run of sia, pollux or the like")
    fields = result.origin(str(path), allow_code=True)  # its policy is never made
    nodes = Cluster.from_text(fields.cluster).nodes
    models = dict(zip(nodes["name"].to_pylist(), nodes["gpu_model"].to_pylist(), strict=True))
    stays = _stays(result.placements, models)
    round_s = float(fields.round_s or 60.0)
    last_s = max(float(jobs["end_s"].max() or 0.0), float(jobs["submit_s"].max() or 0.0))  # type: ignore[arg-type]
    rows, rounds = jobs.to_dicts(), math.ceil(last_s / round_s)
    times = [number * round_s for number in range(0 if any(job["start_s"] == 0 for job in rows) else 1, rounds + 1)]
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for now in times:
            submitted = [_state(row, stays.get(row["pod_id"], []), now) for row in rows if row["submit_s"] <= now]
            file.write(json.dumps({"timestamp": now, "submitted_jobs": submitted}) + "\n")
    return len(times)


Stay = tuple[float, float, str, list[int]]


def _stays(placements: pl.DataFrame, models: Mapping[str, str]) -> dict[int, list[Stay]]:
    """Begin, end, GPU model and node of each GPU of every stay, by job, in time."""
    stays: dict[int, list[Stay]] = {}
    by_stay = placements.sort("pod_id", "attempt", "node_id").group_by("pod_id", "attempt", maintain_order=True)
    for (job, _), parts in by_stay:
        nodes = [row["node_id"] for row in parts.iter_rows(named=True) for _ in row["gpu_ids"]]
        stays.setdefault(int(job), []).append((parts["start_s"][0], parts["end_s"][0], models[parts["node"][0]], nodes))
    return stays


def _state(row: Mapping[str, Any], stays: list[Stay], now: float) -> dict[str, Any]:
    done = row["end_s"] is not None and row["end_s"] <= now
    stays_so_far = [stay for stay in stays if stay[0] <= now]
    current = stays_so_far[-1] if stays_so_far and not done and now < stays_so_far[-1][1] else None
    return {
        "name": row["native_id"] or str(row["pod_id"]), "epoch": row["epochs"] if done else None,
        "num_restarts": _restarts(stays_so_far) if stays_so_far else None, "cluster": current[2] if current else None,
        "allocation": [current[2], current[3]] if current else [],
        "placement": list(_counts(current[3])) if current else [], "batch_size": None,
        "submission_time": row["submit_s"], "completion_time": row["end_s"] if done else None,
    }  # fmt: skip


def _restarts(stays: list[Stay]) -> int:
    """Starts after the first; one on other nodes with the same numbers of GPUs, without a pause, costs nothing."""
    pairs = pairwise(stays)
    return sum(a[1] < b[0] or a[2] != b[2] or _counts(a[3]) != _counts(b[3]) for a, b in pairs)


def _counts(nodes: list[int]) -> tuple[int, ...]:
    return tuple(nodes.count(node) for node in dict.fromkeys(nodes))
