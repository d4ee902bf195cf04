"""Random values of every field of a scenario, in every engine: an audit finds nothing, onlookers change nothing."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

import fastsim as fs
from fastsim.simulation.simulate import run
from tests.engines import RUNS
from tests.fuzz import scenario_fields as drawn
from tests.fuzz import small_runs
from tests.property.test_audit import quick
from tests.strategies import scenarios_per_run

pytestmark = pytest.mark.filterwarnings("ignore::fastsim.simulation.simulate.RunWarning")
some = settings(max_examples=scenarios_per_run(24), **quick)


def test_every_field_of_a_scenario_has_values() -> None:
    assert drawn.FIELDS.keys() == {item.name for item in dataclasses.fields(fs.Scenario)}


@pytest.mark.parametrize("engine", drawn.ENGINES)
def test_every_field_that_an_engine_takes_is_given(engine: str, tmp_path: Path) -> None:
    plain = small_runs.scenario_of(engine, random.Random(1)).with_(policy="fifo" if engine == "shares" else "any")
    given_in = set(drawn.GIVEN)
    for seed in range(80):
        scenario = drawn.with_fields(engine, plain, random.Random(seed), tmp_path)
        given_in |= {name for name in drawn.FIELDS if getattr(scenario, name) is not getattr(plain, name)}
    assert given_in >= set(drawn.usable(engine))


@pytest.mark.parametrize("engine", drawn.ENGINES)
@some
@given(seed=st.integers(0, 2**32))
def test_any_fields_have_figures_that_an_audit_finds_again(engine: str, seed: int) -> None:
    drawn.prepare(engine)(seed)


def a_second_later(scenario: fs.Scenario, overwrite: bool = False) -> fs.Result:
    """A run whose makespan is wrong if it has onlookers, or if it is recorded."""
    result = run(scenario, overwrite=overwrite)
    if scenario.carbon is None and scenario.record == "all":
        return result
    summary = result.summary.with_columns(pl.col("makespan_s") + 1)
    return dataclasses.replace(result, frames={**result.frames, "summary": summary})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"carbon": 350.0}, "figures differ: summary.mean_gpu_alloc_pct"),
        ({"record": "summary"}, "summary with record: row 0"),
    ],
)
def test_a_figure_that_is_wrong_is_found(fields: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = fs.Scenario(**RUNS["orders"], **fields)
    drawn.require_true("orders", scenario)
    monkeypatch.setattr(drawn, "run", a_second_later)
    with pytest.raises(AssertionError, match=text):
        drawn.require_true("orders", scenario)


def test_searches_take_every_seed_that_a_scenario_may_have() -> None:
    options = RUNS["adaptive"] | {"policy": "pollux(generations=2)", "until_s": 900.0}
    runs = [fs.simulate(**options, seed=seed) for seed in (2**32, 2**64 - 1, 7)]
    assert all(len(one.placements) for one in runs)


def test_a_run_in_which_no_job_runs_has_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    fs.simulate(**RUNS["shares"], until_s=0.0, log=log)
    assert "Job completion times:" in log.read_text()


def test_costs_by_the_lease_are_not_those_that_follow_from_placements() -> None:
    scenario = fs.Scenario(**RUNS["shares"], compat="gavel", prices="fixed?v100=2&p100=1&k80=0.5")
    audit = run(scenario).audit(scenario)
    assert [str(one) for one in audit.differences] == []
    why = "with lease_cost a job pays from the end of the round before"
    assert {("jobs", "cost", why), ("summary", "cost", why)} <= set(audit.unchecked)
