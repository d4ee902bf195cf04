"""traces/README.md describes the tables as they are: every column, its order and its type."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import polars as pl
import pytest

import fastsim as fs

PAGE = (Path(__file__).resolve().parents[2] / "traces/README.md").read_text(encoding="utf-8")
TYPES = {
    pl.Int64: "int64", pl.Int32: "int32", pl.Int16: "int16", pl.Float64: "float64", pl.String: "string",
    pl.Enum: "string", pl.List: "list of int16", pl.Boolean: "bool",
}  # fmt: skip


def described(section: str) -> list[tuple[str, str, str]]:
    """(column, type, null) of a section's table; a line may describe several columns."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = []
    for names, kind, null in re.findall(r"^\| ((?:`\w+` ?)+)\| ([^|]+) \| (yes|no) \|", text, re.M):
        found += [(name, kind, null) for name in re.findall(r"`(\w+)`", names)]
    return found


@pytest.fixture(scope="module")
def result() -> fs.Result:
    cluster = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=2)
    pods = fs.Workload.synth("openb", pods=30, seed=2)
    with pytest.warns(fs.PodTooLarge):
        return fs.simulate(cluster, pods, queue="fifo", deschedule=("frag_one_pod:0.5",))


@pytest.mark.parametrize("name", ["timeline", "placements", "jobs", "summary", "stages"])
def test_output_tables(result: fs.Result, name: str) -> None:
    frame: pl.DataFrame = getattr(result, name)
    actual = [(column, TYPES[kind.base_type()]) for column, kind in frame.schema.items()]
    assert [(column, kind) for column, kind, _ in described(name)] == actual
    assert len(frame) > 0
    never_null = [column for column, _, null in described(name) if null == "no"]
    assert frame.select(pl.col(never_null).null_count()).sum_horizontal().item() == 0


@pytest.mark.parametrize(
    ("cluster", "jobs", "policy", "count"),
    [("gavel:2:2:2", "synth:gavel?jobs=6&seed=1", "fifo", 10), ("sia:6:2:3", "synth:sia?jobs=4&seed=1", "sia", 16)],
)
def test_jobs_in_rounds(cluster: str, jobs: str, policy: str, count: int) -> None:
    frame = fs.simulate(cluster, jobs, policy).jobs
    own = frame.select(frame.columns[frame.columns.index("slowdown") + 1 :])
    actual = [(column, TYPES[kind.base_type()]) for column, kind in own.schema.items()]
    assert [(column, kind) for column, kind, _ in described("jobs in rounds")][:count] == actual
    never_null = [column for column, _, null in described("jobs in rounds")[:count] if null == "no"]
    assert own.select(pl.col(never_null).null_count()).sum_horizontal().item() == 0


def test_the_table_of_an_explanation() -> None:
    cluster = fs.Cluster.uniform(nodes=2, gpu="T4", gpus=2)
    frame = fs.explain(fs.Scenario(cluster, fs.Workload.synth("openb", pods=30, seed=2), "fgd"), sample=30)
    terms = ["fgd_raw", "fgd_points", "fgd_weighted"]
    assert frame.columns[11:14] == terms and set(frame.select(terms).dtypes) == {pl.Int64}
    actual = [(column, TYPES[kind.base_type()]) for column, kind in frame.drop(terms).schema.items()]
    assert [(column, kind) for column, kind, _ in described("explanation")] == actual
    never_null = [column for column, _, null in described("explanation") if null == "no"]
    assert frame.select(pl.col(never_null).null_count()).sum_horizontal().item() == 0


def test_the_table_of_an_explanation_of_a_round() -> None:
    from fastsim.decisions.rounds.columns import COLUMNS, MEANINGS

    named = {pl.List(pl.String): "list of string", pl.List(pl.Float64): "list of float64"}
    text = PAGE.split("\n## explanation of a round\n")[1]
    table = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (yes|no) \| ([^|]+) \| ([^|]+) \|$", text, re.M)
    kinds = {name: named.get(kind) or TYPES[kind] for name, (kind, _) in MEANINGS.items()}
    assert {name: kind for name, kind, *_ in table} == kinds
    assert {name: meaning for name, *_, meaning in table} == {name: text for name, (_, text) in MEANINGS.items()}
    of = {name: [engine for engine, names in COLUMNS.items() if name in names] for name in MEANINGS}
    assert {name: engines for name, *_, engines, _ in table} == {
        name: "all" if len(engines) == len(COLUMNS) else ", ".join(engines) for name, engines in of.items()
    }
    for cluster, jobs, policy in (
        ("gavel:1:1:1", "synth:gavel?jobs=6&rate_per_hour=60&seed=1", "max_min_fairness"),
        ("gavel:1:1:1", "synth:gavel?jobs=6&rate_per_hour=60&seed=1", "las"),
        ("sia:1:0:1", "synth:sia?jobs=4&seed=1", "sia"),
    ):
        run = fs.simulate(cluster, jobs, policy)
        frame = fs.explain(run, t=float(run.jobs["start_s"].to_list()[2]))
        never_null = [name for name, _, null, *_ in table if null == "no" and name in frame.columns]
        assert frame.height and frame.select(pl.col(never_null).null_count()).sum_horizontal().item() == 0


def test_the_table_of_samples() -> None:
    from fastsim.telemetry.readings_table import SCHEMA
    from fastsim.telemetry.telemetry import QUANTITIES

    named = {"timestamp[ms, tz=UTC]": "timestamp in ms, UTC", "double": "float64"}
    actual = [(f.name, named.get(str(f.type), str(f.type)), "yes" if f.nullable else "no") for f in SCHEMA]
    assert described("telemetry") == actual
    text = PAGE.split("\n## telemetry\n")[1].split("\n## ")[0]
    assert all(f"`{name}`" in text for name in QUANTITIES)
    run = fs.simulate("openb:2", "synth:openb?pods=2", telemetry=86_400)
    assert set(run.telemetry["metric"]) <= set(QUANTITIES) and run.telemetry.columns == SCHEMA.names


def test_the_table_of_applications() -> None:
    from fastsim.performance.applications.application_table import APP_SCHEMA

    kinds = {str(field.type).partition("<")[0]: field.type for field in APP_SCHEMA}
    assert set(kinds) == {"string", "double", "list"}
    named = {"string": "string", "double": "float64", "list": "list of struct"}
    actual = [(field.name, named[str(field.type).partition("<")[0]], "no") for field in APP_SCHEMA]
    assert described("applications") == actual
    for line in PAGE.split("\n## applications\n")[1].split("\n## ")[0].splitlines():
        for field in APP_SCHEMA:
            if line.startswith(f"| `{field.name}` | list"):
                assert set(re.findall(r"`(\w+)`", line)) - {field.name} == {f.name for f in field.type.value_type}


def test_the_columns_that_engines_use() -> None:
    from fastsim.simulation.uses.cells import ENGINES, cells
    from fastsim.simulation.uses.columns import CONDITIONS

    lines = PAGE.split("\n## columns by engine\n")[1].split("\n\n")[1].splitlines()
    assert lines[0] == f"| column | {' | '.join(ENGINES)} |"
    shown = {name: [cell.shown(CONDITIONS) for cell in row.values()] for name, row in cells("columns").items()}
    expected = [f"| `{name}` | {' | '.join(row)} |" for name, row in shown.items()]
    assert lines[2:] == expected


def test_the_options_that_engines_use() -> None:
    from fastsim.simulation.uses.cells import cells
    from fastsim.simulation.uses.options import CONDITIONS, ENGINES_OF_SCENARIOS

    guide = resources.files("fastsim").joinpath("guides/sweeps.md").read_text(encoding="utf-8")
    lines = guide.split("\n## Options by engine\n")[1].split("\n\n")[1].splitlines()
    assert lines[0] == f"| option | {' | '.join(ENGINES_OF_SCENARIOS)} |"
    shown = {name: [cell.shown(CONDITIONS) for cell in row.values()] for name, row in cells("options").items()}
    assert lines[2:] == [f"| `{name}` | {' | '.join(row)} |" for name, row in shown.items()]


@pytest.mark.parametrize("name", ["pods", "nodes", "rates", "sensitivities"])
def test_input_tables(name: str) -> None:
    from fastsim.cluster.node_table import NODE_SCHEMA
    from fastsim.performance.rate_table import RATE_SCHEMA
    from fastsim.performance.sensitivity_table import SENSITIVITY_SCHEMA
    from fastsim.workload.schema import POD_SCHEMA

    known = {"pods": POD_SCHEMA, "nodes": NODE_SCHEMA, "rates": RATE_SCHEMA, "sensitivities": SENSITIVITY_SCHEMA}
    schema = known[name]
    assert sorted(column for column, _, _ in described(name)) == sorted(schema.names)
