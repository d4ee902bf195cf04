"""Runs of the paper's figures whose values its notebooks print: the same to the last printed digit."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from fastsim.experiments.reproduce import gavel as figure
from fastsim.experiments.reproduce.published_numbers import published_numbers
from fastsim.simulation.simulate import played
from tests.golden.gavel import gavel

pytestmark = pytest.mark.skipif(not gavel.GAVEL.exists(), reason="reference data not found (set FASTSIM_SHARED)")
RATES = str(gavel.GAVEL / "oracle/simulation_throughputs.json")
EARLY = str(gavel.GAVEL / "oracle/oracle_throughputs.json")
STATIC = "makespan (static-multiple)"
SINGLE, MULTIPLE = "fifo-single (repository figure)", "fifo-multiple (repository figure)"
LOADED = (
    (SINGLE, "fifo_perf", "0.4"), (SINGLE, "fifo_perf", "2"), (SINGLE, "fifo_perf", "4"), (SINGLE, "fifo", "2"),
    (SINGLE, "fifo", "4"), (MULTIPLE, "fifo_perf", "0.8"), ("8", "gandiva", "2"), ("8", "allox", "2"),
    ("8", "allox", "4"), (MULTIPLE, "fifo_packed", "1.6"),
)  # fmt: skip
"""Figures, policies and jobs an hour of printed completion times of seed 0."""


@pytest.mark.parametrize(
    ("name", "policy", "rate"), [LOADED[0], *(pytest.param(*load, marks=pytest.mark.long) for load in LOADED[1:])]
)
def test_completion_times_of_may_2020(name: str, policy: str, rate: str) -> None:
    keys = {"panel": "seed 0, printed", "metric": "jct_mean", "series": policy, "x": rate}
    printed = published_numbers("gavel").filter(figure=name, **keys)
    point = figure.LoadPoint(figure.LOADS[name][0].multi_gpu, policy, float(rate), 0)
    hours = played(figure._scenario(point, RATES))[0].summary["jct_mean_s"][0] / 3600
    assert hours == pytest.approx(printed["value"].item(), abs=0.5 * printed["digit"].item())


@pytest.mark.skipif(not Path(EARLY).exists(), reason="rates of September 2019 not found")
@pytest.mark.parametrize("jobs", [100, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [name for name, static in figure.STATIC.items() if static.table == "2019-09"])
def test_makespans_of_september_2019(name: str, jobs: int) -> None:
    static = figure.STATIC[name]
    rows = published_numbers("gavel").filter(figure=name, series="fifo_packed", metric="makespan", x=str(jobs))
    point = figure.StaticPoint(static.cluster, static.multi_gpu, "fifo_packed", jobs, 0, table=static.table)
    runs = [played(figure._scenario(point._replace(seed=seed), RATES, EARLY))[0] for seed in static.seeds]
    assert fmean(figure._early_span_s(run) / 3600 for run in runs) == pytest.approx(rows["value"].item(), abs=0.11)


@pytest.mark.parametrize(
    ("policy", "jobs"),
    [("fifo", 100), *(pytest.param(*run, marks=pytest.mark.long) for run in (
        ("fifo", 200), ("fifo", 700), ("gandiva", 100), ("gandiva", 200),
    ))],
)  # fmt: skip
def test_makespans_of_jobs_that_all_arrive_at_once(policy: str, jobs: int) -> None:
    rows = published_numbers("gavel").filter(figure=STATIC, series=policy, metric="makespan", x=str(jobs))
    points = [figure.StaticPoint(figure.CLUSTER, True, policy, jobs, seed) for seed in figure.SEEDS]
    hours = [played(figure._scenario(point, RATES))[0].summary["makespan_s"][0] / 3600 for point in points]
    assert fmean(hours) == pytest.approx(rows["value"].item(), abs=0.5 * rows["digit"].item())
