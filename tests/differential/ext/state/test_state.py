"""Everything that is off by default: the compiled engine and its twin agree on every bit of random runs."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from fastsim.engine.online.plan import BACKFILL, QUEUES, ScoreTerm
from fastsim.scenario.sort_keys import PODS_QUEUES
from tests.differential.ext.online.test_online import Narrow, assert_all_same, both, emptiest
from tests.strategies import OWN_QUEUES, Scenario, ruled, scenarios_per_run

RULED = scenarios_per_run(40)
"""Random scenarios for each queue rule per run of the test suite."""
exhaustive = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("queue", [queue for queue in QUEUES if queue not in PODS_QUEUES])
@given(data=st.data())
@settings(exhaustive, max_examples=RULED)
def test_compiled_rules_equal_the_twin(queue: str, data: st.DataObject) -> None:
    assert_all_same(*both(data.draw(ruled(bound=True, queues=(queue,)))))


@given(ruled(bound=True, queues=(*PODS_QUEUES, *OWN_QUEUES), crowded=True))
@settings(exhaustive, max_examples=3 * RULED)
def test_orders_of_pods_equal_the_twin_in_long_lines(scenario: Scenario) -> None:
    assert_all_same(*both(scenario))


@pytest.mark.parametrize("queue", BACKFILL)
@given(data=st.data())
@settings(exhaustive, max_examples=RULED)
def test_backfilling_equals_the_twin_in_long_lines(queue: str, data: st.DataObject) -> None:
    assert_all_same(*both(data.draw(ruled(bound=True, queues=(queue,), crowded=True))))


@given(ruled(bound=True), st.integers(1, 7))
@settings(exhaustive, max_examples=scenarios_per_run(40))
def test_batch_size_changes_nothing(scenario: Scenario, rows: int) -> None:
    narrow = Narrow.from_arrow(scenario.workload.table())
    assert isinstance(narrow, Narrow)
    narrow.rows_each = rows
    assert_all_same(both(replace(scenario, workload=narrow))[0], both(scenario)[1])


@given(ruled(bound=True))
@settings(exhaustive, max_examples=scenarios_per_run(40))
def test_a_users_scorer_sees_and_decides_the_same(scenario: Scenario) -> None:
    terms = (ScoreTerm("python", weight=2, normalise="min_max_0", scorer=emptiest), *scenario.plan.terms)
    assert_all_same(*both(replace(scenario, plan=replace(scenario.plan, terms=terms))))
