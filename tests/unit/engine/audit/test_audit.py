"""The auditor: it agrees with a right run, and finds every figure that is not what placements make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.cli.main import exit_code
from fastsim.engine.audit.audit import Audit, audited
from fastsim.engine.result import Result
from fastsim.engine.tables import LazyFrames
from fastsim.errors import ResultError
from tests.engines import RUNS, small_run

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
PODS: dict[str, Any] = {"cluster": "openb:4", "workload": "synth:openb?pods=80&seed=5", "queue": "fifo"}

OTHER = {"pods": "best_fit", "shares": "gandiva", "orders": "fcfs", "adaptive": "sia"}
"""Another policy of the same engine."""


@pytest.fixture(scope="module")
def pods() -> Result:
    return fs.simulate(**PODS)


def changed(result: Result, table: str, frame: pl.DataFrame) -> Result:
    """The result with another table."""
    return replace(result, frames=LazyFrames({**result.frames, table: frame}, {}))


def raised(frame: pl.DataFrame, column: str, row: int) -> pl.DataFrame:
    """The table with one figure that is 1 more, or 1 where there is none."""
    more = (pl.col(column).fill_null(0) + 1).cast(frame.schema[column])
    return frame.with_columns(pl.when(pl.int_range(pl.len()) == row).then(more).otherwise(column).alias(column))


def figures(audit: Audit) -> set[tuple[str, str]]:
    return {(one.table, one.column) for one in audit.differences}


def hidden(result: Result, table: str) -> set[str]:
    """Columns that no audit of this run checks."""
    audit = audited(result)
    return {column for name, column, _ in audit.unchecked if name == table}


def test_a_right_run_has_no_difference(pods: Result) -> None:
    audit = pods.audit()
    assert audit.differences == [] and str(audit) == f"{audit.checked} figures checked, none differs"
    assert audit.checked > 50 * len(pods.jobs)


@pytest.mark.parametrize("policy", ["max_min_fairness", "finish_time_fairness"])
def test_the_mate_of_a_job_that_ends_has_the_gpu_alone_for_the_rest_of_the_round(policy: str) -> None:
    """Rounds of whole steps end with the last task, some milliseconds after the end of a job that shared its GPU."""
    jobs = "synth:gavel?jobs=12&rate_per_hour=6&seed=2"
    result = fs.simulate("gavel:2:2:2", jobs, f"{policy}(mode=packed)", compat="whole_steps", record="all")
    assert result.placements["mate_id"].count() > 100 and result.audit().differences == []


@pytest.mark.long
def test_every_column_is_checked_or_said_not_to_be(pods: Result) -> None:
    names = {"jobs": {"pod_id"}, "timeline": {"t_s", "*"}, "summary": set[str]()}
    for table, keys in names.items():
        wrong = hidden(pods, table) - keys
        for column in set(pods.frames[table].columns) - wrong - keys:
            if pods.frames[table].schema[column].is_numeric():
                row = len(pods.frames[table]) - 1
                audit = audited(changed(pods, table, raised(pods.frames[table], column, row)))
                assert (table, column) in figures(audit), f"{table}.{column}"


def test_what_is_not_checked_is_told(pods: Result) -> None:
    assert hidden(pods, "jobs") == {"pod_id", "native_id", "reason", "lost_work_s", "cost"}
    assert hidden(pods, "summary") >= {"goodput_pct"} and "mean_power_w" not in hidden(pods, "summary")
    told = pods.audit().by_reason()
    assert told["not known to this engine"][0].startswith("summary.")


@pytest.mark.parametrize(
    "options",
    [
        {"sample_s": 3600.0}, {"until_s": 20_000.0}, {"queue": "drop"}, {"queue": "fifo_skip"},
        {"retarget": "synth:openb?pods=30&seed=4"}, {"record": "placements"},
        {"deschedule": ("frag_one_pod:0.5@40000",)},
        {"workload": "synth:openb?pods=120&seed=5&tune=3", "preempt": "priority", "queue": "priority"},
    ],
)  # fmt: skip
def test_runs_with_options_have_no_difference(options: dict[str, Any]) -> None:
    audit = fs.simulate(**(PODS | options)).audit()
    assert audit.differences == [] and audit.checked > 0


def test_a_run_that_was_written_to_a_folder_has_no_difference(tmp_path: Path) -> None:
    audit = fs.simulate(**(PODS | {"out": tmp_path / "run"})).audit()
    assert audit.differences == [] and audit.checked > 0
    assert fs.Result.load(tmp_path / "run").audit().checked == audit.checked


@pytest.mark.spread(2)
@pytest.mark.parametrize("engine", ["pods", "shares", "orders", "adaptive"])
def test_runs_to_a_folder_resumed_and_forked_ones_have_the_same_figures(engine: str, tmp_path: Path) -> None:
    given = RUNS[engine] | {"deschedule": ()} if engine == "pods" else RUNS[engine]
    whole = fs.simulate(**given)
    written = fs.simulate(**given, out=tmp_path / "run", checkpoint_pods=3, keep_checkpoint=True)
    middle_s = float(whole.jobs["submit_s"].median())  # type: ignore[arg-type]
    forked = fs.fork(tmp_path / "run", tmp_path / "fork", at_s=middle_s)
    other = fs.fork(tmp_path / "run", tmp_path / "other", at_s=middle_s, policy=OTHER[engine])
    for run in (written, forked):
        assert run.summary.equals(whole.summary) and run.audit(fs.Scenario(**given)).differences == []
    assert other.audit(fs.Scenario(**given)).differences == []


def test_figures_worked_out_by_hand() -> None:
    node = {"cpu_milli": 4000, "memory_mib": 1000, "num_gpu": 2, "gpu_model": "T4"}
    rows = {"submit_s": [0.0, 0.0, 10.0], "duration_s": [30.0, 20.0, 10.0], "num_gpu": 1, "gpu_milli": [500, 500, 1000],
            "cpu_milli": 0, "memory_mib": 100}  # fmt: skip
    work = fs.Workload.from_arrow(pl.DataFrame(rows).with_row_index("pod_id"))
    scenario = fs.Scenario(fs.Cluster.mix([(1, node)]), work, "gpu_packing")
    run = fs.simulate(scenario.cluster, work, "gpu_packing")
    # A T4 draws 70 W or 10 W: GPU 0 works for 30 s, GPU 1 from 10 s to 20 s; the idle socket draws 15 W.
    joules = 70 * 30 + (70 * 10 + 10 * 20) + 15 * 30
    wrong = run.summary.with_columns(energy_kwh=pl.lit(0.0), mean_gpu_alloc_pct=pl.lit(0.0))
    audit = audited(changed(run, "summary", wrong), scenario)
    told = {one.column: one.expected for one in audit.differences}
    assert told == pytest.approx({"energy_kwh": joules / 3.6e6, "mean_gpu_alloc_pct": 100 * (15 + 10 + 10) / 60})


def test_instances_of_partitioned_gpus_are_held_for_gpu_hours() -> None:
    cluster = fs.Cluster.uniform(nodes=1, gpu="A100", gpus=2, mig=["3g.40gb+2g.20gb", ""])
    rows = {"submit_s": [0.0, 5.0], "duration_s": [30.0, 10.0], "num_gpu": [0, 1], "gpu_milli": [0, 500],
            "mig": ["3g.40gb", None], "cpu_milli": 0, "memory_mib": 100}  # fmt: skip
    work = fs.Workload.from_arrow(pl.DataFrame(rows).with_row_index("pod_id"))
    run = fs.simulate(cluster, work, "best_fit")
    scenario = fs.Scenario(cluster, work, "best_fit")
    assert run.summary["gpu_hours"].item() == pytest.approx((428 * 30 + 500 * 10) / 1000 / 3600)
    assert audited(run, scenario).differences == []
    assert ("summary", "gpu_hours") not in {one[:2] for one in audited(run, scenario).unchecked}


def test_more_than_a_node_has_is_found(pods: Result) -> None:
    endless = pods.placements.with_columns(end_s=pl.lit(None, pl.Float64))
    assert ("placements", "gpu_ids") in figures(audited(changed(pods, "placements", endless)))


def test_tables_must_be_those_of_a_run(pods: Result) -> None:
    with pytest.raises(ResultError, match="placements: gpu_ids: found no such column, expected the tables of a run"):
        changed(pods, "placements", pods.placements.drop("gpu_ids")).audit(fs.Scenario(**PODS))


def test_inputs_must_be_those_of_the_run() -> None:
    cluster, work = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=2), fs.Workload.synth("openb", pods=9, seed=1)
    run = fs.simulate(cluster, work, queue="fifo")
    assert run.audit().differences == run.audit(fs.Scenario(cluster, work)).differences == []
    with pytest.raises(ResultError, match="workload: found other rows"):
        run.audit(fs.Scenario(cluster, fs.Workload.synth("openb", pods=9, seed=2)))


@pytest.mark.spread(1)
@pytest.mark.parametrize("engine", ["shares", "orders", "adaptive"])
def test_tables_of_jobs_in_rounds_are_checked(engine: str) -> None:
    run = small_run(engine)
    for column in ("start_s", "jct_s", "num_gpu"):
        audit = audited(changed(run, "jobs", raised(run.jobs, column, 2)))
        assert ("jobs", column) in figures(audit)
    assert ("timeline", "active_gpus") in figures(
        audited(changed(run, "timeline", raised(run.timeline, "active_gpus", len(run.timeline) - 1)))
    )


def test_cost_is_hours_of_gpus_times_their_price() -> None:
    cluster, work = "gavel:2:2:2", "synth:gavel?jobs=5&rate_per_hour=2&seed=3"
    run = fs.simulate(cluster, work, "fifo", prices="fixed?v100=2.48&p100=1.5&k80=0.45")
    assert ("jobs", "cost") not in figures(run.audit()) and "cost" not in hidden(run, "jobs")
    assert ("jobs", "cost") in figures(audited(changed(run, "jobs", raised(run.jobs, "cost", 3))))
    free = fs.simulate(cluster, work, "fifo").audit()
    assert ("jobs", "cost", "there are no prices") in free.unchecked


def test_jobs_of_a_window_arrive_when_the_run_says() -> None:
    jobs = "synth:gavel?jobs=20&rate_per_hour=1&seed=3"
    audit = fs.simulate("gavel:2:2:2", jobs, "fifo", window="5:10").audit()
    assert audit.differences == []
    assert ("jobs", "submit_s", "the workload draws jobs without end") in audit.unchecked


def test_jobs_without_gpus_leave_no_placements_in_rounds() -> None:
    kinds: dict[str, Any] = {"cpu_milli": pl.Int64, "memory_mib": pl.Int64, "num_gpu": pl.Int16, "gpu_milli": pl.Int16}
    job = {"pod_id": 0, "submit_s": 0.0, "cpu_milli": 1000, "memory_mib": 64, "num_gpu": 0, "gpu_milli": 0}
    jobs = fs.Workload.from_arrow(pl.DataFrame(job | {"duration_s": 90.0}).cast(pl.Schema(kinds)))
    audit = fs.simulate("openb:5", jobs, "fcfs").audit(fs.Scenario("openb:5", jobs, "fcfs"))
    assert audit.unchecked == [("summary", "*", "jobs without GPUs leave no placements in rounds")]


def test_the_verb_tells_what_differs(pods: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods.save(tmp_path / "right")
    assert exit_code(["audit", str(tmp_path / "right")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("figures checked, none differs")
    assert all(line.startswith("not checked, ") for line in out[1:]) and len(out) > 1
    changed(pods, "summary", raised(pods.summary, "pods", 0)).save(tmp_path / "wrong")
    assert exit_code(["audit", str(tmp_path / "wrong")]) == 1
    assert "summary.pods: found 81, expected 80" in capsys.readouterr().out
    assert exit_code(["audit", str(tmp_path / "wrong"), "--json"]) == 1
    (content,) = json.loads(capsys.readouterr().out)["differences"]
    assert content == {"table": "summary", "column": "pods", "row": None, "found": 81, "expected": 80}
    assert exit_code(["audit", str(tmp_path / "none")]) == 1 and "expected a folder" in capsys.readouterr().err


def ruled_run(**columns: Any) -> tuple[Result, fs.Scenario]:
    """Three pods that arrive one after another on two nodes of two zones, with further columns."""
    rows = {"pod_id": [0, 1, 2], "submit_s": [0.0, 1.0, 2.0], "duration_s": [10.0] * 3, "cpu_milli": [1000] * 3,
            "memory_mib": [0] * 3, "num_gpu": [0] * 3, "gpu_milli": [0] * 3, **columns}  # fmt: skip
    nodes = [(1, {"name": name, "cpu_milli": 4000, "memory_mib": 0, "num_gpu": 0, "labels": [("zone", name)]})
             for name in ("a", "b")]  # fmt: skip
    workload = fs.Workload.from_polars(pl.DataFrame(rows))
    inputs: dict[str, Any] = {"cluster": fs.Cluster.mix(nodes), "workload": workload, "policy": "best_fit"}
    return fs.simulate(**inputs, queue="fifo_skip"), fs.Scenario(**inputs, queue="fifo_skip")


def moved(result: Result, pod_id: int, node_id: int) -> Result:
    """The result with a pod on another node."""
    there = pl.when(pl.col("pod_id") == pod_id).then(node_id).otherwise("node_id").cast(pl.Int64).alias("node_id")
    return changed(result, "placements", result.placements.with_columns(there))


@pytest.mark.parametrize("rule", ["apart", "ports", "beside"])
def test_pods_that_are_where_a_rule_about_others_forbids_are_found(rule: str) -> None:
    near = [{"rule": rule, "pods": "w", "topology": "zone"}]
    result, scenario = ruled_run(near=[None, near, None], spread_sets=[["w"], None, None])
    node = int(result.placements.filter(pl.col("pod_id") == 1)["node_id"][0])
    assert node == (0 if rule == "beside" else 1)
    found = [str(one) for one in audited(result, scenario).differences]
    assert not any("near" in one or "placed" in one for one in found), found
    wrong = [str(one) for one in audited(moved(result, 1, 1 - node), scenario).differences]
    assert f"placements[pod 1 at 1.0 s].node_id: found placed, expected obeys: {rule} by zone" in wrong


def test_pods_that_start_before_their_gang_are_found() -> None:
    result, scenario = ruled_run(job_id=[1, 1, 1], gang_size=[2, 2, None], after_gang=[None, None, True])
    assert not any("gang" in str(one) for one in audited(result, scenario).differences)
    early = pl.when(pl.col("pod_id") == 2).then(0.5).otherwise("start_s").alias("start_s")
    wrong = audited(changed(result, "placements", result.placements.with_columns(early)), scenario).differences
    text = "placements[pod 2 at 0.5 s].node_id: found placed, expected obeys: after a gang of its job"
    assert text in [str(one) for one in wrong]
