"""Own tables: a preview, what looks wrong, and a file only if every row is right."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fastsim.cli.main import exit_code

JOBS = "job,at,minutes,gpus,state\na,2020-01-01 00:01:00,10,2,OK\nb,2020-01-01 00:00:00,0,0.5,OK\nc,,1,1,BAD\n"
MAP = "submit_s=at[iso],duration_s=60 * minutes,num_gpu=gpus,native_id=job"


def called(*arguments: object) -> int:
    """Run one command in this process."""
    return exit_code([str(word) for word in arguments])


def written(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_ten_rows_and_findings_before_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = written(tmp_path, JOBS), tmp_path / "pods.parquet"
    assert called("import", "csv", path, "--map", MAP, "--where", "state = 'OK'") == 0
    shown = capsys.readouterr().out
    assert "submit_s" in shown and "native_state" in shown and shown.endswith("jobs.csv: 2 pods\n")
    assert "warning duration_s row 1 (1 row): ends as it begins" in shown and not output.exists()
    parts = MAP.split(",")
    words = [word for part in parts for word in ("--map", part)]
    assert called("import", "csv", path, *words, "--where", "at IS NOT NULL", "-o", output) == 0
    frame = pl.read_parquet(output)
    assert frame["native_id"].to_list() == ["b", "a"] and frame["gpu_milli"].to_list() == [500, 1000]


def test_nodes_tabs_and_expressions_with_commas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "nodes.tsv", tmp_path / "nodes.parquet"
    path.write_text("kind\tcores\tgib\tcards\nT4\t8\t64\t4\nCPU\t8\t64.26\t0\n")
    mapped = "cpu_milli=1000 * cores,memory_mib=round(gib * 1024, 0),num_gpu=cards,gpu_model=NULLIF(kind, 'CPU')"
    words = ("import", "csv", path, "--nodes", "--delimiter", "\\t", "--map", mapped)
    assert called(*words, "-o", output) == 0
    assert capsys.readouterr().out.endswith("nodes.parquet: 2 nodes\n")
    assert pl.read_parquet(output)["memory_mib"].to_list() == [65_536, 65_802]
    assert called(*words) == 0 and called(*words, "--origin", "keep") == 2


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ("", (), ":4: submit_s = at[iso]: found nothing, expected a value (double); leave such rows out"),
        ("d,2020-01-02,x,1,OK\n", (), ":5: minutes: found 'x', expected a number"),
        ("d,2020-01-02,-1,1,OK\n", ("--where", "at IS NOT NULL"), "duration_s = 60 * minutes: found -60.0, expected"),
        ("d,soon,1,1,OK\n", (), ":5: at: found 'soon', expected a date and time"),
        ("d,2020-01-02,1\n", (), ":5: found 3 fields, expected 5 fields"),
        ("", ("--map", "qos=class"), "qos = class: found no column 'class', expected one of: job, at"),
        ("", ("--map", "qos"), "map: found 'qos', expected column=source"),
        ("", ("--map", "num_gpu=1"), "map: found 'num_gpu=1', expected column=source, each column once"),
        ("", ("--where", "state"), "expected a condition"),
        ("", ("--origin", "max"), "origin: found 'max'"),
        ("", ("--delimiter", "::"), "not one character"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    change: str, words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "pods.parquet"
    assert called("import", "csv", written(tmp_path, JOBS + change), "--map", MAP, *words, "-o", output) == 2
    shown = capsys.readouterr()
    assert message in shown.err and "Traceback" not in shown.err
    assert [one.name for one in tmp_path.iterdir()] == ["jobs.csv"]


def test_a_published_trace_and_its_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, output = tmp_path / "tasks.csv", tmp_path / "pods.parquet"
    trace.write_text("ja,worker,2.0,Terminated,100.0,160.0,600.0,1,50.0,T4\njc,worker,1.0,Waiting,,,100.0,1,,T4\n")
    assert called("import", "pai", trace, "-o", output, "--where", "plan_cpu > 0", "--origin", "keep") == 0
    shown = capsys.readouterr().out
    assert "pods.parquet: 2 pods or jobs\n1 row left out, for which this does not hold: start_time IS NOT NULL" in shown
    assert pl.read_parquet(output)["submit_s"].to_list() == [100.0, 100.0]
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("ma,CPU,96,512,0\nmb,T4,96,512,2\n")
    assert called("import", "pai", nodes, "--nodes", "-o", tmp_path / "nodes.parquet") == 0
    assert called("run", "--cluster", f"pai:{nodes}", "--workload", f"pai:{trace}", "--policy", "best_fit") == 0
    output.unlink()
    capsys.readouterr()
    for words, message in (
        (("--set", "gangs=true"), "unknown option 'gangs', expected options among models, where, origin"),
        (("--set", "gangs"), "option 'gangs'"),
        (("--nodes", "--origin", "keep"), "--origin makes no sense with --nodes"),
        (("--nodes",), "tasks.csv"),
    ):
        assert called("import", "pai", trace, "-o", output, *words) == 2
        assert message in capsys.readouterr().err and not output.exists()
