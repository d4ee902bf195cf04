"""``fastsim compare --original`` and the logs that ``run`` and ``export`` write for it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import fastsim_here

RUN = ("run", "--cluster", "gavel:2:2:2", "--workload", "synth:gavel?jobs=6&rate_per_hour=4&seed=1", "--policy", "fifo")


def test_a_run_is_compared_with_the_log_of_an_original(tmp_path: Path) -> None:
    assert fastsim_here(*RUN, "--log", "gavel.log", "--out", "run", cwd=tmp_path).code == 0
    done = fastsim_here("compare", "run", "--original", "gavel:gavel.log", cwd=tmp_path)
    assert (done.code, done.err) == (0, "") and done.out.splitlines()[-1] == "11 of 11 values are equal"
    log = (tmp_path / "gavel.log").read_text()
    (tmp_path / "gavel.log").write_text(log.replace("Cluster utilization: 0.", "Cluster utilization: 1."))
    done = fastsim_here("compare", "run", "--original", "gavel:gavel.log", "--json", cwd=tmp_path)
    rows = {(row["figure"], row["of"]): row for row in json.loads(done.out)}
    assert done.code == 1 and [name for (name, _), row in rows.items() if not row["equal"]] == ["utilization_pct"]
    assert fastsim_here("compare", "run", "--original", "gavel:gavel.log", "--tolerance", 2, cwd=tmp_path).code == 0


def test_sias_log_goes_out_and_in(tmp_path: Path) -> None:
    jobs = "synth:sia?jobs=2&seed=1"
    run = ("run", "--cluster", "sia:1:1:1", "--workload", jobs, "--policy", "sia", "--round-s", 60, "--out", "run")
    assert fastsim_here(*run, cwd=tmp_path).code == 0
    assert fastsim_here("export", "sia-log", "run", "-o", "sia.log", cwd=tmp_path).out.endswith(" rounds\n")
    assert fastsim_here("compare", "run", "--original", "sia:sia.log", cwd=tmp_path).code == 0


def test_wrong_use_is_one_line(tmp_path: Path) -> None:
    assert fastsim_here(*RUN, "--out", "run", cwd=tmp_path).code == 0
    for words, told in (
        (("run", "run", "--original", "gavel:x"), "2 folders with --original"),
        (("run", "--original", "gavel:x", "--html", "a.html"), "charts with --original"),
        (("run", "--tolerance", "0.1"), "--tolerance makes sense with --original only"),
        (("run", "--original", "blox:x"), "expected SYSTEM:FILE"),
        (("run", "--original", "gavel:x"), "x: found No such file"),
    ):
        done = fastsim_here("compare", *words, cwd=tmp_path)
        assert done.code == 2 and told in done.line, done.err
    done = fastsim_here("export", "sia-log", "run", "-o", "sia.log", cwd=tmp_path)
    assert done.code == 1 and not (tmp_path / "sia.log").exists()
