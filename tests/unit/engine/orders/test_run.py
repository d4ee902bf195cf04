"""Ordered rounds through the front door: every order, every mechanism, every kind of work."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastsim as fs
from fastsim.engine.orders.plan import OrderPlan
from fastsim.engine.orders.run import OrderedOutcome, gpu_demand_pct, ordered_figures, run_ordered
from fastsim.errors import InputError, PolicyError, ScenarioError
from fastsim.policies import registry
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.rounds import driven, prepared_rounds

ORDERS = ("fifo", "srtf", "srsf", "las", "tiresias", "round_robin", "ftf", "drf", "tetris")
MECHANISMS = ("fair", "greedy", "tune", "opt")
PODS = fs.Workload.synth("openb", pods=90, seed=1).table()
WORK: dict[str, dict[str, Any]] = {
    "synergy": {"cluster": "synergy:2", "workload": "synth:synergy?jobs=30&rate_per_hour=6", "rates": "synergy"},
    "gavel": {"cluster": "gavel:4:4:4", "workload": "synth:gavel?jobs=20&rate_per_hour=6&seed=1"},
    "pods": {
        "cluster": "uniform?nodes=4&gpu=T4&gpus=8",
        "workload": fs.Workload.from_arrow(PODS.filter(pc.is_in(PODS["gpu_milli"], pa.array([0, 1000], pa.int16())))),
    },
}
"""Jobs with sensitivities, jobs with rates by GPU model, pods with requests."""
MEANINGLESS = {
    ("gavel", "greedy"): "jobs that only need GPUs, expected jobs that need CPUs and memory",
    ("gavel", "tune"): "jobs that only need GPUs, expected a sensitivity model",
    ("gavel", "opt"): "jobs that only need GPUs, expected a sensitivity model",
    ("pods", "tune"): "pods with fixed requests, expected a sensitivity model",
    ("pods", "opt"): "pods with fixed requests, expected a sensitivity model",
}
"""What cannot be, whatever the order, and why."""
SCENARIO = Scenario(
    "synergy:1", "synth:synergy?jobs=12&rate_per_hour=20", "fifo + fair", round_s=300.0, rates="synergy"
)


def simulated(work: str, policy: str, **more: Any) -> fs.Result:
    return fs.simulate(**{"policy": policy, "round_s": 300.0, **WORK[work], **more})


@pytest.mark.spread(30)
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_runs_with_every_mechanism_that_means_something(order: str, mechanism: str, work: str) -> None:
    if (work, mechanism) in MEANINGLESS:
        with pytest.raises(PolicyError, match=MEANINGLESS[work, mechanism]):
            simulated(work, f"{order} + {mechanism}")
        return
    uncounted = (work, mechanism) == ("pods", "fair")
    with pytest.warns(fs.ColumnIgnored, match="do not count cpu_milli") if uncounted else nullcontext():
        run = simulated(work, f"{order} + {mechanism}", record="summary")
    assert run.jobs["state"].unique().to_list() == ["finished"]
    assert run.summary["rounds"][0] > 0


@pytest.mark.parametrize("policy", ["edf", "edf + greedy", "edf + tune + place", "order(key='column(deadline_s)')"])
def test_jobs_are_served_by_their_deadlines(policy: str) -> None:
    table = fs.Workload.from_text(f"{WORK['synergy']['workload']}&seed=2").table()
    table = table.set_column(table.column_names.index("submit_s"), "submit_s", pa.array([0.0] * 30))
    late_s = [None if row % 7 == 0 else 1e6 - row for row in range(30)]
    work = fs.Workload.from_arrow(table.append_column("deadline_s", pa.array(late_s, pa.float64())))
    run = simulated("synergy", policy, workload=work)
    assert run.jobs["state"].unique().to_list() == ["finished"]
    first = run.jobs.filter(run.jobs["start_s"] == 0).sort("pod_id")["pod_id"].to_list()
    assert 29 in first and not {0, 7, 1, 2}.intersection(first)


def test_values_of_columns_come_with_the_jobs() -> None:
    scenario = SCENARIO.with_(policy="order(key='column(num_gpu)')")
    inputs = prepared_rounds(scenario, registry.parse(scenario.policy))
    assert isinstance(inputs.plan, OrderPlan) and inputs.needs is not None
    with pytest.raises(PolicyError, match="order: found columns, expected jobs with values of them"):
        run_ordered(inputs.setting, inputs.plan, inputs.needs, inputs.batches, inputs.options)


@pytest.mark.parametrize(
    ("work", "policy", "more", "words"),
    [
        ("gavel", "las", {"realloc_s": 5.0}, "realloc_s: found 5.0, expected nothing: policy las gives all GPUs out"),
        ("gavel", "las", {"global_queue": True}, "global_queue: found True"),
        ("gavel", "las", {"ideal": True}, "ideal: found True, expected nothing: policy las has no shares"),
        ("gavel", "las", {"profiling": 0.5}, "profiling: found 0.5, expected nothing"),
        ("gavel", "isolated", {"begin_s": 5.0}, "begin_s: found 5.0, expected nothing"),
        ("gavel", "las", {"begin_s": -5.0}, "begin_s"),
        ("synergy", "las", {"rates": "synergie"}, "rates: found 'synergie'"),
    ],
)
def test_options_that_mean_nothing_are_refused(work: str, policy: str, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        simulated(work, policy, **more)


def test_what_never_fits_is_told_before_it_waits() -> None:
    node = {"gpu_model": "T4", "num_gpu": 1, "memory_mib": 1024}
    uneven = pa.Table.from_pylist([{**node, "cpu_milli": cpu} for cpu in (100_000, 1000)])
    gang = PODS.slice(0, 1).set_column(PODS.schema.get_field_index("num_gpu"), "num_gpu", pa.array([2], pa.int16()))
    for name, value in (("gpu_milli", 1000), ("cpu_milli", 60_000), ("memory_mib", 0)):
        at = gang.schema.get_field_index(name)
        gang = gang.set_column(at, name, pa.array([value], gang.schema.field(at).type))
    with pytest.raises(InputError, match=r"job \d+: found \d GPUs, expected CPUs, memory and storage of empty servers"):
        simulated("pods", "las + greedy", cluster=fs.Cluster(uneven), workload=fs.Workload.from_arrow(gang))


def test_profiles_need_equal_servers() -> None:
    with pytest.raises(InputError, match="shares are those of equal servers"):
        simulated("synergy", "las + tune", cluster="openb:20")


def test_a_policy_of_shares_runs_sensitive_jobs_at_their_fair_shares() -> None:
    run = simulated("synergy", "max_min_fairness")
    assert run.jobs["state"].unique().to_list() == ["finished"]


def test_jobs_of_a_window_are_followed_by_others_for_ever() -> None:
    run = simulated(
        "synergy",
        "fifo + tune",
        cluster="synergy:8",
        window="20:60",
        record="summary",
        workload="synth:synergy?jobs=60&rate_per_hour=6",
    )
    assert run.jobs.height > 60
    assert run.jobs[20:60]["state"].unique().to_list() == ["finished"]


def pods(*rows: tuple[float, float, int]) -> fs.Workload:
    """Pods of (submit_s, duration_s, GPUs)."""
    count = len(rows)
    columns = {"pod_id": list(range(count)), "submit_s": [r[0] for r in rows], "duration_s": [r[1] for r in rows],
               "cpu_milli": [0] * count, "memory_mib": [0] * count, "gpu_milli": [1000] * count,
               "num_gpu": pa.array([r[2] for r in rows], pa.int16())}  # fmt: skip
    return fs.Workload.from_arrow(pa.table(columns))


def on_four(policy: str, work: fs.Workload, gpus: int = 4) -> fs.Result:
    return fs.simulate(f"uniform?nodes=1&gpu=T4&gpus={gpus}", work, policy, round_s=300.0)


def stays(run: fs.Result) -> dict[int, int]:
    """How many unbroken stays on the same GPUs each job has."""
    return dict(run.placements.group_by("pod_id").len().iter_rows())


def test_who_is_sticky_keeps_his_gpus() -> None:
    work = pods((0.0, 1500.0, 1), (0.0, 600.0, 2), (300.0, 900.0, 1))
    assert stays(on_four("srtf", work))[0] == 4  # it moves up whenever another one leaves
    assert stays(on_four("srtf(sticky=True)", work)) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("mechanism", ["tune", "opt"])
def test_who_is_sticky_keeps_his_gpus_whatever_goes_with_them(mechanism: str) -> None:
    moving, sticky = (
        sum(stays(simulated("synergy", f"{order} + {mechanism}")).values()) for order in ("srtf", "srtf(sticky=True)")
    )
    assert sticky < moving


def test_gangs_of_skewed_workloads_stay_together_and_others_spread() -> None:
    jobs = {"pod_id": [0, 1], "submit_s": [0.0, 0.0], "cpu_milli": [0, 0], "memory_mib": [0, 0],
            "gpu_milli": pa.array([1000, 1000], pa.int32()), "num_gpu": pa.array([6, 4], pa.int16()),
            "workload": ["resnet", "vgg"], "total_work": [100.0, 100.0]}  # fmt: skip
    rates = pa.table({"workload": ["resnet", "vgg"], "num_gpu": pa.array([6, 4], pa.int32()),
                      "gpu_model": ["T4", "T4"], "steps_per_s": [1.0, 1.0]})  # fmt: skip
    given = {"workload": fs.Workload.from_arrow(pa.table(jobs)), "cluster": "uniform?nodes=2&gpu=T4&gpus=8"}
    servers = [
        simulated("gavel", policy, rates=fs.Oracle.from_table(rates), **given).placements["node"].to_list()
        for policy in ("fcfs", "fcfs + place", "fcfs(skewed='vgg') + place", "fcfs(skewed='resnet') + place")
    ]
    assert [len(set(nodes[1:])) for nodes in servers] == [2, 1, 1, 2]


@pytest.mark.parametrize(
    ("work", "policy", "words"),
    [
        (
            "synergy",
            "las(skewed='alexnett') + place",
            "skewed: found 'alexnett', expected names among alexnet, deep",
        ),
        ("synergy", "las(skewed='alexnet')", "skewed: found alexnet, expected place"),
        ("pods", "las(skewed='a') + place", "skewed: found pods, which are of no workload, expected jobs with workl"),
    ],
)
def test_names_of_workloads_are_checked(work: str, policy: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        simulated(work, policy)


def test_workloads_are_named_with_or_without_their_batch_size() -> None:
    run = simulated("gavel", "las(skewed='LM|ResNet-50 (batch size 64)') + place")
    assert run.jobs["state"].unique().to_list() == ["finished"]


def test_blocking_jobs_make_those_behind_them_wait() -> None:
    work = pods((0.0, 600.0, 3), (0.0, 600.0, 2), (0.0, 600.0, 1))
    first = [on_four(policy, work).jobs["start_s"].to_list() for policy in ("fcfs", "fcfs(blocking=True)")]
    assert first == [[0.0, 600.0, 0.0], [0.0, 600.0, 600.0]]


def test_jobs_are_let_in_as_long_as_there_is_room() -> None:
    open_to_all, guarded = (
        simulated("gavel", policy, cluster="gavel:1:1:1").summary.row(0, named=True)
        for policy in ("las", "las(admit=1.5)")
    )
    assert guarded["max_active_jobs"] < open_to_all["max_active_jobs"]
    assert guarded["pods_finished"] == open_to_all["pods_finished"] == 20


def test_time_slices_go_round() -> None:
    work = pods((0.0, 900.0, 1), (0.0, 900.0, 1), (0.0, 900.0, 1))
    assert stays(on_four("round_robin", work, 1)) == {0: 3, 1: 3, 2: 3}
    assert stays(on_four("fcfs", work, 1)) == {0: 1, 1: 1, 2: 1}


def test_every_result_has_all_tables() -> None:
    run = simulated("synergy", "srtf + tune + place")
    timeline = run.timeline
    assert (timeline["cpu_milli_used"] <= timeline["cpu_milli_alloc"]).all()
    assert (timeline["cpu_milli_alloc"] <= 48_000).all()
    assert max(timeline["cpu_milli_alloc"].to_list()) > 24_000  # more than one server
    held = run.placements.filter(run.placements["pod_id"] == 3)
    assert held.height > 0 and run.summary["round_cpu_used_pct"][0] <= run.summary["round_cpu_alloc_pct"][0]
    assert "mohan2022synergy" in run.cite()


def played(scenario: Scenario) -> OrderedOutcome:
    run = driven(scenario, prepared_rounds(scenario, registry.parse(scenario.policy)), {})
    assert isinstance(run, OrderedOutcome)
    return run


def test_a_fair_share_of_servers_goes_with_every_gpu() -> None:
    run = played(SCENARIO)
    figures = ordered_figures(run)
    gpus = 100 * run.round_records["gpus"].mean() / 8
    assert figures["round_cpu_alloc_pct"] == pytest.approx(gpus) == figures["round_memory_alloc_pct"]
    assert figures["round_cpu_used_pct"] < min(figures["round_cpu_alloc_pct"], figures["round_cpu_demand_pct"])


def test_demand_is_that_of_jobs_at_work_and_waiting() -> None:
    run = played(SCENARIO)
    jobs = run.jobs
    asked = (jobs["num_gpu"] * (jobs["finish_s"] - jobs["submit_s"])).sum()
    assert gpu_demand_pct(run) == pytest.approx(100 * asked / (8 * (run.makespan_s - jobs["submit_s"][0])))


def test_tuned_jobs_run_faster_than_with_fair_shares() -> None:
    tuned = played(SCENARIO.with_(policy="fifo + tune"))
    at_fair, running = (int(tuned.round_records[name].sum()) for name in ("at_fair", "running"))
    assert ordered_figures(tuned)["fair_share_pct"] == pytest.approx(100 * at_fair / running) and at_fair < running
    assert tuned.makespan_s < played(SCENARIO).makespan_s


def test_the_timeline_says_what_is_of_use() -> None:
    run = fs.simulate(**{**SCENARIO.to_dict(), "record": "timeline"})
    assert {"cpu_milli_used", "memory_mib_demand", "jobs_at_fair_share"} <= set(run.timeline.columns)
