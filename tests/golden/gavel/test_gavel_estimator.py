"""The references that the original drew for its estimates, what it took every job for, and the runs that followed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fastsim.engine.rounds.job_metrics import round_figures
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.policies.shares.pair_rate_estimator import Estimator
from tests.golden.gavel.gavel import GAVEL
from tests.golden.gavel.gavel_calls import golden_setting
from tests.golden.gavel.gavel_runs import runs

FILES = sorted(GAVEL.glob("sim/*.estimator.json"))
PROFILED = {"est-full-sg-6": 0.5, "est-sg-6b": 0.6}
"""Part of the measurements made in these runs. The recording does not tell it: of all tenths only these fit."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition("__")[0])
def test_references_and_matches(path: Path) -> None:
    run = path.name.removesuffix(".estimator.json")
    scenario = run.partition("__")[0]
    recorded = json.loads(path.read_text())
    references = [name for name, _ in recorded["reference_job_types"]]
    setting = golden_setting(run)
    estimator = Estimator(PROFILED[scenario], len(references), JOB_NAMES, estimator_column_bug=True)
    estimates = estimator.begin(setting)
    assert [JOB_NAMES[place] for place in estimates.reference] == references
    jobs = pl.read_parquet(GAVEL / f"traces/{scenario}.parquet", columns=["job_id", "job_type"]).sort("job_id")
    for job, workload in jobs.iter_rows():
        estimates.arrive(job, setting.oracle.kind_index[workload, 1])
    assert {str(job): estimates.alike(job) for job in jobs["job_id"]} == {
        job: name for job, (name, _) in recorded["reference_job_map"].items()
    }


BAR = 1e-3
"""Relative; noise of 1e-9 in the shares, which decides among equal jobs, moves mean completion time, makespan and use
as far. A run that knows all rates is outside."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition("__")[0])
def test_whole_runs(path: Path) -> None:
    run = next(run for run in runs() if run.id == path.name.removesuffix(".estimator.json"))
    references = json.loads(path.read_text())["reference_job_types"]
    estimator = Estimator(PROFILED[run.row["name"]], len(references), JOB_NAMES, estimator_column_bug=True)
    estimates = estimator.begin(run.setting)
    found = run.played(dataclasses.replace(run.plan(), estimates=estimates))
    figures = round_figures(found)
    ours = np.array([figures.jct_mean_s, found.makespan_s, figures.utilization])
    assert ours == pytest.approx([run.row[name] for name in ("average_jct", "makespan", "utilization")], rel=BAR)
    recorded = json.loads(path.read_text())["reference_job_map"]
    names = {kind: name for (name, num_gpu), kind in run.setting.oracle.kind_index.items() if num_gpu == 1}
    estimated = {str(job): names[kind] for job, kind in found.jobs[["id", "estimated_kind"]].tolist()}
    assert estimated == {job: name for job, (name, _) in recorded.items()}
