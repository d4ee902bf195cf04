"""Adaptive jobs through `simulate`: tables, power and fragmentation, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ScenarioError
from fastsim.performance.applications.family import Applications
from fastsim.simulation.engines.adaptive import applications_from, jobs_of

CLUSTER, JOBS = "sia:2:1:1", "synth:sia?jobs=4&seed=1"


def result(**options: Any) -> fs.Result:
    """A short run."""
    given = {"cluster": CLUSTER, "workload": JOBS, "policy": "sia"} | options
    return fs.simulate(**given)


@pytest.mark.parametrize("policy", ["sia", "pollux(generations=10)"])
def test_tables_and_what_nodes_look_like(policy: str) -> None:
    found = result(record="all", policy=policy)
    jobs, (row,) = found.jobs, found.summary.to_dicts()
    assert jobs["state"].to_list() == ["finished"] * 4
    assert (jobs["work_done"] == jobs["total_work"]).all()
    assert row["restarts_mean"] == jobs["restarts"].mean()
    assert row["gpu_hours_mean"] == pytest.approx(jobs["gpu_hours"].mean(), rel=1e-12)
    last_s, first_s = max(jobs["end_s"].to_list()), min(jobs["submit_s"].to_list())
    assert row["makespan_s"] == last_s - first_s
    assert row["mean_power_w"] > row["eopc_w"] > 0 and row["mean_frag_milli"] > 0
    assert row["energy_kwh"] > 0
    held = found.placements.with_columns(gpu_s=(pl.col("end_s") - pl.col("start_s")) * pl.col("gpu_ids").list.len())
    worked_s = sum(held["gpu_s"].to_list()) - 3600 * sum(jobs["restart_gpu_hours"].to_list())
    assert worked_s == pytest.approx(row["utilization_pct"] / 100 * 24 * row["makespan_s"])
    assert jobs["gpu_hours"].sum() * 3600 == pytest.approx(held["gpu_s"].sum(), rel=1e-12)
    assert (jobs["round_gpu_hours"] >= jobs["gpu_hours"]).all()
    assert (jobs["charged_restarts"] <= jobs["restarts"]).all()
    counts = found.timeline["event"].value_counts().rows_by_key("event", unique=True)
    assert (counts["arrival"], counts["departure"], counts["end"]) == ((4,), (4,), (1,)) and counts["sample"][0] < row[
        "rounds"
    ]


def test_jobs_that_share_nodes_disturb_each_other() -> None:
    shared: dict[str, Any] = {"cluster": "sia:3:0:0", "policy": "pollux(apart=False, generations=10)", "round_s": 60}
    calm, disturbed = (result(**shared, interference=part) for part in (0.0, 0.5))
    assert disturbed.summary["jct_mean_s"][0] > calm.summary["jct_mean_s"][0]
    assert disturbed.provenance["options"]["interference"] == 0.5
    for part in (1.0, -0.1, float("nan"), True):
        with pytest.raises(ScenarioError, match="interference: found"):
            result(**shared, interference=part)


def test_shipped_applications_are_the_default_and_rounds_last_a_minute() -> None:
    one, same = result(), result(rates=Applications.default(), round_s=60)
    assert one.jobs.equals(same.jobs)
    assert not one.jobs.equals(result(round_s=300).jobs)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"realloc_s": 60.0}, "realloc_s"),
        ({"begin_s": 60.0}, "begin_s"),
        ({"ideal": True}, "ideal"),
        ({"rates": 3}, r"rates: found 3 \(int\)"),
        ({"workload": "synth:openb?pods=3"}, "workload: found no such column"),
        ({"cluster": "gavel:4:4:4"}, "job 0: cifar10: found GPU models k80, p100, v100"),
        ({"cluster": "uniform?nodes=2&gpus=0"}, "no GPUs"),
    ],
)
def test_what_makes_no_sense_is_one_error(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FastsimError, match=complaint):
        result(**options)


@pytest.mark.spread(4)
@pytest.mark.parametrize(
    "policy",
    ["sia", "sia(aware=False, changed=0.01)", "sia(rigid=True)", "pollux(generations=5)",
     "pollux(generations=5, tuned=False)", "rotation", "rotation(shares=finish_time_fairness)",
     "served(order=tiresias)", "planned", "optimus"],
)  # fmt: skip
def test_every_policy_runs_on_gpus_of_one_model(policy: str) -> None:
    found = result(cluster="sia:4:0:0", workload="synth:sia?jobs=4&seed=3&rigid_share=0.3", policy=policy, record="all")
    assert found.summary["pods_finished"].to_list() == [4] and found.jobs["jct_s"].is_not_null().all()
    assert found.timeline["gpu_milli_alloc"].max() <= 16_000  # type: ignore[operator]
    assert found.placements["node"].n_unique() <= 4 and found.summary["utilization_aws_pct"][0] > 0


@pytest.mark.parametrize("policy", ["sia", "pollux", "rotation"])
def test_jobs_that_only_have_rates_are_refused_with_the_reason(policy: str) -> None:
    with pytest.raises(FastsimError, match=r"synth:gavel: batch_size: .*: a rate alone does not say how a job fares"):
        result(workload="synth:gavel?jobs=3", policy=policy)


def test_other_rates_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"rates: found 'rates.json'"):
        applications_from("rates.json")


def test_jobs_say_what_may_change() -> None:
    from fastsim.scenario import run_inputs

    text = "synth:sia?jobs=40&seed=2&rigid_share=0.3&fixed_batch_share=0.3"
    assert {job.mode for job in jobs_of(run_inputs.workload_from(text).workload)} == {"adaptive", "rigid", "scale-gpus"}


PRICES = "fixed?aws=1&rtx=2"


def owned(**columns: list[Any]) -> fs.Workload:
    """Four jobs that train, with further columns."""
    table = pl.DataFrame(pl.from_arrow(fs.Workload.synth("sia", jobs=4, seed=1).table()))
    return fs.Workload.from_arrow(table.with_columns(pl.Series(name, values) for name, values in columns.items()))


@pytest.mark.parametrize("policy", ["sia", "optimus"])
@pytest.mark.parametrize("until_s", [None, 2000.0])
def test_figures_count_tenants_weights_deadlines_and_prices(policy: str, until_s: float | None) -> None:
    jobs = owned(tenant=["b", None, "a", "b"], weight=[1.0, 2.0, 1.0, None], deadline_s=[None, 1e5, 925.0, 2200.0])
    given: dict[str, Any] = {"policy": policy, "prices": PRICES, "until_s": until_s}
    run = fs.simulate("sia:1:0:1", jobs, **given)
    assert run.audit(fs.Scenario("sia:1:0:1", jobs, **given)).differences == []
    row, count = run.summary.row(0, named=True), len(run.jobs)
    assert run.jobs["weight"].to_list() == [1.0, 2.0, 1.0, 1.0][:count]
    assert run.jobs["deadline_met"].to_list() == [None, True, False, False][:count]
    assert row["slo_violations"] == count - 2
    held = run.placements.select(
        hours=(pl.col("end_s") - pl.col("start_s")) / 3600 * pl.col("gpu_ids").list.len(), node="node_id"
    )
    assert row["cost"] == pytest.approx((held["hours"] * (1 + held["node"])).sum(), rel=1e-12)
    assert row["cost"] == pytest.approx(run.jobs["cost"].sum(), rel=1e-12) and row["gpu_hours"] < row["cost"]
    owners = pl.Series(["b", "", "a", "b"][:count])
    by_tenant = [float(run.jobs.filter(owners == name)["gpu_hours"].sum()) for name in "ab"]
    assert row["tenant_gini"] == pytest.approx(abs(by_tenant[0] - by_tenant[1]) / (2 * sum(by_tenant)), rel=1e-9)
    bare = fs.simulate("sia:1:0:1", jobs, **given, record="summary")
    assert bare.summary.equals(run.summary) and not bare.recorded("placements")


def test_cost_of_a_run_that_was_stopped_is_that_of_one_in_a_piece(tmp_path: Path) -> None:
    owned(tenant=["b", None, "a", "b"]).write(tmp_path / "jobs.parquet")
    given: dict[str, Any] = {"policy": "sia", "prices": PRICES, "checkpoint_s": 0.0}

    def stop(jobs: int) -> None:
        if jobs > 1:
            raise KeyboardInterrupt

    whole = fs.simulate("sia:1:0:1", str(tmp_path / "jobs.parquet"), **given, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fs.simulate("sia:1:0:1", str(tmp_path / "jobs.parquet"), **given, out=tmp_path / "part", progress=stop)
    resumed = fs.resume(tmp_path / "part")
    assert resumed.summary.equals(whole.summary) and resumed.audit().differences == []
