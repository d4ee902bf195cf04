"""Random runs under every policy: an audit finds nothing, and figures do not hang on names or clocks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

import fastsim as fs
from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.run import run_online
from fastsim.policies import registry
from fastsim.policies.online.by_readings import Watched
from fastsim.scenario import run_inputs
from fastsim.simulation.simulate import run
from tests.strategies import Scenario, ruled, scenarios, scenarios_per_run

SPELLED = {"python": "python(scorer='tests.property.test_audit:roomiest')"}
"""Policies that say nothing without a parameter."""
SHIFT_S, ROUNDS_S = 12_345.625, 3600.0
"""A constant, and whole rounds of every length here, because ordered and adaptive rounds begin at multiples of it,
GPUs are sampled at multiples of 15 s, and a monitored scheduler asks for the readings of whole seconds."""

GRIDDED = ("orders", "adaptive")
"""Engines whose rounds begin at multiples of a round from second 0 on, as those of Synergy and Sia do."""
CLOCKED = (*GRIDDED, "monitored")
"""Engines with events at fixed times of the clock, whenever the first job comes."""

ROUNDS = ("shares", *GRIDDED)

quick: dict[str, Any] = {
    "suppress_health_check": list(HealthCheck), "deadline": None, "report_multiple_bugs": False,
    "phases": (Phase.explicit, Phase.generate),
}  # fmt: skip
"""Without a search for the smallest run that fails, which would take minutes: any of these is small."""
some = settings(max_examples=scenarios_per_run(40), **quick)
few = settings(max_examples=scenarios_per_run(5), **quick)
fewer = settings(max_examples=scenarios_per_run(2), **quick)
"""For two runs an example under every policy."""
pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
dice = st.integers(0, 2**32).map(random.Random)


def roomiest(nodes: Any, pod: Any) -> Any:
    """A scorer: the node with most CPUs free."""
    return nodes.cpu_free


def engine_of(name: str) -> str:
    """The engine that plays a policy."""
    return registry.engine_of(registry.parse(SPELLED.get(name, name)))


def scenario_of(engine: str, policy: str, rng: random.Random) -> fs.Scenario:
    """A small random run of this policy."""
    made: dict[str, Callable[[random.Random], dict[str, Any]]] = {
        "pods": pods, "shares": jobs, "orders": jobs, "adaptive": adaptive, "monitored": monitored,
    }  # fmt: skip
    fields = made[engine](rng)
    if policy == "edf":  # the only one that needs deadlines
        fields["workload"] = fields["workload"].replace("gavel-trace", "gavel") + "&slos=true"
    return fs.Scenario(**fields, policy=SPELLED.get(policy, policy), seed=rng.randrange(9))


def pods(rng: random.Random) -> dict[str, Any]:
    queue, count = rng.choice(("drop", "fifo", "fifo_skip", "priority")), rng.randint(1, 60)
    ratio = rng.choice((0, 1.5, 3)) if count > 20 else 0  # among a few pods none may ask for a GPU
    return {
        "cluster": f"openb:{rng.randint(1, 6)}?seed={rng.randrange(9)}",
        "workload": f"synth:openb?pods={count}&seed={rng.randrange(99)}&tune={ratio}",
        "queue": queue, "sample_s": rng.choice((None, None, 3600.0)), "until_s": rng.choice((None, None, 9000.0)),
    }  # fmt: skip


def jobs(rng: random.Random) -> dict[str, Any]:
    rate, per_server = rng.choice((0.5, 2.0, 8.0)), rng.choice(("1:1:1", "2:2:2"))
    return {
        "cluster": f"gavel:{rng.choice('24')}:{rng.choice('24')}:{rng.choice('24')}?per_server={per_server}",
        "workload": f"synth:gavel-trace?jobs={rng.randint(1, 8)}&rate_per_hour={rate}&seed={rng.randrange(99)}",
        "round_s": rng.choice((360.0, 600.0)), "restart_s": rng.choice((0.0, 20.0)),
        "sample_s": rng.choice((None, None, 3600.0)), "until_s": rng.choice((None, None, 20_000.0)),
        "prices": rng.choice((None, "fixed?v100=2.48&p100=1.5&k80=0.45")),
    }  # fmt: skip


def adaptive(rng: random.Random) -> dict[str, Any]:
    drawn = f"jobs={rng.randint(1, 4)}&seed={rng.randrange(99)}&rate_per_hour={rng.choice((10, 60))}"
    return {"cluster": rng.choice(("sia:1:0:1", "sia:1:1:1")), "workload": f"synth:sia?{drawn}&max_gpus=8"}


def monitored(rng: random.Random) -> dict[str, Any]:
    text = f"synth:detectors?jobs={rng.randint(1, 6)}&over={rng.choice((0, 50))}"
    return {"cluster": f"uniform?nodes={rng.randint(1, 2)}&gpu=T4&gpus=2", "workload": text}


@pytest.mark.spread(10)
@pytest.mark.parametrize("policy", registry.names())
@few
@given(rng=dice)
def test_an_audit_finds_nothing_under_any_policy(policy: str, rng: random.Random) -> None:
    scenario = scenario_of(engine_of(policy), policy, rng)
    result = run(scenario)
    audit = result.audit()
    assert [str(one) for one in audit.differences] == []
    assert audit.checked > 0
    if engine_of(policy) in ROUNDS:
        works_when_not_restarting(result, Cluster.from_text(scenario.cluster))


def works_when_not_restarting(run: fs.Result, cluster: fs.Cluster) -> None:
    """GPUs are at work while they are held, but for restart delays: the two percentages come from other sums."""
    row = run.summary.row(0, named=True)
    at_work_h = row["utilization_pct"] / 100 * sum(cluster.nodes["num_gpu"].to_pylist()) * row["makespan_s"] / 3600
    held_h = row["gpu_hours"]
    assert at_work_h == pytest.approx(held_h and row["goodput_pct"] / 100 * held_h, rel=1e-9)


def played(scenario: Scenario) -> tuple[fs.Result, fs.Scenario]:
    """A run of pods that a strategy made, and what an audit has to know of it."""
    s = scenario
    options = OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s, rules=s.rules)
    told = fs.Scenario(
        s.cluster, s.workload, typical=s.typical, until_s=s.until_s,
        failures="mtbf=1,mttr=1" if s.rules.outages.mtbf_s else "", maintenance=s.rules.outages.maintenance or None,
    )  # fmt: skip
    return run_online(s.cluster, s.workload, s.plan, s.typical, options), told


def early(scenario: Scenario) -> bool:
    """Whether a node comes or goes before the first pod arrives; nodes that fail make more stays than are counted."""
    first = scenario.workload.table()["submit_s"][0].as_py()
    times = scenario.cluster.nodes["add_s"].to_pylist() + scenario.cluster.nodes["remove_s"].to_pylist()
    return any(t_s is not None and t_s < first for t_s in times) or scenario.rules.outages.mtbf_s is not None


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", ["pods before nodes", "nodes before pods"])
@some
@given(data=st.data())
def test_an_audit_finds_nothing_under_any_plan_for_pods(kind: str, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(bound=True).filter(lambda one: early(one) == (kind == "nodes before pods")))
    result, told = played(scenario)
    assert [str(one) for one in result.audit(told).differences] == []


def two_pods(submit_s: list[float], duration_s: list[float], until_s: float | None = None) -> fs.Scenario:
    """Two pods of a GPU each on two nodes."""
    pods = {"pod_id": [0, 1], "submit_s": submit_s, "duration_s": duration_s, "gpu_milli": [1000, 1000]}
    pods |= {name: [1, 1] for name in ("cpu_milli", "memory_mib", "num_gpu")}
    workload = fs.Workload.from_arrow(pl.DataFrame(pods).to_arrow())
    return fs.Scenario(Cluster.from_text("openb:2"), workload, policy="best_fit", until_s=until_s)


def test_an_end_that_a_rounded_makespan_misses_by_a_digit_is_found() -> None:
    scenario = two_pods([595.139318, 1267.927789], [313.0, 3433.0])
    result = run(scenario)
    assert 595.139318 + result.summary["makespan_s"].item() < result.jobs["end_s"].max()
    assert [str(one) for one in result.audit(scenario).differences] == []


def test_a_run_that_goes_on_after_its_last_job_lasts_until_its_end() -> None:
    scenario = two_pods([1.0, 9.0], [2.0, 2.0], until_s=4.0)
    result = run(scenario)
    assert result.summary["makespan_s"].item() == 3.0
    assert [str(one) for one in result.audit(scenario).differences] == []


@some
@given(scenario=ruled(bound=True).filter(lambda one: not early(one)))
def test_an_audit_finds_nothing_under_any_rules(scenario: Scenario) -> None:
    result, told = played(scenario)
    assert [str(one) for one in result.audit(told).differences] == []


def in_memory(policy: str, rng: random.Random, shift_s: float = 0.0, suffix: str = "") -> fs.Result:
    """The run of ``of_objects``."""
    return run(of_objects(policy, rng, shift_s, suffix))


def of_objects(policy: str, rng: random.Random, shift_s: float = 0.0, suffix: str = "") -> fs.Scenario:
    """What ``scenario_of`` says, with objects: arrivals later by some seconds, other names of nodes, pods, tenants.

    They come at 64ths of a second, so that no sum of two times is rounded: a search such as Pollux's has many choices
    of all but equal value, of which the last digit of a job's age picks one.
    """
    scenario = scenario_of(engine_of(policy), policy, rng)
    cluster = Cluster.from_text(scenario.cluster)
    nodes = pl.DataFrame(pl.from_arrow(cluster.nodes)).with_columns(pl.col("name") + suffix)
    work = run_inputs.workload_from(scenario.workload, cluster).workload
    late = [name for name in ("submit_s", "deadline_s") if name in work.columns]
    named = [name for name in ("tenant", "native_id") if name in work.columns]
    table = pl.DataFrame(pl.from_arrow(work.table())).with_columns(
        pl.col("pod_id") + 3 * len(suffix), *((pl.col(name) * 64).round() / 64 + shift_s for name in late),
        *(pl.col(name) + suffix for name in named),
    )  # fmt: skip
    kept = fs.Workload.from_arrow(table.to_arrow(compat_level=pl.CompatLevel.oldest()).replace_schema_metadata(
        work.schema.metadata
    ))  # fmt: skip
    until_s = None if scenario.until_s is None else scenario.until_s + shift_s
    return scenario.with_(
        cluster=fs.Cluster.from_arrow(nodes, catalog=cluster.catalog), workload=kept, until_s=until_s, sample_s=None
    )


def same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Equal but for what adding a constant to times rounds off."""
    rows = zip(found.rows(named=True), expected.rows(named=True), strict=True)
    assert [{name: pytest.approx(value, rel=1e-9, abs=1e-6, nan_ok=True) if isinstance(value, float) else value
             for name, value in one.items()} for _, one in rows] == found.rows(named=True)  # fmt: skip


@pytest.mark.spread(10)
@pytest.mark.parametrize("policy", registry.names())
@fewer
@given(seed=st.integers(0, 2**32))
@example(seed=16861400)  # the GPUs' readings decide at once, on nodes of two models
@example(seed=6541103)  # of two nodes as good for a job, its age to the last digit picks one
@example(seed=30)  # readings of whole seconds decide which pods share a GPU
@example(seed=1344640420)  # a round that begins with a restart ends when another begins
def test_a_shift_of_all_times_changes_instants_only(policy: str, seed: int) -> None:
    clocked = engine_of(policy) in CLOCKED or isinstance(registry.parse(SPELLED.get(policy, policy)), Watched)
    constant_s = ROUNDS_S if clocked else SHIFT_S
    plain, late = (in_memory(policy, random.Random(seed), shift_s) for shift_s in (0.0, constant_s))
    same(late.summary, plain.summary)
    instants = ("submit_s", "start_s", "end_s", "deadline_s", "bound_s", "t_s")
    for table in ("jobs", "placements", "timeline"):
        moved = [pl.col(name) + constant_s for name in instants if name in plain.frames[table].columns]
        same(late.frames[table], plain.frames[table].with_columns(moved))


@pytest.mark.spread(10)
@pytest.mark.parametrize("policy", registry.names())
@fewer
@given(seed=st.integers(0, 2**32))
def test_names_change_nothing(policy: str, seed: int) -> None:
    plain, named = (in_memory(policy, random.Random(seed), suffix=suffix) for suffix in ("", "x"))
    same(named.summary, plain.summary)
    names = ["pod_id", "native_id", "mate_id", "node"]
    for table in ("jobs", "placements", "timeline"):
        same(named.frames[table].drop(names, strict=False), plain.frames[table].drop(names, strict=False))


@pytest.mark.parametrize("policy", [name for name in registry.names() if engine_of(name) in GRIDDED])
@fewer
@given(seed=st.integers(0, 2**32))
def test_stays_of_ordered_and_adaptive_jobs_begin_with_rounds_counted_from_0(policy: str, seed: int) -> None:
    scenario = scenario_of(engine_of(policy), policy, random.Random(seed))
    starts = run(scenario).placements["start_s"].drop_nulls()
    assert (starts % (scenario.round_s or 60.0) == 0).all()  # 60 s is the usual round of adaptive jobs
