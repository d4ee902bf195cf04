"""The compiled engine and the plain Python one agree on every bit of every table."""

from __future__ import annotations

import polars as pl
from hypothesis import HealthCheck, given, settings

from fastsim.engine import OnlineOptions, run_online
from fastsim.reference import simulate_reference
from fastsim.reference_tables import ReferenceRun
from fastsim.result import Result
from tests.strategies import Scenario, scenarios

SCENARIOS = 300
"""Random scenarios per run of the test suite."""


def both(scenario: Scenario) -> tuple[Result, ReferenceRun]:
    s = scenario
    options = OnlineOptions(seed=s.seed, sample_s=s.sample_s, until_s=s.until_s)
    found = run_online(s.cluster, s.workload, s.plan, s.typical, options)
    expected = simulate_reference(
        s.cluster, s.workload, s.plan, s.typical, seed=s.seed, sample_s=s.sample_s, until_s=s.until_s
    )
    return found, expected


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


@given(scenarios())
@settings(max_examples=SCENARIOS, deadline=None, suppress_health_check=list(HealthCheck))
def test_compiled_engine_equals_its_twin(scenario: Scenario) -> None:
    found, expected = both(scenario)
    assert_same(found.placements, expected.placements, "placements")
    assert_same(found.jobs, expected.jobs, "jobs")
    assert_same(found.timeline, expected.timeline, "timeline")
