"""Definitions of metrics: each column of each engine's tables and each chart has exactly one, and each has a column."""

from __future__ import annotations

import pytest

import fastsim as fs
from fastsim.engine.audit.metric_definitions import (
    BETTER,
    ENGINES,
    FIGURE_TABLES,
    chosen,
    definition,
    definition_text,
    definitions,
)
from fastsim.engine.totals.job_totals import JOB_COLUMNS
from fastsim.errors import ScenarioError
from fastsim.reports import report_charts
from tests.engines import RUNS, small_run

TABLES = [table for table in FIGURE_TABLES if table != "charts"]
CHARTS = set(report_charts.KEYS)


@pytest.fixture(scope="module")
def runs() -> dict[str, fs.Result]:
    return {engine: small_run(engine) for engine in ENGINES}


def test_every_engine_has_a_run() -> None:
    assert tuple(RUNS) == ENGINES


@pytest.mark.parametrize("engine", ENGINES)
def test_each_column_has_exactly_one_definition(runs: dict[str, fs.Result], engine: str) -> None:
    wrong = []
    for table in TABLES:
        for column in runs[engine].frames[table].columns:
            found = [one for one in definitions() if engine in one.engines and one.defines(table, column)]
            if len(found) != 1 or definition(engine, table, column) != found[0]:
                wrong.append((table, column, [one.column for one in found]))
    assert wrong == []


def test_no_definition_is_without_a_column(runs: dict[str, fs.Result]) -> None:
    wrong = []
    for one in definitions():
        for engine in one.engines if one.table in TABLES else ():
            columns = [*runs[engine].frames[one.table].columns, *(JOB_COLUMNS if one.table == "jobs" else ())]
            weighed = engine == "adaptive" and one.column.startswith("jct_mean_weight")  # all jobs weigh 1 there
            if not (weighed or any(one.defines(one.table, column) for column in columns)):
                wrong.append((engine, one.table, one.column))
    assert wrong == []


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_never_knows_is_said(runs: dict[str, fs.Result], engine: str) -> None:
    wrong = []
    for table in ("summary", "jobs"):
        frame = runs[engine].frames[table]
        for column in frame.columns:
            found = definition(engine, table, column)
            if frame[column].null_count() == len(frame) and (found is None or "null" not in found.meaning):
                wrong.append((table, column))
    assert wrong == []


def test_each_chart_has_exactly_one_definition() -> None:
    named = [one.column for one in definitions() if one.table == "charts"]
    assert sorted(named) == sorted(CHARTS)


def test_every_definition_is_complete() -> None:
    for one in definitions():
        assert one.table in FIGURE_TABLES and one.engines and one.better in BETTER, one
        assert one.meaning and one.formula, one


def test_definitions_are_chosen_by_name_and_table() -> None:
    (model,) = chosen(["utilization_v100_pct"], "summary")
    assert model.column == "utilization_{model}_pct" and model.engines == ("shares", "orders", "adaptive")
    assert chosen(["utilization_{model}_pct"]) == [model]
    assert [one.table for one in chosen(["end_s"])] == ["jobs", "placements"]
    assert {one.table for one in chosen(table="jobs")} == {"jobs"} and chosen() == list(definitions())
    with pytest.raises(ScenarioError, match="did you mean 'energy_kwh'"):
        chosen(["energy_kw"])


def test_a_definition_is_told_with_what_there_is_to_say() -> None:
    (plain,) = chosen(["policy_calls"])
    assert definition_text(plain).splitlines() == [
        "summary.policy_calls: how often the policy was asked for an allocation (shares, orders, adaptive)",
        "  formula: count", "  over: first arrival to end of the run",
    ]  # fmt: skip
    (energy,) = chosen(["energy_kwh"])
    assert definition_text(energy).startswith("summary.energy_kwh [kWh]: energy of sockets and GPUs\n")
    assert definition_text(energy).endswith("\n  better: less of it")
