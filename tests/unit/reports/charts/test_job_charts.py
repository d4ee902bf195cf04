"""Charts of jobs: points by hand, runs of one load, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

import fastsim as fs
from fastsim.reports.charts.job_charts import CHARTS, completion_hours, job_points
from fastsim.reports.charts.series_looks import looks
from tests.needs import needed

needed("altair")


@pytest.fixture(scope="module")
def results() -> list[fs.Result]:
    """Two policies at two loads, the second load with two seeds."""
    results = []
    for policy in ("fifo", "max_min_fairness"):
        for load, seed in ((0.1, 0), (0.3, 0), (0.3, 1)):
            jobs = f"synth:gavel?jobs=40&rate_per_hour={load}&seed={seed}"
            results.append(fs.simulate("gavel:2:2:2", jobs, policy, window="3:20", record="placements"))
    return results


def test_a_curve_rises_by_one_job_at_each_completion(results: list[fs.Result]) -> None:
    points = job_points(results[:3], "jct_cdf")
    names = ["fifo, 0.1 jobs/h", "fifo, 0.3 jobs/h"]
    assert points["run"].unique(maintain_order=True).to_list() == names
    first = points.filter(pl.col("run") == names[0])
    jobs = results[0].jobs.filter(pl.col("pod_id").is_between(3, 19))
    assert first["x"].to_list() == sorted(span / 3600 for span in jobs["jct_s"].to_list())
    assert first["y"].to_list() == [100 * (i + 1) / 17 for i in range(17)]
    assert first["low"].null_count() == 17  # one run allows no interval


def test_seeds_of_a_policy_are_one_curve_with_its_interval(results: list[fs.Result]) -> None:
    points = job_points(results[1:3], "jct_cdf")
    assert points["run"].unique().to_list() == ["fifo"]
    x, y, low, high = points.select("x", "y", "low", "high").row(len(points) // 2)
    shares = [100 * float((completion_hours(run) <= x).mean()) for run in results[1:3]]
    half = 12.706204736 * abs(shares[0] - shares[1]) / 2  # Student's t of one degree of freedom
    mean = sum(shares) / 2
    assert (y, low, high) == pytest.approx((mean, max(mean - half, 0), min(mean + half, 100)))
    named = job_points(results[1:4], "jct_cdf", names=["a", "b", "a"])["run"].unique(maintain_order=True).to_list()
    assert named == ["a, 0.3 jobs/h", "a, 0.1 jobs/h", "b"]  # a name is one curve for each load


def test_thirty_seeds_are_one_curve_of_each_policy() -> None:
    runs = [fs.simulate("gavel:2:2:2", f"synth:gavel?jobs=5&seed={seed}", policy, record="placements", seed=seed)
            for policy in ("fifo", "isolated") for seed in range(3)]  # fmt: skip
    drawn = fs.job_chart([*runs * 10], "jct_cdf").to_dict()
    assert drawn["layer"][1]["encoding"]["color"]["scale"]["domain"] == ["fifo", "isolated"]
    assert [layer["mark"]["type"] for layer in drawn["layer"]] == ["area", "line", "point", "point"]


def test_runs_of_one_policy_and_load_are_one_point(results: list[fs.Result]) -> None:
    points = job_points(results, "jct_over_load")
    expected = [(name, load) for name in ("fifo", "max_min_fairness") for load in (0.1, 0.3)]
    assert points.select("run", "x").rows() == expected
    hours = [result.summary["jct_mean_s"].item() / 3600 for result in results]
    assert points["y"][0] == pytest.approx(hours[0]) and points["y"][1] == pytest.approx((hours[1] + hours[2]) / 2)
    assert points.row(0)[3:] == (None, None)  # one run allows no interval
    half = 12.706204736 * abs(hours[1] - hours[2]) / 2  # Student's t of one degree of freedom
    assert points["high"][1] - points["y"][1] == pytest.approx(half, rel=1e-6)
    assert points["low"][1] == pytest.approx(max(points["y"][1] - half, 0))


def test_other_clusters_are_other_lines() -> None:
    runs = [fs.simulate(cluster, f"synth:gavel?jobs=5&rate_per_hour={load}&seed=1", "fifo", record="placements")
            for cluster in ("gavel:2:2:2", "gavel:3:3:3") for load in (1, 2)]  # fmt: skip
    points = job_points(runs, "jct_over_load")
    assert points["run"].to_list() == ["gavel:2:2:2"] * 2 + ["gavel:3:3:3"] * 2 and points["x"].to_list() == [1, 2] * 2


def test_intervals_and_marks_are_drawn(results: list[fs.Result]) -> None:
    kinds = [layer["mark"]["type"] for layer in fs.job_chart(results, "jct_over_load").to_dict()["layer"]]
    assert kinds == ["errorbar", "line", "point", "point"]
    drawn = fs.job_chart(results[::3], "jct_cdf", names=["fifo", "max_min_fairness"]).to_dict()["layer"]
    assert [layer["mark"]["type"] for layer in drawn] == ["line", "point", "point"]
    expected = [one.mark for one in looks(["fifo", "max_min_fairness"])]
    assert drawn[1]["encoding"]["shape"]["scale"]["range"] == expected


def test_demand_is_what_jobs_in_the_system_ask_for(results: list[fs.Result]) -> None:
    points = job_points(results[:1], "demand_over_load")
    rows = results[0].jobs.select("num_gpu", "submit_s", "end_s").rows()
    end = max(time for _, *times in rows for time in times if time is not None)
    demand = sum(n * ((end if out is None else out) - at) for n, at, out in rows)
    assert points["y"].item() == pytest.approx(100 * demand / (end - rows[0][1]) / 6)
    assert job_points(results[:1], "demand_over_load", gpus=12)["y"].item() == pytest.approx(points["y"].item() / 2)


@pytest.mark.parametrize("chart", sorted(CHARTS))
def test_every_chart_is_drawn(results: list[fs.Result], chart: str) -> None:
    drawn = json.loads(fs.job_chart(results, chart, loads=[1, 2, 3, 4, 5, 6]).to_json())
    assert drawn["title"]["text"] == CHARTS[chart].title
    assert drawn["layer"][1]["encoding"]["x"]["title"] == CHARTS[chart].x


def test_long_curves_are_thinned() -> None:
    jobs = fs.simulate("openb:200?seed=1", "synth:openb?pods=1200&seed=1", record="placements")
    points = job_points([jobs])
    assert len(points) == 500 and points["y"][-1] == 100
    assert points["x"][-1] == completion_hours(jobs).max()


def test_what_cannot_be_drawn_is_one_clear_error(results: list[fs.Result]) -> None:
    with pytest.raises(fs.ScenarioError, match="did you mean 'jct_cdf'"):
        job_points(results, "jct_cfd")
    with pytest.raises(fs.ScenarioError, match="one at least"):
        job_points([])
    with pytest.raises(fs.ScenarioError, match="loads: found 1 of them, expected 6"):
        job_points(results, "jct_over_load", loads=[1])
    bare = fs.simulate("openb:20", "synth:openb?pods=2", record="summary")
    with pytest.raises(fs.ResultError, match="no jobs"):
        job_points([bare])
    some = fs.simulate("gavel:1:1:1", fs.Workload.synth("gavel", jobs=2), "fifo", record="placements")
    with pytest.raises(fs.ScenarioError, match="loads: found nothing"):
        job_points([some], "jct_over_load")
    with pytest.raises(fs.ScenarioError, match="GPUs of the cluster"):
        job_points([replace(some, scenario=None)], "demand_over_load", loads=[1])
    assert job_points([some], "demand_over_load", loads=[1])["y"].item() > 0
    with pytest.raises(fs.ResultError, match="demand_over_load: found a run of pods"):
        job_points([fs.simulate("openb:20", "synth:openb?pods=2")], "demand_over_load", loads=[1])
    cut = fs.simulate("gavel:1:1:1", "synth:gavel?jobs=2", "fifo", record="placements", until_s=360)
    with pytest.raises(fs.ResultError, match="no job that was done"):
        job_points([cut])
