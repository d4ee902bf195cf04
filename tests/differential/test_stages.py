"""Descheduling, inflation and another target workload: the compiled engine and its twin agree on every bit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DrawFn, SearchStrategy

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.closing_stages import Deschedule, Inflation
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import OnlinePlan, ScoreTerm
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.policies.deschedule import DESCHEDULERS
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from tests.differential.ext.online.test_online import Narrow, assert_same
from tests.reference.online.closing_stages import POLICIES, Step
from tests.reference.online.engine import simulate_reference
from tests.reference.online.tables import ReferenceRun
from tests.spellings import EAGER, ColumnSettings, column_settings, played, spelled
from tests.strategies import (
    DETERMINISTIC,
    POD_SCHEMA,
    Scenario,
    ruled,
    scenarios,
    scenarios_per_run,
    sortable,
    typicals,
    workloads,
)

TABLES = ("stages", "placements", "jobs", "timeline")
SCENARIOS = scenarios_per_run(150)
"""Random scenarios per run of the test suite."""
SPELLINGS = scenarios_per_run(250)
"""And those in which only the two spellings of a decision are compared."""
CROWDS = scenarios_per_run(60)
"""And for each policy on crowded nodes."""
RATIOS = (1.0, 1.0, 1.0, 0.3, 0.5, 0.05, 0.0)
"""Shares of the running pods to evict."""
TIMES = (None, None, None, 3.0, 5.0, 5.0, 7.5, 9.0, 12.0, 30.0)
"""Seconds at which to deschedule; some are shared with other events, some come after all of them."""


@dataclass(frozen=True)
class Staged:
    """A run, and what interrupts or follows it."""

    main: Scenario
    deschedule: tuple[Step, ...]
    inflation: tuple[float, int] | None
    retarget: TypicalPods | None


@st.composite
def crowds(draw: DrawFn) -> Scenario:
    """A random run of many pods on few like nodes, so that a pod that loses its place may not find another."""
    main, rng = draw(scenarios(bound=True, churn=False)), random.Random(draw(st.integers(0, 2**32)))
    shape = {"gpu_model": "T4", "num_gpu": rng.choice((1, 2, 4)), "cpu_milli": rng.choice((5500, 6000, 9000))}
    cluster = Cluster.mix([(rng.randint(2, 4), {"name": "n", "memory_mib": 1024, **shape})])
    submit = sorted(float(rng.randint(0, 4)) for _ in range(rng.choice((3, 8, 16, 30))))
    requests = [rng.choice(CROWD) for _ in submit]
    rows = [
        {"pod_id": i, "submit_s": t, "duration_s": rng.choice((None, 3.0, 6.0)), "memory_mib": 0,
         "cpu_milli": rng.choice((500, 1000, 2000, 3000, 3500)), "num_gpu": gpus, "gpu_milli": milli}
        for i, (t, (gpus, milli)) in enumerate(zip(submit, requests, strict=True))
    ]  # fmt: skip
    workload = draw(sortable(Workload.from_arrow(pl.DataFrame(rows, schema=POD_SCHEMA)), main.plan.queue))
    typical = draw(st.one_of(st.just(WHOLE), typicals(workload)))
    return replace(main, cluster=cluster, workload=workload, typical=typical)


WHOLE = TypicalPods((1000,), (1000,), (1,), ((),), (1,), (1.0,))
"""A target workload that only asks for whole devices: every pod on a part of one leaves a fragment."""
CROWD = ((1, 300), (1, 400), (1, 500), (1, 600), (1, 700), (1, 200), (1, 1000), (0, 0))
"""Requests of a crowd: (devices, milli-GPU of each)."""


@st.composite
def staged(draw: DrawFn, mains: SearchStrategy[Scenario], policies: Sequence[str] = tuple(POLICIES)) -> Staged:
    """A random run on nodes whose names are in another order than their positions, with random stages."""
    main = draw(mains)
    rng = random.Random(draw(st.integers(0, 2**32)))
    order = rng.sample(range(len(main.cluster)), len(main.cluster))
    steps = [(rng.choice(policies), rng.choice(RATIOS), rng.choice(TIMES)) for _ in range(rng.randint(1, 4))]
    inflation = st.tuples(st.sampled_from((1.3, 2.0, 4.0, 1.0, 0.5)), st.integers(0, 99))
    return Staged(
        replace(main, cluster=main.cluster.reordered(order)),
        tuple(steps),
        draw(st.one_of(st.none(), inflation)),
        draw(st.one_of(st.none(), workloads(main.cluster).flatmap(typicals))),
    )


def options_of(run: Staged) -> OnlineOptions:
    s = run.main
    steps = tuple(Deschedule(DESCHEDULERS[policy](), ratio, at_s) for policy, ratio, at_s in run.deschedule)
    inflation = None if run.inflation is None else Inflation(*run.inflation)
    return OnlineOptions(
        seed=s.seed, sample_s=s.sample_s, until_s=s.until_s, deschedule=steps, inflation=inflation,
        retarget=run.retarget, rules=s.rules,
    )  # fmt: skip


def compiled(run: Staged) -> Result:
    s = run.main
    return run_online(s.cluster, s.workload, s.plan, s.typical, options_of(run))


def spelling(run: Staged, name: str, changed: ColumnSettings, times: int) -> list[Result]:
    """The run so many times; the second one is lent what the first one worked out."""
    s = run.main
    with spelled(name, changed):
        return [played(s.cluster, s.workload, s.plan, s.typical, options_of(run)) for _ in range(times)]


def twin(run: Staged) -> ReferenceRun:
    s = run.main
    return simulate_reference(
        s.cluster, s.workload, s.plan, s.typical, seed=s.seed, sample_s=s.sample_s, until_s=s.until_s,
        deschedule=run.deschedule, inflation=run.inflation, retarget=run.retarget, rules=s.rules,
    )  # fmt: skip


def assert_agree(run: Staged) -> None:
    found, expected = compiled(run), twin(run)
    for table in TABLES:
        assert_same(getattr(found, table), getattr(expected, table), table)


exhaustive = settings(deadline=None, suppress_health_check=list(HealthCheck))


@given(staged(st.one_of(scenarios(bound=True), scenarios(bound=True, churn=False, departures=False))))
@settings(exhaustive, max_examples=SCENARIOS)
def test_compiled_engine_and_its_stages_equal_the_twin(run: Staged) -> None:
    assert_agree(run)


@given(staged(ruled(bound=True, gangs=False)))
@settings(exhaustive, max_examples=SCENARIOS)
def test_they_agree_where_there_are_rules(run: Staged) -> None:
    assert_agree(run)


@pytest.mark.parametrize("policy", POLICIES)
@given(data=st.data())
@settings(exhaustive, max_examples=CROWDS)
def test_they_agree_where_places_are_scarce(policy: str, data: st.DataObject) -> None:
    assert_agree(data.draw(staged(crowds(), (policy,))))


kept = scenarios(bound=True, kernels=DETERMINISTIC, sizes=(3, 8, 17, 24), most=80)
"""Runs whose scores can be kept."""


@given(
    staged(st.one_of(kept, scenarios(bound=True, kernels=DETERMINISTIC, churn=False, departures=False))),
    column_settings(),
)
@settings(exhaustive, max_examples=SPELLINGS)
def test_both_spellings_agree_on_every_stage(run: Staged, changed: ColumnSettings) -> None:
    (plain,) = spelling(run, "scan", changed, 1)  # which is lent nothing
    expected = {table: getattr(plain, table) for table in ("summary", *TABLES)}
    for found in spelling(run, "index", changed, 2):
        for table, frame in expected.items():
            assert_same(getattr(found, table), frame, table)


@given(staged(scenarios(bound=True, kernels=DETERMINISTIC)))
@settings(exhaustive, max_examples=SCENARIOS // 2)
def test_kept_scores_and_stages_equal_the_twin(run: Staged) -> None:
    expected = twin(run)
    for found in spelling(run, "index", EAGER, 2):
        for table in TABLES:
            assert_same(getattr(found, table), getattr(expected, table), table)


@given(staged(scenarios(bound=True)), st.integers(1, 7))
@settings(exhaustive, max_examples=scenarios_per_run(40))
def test_batch_size_changes_no_stage(run: Staged, rows: int) -> None:
    narrow = Narrow.from_arrow(run.main.workload.table())
    assert isinstance(narrow, Narrow)
    narrow.rows_each = rows
    found, whole = compiled(replace(run, main=replace(run.main, workload=narrow))), compiled(run)
    for table in ("summary", *TABLES):
        assert_same(getattr(found, table), getattr(whole, table), table)


def test_they_agree_when_there_are_no_pods() -> None:
    empty = Workload.from_arrow(pl.DataFrame(schema=POD_SCHEMA))
    plan = OnlinePlan((ScoreTerm("fgd"),), queue="fifo")
    main = Scenario(Cluster.uniform(nodes=2), empty, plan, WHOLE, seed=0, sample_s=None, until_s=None)
    steps = tuple((policy, 1.0, at_s) for policy in POLICIES for at_s in (3.0, None))
    assert_agree(Staged(main, steps, inflation=(2.0, 1), retarget=WHOLE))
