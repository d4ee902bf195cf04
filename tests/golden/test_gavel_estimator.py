"""The references that the original drew for its estimates, and what it took every job for."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from fastsim.policies.rounds.estimator import Estimator
from fastsim.workload.job_types import JOB_NAMES
from tests.golden.gavel import GAVEL
from tests.golden.gavel_calls import golden_setting

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
