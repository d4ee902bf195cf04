"""``fastsim sweep`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import fastsim_here
from tests.cli.test_interrupt import interrupted
from tests.objects import node, pod, written

SMALL = """
cluster = "gavel:2:2:2"
policy = ["fifo", "isolated"]
jobs = [5, 8]
"""


def test_a_sweep_prints_and_writes_its_table(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SMALL)
    done = fastsim_here("sweep", "sweep.toml", "--out", "runs", "--workers", 2, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[-1] == "4 runs in runs, table: runs/sweep.parquet"
    assert [line.split()[:2] for line in lines[3:-1]] == [
        ["fifo", "5"],
        ["fifo", "8"],
        ["isolated", "5"],
        ["isolated", "8"],
    ]
    command = fastsim_here("sweep", "sweep.toml", "--out", "runs", "--json", cwd=tmp_path)
    rows = json.loads(command.out)
    assert [row["pods_finished"] for row in rows] == [5, 8, 5, 8]
    files = (tmp_path / "runs").rglob("*")
    assert {path.parent.relative_to(tmp_path / "runs").as_posix() for path in files if path.name == "run.json"} == {
        row["run"] for row in rows
    }
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "policy=fifo", "policy=isolated", "sweep.json", "sweep.parquet",
    ]  # fmt: skip
    planned = fastsim_here("sweep", "sweep.toml", "--out", "others", "--dry-run", cwd=tmp_path)
    assert planned.out.splitlines()[-1] == "4 runs, 0 complete; nothing was run" and not (tmp_path / "others").exists()
    assert [line.split()[1] for line in planned.out.splitlines()[:-1]] == [row["run"] for row in rows]
    stats = fastsim_here("sweep", "stats", "runs", "--pairs", "jobs", cwd=tmp_path)
    assert (stats.code, stats.err) == (0, "") and stats.out.count("best") == 2


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for text, told in (
        ("polici = 'fifo'", "sweep.toml: polici: found an unknown key"),
        (SMALL.replace("isolated", "isolatet"), "sweep.toml: policy[1] 'isolatet': found an unknown name"),
        (SMALL + "window = [", "expected a TOML file"),
        (SMALL + "round_s = -1", "sweep.toml: round_s: found -1, expected seconds above 0"),
        (SMALL.replace("[5, 8]", "{ from = 5 }"), "sweep.toml: jobs: found"),
        (SMALL.replace("isolated", "pollux"), "sweep.toml: found 2 of 4 runs that cannot begin, expected none; pol"),
    ):
        (tmp_path / "sweep.toml").write_text(text)
        done = fastsim_here("sweep", "sweep.toml", "--out", "runs", cwd=tmp_path)
        assert done.code == 2 and told in done.line, done.err
    assert fastsim_here("sweep", "none.toml", "--out", "runs", cwd=tmp_path).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]


def test_interrupted_it_goes_on(tmp_path: Path) -> None:
    slow = SMALL.replace("[5, 8]", "[5, 40000]") + "rate_per_hour = 0.3\nrecord = 'summary'\n"
    (tmp_path / "sweep.toml").write_text(slow.replace("[5, 40000]", "[5]"))
    assert fastsim_here("sweep", "sweep.toml", "--out", "runs", cwd=tmp_path).code == 0
    (tmp_path / "sweep.toml").write_text(slow)
    begun = tmp_path / "runs" / "policy=fifo" / ".jobs=40000.lock"
    code, err = interrupted(["sweep", "sweep.toml", "--out", "runs", "--resume"], tmp_path, begun)
    assert (code, err) == (130, "fastsim: interrupted; 2 of 4 runs are complete; the same command goes on\n")
    for policy in ("fifo", "isolated"):
        assert [path.name for path in (tmp_path / "runs" / f"policy={policy}").iterdir()] == ["jobs=5"]


def test_sweep_files_to_begin_with(tmp_path: Path) -> None:
    words = "-p fifo -c 1:1:1 2:2:2 -a 0 -b 4 -n 3 --seeds 0"
    done = fastsim_here("sweep", "init", "gavel-static", "-o", "s.toml", *words.split(), cwd=tmp_path)
    assert (done.code, done.err) == (0, "") and "fastsim sweep s.toml" in done.out
    again = fastsim_here("sweep", "init", "gavel-static", "-o", "s.toml", *words.split(), cwd=tmp_path)
    assert again.code == 2 and "a file that exists already" in again.line
    command = fastsim_here("sweep", "s.toml", "--out", "runs", "--on", "serial", "--json", cwd=tmp_path)
    assert [row["jobs"] for row in json.loads(command.out)] == [2.0, 4.0] * 2
    lost = fastsim_here("sweep", "s.toml", "--out", "none", "--resume", cwd=tmp_path)
    assert lost.code == 1 and "found no sweep, expected one to go on with" in lost.line


@pytest.mark.long
def test_each_warning_is_told_once_by_any_number_of_workers(tmp_path: Path) -> None:
    service = {"kind": "NodePool", "metadata": {"name": "s"}}
    path = written(tmp_path / "now.json", node("n1"), pod("p", {"cpu": 1}), pod("q", {"cpu": 100}), service)
    text = json.dumps(f"kubernetes:{path}")
    (tmp_path / "s.toml").write_text(f"cluster = {text}\nworkload = {text}\npolicy = 'fgd'\nseed = [0, 1, 2, 3]\n")
    done = fastsim_here("sweep", "s.toml", "--out", "runs", "--workers", 2, cwd=tmp_path)
    lines = done.err.splitlines()
    assert done.code == 0 and len(lines) == 2 and all(line.startswith("fastsim: warning: ") for line in lines), lines
    assert "objects of kind NodePool: 1" in done.err and "1 pod is larger than any node" in done.err


def test_stats_put_first_what_the_metric_calls_better(tmp_path: Path) -> None:
    crowded = 'cluster = "openb:8"\nworkload = "synth:openb?pods=150&seed=1&tune=1.2"\n'
    (tmp_path / "s.toml").write_text(crowded + 'policy = ["random", "fgd"]\nseed = [0, 1]\n')
    assert fastsim_here("sweep", "s.toml", "-o", "runs", cwd=tmp_path).code == 0
    for more, falls in (((), True), (("--lower",), False)):
        told = fastsim_here("sweep", "stats", "runs", "--metric", "gpu_alloc_pct", *more, "--json", cwd=tmp_path)
        means = [row["mean"] for row in json.loads(told.out)]
        assert means[0] != means[1] and (means[0] > means[1]) == falls
