"""Tables of runs in rounds."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.result import Result

JOBS = fs.Workload.synth("gavel", jobs=30, rate_per_hour=6.0, seed=2, priorities=True, slos=True)


@pytest.fixture(scope="module")
def run() -> Result:
    return fs.simulate("gavel:3:3:3", JOBS, "gandiva", seed=1)


def test_jobs_have_the_columns_of_every_run_and_those_of_rounds(run: Result) -> None:
    online = fs.simulate("mix?g2=1", fs.Workload.synth("openb", pods=3), "best_fit").jobs
    assert run.jobs.columns[: len(online.columns) - 3] == online.columns[:-3]
    assert run.jobs.select(online.columns[:9]).schema == online.select(online.columns[:9]).schema
    assert run.jobs["state"].unique().to_list() == ["finished"]
    assert (run.jobs["work_done"] >= run.jobs["total_work"]).all()
    assert (run.jobs["jct_s"] >= run.jobs["ideal_s"] - 1e-6).all()


def test_placements_add_up_to_the_jobs(run: Result) -> None:
    stays = run.placements
    last = stays.group_by("pod_id").agg(pl.col("end_s").max(), pl.col("start_s").min(), pl.col("rounds").sum())
    both = last.join(run.jobs, on="pod_id", suffix="_job")
    assert both.height == 30
    assert (both["start_s"] == both["start_s_job"]).all()
    assert (both["end_s"] >= both["end_s_job"]).all()  # a pair's stay ends with the slower of the two
    assert (both["rounds"] == both["rounds_job"]).all()


def test_nobody_holds_a_gpu_with_anybody_but_its_mate(run: Result) -> None:
    stays = run.placements.explode("gpu_ids").sort("node_id", "gpu_ids", "start_s", "pod_id")
    other = stays.with_columns(
        pl.col("end_s", "pod_id", "start_s", "node_id", "gpu_ids").shift(-1).name.prefix("next_")
    ).filter(
        (pl.col("node_id") == pl.col("next_node_id")) & (pl.col("gpu_ids") == pl.col("next_gpu_ids"))
        & (pl.col("next_start_s") < pl.col("end_s"))
    )  # fmt: skip
    assert other.height > 0
    assert (other["next_pod_id"] == other["mate_id"]).all()


def test_the_summary_has_figures_of_rounds(run: Result) -> None:
    row = run.summary.row(0, named=True)
    assert row["pods_finished"] == 30
    assert row["jct_mean_s"] == pytest.approx(run.jobs["jct_s"].mean())
    assert row["jct_mean_weight_5_s"] == pytest.approx(run.jobs.filter(pl.col("weight") == 5)["jct_s"].mean())
    assert row["slo_violations"] == (~run.jobs["deadline_met"]).sum()
    assert 0 < row["utilization_v100_pct"] <= 100
    assert row["rounds"] == run.timeline.height


def test_a_saved_run_comes_back(run: Result, tmp_path: Path) -> None:
    again = Result.load(run.save(tmp_path / "run"))
    for name in ("summary", "jobs", "placements", "timeline"):
        assert again.frames[name].equals(run.frames[name])


def test_without_records_there_are_no_rows() -> None:
    bare = fs.simulate("gavel:3:3:3", JOBS, "isolated", record="summary")
    assert (bare.timeline.height, bare.placements.height) == (0, 0)
    assert bare.jobs.height == 30
