"""The references that the original drew for its estimates, what it took every job for, and the runs that followed."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache
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
pytestmark = pytest.mark.skipif(not FILES, reason="reference data not found (set FASTSIM_SHARED)")
TENTHS = [tenth / 10 for tenth in range(1, 11)]


def recorded(path: Path) -> tuple[list[str], dict[str, str]]:
    """The references, and what every job was taken for."""
    found = json.loads(path.read_text())
    return [name for name, _ in found["reference_job_types"]], {
        job: name for job, (name, _) in found["reference_job_map"].items()
    }


def guessed(path: Path, part: float) -> tuple[list[str], dict[str, str]]:
    """The same by ours, if such a part of the measurements was made."""
    run = path.name.removesuffix(".estimator.json")
    setting, scenario = golden_setting(run), run.partition("__")[0]
    estimator = Estimator(part, len(recorded(path)[0]), JOB_NAMES, estimator_column_bug=True)
    estimates = estimator.begin(setting)
    jobs = pl.read_parquet(GAVEL / f"traces/{scenario}.parquet", columns=["job_id", "job_type"]).sort("job_id")
    for job, workload in jobs.iter_rows():
        estimates.arrive(job, setting.oracle.kind_index[workload, 1])
    references = [JOB_NAMES[place] for place in estimates.reference]
    return references, {str(job): estimates.alike(job) for job in jobs["job_id"]}


@cache
def part_of(path: Path) -> float:
    """The part of the measurements that was made, which the recording does not name; NaN if no tenth fits."""
    return next((part for part in TENTHS if guessed(path, part) == recorded(path)), math.nan)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition("__")[0])
def test_references_and_matches(path: Path) -> None:
    assert part_of(path) in TENTHS


BAR = 1e-3
"""Relative; noise of 1e-9 in the shares, which decides among equal jobs, moves mean completion time, makespan and use
as far. A run that knows all rates is outside."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition("__")[0])
def test_whole_runs(path: Path) -> None:
    run = next(run for run in runs() if run.id == path.name.removesuffix(".estimator.json"))
    references, matches = recorded(path)
    estimator = Estimator(part_of(path), len(references), JOB_NAMES, estimator_column_bug=True)
    estimates = estimator.begin(run.setting)
    found = run.played(dataclasses.replace(run.plan(), estimates=estimates))
    figures = round_figures(found)
    ours = np.array([figures.jct_mean_s, found.makespan_s, figures.utilization])
    assert ours == pytest.approx([run.row[name] for name in ("average_jct", "makespan", "utilization")], rel=BAR)
    names = {kind: name for (name, num_gpu), kind in run.setting.oracle.kind_index.items() if num_gpu == 1}
    estimated = {str(job): names[kind] for job, kind in found.jobs[["id", "estimated_kind"]].tolist()}
    assert estimated == matches
