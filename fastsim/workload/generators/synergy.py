"""Workloads of jobs made as Synergy's simulator makes them, as one call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import JOBS, LOG
from fastsim.performance.sensitivity import Sensitivity
from fastsim.workload import schema as s
from fastsim.workload.generators.synergy_jobs import JobLog, SynergyRecipe, SynergyStream, split_of
from fastsim.workload.pod_rows import PodRows

Log = int | PodRows | str | os.PathLike[str]
"""A number of jobs with one GPU each, a workload of jobs, or a file of one: Parquet, or a Philly log or its reduced
form."""
PHILLY_ENDS = (".json", ".json.gz", ".csv", ".csv.gz")


class SynergySource:
    """Opens the stream of a recipe anew, `jobs` jobs long."""

    def __init__(self, recipe: SynergyRecipe, jobs: int) -> None:
        self.recipe, self.jobs = recipe, jobs

    def __call__(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The jobs in batches of one good size: they do not depend on `rows`."""
        return SynergyStream(self.recipe).batches(self.jobs)

    def stream(self) -> SynergyStream | None:
        """The endless stream that these jobs are the beginning of; None if the log ends it or all jobs come at once."""
        ends = self.recipe.end is not None or self.recipe.arrivals == "static"
        return None if ends else SynergyStream(self.recipe)


def synth_synergy(
    jobs: int | None = None,
    seed: int = 42,
    *,
    rate_per_hour: float = 9.0,
    split: Sequence[float] | str = (20, 70, 10),
    log: Log | None = None,
    multi_gpu: bool = False,
    arrivals: str = "poisson",
    durations: str = "gavel",
    pickled: bool = False,
    sensitivity: Sensitivity | str | os.PathLike[str] | None = None,
    cpus_per_gpu: float | None = None,
) -> PodRows:
    """`jobs` jobs as Synergy's simulator makes them; the same seed and log mean its very jobs.

    rate_per_hour: mean arrivals per hour. split: per cent of image, language and speech jobs, or of the tasks of a
    sensitivity of your own. log: without one, jobs have 1, 2, 4 or 8 GPUs; with one, single GPUs or (multi_gpu) those
    of the log, whose jobs are taken in turn. A log is a number of jobs, a workload, Parquet or a Philly log (JSON,
    CSV); of a Philly log, jobs are taken in its own order unless arrivals are the log's. arrivals: `poisson`, `static`
    = all at once, a millisecond apart, or `log`. durations: `gavel` = 30 minutes to a week, `short` = up to eight
    hours, or `log`. pickled: the log was read in an earlier run, so that its durations take nothing from the stream of
    arrivals. sensitivity: workloads and seconds of their iterations (default: Synergy's models on servers with
    `cpus_per_gpu` CPUs for each GPU, 3). `jobs` may be left out for a log's arrivals.
    """
    _check(seed, 0 if jobs is None else jobs, multi_gpu, pickled)
    profile = _sensitivity(sensitivity, cpus_per_gpu)
    log_jobs = None if log is None else job_log(log, durations != "log", multi_gpu, by_arrival=arrivals == "log")
    shares = split_of(split)
    recipe = SynergyRecipe(
        sensitivity=profile,
        seed=seed,
        rate_per_hour=rate_per_hour,
        split=shares,
        arrivals=arrivals,
        durations=durations,
        log=log_jobs,
        multi_gpu=multi_gpu,
        pickled=pickled,
    )
    if jobs is None:
        if recipe.end is None:
            raise ScenarioError("synth.jobs", "nothing", "a number of jobs: only a log's arrivals come to an end")
        jobs = recipe.end
    jobs = jobs if recipe.end is None else min(jobs, recipe.end)
    metadata = _metadata(recipe, jobs, cpus_per_gpu)
    if not isinstance(sensitivity, Sensitivity):  # an object has no text that a run could read it from
        metadata["fastsim.rates"] = "synergy" if sensitivity is None else str(sensitivity)
    columns = [*s.REQUIRED, s.DURATION_S, s.WORKLOAD, s.TOTAL_WORK]
    return PodRows(SynergySource(recipe, jobs), columns, name="synth:synergy", rows=jobs, metadata=metadata)


def _check(seed: int, jobs: int, multi_gpu: object, pickled: object) -> None:
    for name, value in (("seed", seed), ("jobs", jobs)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ScenarioError(f"synth.{name}", repr(value), "a whole number, 0 or more")
    JOBS.refuse(jobs)
    for name, flag in (("multi_gpu", multi_gpu), ("pickled", pickled)):
        if not isinstance(flag, bool):
            raise ScenarioError(f"synth.{name}", repr(flag), "true or false")


def _metadata(recipe: SynergyRecipe, jobs: int, cpus_per_gpu: float | None) -> dict[str, str]:
    log, plain = recipe.log, ("seed", "rate_per_hour", "split", "arrivals", "durations", "multi_gpu", "pickled")
    parameters = {name: getattr(recipe, name) for name in plain} | {
        "jobs": jobs, "sensitivity": recipe.sensitivity.name, "cpus_per_gpu": cpus_per_gpu,
        "log": None if log is None else log.name, "log_jobs": None if log is None else len(log),
    }  # fmt: skip
    return {
        "fastsim.source": "synth synergy",
        "fastsim.converter": "fastsim synth synergy",
        "fastsim.work_unit": "iterations",
        "fastsim.seed": str(recipe.seed),
        "fastsim.params": json.dumps(parameters, sort_keys=True),
    }


def job_log(log: Log, exponential: bool, multi_gpu: bool, by_arrival: bool = False) -> JobLog:
    """Jobs of a log; of a Philly log (JSON, or CSV of its reduced form) those that Synergy keeps, in the log's order
    unless it is `by_arrival`."""
    from fastsim.workload.importers.philly import import_jobs, in_order_of_log

    if isinstance(log, int):
        if isinstance(log, bool) or log < 1:
            raise ScenarioError("synth.log", log, "1 job or more")
        LOG.refuse(log)
        return JobLog(np.ones(log, np.int64), name=f"{log} jobs", tells_gpus=False)
    if isinstance(log, PodRows):
        workload = log
    elif str(log).endswith(PHILLY_ENDS):
        workload = import_jobs(log, rules="synergy", exponential=exponential, multi_gpu=multi_gpu)
    else:
        workload = PodRows.scan(str(log))
    table = workload.table()
    if in_order_of_log(workload) and not by_arrival:
        table = table.sort_by(s.POD_ID)
    duration = table[s.DURATION_S].to_numpy() if s.DURATION_S in table.column_names else None
    return JobLog(table[s.NUM_GPU].to_numpy().astype(np.int64), table[s.SUBMIT_S].to_numpy(), duration, workload.name)


def _sensitivity(given: Sensitivity | str | os.PathLike[str] | None, cpus_per_gpu: float | None) -> Sensitivity:
    if isinstance(given, Sensitivity):
        if cpus_per_gpu is not None:
            raise ScenarioError("synth.cpus_per_gpu", cpus_per_gpu, "none: the sensitivity was made for its servers")
        return given
    if given is None:
        return Sensitivity.default() if cpus_per_gpu is None else Sensitivity.default(cpus_per_gpu)
    return Sensitivity.from_file(given, cpus_per_gpu)
