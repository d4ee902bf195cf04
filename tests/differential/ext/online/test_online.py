"""The compiled engine, in both spellings of a decision, and the plain Python one agree on every bit of every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.options import OnlineOptions
from fastsim.engine.online.plan import NodeColumns, OnlinePlan, PodRequest, ScoreTerm
from fastsim.engine.online.run import run_online
from fastsim.engine.result import Result
from fastsim.workload import Workload
from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.engine import simulate_reference
from tests.reference.online.tables import ReferenceRun
from tests.spellings import EAGER, ColumnSettings, assert_same_trace, column_settings, played, spelled, traced
from tests.strategies import DETERMINISTIC, Scenario, ruled, scenarios, scenarios_per_run

SCENARIOS = scenarios_per_run(300)
"""Random scenarios per run of the test suite."""
LIKED = scenarios_per_run(1200)
"""Those with preferences, few of which decide."""
SPELLINGS = scenarios_per_run(500)
"""And those in which only the two spellings are compared."""


def options_of(s: Scenario) -> OnlineOptions:
    return OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s, rules=s.rules)


def both(scenario: Scenario) -> tuple[Result, ReferenceRun]:
    s = scenario
    found = run_online(s.cluster, s.workload, s.plan, s.typical, options_of(s))
    expected = simulate_reference(
        s.cluster, s.workload, s.plan, s.typical, seed=s.seed, sample_s=s.sample_s, until_s=s.until_s, rules=s.rules
    )
    return found, expected


def agreed(scenario: Scenario) -> ReferenceRun:
    """What the twin answers, once the compiled engine has answered the same."""
    found, expected = both(scenario)
    assert_all_same(found, expected)
    return expected


def assert_same(found: pl.DataFrame, expected: pl.DataFrame, table: str) -> None:
    """Same columns, types and rows; floats bit for bit."""
    assert found.schema == expected.schema, table
    if not found.equals(expected):
        rows = zip(found.iter_rows(named=True), expected.iter_rows(named=True), strict=False)
        differing = next(((i, a, b) for i, (a, b) in enumerate(rows) if a != b), None)
        assert differing is not None, f"{table}: {len(found)} rows, not {len(expected)}"
        row, mine, twins = differing
        wrong = {name: (mine[name], twins[name]) for name in mine if mine[name] != twins[name]}
        raise AssertionError(f"{table} row {row} of {len(expected)} (compiled, twin): {wrong} in {twins}")


def assert_all_same(found: Result, expected: ReferenceRun | Result) -> None:
    for table in ("placements", "jobs", "timeline"):
        assert_same(getattr(found, table), getattr(expected, table), table)


@given(scenarios(bound=True))
@settings(max_examples=SCENARIOS, deadline=None, suppress_health_check=list(HealthCheck))
def test_compiled_engine_equals_its_twin(scenario: Scenario) -> None:
    assert_all_same(*both(scenario))


@given(ruled(crowded=True, spread=True))
@settings(max_examples=SCENARIOS // 10, deadline=None, suppress_health_check=list(HealthCheck))
def test_rules_of_spread_equal_the_twin(scenario: Scenario) -> None:
    assert_all_same(*both(scenario))


def spelling(scenario: Scenario, name: str, changed: ColumnSettings) -> list[Result]:
    """The run twice, so that the second one is lent what the first one worked out."""
    s = scenario
    with spelled(name, changed):
        return [played(s.cluster, s.workload, s.plan, s.typical, options_of(s)) for _ in range(2)]


@given(ruled(bound=True, preferring=True))
@settings(max_examples=LIKED, deadline=None, suppress_health_check=list(HealthCheck))
def test_scores_of_preferences_equal_the_twin(scenario: Scenario) -> None:
    assert_all_same(*both(scenario))


@given(scenarios(bound=True, kernels=DETERMINISTIC))
@settings(max_examples=SCENARIOS // 3, deadline=None, suppress_health_check=list(HealthCheck))
def test_kept_scores_equal_the_twin(scenario: Scenario) -> None:
    expected = both(scenario)[1]
    for found in spelling(scenario, "index", EAGER):
        assert_all_same(found, expected)


wide = scenarios(kernels=DETERMINISTIC, sizes=(3, 8, 16, 17, 40), most=120)
"""Runs with more nodes than one row of a tree of maxima has room for, and pods for many columns."""


def assert_spellings_agree(s: Scenario, changed: ColumnSettings, seen: Counter[str]) -> None:
    """Both spellings write the same; ``seen`` counts what the index did."""
    inputs = (s.cluster, s.workload, s.plan, s.typical, options_of(s))
    with spelled("scan"):
        expected = traced(*inputs, seen)
    with spelled("index", changed):
        for _ in range(2):  # the second run is lent what the first one worked out
            assert_same_trace(traced(*inputs, seen), expected)


@given(wide, column_settings())
@settings(max_examples=SPELLINGS, deadline=None, suppress_health_check=list(HealthCheck))
def test_both_spellings_agree(scenario: Scenario, changed: ColumnSettings) -> None:
    assert_spellings_agree(scenario, changed, Counter())


def taking_turns(*terms: ScoreTerm) -> Scenario:
    """One pod class that always asks, and five others of which each asks for some time and then never again."""
    turn = [1 + i // 12 % 5 if i % 2 else 6 for i in range(240)]
    rows = [
        {"pod_id": i, "submit_s": float(i // 3), "duration_s": 5.0 + i % 7 * 9, "cpu_milli": 100 * k, "memory_mib": 0,
         "num_gpu": 1, "gpu_milli": 100 * k}
        for i, k in enumerate(turn)
    ]  # fmt: skip
    workload = Workload.from_arrow(pa.Table.from_pylist(rows))
    cluster = Cluster.uniform(nodes=20, num_gpu=8, gpu_model="T4")
    return Scenario(cluster, workload, OnlinePlan(terms), TypicalPods.of(workload), 0, sample_s=None, until_s=None)


GIVING_UP = EAGER | {"upkeep_ns": 60, "window_changes": 4}
"""Columns for every class, as long as it asks."""
STRETCHED = ScoreTerm("best_fit", normalise="min_max_0")


@pytest.mark.parametrize(
    ("terms", "done"),
    [
        ((ScoreTerm("fgd"),), {"built", "dropped", "searches", "scans", "forgotten"}),
        ((ScoreTerm("simon"),), {"built", "dropped", "scans"}),
        ((ScoreTerm("fgd", weight=2), STRETCHED), {"built", "dropped", "stretched", "scans", "forgotten"}),
    ],
    ids=["searched below bounds", "looked up", "stretched"],
)
def test_both_spellings_agree_whatever_the_index_does(terms: tuple[ScoreTerm, ...], done: set[str]) -> None:
    seen: Counter[str] = Counter()
    assert_spellings_agree(taking_turns(*terms), GIVING_UP, seen)
    assert {name for name, times in seen.items() if times} == {"runs", *done}


def test_a_run_in_which_nothing_happens_ends_at_zero() -> None:
    pods = {"pod_id": 0, "submit_s": 5.0, "cpu_milli": 1, "memory_mib": 0, "num_gpu": 0, "gpu_milli": 0}
    workload = Workload.from_arrow(pa.Table.from_pylist([pods]))
    cluster, plan = Cluster.uniform(nodes=2), OnlinePlan((ScoreTerm("fgd"),))
    scenario = Scenario(cluster, workload, plan, TypicalPods.of(workload), 0, sample_s=None, until_s=4.0)
    assert_all_same(*both(scenario))
    assert both(scenario)[0].timeline["t_s"].to_list() == [0.0]


class Narrow(Workload):
    """A workload that arrives a few pods at a time."""

    rows_each = 3

    def batches(self, rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches of a few rows, whatever is asked for."""
        return super().batches(self.rows_each)


@given(scenarios(bound=True), st.integers(1, 7))
@settings(max_examples=scenarios_per_run(40))
def test_batch_size_changes_nothing(scenario: Scenario, rows: int) -> None:
    narrow = Narrow.from_arrow(scenario.workload.table())
    assert isinstance(narrow, Narrow)
    narrow.rows_each = rows
    assert_all_same(both(replace(scenario, workload=narrow))[0], both(scenario)[1])


def emptiest(nodes: NodeColumns, pod: PodRequest) -> npt.NDArray[np.int64]:
    """A user's score: much free milli-CPU and milli-GPU, few pods, no other model than the first."""
    free = nodes.cpu_free - pod.cpu_milli + nodes.gpu_free.sum(axis=1)
    points: Any = free // 500 + nodes.feasible - 7 * nodes.pods - 3 * nodes.gpu_model + nodes.num_gpu
    return np.asarray(points, np.int64)


@given(scenarios(bound=True, churn=False))
@settings(max_examples=scenarios_per_run(40))
def test_a_users_scorer_sees_and_decides_the_same(scenario: Scenario) -> None:
    terms = (ScoreTerm("python", weight=2, normalise="min_max_0", scorer=emptiest), *scenario.plan.terms)
    plan: OnlinePlan = replace(scenario.plan, terms=terms)
    assert_all_same(*both(replace(scenario, plan=plan)))
