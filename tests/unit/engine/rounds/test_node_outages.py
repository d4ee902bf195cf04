"""Nodes that fail, join, leave or are maintained under policies for jobs in rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.engine.rounds.node_outages import NodeOutages
from fastsim.errors import ScenarioError
from fastsim.scenario.outages import NO_OUTAGES, Outages, merged

SHARES = (
    "fifo", "fifo(mode=perf)", "fifo(mode=packed)", "gandiva", "isolated", "proportional", "max_min_fairness",
    "max_min_fairness(mode=base)", "max_min_fairness(mode=packed)", "max_min_fairness_water_filling",
    "max_min_fairness_water_filling(mode=packed)", "finish_time_fairness", "finish_time_fairness(mode=packed)",
    "max_sum_throughput", "min_total_duration", "strategy_proof",
)  # fmt: skip
ORDERS = ("fcfs", "las", "srtf", "ftf", "drf", "tetris", "srsf", "tiresias", "round_robin")
FAILING: dict[str, Any] = {"failures": "mtbf=15000,mttr=9000", "cluster": "gavel:3:0:1", "seed": 1}
"""One cluster whose only node of a model is often away."""
JOBS = "synth:gavel?jobs=12&rate_per_hour=6&seed=1"
ONE_GPU = "synth:gavel?jobs=12&rate_per_hour=6&seed=1&multi_gpu=false"


def two_rounds(node_seconds: dict[str, Any], **options: Any) -> pl.DataFrame:
    """A job of 700 s on the one GPU of a node, in rounds of 360 s."""
    columns = {"name": ["a"], "gpu_model": ["T4"], "num_gpu": [1], "cpu_milli": [8000], "memory_mib": [8000]}
    cluster = fs.Cluster.from_arrow(pl.DataFrame(columns | node_seconds).to_arrow())
    jobs = fs.Workload.from_polars(pl.DataFrame({"submit_s": [0.0], "num_gpu": [1], "duration_s": [700.0]}))
    return fs.simulate(cluster, jobs, **options).jobs


@pytest.mark.parametrize("policy", ["max_min_fairness", "fifo", "fcfs", "las"])
def test_a_round_whose_node_goes_away_is_lost(policy: str) -> None:
    plain = two_rounds({}, policy=policy).row(0, named=True)
    assert (plain["jct_s"], plain["restarts"], plain["gpu_hours"] * 3600) == (700.0, 0, 700.0)
    lost = two_rounds({}, policy=policy, maintenance=[("a", 400.0, 500.0)]).row(0, named=True)
    assert (lost["jct_s"], lost["restarts"], lost["gpu_hours"] * 3600) == (1060.0, 1, 1060.0)


@pytest.mark.parametrize("policy", ["max_min_fairness", "fcfs"])
def test_a_node_that_is_away_when_a_round_begins_is_not_used(policy: str) -> None:
    waits = two_rounds({}, policy=policy, maintenance=[("a", 360.0, 400.0)]).row(0, named=True)
    assert (waits["restarts"], waits["preemptions"], waits["gpu_hours"] * 3600) == (1, 1, 700.0)
    assert waits["jct_s"] == (740.0 if policy == "max_min_fairness" else 1060.0)  # orders begin every 360 s
    joins = two_rounds({"add_s": [100.0]}, policy=policy).row(0, named=True)
    assert (joins["wait_s"], joins["restarts"]) == ((100.0, 0) if policy == "max_min_fairness" else (360.0, 0))


def test_jobs_that_finish_before_their_node_goes_away_keep_their_work() -> None:
    for policy in ("max_min_fairness", "fcfs"):
        assert two_rounds({"remove_s": [700.0]}, policy=policy)["jct_s"].item() == 700.0


def test_an_audit_finds_the_hours_again() -> None:
    for policy in ("max_min_fairness(mode=packed)", "las"):
        options: dict[str, Any] = {"maintenance": [("v100-0000", 9000.0, 20000.0)], "seed": 3}
        assert fs.simulate("gavel:3:1:1", JOBS, policy, **options).audit().differences == []
        away = fs.simulate(coming_and_going(), JOBS, policy).audit()
        assert away.differences == [] and "which rounds see when they begin" in str(away.by_reason())


def coming_and_going() -> fs.Cluster:
    """Five nodes, of which one joins and one leaves."""
    nodes = Cluster.from_text("gavel:3:1:1").nodes
    for name, seconds in (
        ("add_s", [None, 5000.0, None, None, 100.0]),
        ("remove_s", [None, None, 40000.0, None, None]),
    ):
        column = pa.array(seconds, pa.float64())
        nodes = nodes.set_column(nodes.schema.get_field_index(name), name, column)
    return fs.Cluster.from_arrow(nodes)


def test_explanations_count_the_gpus_that_are_there(tmp_path: Path) -> None:
    fs.simulate(coming_and_going(), JOBS, "max_min_fairness", out=tmp_path / "shares")
    rows = fs.explain(tmp_path / "shares", jobs=[0], t=400.0)
    assert rows.filter(gpu_model="p100")["free"].to_list() in ([0], [None])  # the node joins at 5,000 s
    fs.simulate(coming_and_going(), JOBS, "fcfs", out=tmp_path / "orders")
    assert all(free <= 4 for free in fs.explain(tmp_path / "orders", jobs=[0], t=400.0)["free"].drop_nulls())


def test_jobs_whose_nodes_never_come_back_end_a_run() -> None:
    for policy in ("max_min_fairness", "fcfs"):
        with pytest.raises(fs.FastsimError, match="nothing runs at"):
            two_rounds({"remove_s": [650.0]}, policy=policy)


def begun_on_absent_nodes(result: fs.Result, nodes: NodeOutages, begin_s: float) -> int:
    """Leases that begin on a node that is away."""
    placed = result.placements.select("node_id", "start_s").rows()
    away = [0] * len(nodes.cluster)
    found, at = 0, 0
    changes = merged(nodes.cluster, nodes.outages, nodes.seed, begin_s)
    change = next(changes, None)
    for start_s in sorted({start_s for _, start_s in placed}):
        while change is not None and change.t_s <= start_s:
            away[change.position] += -1 if change.comes else 1
            change = next(changes, None)
        for node, began_s in placed:
            at += began_s == start_s
            found += began_s == start_s and away[node] > 0
    assert at == len(placed)
    return found


@pytest.mark.parametrize("policy", [*SHARES, *ORDERS, "allox"])
def test_every_policy_plays_nodes_that_fail(policy: str) -> None:
    workload = ONE_GPU if policy == "allox" else JOBS
    result = fs.simulate(workload=workload, policy=policy, **FAILING)
    assert result.audit().differences == []
    steady = fs.simulate(FAILING["cluster"], workload, policy)
    assert result.jobs["end_s"].null_count() == 0
    assert result.summary["jct_mean_s"].item() > steady.summary["jct_mean_s"].item()
    nodes = NodeOutages(Cluster.from_text(FAILING["cluster"]), Outages(15000.0, 9000.0), 1)
    assert begun_on_absent_nodes(result, nodes, float(result.jobs["submit_s"][0])) == 0
    rows = result.timeline
    assert rows["gpu_milli_capacity"].n_unique() > 1 and rows["gpu_milli_capacity"].max() == 4000
    assert (rows["gpu_milli_alloc"] <= rows["gpu_milli_capacity"]).all()


@pytest.mark.parametrize("policy", [*SHARES, *ORDERS, "allox"])
def test_a_model_that_comes_back_is_used_again(policy: str) -> None:
    away = [("v100-0000", -1.0, 6000.0)]
    placed = fs.simulate("gavel:1:0:1", ONE_GPU, policy, maintenance=away).placements.filter(node="v100-0000")
    assert placed.height > 0 and bool((placed["start_s"] >= 6000.0).all())


def test_estimated_rates_of_pairs_are_of_models_that_are_there() -> None:
    for policy in ("max_min_fairness(mode=packed)", "gandiva"):
        result = fs.simulate(workload=JOBS, policy=policy, profiling=0.5, **FAILING)
        assert result.jobs["end_s"].null_count() == 0


@pytest.mark.parametrize("policy", ["max_min_fairness", "fifo", "gandiva", "las", "srtf"])
def test_a_run_goes_on_from_any_checkpoint(policy: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"workload": JOBS, "policy": policy, **FAILING}
    whole = fs.simulate(**options)
    for part in (3, 7, 11):
        folder = tmp_path / str(part)
        fs.simulate(**options, out=folder, checkpoint_pods=part, keep_checkpoint=True)
        again = fs.resume(folder, overwrite=True)
        for name in ("jobs", "placements", "timeline", "summary"):
            assert again.frames[name].equals(whole.frames[name]), (part, name)


def test_a_checkpoint_is_of_the_same_nodes(tmp_path: Path) -> None:
    options: dict[str, Any] = {"workload": JOBS, "policy": "las", **FAILING}
    fs.simulate(**options, out=tmp_path / "run", checkpoint_pods=3, keep_checkpoint=True)
    with pytest.raises(ScenarioError, match="failures"):
        fs.fork(tmp_path / "run", tmp_path / "fork", failures="mtbf=1d,mttr=1h")


def test_random_failures_are_those_of_the_seed() -> None:
    def ends(**options: Any) -> list[float]:
        found: list[float] = fs.simulate(workload=JOBS, policy="las", **{**FAILING, **options}).jobs["end_s"].to_list()
        return found

    assert ends() == ends() != ends(seed=2)


def test_only_nodes_that_change_have_outages() -> None:
    lasting = Cluster.from_text("gavel:1:1:1")
    assert NodeOutages.of(lasting, NO_OUTAGES, 0) is None
    assert NodeOutages.of(lasting, Outages(1.0, 1.0), 0) is not None
    table = lasting.nodes.set_column(
        lasting.nodes.schema.get_field_index("add_s"), "add_s", [np.array([0.0, 5.0, 7.0])]
    )
    assert NodeOutages.of(fs.Cluster.from_arrow(table), NO_OUTAGES, 0) is not None


def test_too_many_changes_are_one_error() -> None:
    for policy in ("max_min_fairness", "las"):
        with pytest.raises(ScenarioError, match="failures"):
            fs.simulate("gavel:2:0:0", JOBS, policy, failures="mtbf=1e-7,mttr=1e-7")
