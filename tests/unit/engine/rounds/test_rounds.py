"""Tables of runs in rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.engine.result import Result

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
    counts = run.timeline["event"].value_counts().rows_by_key("event", unique=True)
    assert counts == {"arrival": (30,), "sample": (row["rounds"],), "departure": (30,), "end": (1,)}


def test_a_saved_run_comes_back(run: Result, tmp_path: Path) -> None:
    again = Result.load(run.save(tmp_path / "run"))
    for name in ("summary", "jobs", "placements", "timeline"):
        assert again.frames[name].equals(run.frames[name])


def test_without_records_there_are_no_rows() -> None:
    bare = fs.simulate("gavel:3:3:3", JOBS, "isolated", record="summary")
    assert not (bare.recorded("timeline") or bare.recorded("placements"))
    assert bare.jobs.height == 30


def pods(*rows: tuple[float, int, float], **columns: list[Any]) -> fs.Workload:
    """Jobs by second of arrival, GPUs and seconds."""
    submit, gpus, seconds = (list(column) for column in zip(*rows, strict=True))
    table = {"pod_id": range(len(rows)), "submit_s": submit, "num_gpu": gpus, "duration_s": seconds, **columns}
    zero = pl.lit(0, pl.Int64)
    frame = pl.DataFrame(table).with_columns(cpu_milli=zero, memory_mib=zero, gpu_milli=pl.lit(1000, pl.Int16))
    return fs.Workload.from_arrow(frame.with_columns(pl.col("num_gpu").cast(pl.Int16)))


@pytest.mark.parametrize("policy", ["las", "fcfs", "srtf", "tiresias", "max_min_fairness", "fifo", "gandiva"])
def test_an_idle_cluster_holds_nothing(policy: str) -> None:
    run = fs.simulate("gavel:1:0:0", pods((0, 1, 100), (10_080, 1, 100)), policy)
    row = run.summary.row(0, named=True)
    assert row["mean_gpu_alloc_pct"] == pytest.approx(100 * 200 / 10_180, rel=1e-12)
    assert row["energy_kwh"] == pytest.approx(row["mean_power_w"] * 10_180 / 3.6e6, rel=1e-12) == pytest.approx(0.14225)
    assert (row["active_gpus"], row["gpu_alloc_pct"], row["gpu_hours"]) == (0, 0, pytest.approx(200 / 3600))
    told = run.timeline.filter(pl.col("event") != "sample").select("t_s", "event", "pod_id", "active_gpus").rows()
    assert told == [
        (0, "arrival", 0, 0), (100, "departure", 0, 0), (10_080, "arrival", 1, 0), (10_180, "departure", 1, 0),
        (10_180, "end", None, 0),
    ]  # fmt: skip
    assert run.timeline.filter(pl.col("active_gpus") == 1)["t_s"].to_list() == [0, 10_080]


@pytest.mark.parametrize("policy", ["las", "fcfs", "srtf", "tiresias", "max_min_fairness", "fifo", "isolated"])
def test_of_two_jobs_of_a_round_each_frees_its_gpu_when_it_is_done(policy: str) -> None:
    run = fs.simulate("gavel:2:0:0", pods((0, 1, 30), (0, 1, 50)), policy)
    row = run.summary.row(0, named=True)
    assert row["gpu_hours"] == pytest.approx(80 / 3600, rel=1e-12)
    assert (row["utilization_pct"], row["mean_gpu_alloc_pct"]) == (pytest.approx(80), pytest.approx(80))
    left = run.timeline.filter(pl.col("event") == "departure").select("t_s", "active_gpus").rows()
    idle_w = run.timeline["power_w"][-1]
    assert left == [(30, 1), (50, 0)]
    assert row["energy_kwh"] == pytest.approx((50 * idle_w + 80 * (300 - 30)) / 3.6e6, rel=1e-12)


@pytest.mark.parametrize("policy", ["las", "fcfs", "srtf", "tiresias"])
def test_gpus_bring_their_part_of_a_server_and_leave_with_it(policy: str) -> None:
    rows = fs.simulate("synergy:1", "synth:synergy?jobs=12&rate_per_hour=6&seed=3", policy).timeline
    assert rows.filter(pl.col("event") == "departure").height == 12 and rows["gpu_milli_alloc"].max() == 8000
    assert (8 * rows["cpu_milli_alloc"] == 24 * rows["gpu_milli_alloc"]).all()
    assert (8 * rows["memory_mib_alloc"] == 500 * 1024 * rows["gpu_milli_alloc"] // 1000).all()


@pytest.mark.parametrize("policy", ["las", "max_min_fairness", "fifo"])
def test_no_figure_depends_on_the_hour(policy: str) -> None:
    early, late = (
        fs.simulate("gavel:1:0:0", pods((at, 1, 500), (at + 360, 1, 500)), policy).summary for at in (0, 360_000)
    )
    assert early.columns == late.columns
    for name, value in early.row(0, named=True).items():
        assert late[name].item() == (value if value is None else pytest.approx(value, rel=1e-9)), name


def test_use_counts_from_the_first_arrival_but_for_gavel() -> None:
    jobs = pods((3600, 1, 3600))
    assert fs.simulate("gavel:1:0:0", jobs, "fifo").summary["utilization_pct"].item() == pytest.approx(100)
    gavel = fs.simulate("gavel:1:0:0", jobs, "fifo", compat="use_from_zero").summary["utilization_pct"].item()
    assert gavel == pytest.approx(50)


def test_those_who_share_gpus_pay_for_them_once() -> None:
    given: dict[str, Any] = {"policy": "max_min_fairness(mode=packed)", "prices": "fixed?v100=1&p100=1&k80=1"}
    run = fs.simulate("gavel:3:3:3", JOBS, **given)
    held = fs.simulate("gavel:3:3:3", JOBS, **given, record="all").placements
    assert held["mate_id"].is_not_null().any()
    row = run.summary.row(0, named=True)
    assert row["cost"] == pytest.approx(row["gpu_hours"], rel=1e-9) == pytest.approx(run.jobs["cost"].sum(), rel=1e-9)
    gpus = held.explode("gpu_ids").sort("start_s").group_by("node_id", "gpu_ids").agg("start_s", "end_s")
    hours = sum(union_s(*columns) for columns in gpus.select("start_s", "end_s").iter_rows()) / 3600
    assert row["gpu_hours"] == pytest.approx(hours, rel=1e-9)
    assert fs.simulate("gavel:3:3:3", JOBS, **given, compat="lease_cost").summary["cost"].item() > 1.1 * hours


def union_s(starts: list[float], ends: list[float]) -> float:
    """Seconds in at least one of the intervals, which begin in order."""
    seconds, until = 0.0, -float("inf")
    for start, end in zip(starts, ends, strict=True):
        seconds += max(0.0, end - max(start, until))
        until = max(until, end)
    return seconds


def test_jobs_that_weigh_the_same_have_one_mean() -> None:
    names = [
        {name for name in run.summary.columns if name.startswith("jct_mean_weight")}
        for run in (
            fs.simulate("gavel:1:0:0", pods((0, 1, 60), (0, 1, 60), weight=w), "fcfs") for w in ([2, 2], [1, 2])
        )
    ]
    assert names == [set(), {"jct_mean_weight_1_s", "jct_mean_weight_2_s"}]


def test_without_prices_nothing_has_a_cost() -> None:
    run = fs.simulate("gavel:1:0:0", pods((0, 1, 100)), "fifo")
    assert (run.summary["cost"].item(), run.jobs["cost"].item()) == (None, None)


@pytest.mark.parametrize("policy", ["round_robin", "max_min_fairness"])
def test_pauses_and_restarts_are_counted(policy: str) -> None:
    # Two jobs take turns on one GPU; restarts take 60 s, first starts none.
    run = fs.simulate("gavel:1:0:0", pods((0, 1, 600), (0, 1, 600)), policy, round_s=360.0, restart_s=60.0)
    jobs, row = run.jobs, run.summary.row(0, named=True)
    stays = run.placements.sort("pod_id", "start_s")
    gaps = stays.select("pod_id", (pl.col("start_s").shift(-1).over("pod_id") - pl.col("end_s")).alias("gap_s"))
    assert (
        jobs["paused_s"].to_list()
        == gaps.group_by("pod_id").agg(pl.col("gap_s").sum()).sort("pod_id")["gap_s"].to_list()
    )
    assert jobs["restarts"].to_list() == (stays["pod_id"].value_counts().sort("pod_id")["count"] - 1).to_list()
    assert row["restarts"] == row["preemptions"] == int(jobs["restarts"].sum()) > 0
    assert jobs["attempts"].sum() == stays.height
    assert 0 < row["paused_mean_s"] == jobs["paused_s"].mean()
    held = float((stays["end_s"] - stays["start_s"]).sum())
    assert row["goodput_pct"] == pytest.approx(100 * 1200 / held)
    assert jobs["slowdown"].to_list() == pytest.approx((jobs["jct_s"] / 600).to_list(), rel=1e-12)


@pytest.mark.parametrize("policy", ["las", "fcfs", "round_robin", "max_min_fairness", "fifo"])
def test_a_first_start_takes_no_restart(policy: str) -> None:
    row = fs.simulate("gavel:1:0:0", pods((0, 1, 600)), policy, restart_s=60.0).summary.row(0, named=True)
    assert (row["jct_mean_s"], row["gpu_hours"], row["goodput_pct"], row["restarts"]) == (600, 1 / 6, 100, 0)


def test_a_run_that_is_cut_off_says_what_still_holds_gpus() -> None:
    run = fs.simulate("gavel:1:0:0", pods((0, 1, 5000), (0, 1, 5000)), "fcfs", until_s=720.0)
    assert run.jobs.select("state", "paused_s").rows() == [("running", 0.0), ("pending", None)]
    assert run.placements.select("start_s", "end_s", "reason").rows() == [(0.0, 720.0, "running")]
    row = run.summary.row(0, named=True)
    assert (row["pods_running"], row["pods_pending"], row["active_gpus"], row["gpu_hours"]) == (1, 1, 1, 0.2)


def test_shares_of_tenants_are_compared() -> None:
    jobs = pods((0, 1, 600), (0, 1, 1800), tenant=["a", "b"])
    row = fs.simulate("gavel:2:0:0", jobs, "fcfs").summary.row(0, named=True)
    assert row["tenant_jain"] == pytest.approx(2400**2 / (2 * (600**2 + 1800**2)))
    assert row["tenant_gini"] == pytest.approx(0.25)
