"""Jobs through the front door."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import fastsim as fs
from fastsim.engine.shares.plan import SharePlan, setting_of
from fastsim.errors import FastsimError, InputError, PolicyError, ScenarioError
from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.performance.oracle import Oracle
from fastsim.policies.allocators.pair_rate_estimates import Estimates
from fastsim.reports.text_tables import summary_text
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines import rounds
from fastsim.simulation.engines.rounds import with_estimates
from fastsim.workload import Workload
from tests.rounds import oracle, setting

JOBS = "synth:gavel?jobs=25&rate_per_hour=4&seed=1"
PAIRED_JOBS = "synth:gavel?jobs=25&rate_per_hour=6&seed=1"
PACKED = "max_min_fairness(mode=packed)"
PLAN = SharePlan(None, pairs=True)  # type: ignore[arg-type]


def test_same_seed_same_tables() -> None:
    runs = [fs.simulate("gavel:2:2:2", JOBS, "fifo", seed=4) for _ in range(2)]
    for name in ("summary", "timeline", "placements", "jobs"):
        assert runs[0].frames[name].equals(runs[1].frames[name])
    other = fs.simulate("gavel:2:2:2", JOBS, "fifo", seed=5)
    assert not other.jobs.equals(runs[0].jobs)


def test_jobs_keep_the_names_of_their_source(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,time,application,num_replicas,batch_size\nb-7,0,cifar10,1,128\na-2,90,ncf,1,256\n"
    )
    run = fs.simulate("sia:1:1:1", f"sia:{tmp_path / 'jobs.csv'}", "sia", round_s=60, record="all")
    assert run.jobs["native_id"].to_list() == ["b-7", "a-2"]
    assert set(run.placements.select("pod_id", "native_id").iter_rows()) == {(0, "b-7"), (1, "a-2")}
    assert fs.simulate("gavel:2:2:2", JOBS, "fifo", record="all").jobs["native_id"].null_count() == 25


@pytest.mark.long
def test_workers_do_not_matter() -> None:
    scenarios = [Scenario("gavel:2:2:2", JOBS, policy) for policy in ("isolated", "gandiva", "max_min_fairness")]
    one, two = fs.simulate_many(scenarios), fs.simulate_many(scenarios, workers=2)
    assert all(a.jobs.equals(b.jobs) for a, b in zip(one, two, strict=True))


def test_a_folder_appears_complete(tmp_path: Path) -> None:
    run = fs.simulate("gavel:2:2:2", JOBS, "isolated", out=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"run.json", "jobs.parquet"}
    assert run.provenance["rates"]["kinds"] > 0
    assert "narayanan2020gavel" in run.cite()
    written = fs.Result.load(tmp_path / "run")
    assert written.provenance == run.provenance and written.provenance["policy"] == "isolated"
    assert written.citations == run.citations


def test_jobs_of_a_window_are_followed_by_others_for_ever() -> None:
    run = fs.simulate("gavel:4:4:4", "synth:gavel?jobs=40&rate_per_hour=0.5", "isolated", window="3:40")
    assert run.jobs.height > 40
    assert run.summary["jobs_counted"].to_list() == [37]
    assert re.search(r"jobs that count +37\n", summary_text(run))
    assert run.jobs[3:40]["state"].unique().to_list() == ["finished"]
    assert run.summary["jct_mean_s"][0] == pytest.approx(run.jobs[3:40]["jct_s"].mean())


@pytest.mark.parametrize(
    ("cluster", "jobs", "policy"),
    [
        ("gavel:4:4:4", "synth:gavel?jobs=40", "isolated"),
        ("synergy:2", "synth:synergy?jobs=40&arrivals=static&log=40", "srtf"),
    ],
)
def test_no_others_follow_jobs_that_come_at_once(cluster: str, jobs: str, policy: str) -> None:
    run = fs.simulate(cluster, jobs, policy, window="3:40")
    assert (run.jobs.height, run.summary["jobs_counted"].to_list()) == (40, [37])


@pytest.mark.parametrize("policy", ["isolated", "las"])
@pytest.mark.parametrize("name", ["synth:gavel", "synth:gavel-trace"])
@pytest.mark.parametrize("more", ["", "&rate_per_hour=1"])
def test_a_window_beyond_the_jobs_is_refused(name: str, more: str, policy: str) -> None:
    for window in ("5:11", "20:30"):
        expected = f"window: found {window}, expected FIRST:LAST with LAST at most 10, .* {name}"
        with pytest.raises(ScenarioError, match=expected):
            fs.simulate("gavel:4:4:4", f"{name}?jobs=10{more}", policy, window=window)
    assert fs.simulate("gavel:4:4:4", f"{name}?jobs=10{more}", policy).summary["jobs_counted"].to_list() == [10]


@pytest.mark.parametrize("policy", ["isolated", "las"])
def test_a_window_beyond_the_jobs_of_a_table_is_refused(policy: str) -> None:
    listed = fs.Workload.from_arrow(fs.Workload.synth("gavel", jobs=10).table(), name="listed")
    for window in ("5:11", "30:40"):
        with pytest.raises(ScenarioError, match=f"window: found {window}, expected FIRST:LAST with LAST at most 10"):
            fs.simulate("gavel:4:4:4", listed, policy, window=window)
    assert fs.simulate("gavel:4:4:4", listed, policy, window="5:10").summary["jobs_counted"].to_list() == [5]


def test_more_jobs_than_a_cluster_can_ever_finish_are_no_endless_run() -> None:
    with pytest.raises(ScenarioError, match="more jobs arrive than the cluster finishes"):
        fs.simulate("gavel:1:0:0", "synth:gavel?jobs=500&rate_per_hour=3600", "isolated", window="0:500",
                    record="summary", realloc_s=1e7)  # fmt: skip


def test_pods_may_run_in_rounds_too() -> None:
    pods = fs.Workload.synth("openb", pods=40, seed=1)
    whole = fs.Workload.from_arrow(pods.table().filter(pods.table()["gpu_milli"].to_numpy() == 1000))
    with pytest.warns(fs.ColumnIgnored, match="do not count cpu_milli, memory_mib"):
        found = fs.simulate("uniform?nodes=4&gpu=T4&gpus=8", whole, "isolated", round_s=60.0)
    assert found.jobs["state"].unique().to_list() == ["finished"]


def test_a_quirk_changes_the_run() -> None:
    clean, like = (fs.simulate("gavel:2:2:2", JOBS, "fifo", compat=compat).jobs for compat in ("", "gavel"))
    assert not clean["end_s"].equals(like["end_s"])


def test_the_ideal_has_the_same_tables_without_rounds(tmp_path: Path) -> None:
    from fastsim.engine.shares.ideal import run_ideal
    from fastsim.policies import registry
    from fastsim.simulation.engines.rounds import prepared_rounds

    given = ("gavel:2:2:2", JOBS, "max_min_fairness")
    rounds, ideal = (fs.simulate(*given, ideal=ideal, out=tmp_path / str(ideal)) for ideal in (False, True))
    run = prepared_rounds(Scenario(*given), registry.parse(given[2]))
    assert isinstance(run.plan, SharePlan)
    plain = run_ideal(run.setting, run.plan, run.batches, run.options)
    assert ideal.jobs["end_s"].to_list() == plain.jobs["finish_s"].tolist()
    assert ideal.jobs["end_s"].mean() < rounds.jobs["end_s"].mean()  # type: ignore[operator]
    assert all(ideal.frames[name].schema == rounds.frames[name].schema for name in rounds.frames)
    assert ideal.timeline.is_empty() and ideal.placements.is_empty()
    row = ideal.summary.row(0, named=True)
    assert (row["pods"], row["pods_finished"], row["gpu_alloc_pct"]) == (25, 25, None)
    assert row["makespan_s"] > 0 and row["utilization_pct"] > 0


def test_a_log_stands_beside_the_tables_and_changes_none(tmp_path: Path) -> None:
    given = ("gavel:2:2:2", JOBS, "max_min_fairness(mode=packed)")
    runs = []
    for record in ("all", "summary"):
        path = tmp_path / record / "run.log"
        runs.append((fs.simulate(*given, record=record, log=path), fs.simulate(*given, record=record), path))
    for logged, plain, path in runs:
        assert all(logged.frames[name].equals(plain.frames[name]) for name in plain.frames)
        assert logged.provenance["scenario_id"] == plain.provenance["scenario_id"]
        assert f"Total duration: {plain.summary['makespan_s'][0]:.3f} seconds" in path.read_text()
        assert path.read_text() == runs[0][2].read_text()
        assert len(re.findall(r"^Job \d+: \d+\.\d{3}$", path.read_text(), re.M)) == 25


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"log": ""}, "log: found '', expected a file"),
        ({"log": "never", "ideal": True}, "log: found 'never', expected none"),
        ({"log": "never", "policy": "fgd"}, "log: found 'never', expected nothing"),
        ({"ideal": 1}, "ideal: found 1, expected true or false"),
        ({"ideal": True, "checkpoint_pods": 5, "out": "never"}, "checkpoint: found one, expected none"),
        ({"round_s": 0.0}, "round_s"),
        ({"realloc_s": -1.0}, "realloc_s"),
        ({"window": "9:3"}, "window"),
        ({"rates": "none.json"}, "rates"),
        ({"prices": "none"}, "prices"),
        ({"queue": "fifo"}, "queue"),
        ({"global_queue": "yes"}, "global_queue"),
        ({"cluster": "openb"}, "GPU model"),
        ({"cluster": "uniform?nodes=2"}, "no GPUs"),
        ({"checkpoint_pods": 5}, "checkpoint: found a run without a folder"),
        ({"restart_s": 999.0}, "restart_s"),
    ],
)
def test_mistakes_are_one_clear_error(options: dict[str, object], match: str) -> None:
    given = {"cluster": "gavel:2:2:2", "workload": JOBS, "policy": "isolated"} | options
    with pytest.raises(FastsimError, match=match):
        fs.simulate(**given)  # type: ignore[arg-type]


def test_jobs_that_never_fit_and_options_for_pods_are_refused() -> None:
    with pytest.raises(InputError, match="GPUs of one model"):
        fs.simulate("gavel:2:2:2", "synth:gavel?jobs=40&multi_gpu=true", "isolated")
    with pytest.raises(ScenarioError, match="round_s"):
        fs.simulate("mix?g2=1", "synth:openb?pods=5", "fgd", round_s=60.0)


def test_jobs_are_explained_from_their_placements() -> None:
    run = fs.simulate("gavel:2:2:2", JOBS, "isolated", record="summary")
    with pytest.raises(FastsimError, match="explain: found no placements in a run with record='summary'"):
        fs.explain(run, pods=[1])


def asked(**options: Any) -> Scenario:
    return Scenario("gavel:2:2:2", PAIRED_JOBS, PACKED, **options)


def test_a_plan_is_told_only_if_asked() -> None:
    where = setting_of(fs.Cluster.uniform(nodes=1, gpu="v100"), fs.Oracle.default())
    assert with_estimates(PLAN, where, asked()) is PLAN
    estimates = with_estimates(PLAN, where, asked(profiling=0.5, references=10)).estimates
    assert isinstance(estimates, Estimates)
    assert estimates.names == JOB_NAMES
    assert len(estimates.reference) == 10
    assert str(estimates).startswith("0.5 of 10 references of 26 workloads")
    buggy = with_estimates(PLAN, where, asked(references=10, compat="estimator_column_bug")).estimates
    assert str(buggy).startswith("1 of 10 references")
    assert str(buggy).endswith("column bug")


def test_other_workloads_stand_in_the_order_of_the_rates() -> None:
    where = setting(oracle([[1.0], [2.0], [3.0]], num_gpu=[1, 2, 1]), [2])
    estimates = with_estimates(PLAN, where, asked(profiling=0.0)).estimates
    assert isinstance(estimates, Estimates)
    assert estimates.names == ("w0", "w2")


def test_what_is_believed_changes_the_run_and_a_seed_repeats_it() -> None:
    known = fs.simulate("gavel:2:2:2", PAIRED_JOBS, PACKED).jobs
    one, two = (fs.simulate("gavel:2:2:2", PAIRED_JOBS, PACKED, profiling=0.2, references=3).jobs for _ in range(2))
    assert one["state"].unique().to_list() == ["finished"]
    assert one.equals(two)
    assert not one.equals(known)


def test_profiles_of_everything_change_nothing() -> None:
    known, told = (fs.simulate("gavel:2:2:2", PAIRED_JOBS, "gandiva", references=n).jobs for n in (None, 26))
    assert told.equals(known)


def test_few_jobs_are_matched_that_will_never_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    matched, match = [], Estimates._most_alike

    def counted(self: Estimates, *measured: Any) -> int:
        matched.append(measured)
        return match(self, *measured)

    monkeypatch.setattr(Estimates, "_most_alike", counted)
    jobs = "synth:gavel?jobs=4&seed=3&rate_per_hour=1"
    run = partial(fs.simulate, "gavel:2:2:2", jobs, PACKED, window=(1, 3), profiling=0.5, references=2)
    few = run()
    assert len(matched) < 4 * rounds.ESTIMATED_ROWS
    monkeypatch.setattr(rounds, "ESTIMATED_ROWS", 3)
    assert_frame_equal(run().jobs.head(4), few.jobs.head(4))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "isolated", "profiling": 0.5}, "profiling: found 0.5, expected nothing: policy isolated lets no"),
        ({"policy": "isolated", "references": 5}, "references: found 5, expected nothing: policy isolated lets no"),
        ({"policy": "fgd", "references": 5}, "references: found 5, expected nothing: policy fgd is for pods"),
        ({"references": 27}, "references: found 27, expected at most 26"),
        ({"references": 0}, "references: found 0, expected a whole number of 1 or more"),
        ({"references": True}, "references: found True"),
        ({"profiling": 1.5}, "profiling: found 1.5, expected a part from 0 to 1"),
        ({"profiling": "half"}, "profiling: found 'half'"),
    ],
)
def test_mistakes_in_estimates_are_one_clear_error(options: dict[str, Any], words: str) -> None:
    given = {"cluster": "gavel:2:2:2", "workload": PAIRED_JOBS, "policy": PACKED} | options
    with pytest.raises(ScenarioError, match=words):
        fs.simulate(**given)


def test_gangs_have_no_profile() -> None:
    with pytest.raises(PolicyError, match="of a kind without a profile, expected known workloads on 1 GPU"):
        fs.simulate("gavel:8:8:8", "synth:gavel?jobs=30&multi_gpu=true", PACKED, profiling=0.5)


BRINGING = "synth:synergy?jobs=8&rate_per_hour=20&seed=1"
TRACE = "0,alexnet,0,9000,1\n1,gnmt,60,400,2\n"


@pytest.mark.parametrize("policy", ["srtf+tune", "tetris", "max_min_fairness"])
def test_generated_jobs_of_synergy_bring_its_sensitivities(policy: str) -> None:
    brought = fs.simulate("synergy:2", BRINGING, policy, seed=1)
    named = fs.simulate("synergy:2", BRINGING, policy, seed=1, rates="synergy")
    assert brought.jobs.equals(named.jobs) and brought.provenance["rates"] == named.provenance["rates"]


def test_they_bring_them_through_a_file_and_through_tuning(tmp_path: Path) -> None:
    Workload.synth("synergy", jobs=8, rate_per_hour=20, seed=1).write(tmp_path / "jobs.parquet")
    named = fs.simulate("synergy:2", BRINGING, "srtf+tune", rates="synergy")
    assert fs.simulate("synergy:2", str(tmp_path / "jobs.parquet"), "srtf+tune").jobs.equals(named.jobs)
    assert fs.simulate("synergy:2", f"{BRINGING}&tune=0.5", "srtf+tune").jobs.height > 0


def test_jobs_of_a_trace_of_synergy_bring_its_sensitivities(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(TRACE)
    found = fs.simulate("synergy:2", f"synergy:{tmp_path / 'jobs.csv'}", "srtf+tune")
    assert found.jobs["state"].to_list() == ["finished", "finished"]


def test_jobs_drawn_by_rates_of_a_file_run_at_these_rates(tmp_path: Path) -> None:
    Oracle.default().to_parquet(tmp_path / "rates.parquet")
    found = fs.simulate("gavel:2:2:2", f"synth:gavel?jobs=5&rates={tmp_path / 'rates.parquet'}", "max_min_fairness")
    assert found.provenance["rates"]["name"] == str(tmp_path / "rates.parquet")


def test_other_rates_override() -> None:
    with pytest.raises(InputError, match="alexnet"):
        fs.simulate("synergy:2", BRINGING, "max_min_fairness", rates="default")
