"""The recorded runs of the Synergy simulator. Nothing here names a run."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from fastsim.performance.sensitivity import Sensitivity
from fastsim.workload.generators.synergy_jobs import JobLog, SynergyRecipe, SynergyStream
from tests.conftest import SHARED

SYNERGY = SHARED / "golden/synergy"
LOG_JOBS = 10_000
"""Jobs of the stand-in log."""


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a gzipped file with one a line."""
    with gzip.open(SYNERGY / name, "rt", encoding="utf-8") as text:
        return [json.loads(line) for line in text]


def attachments() -> list[tuple[float, list[float], dict[str, Any]]]:
    """CPUs per GPU, size of a server, and one attached profile, for each that was recorded."""
    return [
        (setting["fair_per_gpu"][1], setting["per_server_size"], profile)
        for setting in attached().values()
        for profile in setting["profiles"]
    ]


def attached() -> dict[str, Any]:
    """The recorded attachments of profiles, by CPUs per GPU."""
    path = SYNERGY / "profile_attach.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def streams() -> list[dict[str, Any]]:
    """One row for each recorded stream of generated jobs: its file, how it was made, the CPUs for each GPU."""
    path = SYNERGY / "index.csv"
    if not path.exists():
        return []
    ratio = {setting["config"]: setting["fair_per_gpu"][1] for setting in attached().values()}
    rows = pl.read_csv(path, infer_schema_length=None).filter(pl.col("stream").str.starts_with("stream_"))
    kept = rows.unique("stream", keep="first", maintain_order=True).select("stream", "load", "split", "seed", "cluster")
    return [row | {"cpus_per_gpu": ratio[row["cluster"]]} for row in kept.iter_rows(named=True)]


def recorded_jobs(stream: str) -> pl.DataFrame:
    """The jobs of a trace file under the names of our columns, in the order of the file."""
    names = ["pod_id", "workload", "submit_s", "total_work", "num_gpu"]
    rows = pl.read_csv(SYNERGY / "traces" / f"{stream}.csv", has_header=False, new_columns=names)
    return rows.with_columns(
        pl.col("submit_s", "total_work").cast(pl.Float64),
        pl.col("num_gpu").cast(pl.Int16),
        pl.col("pod_id").cast(pl.Int64),
    )


def recipe(setting: dict[str, Any]) -> SynergyRecipe:
    """How the jobs of a stream were made: by its row of `streams`, its log by the README.

    The log had 10,000 jobs; of what else it said only the GPUs of the jobs that were made are known. A stream without
    a log begins with an arrival, as only its first time tells.
    """
    jobs = recorded_jobs(setting["stream"])
    gpus = np.ones(LOG_JOBS, np.int64)
    gpus[: jobs.height] = jobs["num_gpu"].to_numpy()
    split = tuple(float(part) for part in setting["split"].split("-"))
    made = SynergyRecipe(Sensitivity.default(setting["cpus_per_gpu"]), setting["seed"], setting["load"], split)
    first = SynergyStream(made).take(1)["submit_s"][0].as_py()
    if first == jobs["submit_s"][0]:
        return made
    return replace(made, log=JobLog(gpus), multi_gpu=bool((gpus > 1).any()))
