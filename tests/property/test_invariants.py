"""What figures must not hang on: idle time between two crowds, nodes that nobody can use, the engine of a lone job."""

from __future__ import annotations

import random
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.policies import registry
from tests.property.test_audit import SPELLED, engine_of
from tests.strategies import scenarios_per_run

few = settings(
    max_examples=scenarios_per_run(4), suppress_health_check=list(HealthCheck), deadline=None,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")

HOUR_S = 3600.0
NODE = {"cpu_milli": 8000, "memory_mib": 60_000, "num_gpu": 2, "gpu_model": "V100M16"}
OTHER = {"cpu_milli": 8000, "memory_mib": 60_000, "num_gpu": 4, "gpu_model": "T4"}
IDLE_W, OTHER_W = 15 + 2 * 30, 15 + 4 * 10
"""Watts of these nodes while nothing runs."""
TRAINING, TRAINING_W = "sia:1:0:1", 30 + 4 * 10 + 30 + 8 * 20
"""A cluster for jobs that adapt, a node with four T4 and one with eight RTX 2080 Ti, and their watts while idle."""
WATCHED, WATCHED_W = "uniform?nodes=1&gpu=T4&gpus=2", 45 + 2 * 10
"""A cluster of monitored GPUs, and its watts while nothing runs."""
REFRESHED = "3600?refresh_s=6&devices=recorded"
"""Exporters that refresh every six seconds, so that idle hours do not move refreshes against jobs."""
SHARING = [name for name in registry.names() if engine_of(name) in ("pods", "shares", "orders")]
"""Policies of the engines that play jobs of given lengths."""
UNTOLD = ("energy_kwh", "mean_", "makespan_s", "utilization", "rounds", "policy_calls", "gpu_demand_pct", "round_",
          "fair_share_pct", "lease_", "at_capacity_", "contention_")  # fmt: skip
"""Figures that are over time, or count rounds."""
SPREAD = ("allox", "fifo", "fcfs", "srtf", "las", "tiresias", "fgd", "best_fit", "gpu_packing")
"""Policies whose choice among equal GPUs does not hang on how many other ones there are."""


def crowd(rng: random.Random, at_s: float) -> list[dict[str, Any]]:
    """Up to five jobs within the hour after a second."""
    rows = [
        {"submit_s": at_s + 60.0 * rng.randrange(60), "num_gpu": 1, "duration_s": 60.0 * rng.randint(1, 90)}
        for _ in range(rng.randint(1, 5))
    ]
    return sorted(rows, key=lambda row: row["submit_s"])


def workload(rows: list[dict[str, Any]], models: list[str] | None = None) -> fs.Workload:
    """Jobs that ask for nothing but GPUs, of some models."""
    frame = pl.DataFrame(rows).with_row_index("pod_id").with_columns(
        pl.col("pod_id").cast(pl.Int64), pl.col("num_gpu").cast(pl.Int16), gpu_milli=pl.lit(1000, pl.Int16),
        cpu_milli=pl.lit(0, pl.Int64), memory_mib=pl.lit(0, pl.Int64),
    )  # fmt: skip
    if models is not None:
        frame = frame.with_columns(gpu_models=pl.lit(models, pl.List(pl.String)))
    return fs.Workload.from_arrow(frame)


def played(policy: str, work: fs.Workload, *nodes: tuple[int, dict[str, Any]]) -> fs.Result:
    given: dict[str, Any] = {"queue": "fifo"} if engine_of(policy) == "pods" else {"round_s": 60.0}
    cluster = fs.Cluster.mix(list(nodes) or [(2, NODE)])
    return fs.simulate(cluster, for_policy(policy, work), SPELLED.get(policy, policy), seed=1, **given)


def learners(rng: random.Random, **options: Any) -> pl.DataFrame:
    """A few jobs that train, most of which adapt."""
    seed = rng.randrange(1000)
    jobs = fs.Workload.synth("sia", jobs=rng.randint(1, 3), seed=seed, rate_per_hour=60, max_gpus=8, **options)
    return pl.DataFrame(pl.from_arrow(jobs.table()))


def detectors(rng: random.Random) -> pl.DataFrame:
    """A few detectors whose memory is watched."""
    jobs = fs.Workload.synth("detectors", jobs=rng.randint(1, 4), over=rng.choice((0, 50)), seed=rng.randrange(1000))
    return pl.DataFrame(pl.from_arrow(jobs.table()))


def one_after_the_other(first: pl.DataFrame, second: pl.DataFrame, gap_s: float) -> fs.Workload:
    """The jobs of two tables, the second later by so many seconds."""
    both = pl.concat([first, second.with_columns(pl.col("submit_s") + gap_s)])
    return fs.Workload.from_arrow(both.with_columns(pod_id=pl.int_range(pl.len(), dtype=pl.Int64)))


def crowded(policy: str, rng: random.Random) -> tuple[fs.Cluster, pl.DataFrame, pl.DataFrame, float]:
    """A cluster, two tables of jobs that this policy runs on it, and its watts while nothing runs."""
    engine = engine_of(policy)
    if engine in ("adaptive", "monitored"):
        text, idle_w = (TRAINING, TRAINING_W) if engine == "adaptive" else (WATCHED, WATCHED_W)
        drawn = learners if engine == "adaptive" else detectors
        return Cluster.from_text(text), drawn(rng), drawn(rng), idle_w
    first, second = (pl.DataFrame(pl.from_arrow(workload(crowd(rng, 0.0)).table())) for _ in range(2))
    return fs.Cluster.mix([(2, NODE)]), first, second, 2 * IDLE_W


def with_a_node_without_gpus(cluster: fs.Cluster) -> fs.Cluster:
    """The same and a node of 48 CPUs, which draws 30 W."""
    nodes = pl.DataFrame(pl.from_arrow(cluster.nodes))
    plain = {"node_id": len(nodes), "name": "plain", "cpu_milli": 48_000, "num_gpu": 0, "gpu_model": None,
             "gpu_memory_mib": None}  # fmt: skip
    more = nodes[:1].with_columns(pl.lit(value, nodes.schema[name]).alias(name) for name, value in plain.items())
    return fs.Cluster.from_arrow(pl.concat([nodes, more]), catalog=cluster.catalog)


def run_of(policy: str, cluster: fs.Cluster, work: fs.Workload) -> fs.Result:
    rounds: dict[str, Any] = {"round_s": 60.0}
    given = {"pods": {"queue": "fifo"}, "monitored": {"telemetry": REFRESHED}}.get(engine_of(policy), rounds)
    return fs.simulate(cluster, for_policy(policy, work), SPELLED.get(policy, policy), seed=1, **given)


def for_policy(policy: str, work: fs.Workload) -> fs.Workload:
    """The jobs, with deadlines for the policy that needs them."""
    if policy != "edf":
        return work
    slos = pa.array([1.5 + row % 3 for row in range(len(work))], pa.float64())
    return fs.Workload.from_arrow(work.table().append_column("slo", slos))


def same_but(found: dict[str, Any], expected: dict[str, Any], untold: tuple[str, ...]) -> None:
    """The same figures, but for those whose names begin so."""
    for name, value in expected.items():
        if not name.startswith(untold):
            assert found[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


@pytest.mark.spread(10)
@pytest.mark.parametrize("policy", registry.names())
@few
@given(seed=st.integers(0, 2**32))
@example(seed=6814)  # monitored: a pod joins a GPU by readings, which are older or newer by where refreshes fall
def test_idle_time_between_two_crowds_costs_idle_watts_alone(policy: str, seed: int) -> None:
    cluster, first, second, idle_w = crowded(policy, random.Random(seed))
    gaps_h = (400, 406) if engine_of(policy) == "adaptive" else (24, 30)  # some train for days
    runs = [run_of(policy, cluster, one_after_the_other(first, second, gap_h * HOUR_S)) for gap_h in gaps_h]
    short, long = (run.summary.row(0, named=True) for run in runs)
    assert long["energy_kwh"] - short["energy_kwh"] == pytest.approx(idle_w * 6 / 1000, rel=1e-9)
    assert long["makespan_s"] - short["makespan_s"] == pytest.approx(6 * HOUR_S)
    same_but(long, short, UNTOLD)
    kept = ("wait_s", "jct_s", "attempts", "preemptions", "restarts", "paused_s", "gpu_hours", "slowdown")
    for name in kept:
        found, expected = (run.jobs[name].fill_null(-1).to_list() for run in reversed(runs))  # null: not known
        assert found == pytest.approx(expected, rel=1e-9), name


@pytest.mark.spread(10)
@pytest.mark.parametrize("policy", registry.names())
@few
@given(seed=st.integers(0, 2**32))
def test_a_node_without_gpus_draws_idle_watts_alone(policy: str, seed: int) -> None:
    cluster, table, _, idle_w = crowded(policy, random.Random(seed))
    runs = [run_of(policy, one, fs.Workload.from_arrow(table)) for one in (cluster, with_a_node_without_gpus(cluster))]
    alone, beside = (run.summary.row(0, named=True) for run in runs)
    assert beside["energy_kwh"] - alone["energy_kwh"] == pytest.approx(30 * alone["makespan_s"] / 3.6e6)
    assert beside["mean_power_w"] - alone["mean_power_w"] == pytest.approx(30)
    assert (alone["eopc_w"], beside["eopc_w"]) == (idle_w, idle_w + 30)
    costly = ("energy_kwh", "mean_power_w", "eopc_w", "at_capacity_eopc_w", "power_cpu_w")
    same_but(beside, alone, (*costly, "cpu_", "memory_", "mean_cpu_"))
    assert runs[1].placements.drop("node_id").equals(runs[0].placements.drop("node_id"))


@pytest.mark.parametrize("policy", SPREAD)
@few
@given(seed=st.integers(0, 2**32))
def test_nodes_that_nobody_can_use_draw_idle_watts_alone(policy: str, seed: int) -> None:
    work = workload(crowd(random.Random(seed), 0.0), ["V100M16"])
    alone, beside = (played(policy, work, *nodes) for nodes in ([(2, NODE)], [(2, NODE), (3, OTHER)]))
    assert beside.jobs.equals(alone.jobs) or policy == "allox"
    first, second = (run.summary.row(0, named=True) for run in (alone, beside))
    assert second["energy_kwh"] - first["energy_kwh"] == pytest.approx(3 * OTHER_W * first["makespan_s"] / 3.6e6)
    for name in ("gpu_hours", "makespan_s", "jct_mean_s", "wait_mean_s", "mean_pods_pending", "restarts"):
        assert second[name] == pytest.approx(first[name], rel=1e-9), name
    assert second["mean_gpu_alloc_pct"] == pytest.approx(first["mean_gpu_alloc_pct"] * 4 / 16, rel=1e-9)


@pytest.mark.parametrize("policy", SHARING)
@few
@given(minutes=st.integers(1, 500), at=st.integers(0, 500))
def test_a_lone_job_has_the_same_figures_in_every_engine(policy: str, minutes: int, at: int) -> None:
    seconds = 60.0 * minutes
    run = played(policy, workload([{"submit_s": 60.0 * at, "num_gpu": 1, "duration_s": seconds}]))
    row = run.summary.row(0, named=True)
    joules = seconds * (2 * IDLE_W + 300 - 30)
    expected = {
        "pods_finished": 1, "makespan_s": seconds, "jct_mean_s": seconds, "wait_mean_s": 0, "slowdown_p99": 1,
        "mean_gpu_alloc_pct": 25, "gpu_hours": minutes / 60, "energy_kwh": joules / 3.6e6, "goodput_pct": 100,
        "mean_power_w": joules / seconds, "mean_pods_pending": 0, "restarts": 0, "preemptions": 0, "paused_mean_s": 0,
        "eopc_w": 2 * IDLE_W, "active_gpus": 0,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert run.placements.select("start_s", "end_s").rows() == [pytest.approx((60.0 * at, 60.0 * at + seconds))]


@pytest.mark.parametrize("policy", [name for name in registry.names() if engine_of(name) == "adaptive"])
@few
@given(rng=st.integers(0, 2**32).map(random.Random), minute=st.integers(0, 500))
def test_a_lone_job_of_fixed_size_has_the_same_figures_in_every_adaptive_run(
    policy: str, rng: random.Random, minute: int
) -> None:
    job = learners(rng, rigid_share=1)[:1].with_columns(submit_s=pl.lit(60.0 * minute))
    gpus, cluster = int(job["num_gpu"][0]), Cluster.from_text("sia:4:0:0")
    found, usual = (run_of(name, cluster, fs.Workload.from_arrow(job)) for name in (policy, "served"))
    row, jct_s = found.summary.row(0, named=True), usual.summary["jct_mean_s"][0]
    joules = jct_s * (4 * (30 + 4 * 10) + gpus * (70 - 10))
    expected = {
        "pods_finished": 1, "makespan_s": jct_s, "jct_mean_s": jct_s, "wait_mean_s": 0, "restarts": 0,
        "preemptions": 0, "paused_mean_s": 0, "mean_gpu_alloc_pct": 100 * gpus / 16, "active_gpus": 0,
        "gpu_hours": gpus * jct_s / 3600, "energy_kwh": joules / 3.6e6, "mean_power_w": joules / jct_s,
        "goodput_pct": usual.summary["goodput_pct"][0], "mean_pods_pending": 0, "eopc_w": 4 * (30 + 4 * 10),
    }  # fmt: skip
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.placements["end_s"].max() == pytest.approx(60.0 * minute + jct_s)


@pytest.mark.parametrize("policy", [name for name in registry.names() if engine_of(name) == "monitored"])
@few
@given(minute=st.integers(0, 500), run_s=st.integers(60, 9000))
def test_a_lone_job_on_monitored_gpus_waits_for_its_container_alone(policy: str, minute: int, run_s: int) -> None:
    jobs = fs.Workload.synth("detectors", jobs=1, run_s=float(run_s)).table()
    job = pl.DataFrame(pl.from_arrow(jobs)).with_columns(submit_s=pl.lit(60.0 * minute))
    run = run_of(policy, Cluster.from_text(WATCHED), fs.Workload.from_arrow(job))
    row, start_s = run.summary.row(0, named=True), run.placements["start_s"][0]
    wait_s = start_s - 60.0 * minute
    joules = (wait_s + run_s) * WATCHED_W + run_s * (70 - 10)
    expected = {
        "pods_finished": 1, "makespan_s": wait_s + run_s, "jct_mean_s": wait_s + run_s, "wait_mean_s": wait_s,
        "gpu_hours": run_s / 3600, "mean_gpu_alloc_pct": 50 * run_s / (wait_s + run_s), "energy_kwh": joules / 3.6e6,
        "mean_power_w": joules / (wait_s + run_s), "mean_pods_pending": wait_s / (wait_s + run_s), "restarts": 0,
        "slowdown_p99": (wait_s + run_s) / run_s, "eopc_w": WATCHED_W, "active_gpus": 0,
    }  # fmt: skip
    assert 0 < wait_s < 10
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9)
