"""``fastsim sweep`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import fastsim
from tests.cli.test_interrupt import interrupted

SMALL = """
cluster = "gavel:2:2:2"
policy = ["fifo", "isolated"]
jobs = [5, 8]
"""


def test_a_sweep_prints_and_writes_its_table(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SMALL)
    done = fastsim("sweep", "sweep.toml", "--out", "runs", "--workers", 2, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[-1] == "4 runs in runs, table: runs/sweep.parquet"
    assert [line.split()[:2] for line in lines[3:-1]] == [
        ["fifo", "5"],
        ["fifo", "8"],
        ["isolated", "5"],
        ["isolated", "8"],
    ]
    told = fastsim("sweep", "sweep.toml", "--out", "runs", "--json", cwd=tmp_path)
    rows = json.loads(told.out)
    assert [row["pods_finished"] for row in rows] == [5, 8, 5, 8]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"sweep.parquet", *(row["run"] for row in rows)}


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for text, told in (
        ("polici = 'fifo'", "sweep.toml: polici: found an unknown key"),
        (SMALL.replace("isolated", "isolatet"), "sweep.toml: policy 'isolatet': found an unknown name"),
        (SMALL + "window = [", "expected a TOML file"),
        (SMALL + "round_s = -1", "sweep.toml: round_s: found -1, expected seconds above 0"),
        (SMALL.replace("[5, 8]", "{ from = 5 }"), "sweep.toml: jobs: found"),
    ):
        (tmp_path / "sweep.toml").write_text(text)
        done = fastsim("sweep", "sweep.toml", "--out", "runs", cwd=tmp_path)
        assert done.code == 2 and told in done.line, done.err
    assert fastsim("sweep", "none.toml", "--out", "runs", cwd=tmp_path).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]


def test_interrupted_it_goes_on(tmp_path: Path) -> None:
    slow = SMALL.replace("[5, 8]", "[5, 40000]") + "rate_per_hour = 0.3\nrecord = 'summary'\n"
    (tmp_path / "sweep.toml").write_text(slow)
    first = tmp_path / "runs" / "policy=fifo,jobs=5"
    code, err = interrupted(["sweep", "sweep.toml", "--out", "runs"], tmp_path, first)
    assert (code, err) == (130, "fastsim: interrupted; 1 of 4 runs are complete; the same command goes on\n")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [first.name]
