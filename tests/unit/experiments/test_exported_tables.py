"""Tables of runs and sweeps as CSV, LaTeX and Parquet."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

import fastsim as fs
from fastsim.errors import FastsimError, ResultError
from fastsim.experiments.exported_tables import TABLES, form_of, latex, saved_table, table_bytes
from fastsim.experiments.sweep.sweep import Sweep
from tests.engines import RUNS, small_run

KEYS = {"cluster": "openb:4", "workload": "synth:openb?pods=9", "policy": ["fgd", "best_fit"], "seed": [1, 2]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep."""
    folder = tmp_path_factory.mktemp("sweep") / "runs"
    Sweep(KEYS).run(folder, on="serial")
    return folder


def test_a_run_is_its_table(place: Path) -> None:
    run = place / "policy=fgd" / "seed=1"
    assert saved_table(run, "jobs").equals(fs.Result.load(run).jobs)
    assert saved_table(run, "summary", ["grar", "pods"]).columns == ["grar", "pods"]


def test_rows_of_a_sweep_have_its_keys(place: Path) -> None:
    table = saved_table(place, "jobs")
    assert table.columns[:3] == ["run", "policy", "seed"] and len(table) == 4 * 9
    assert table["policy"].unique(maintain_order=True).to_list() == ["best_fit", "fgd"]
    (place / "sweep.json").rename(place / "kept.json")
    try:
        assert saved_table(place, "jobs").columns[:2] == ["run", "pod_id"]
    finally:
        (place / "kept.json").rename(place / "sweep.json")


def test_the_three_forms_have_the_same_rows(place: Path) -> None:
    table = saved_table(place, "placements")
    assert pl.read_parquet(io.BytesIO(table_bytes(table, "parquet"))).equals(table)
    read = pl.read_csv(io.BytesIO(table_bytes(table, "csv")), infer_schema_length=None)
    assert read.columns == table.columns and read["node"].to_list() == table["node"].to_list()
    assert table_bytes(table, "latex").decode().count(r" \\") == len(table) + 1


@pytest.mark.parametrize("engine", RUNS)
def test_every_table_of_every_engine_is_written_as_csv(engine: str, tmp_path: Path) -> None:
    run = small_run(engine, telemetry=600.0, out=tmp_path / "run")
    assert "?" not in repr(run)
    for name in TABLES:
        path = run.write_csv(name, tmp_path / f"{name}.csv")
        read, table = pl.read_csv(path, infer_schema_length=None), run.table(name)
        assert read.columns == table.columns and len(read) == len(table)
        assert path.read_bytes() == table_bytes(saved_table(tmp_path / "run", name), "csv")
        lists = [column for column, kind in table.schema.items() if kind.is_nested()]
        for column in lists:
            words = [" ".join(map(str, value or ())) for value in table[column].to_list()]
            assert [str(value or "") if value != 0 else "0" for value in read[column].to_list()] == words


def test_a_table_that_was_not_recorded_writes_no_file(tmp_path: Path) -> None:
    run = small_run("pods", record="summary")
    for name, text in (("jobs", "no jobs in a run with"), ("pods", "found 'pods', expected one of summary")):
        with pytest.raises(ResultError, match=text):
            run.write_csv(name, tmp_path / "table.csv")
    assert not any(tmp_path.iterdir())


def test_latex_escapes_names_and_rounds_figures() -> None:
    frame = pl.DataFrame({"a_b": ["50 % & {x}\\"], "value": [1 / 3], "none": [None]})
    lines = latex(frame).splitlines()
    assert lines[0] == r"\begin{tabular}{lrl}" and lines[2] == r"a\_b & value & none \\"
    assert lines[4] == r"50 \% \& \{x\}\textbackslash{} & 0.333333 & -- \\"


def test_latex_keeps_a_name_on_one_line_and_prints_all_its_signs() -> None:
    lines = latex(pl.DataFrame({"node": ["a\n\nb\x07<c>|\rd"]})).splitlines()
    assert lines[4] == r"a b\textbackslash{}x07$<$c$>$\textbar{} d \\" and len(lines) == 7


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("jobz", [], "did you mean 'jobs'"),
        ("telemetry", [], "found no telemetry"),
        ("jobs", ["jct"], "found 'jct', expected some of"),
    ],
)
def test_what_is_not_there_is_refused(place: Path, table: str, columns: list[str], message: str) -> None:
    with pytest.raises(FastsimError, match=message):
        saved_table(place / "policy=fgd" / "seed=1", table, columns)


def test_the_end_of_a_name_is_its_form() -> None:
    assert [form_of(name, None) for name in ("a.csv", "a.tex", "a.parquet")] == ["csv", "latex", "parquet"]
    assert form_of("a.txt", "csv") == "csv"
    with pytest.raises(FastsimError, match=r"a\.txt, expected one that ends in \.csv, \.tex, \.parquet"):
        form_of("a.txt", None)
